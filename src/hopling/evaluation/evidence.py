"""How much of the evidence the episodes of an evaluation found. [GTA-RAG 4.4]"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hopling.episode import Ending, Episode
from hopling.errors import SettingsError
from hopling.evaluation.intervals import Estimate, bootstrap
from hopling.rewards.evidence import found_all, found_evidence, gained, num_zero_target


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
