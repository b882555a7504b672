"""How much of the evidence the episodes of an evaluation found. [GTA-RAG 4.4]"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hopling.episode import Ending, Episode
from hopling.errors import SettingsError
from hopling.evaluation.evaluate import Evaluation, Scorer
from hopling.evaluation.intervals import Estimate, bootstrap
from hopling.rewards.evidence import found_all, found_evidence, gained, num_zero_target
from hopling.rewards.squad import squad_em, squad_f1


@dataclass(frozen=True)
class Coverage:
    """What GTA-RAG's Table 3 reports; the shares have intervals over questions.

    `zero_target_turns` is a sum over all episodes, so compare it at equal `num_episodes` only.
    """

    documents: Estimate
    chains: Estimate
    zero_target_turns: int
    searches: Estimate
    num_episodes: int


def coverage(episodes: Sequence[Episode], *, seed: int) -> Coverage:
    """Return the share of evidence found (Eq. 22), of whole chains found (Eq. 23), and searches.

    Eq. 22 is over all documents together, so a task with more evidence counts for more. Unscored
    episodes are left out. Raises SettingsError when none is left. [GTA-RAG Eq. 22, Eq. 23]
    """
    scored = [episode for episode in episodes if episode.ending is not Ending.UNSCORED]
    if not scored:
        raise SettingsError(f"none of {len(episodes)} episodes was scored; nothing can be said.")
    ids = list(dict.fromkeys(episode.task.id for episode in scored))

    def share(values: Sequence[float], counts: Sequence[float]) -> Estimate:
        sums = dict.fromkeys(ids, 0.0)
        sizes = dict.fromkeys(ids, 0.0)
        for episode, value, count in zip(scored, values, counts, strict=True):
            sums[episode.task.id] += value
            sizes[episode.task.id] += count
        rng = np.random.default_rng(seed)
        found = bootstrap(list(sums.values()), list(sizes.values()), rng=rng)
        assert found is not None
        return found

    ones = [1.0] * len(scored)
    return Coverage(
        share(
            [len(found_evidence(e)) for e in scored], [len(set(e.task.evidence)) for e in scored]
        ),
        share([found_all(e) for e in scored], ones),
        sum(num_zero_target(e) for e in scored),
        share([len(gained(e)) for e in scored], ones),
        len(scored),
    )


def with_coverage(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation by SQuAD's EM and F1 and, where tasks name evidence, what was found.

    `evidence_found` is each episode's own share; Eq. 22 is in `coverage`.
    """
    scorers: dict[str, Scorer] = {"f1": squad_f1}
    if _has_evidence(evaluation):
        scorers["evidence_found"] = lambda e: len(found_evidence(e)) / len(set(e.task.evidence))
        scorers["complete_chain"] = found_all
        scorers["zero_target_turns"] = num_zero_target
    return evaluation.judged_by(squad_em, scorers)


def coverage_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Return Table 3 of the evaluations whose tasks name evidence, in percent with intervals."""
    lines = [
        f"{'stage':16} {'EM':>5}  {'target documents':>18}  {'complete chains':>18}  "
        f"{'zero-target':>11}  searches"
    ]
    for name, evaluation in evaluations.items():
        if not _has_evidence(evaluation):
            continue
        found = coverage(evaluation.episodes, seed=evaluation.seed)
        right = evaluation.mean("exact_match")
        lines.append(
            f"{name:16} {100 * right.value if right else 0:5.1f}  {_percent(found.documents):>18}  "
            f"{_percent(found.chains):>18}  {found.zero_target_turns:11}  "
            f"{found.searches.value:.2f}"
        )
    return "\n".join(lines)


def _has_evidence(evaluation: Evaluation) -> bool:
    episodes = evaluation.episodes
    return bool(episodes) and all(episode.task.evidence for episode in episodes)


def _percent(found: Estimate) -> str:
    return f"{100 * found.value:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"
