from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from hopling.data.drafts import Draft, Drafts, Rejected
from hopling.data.paths import Path
from hopling.data.synthesis import NO_PATH, missed, replayed, synthesize
from hopling.data.teach import KEPT
from hopling.data.templates import Templates
from hopling.errors import SettingsError, WorldError
from hopling.graphs.base import Document
from hopling.graphs.documents import DocumentGraph
from hopling.rewards.evidence import evidence_steps, found_all
from small_corpus import corpus, world

GRAPH = corpus()


@dataclass(frozen=True)
class Blind:
    """The corpus's retriever, which never finds some documents and is down for some queries."""

    hidden: tuple[str, ...] = ()
    down: str = "?"

    def retrieve(self, queries: Sequence[str]) -> list[list[Document]]:
        if any(self.down in query for query in queries):
            raise WorldError("The index did not answer.")
        return [[d for d in some if d.id not in self.hidden] for some in GRAPH.retrieve(queries)]


def _draft(path: Path, queries: tuple[str, ...]) -> Draft:
    return Draft("p", "Where was the director of Kismet born?", ("Oslo",), path.documents, queries)


KISMET = Path(("Kismet", "Ann Lee"), (("Ann Lee",),))
GOOD = _draft(KISMET, ("Kismet was directed by", "Ann Lee was born in"))


@dataclass(frozen=True)
class Same:
    """Writes one question, for whatever path has Kismet."""

    graph: DocumentGraph = GRAPH

    def __call__(self, paths: Sequence[Path]) -> Drafts:
        return [
            replace(GOOD, path_id=path.id) if "Kismet" in path.documents else Rejected("other")
            for path in paths
        ]


def test_every_task_replays_and_earns_all_that_can_be_earned():
    """GTA-RAG Eq. 14: executable by the deployed retriever; CONVENTIONS: gold earns full reward."""
    made = synthesize(Templates(GRAPH), world(GRAPH), hops=(2, 3), wanted=20, max_paths=300, seed=0)
    assert len(made.tasks) > 4
    for episode in made.traces.kept:
        gains = [episode.task.evidence[t] in o.nodes for t, o in enumerate(episode.observations)]
        assert all(gains)
        assert found_all(episode) == 1.0
        assert evidence_steps()(episode) >= 2.0 + 0.25 * len(episode.task.evidence) - 0.35


def test_a_draft_whose_document_is_not_returned_at_its_turn_is_dropped():
    """GTA-RAG 3.4, "Retriever-based validation"."""
    (episode,) = replayed([GOOD.task], world(GRAPH))
    assert missed(episode) is None
    (episode,) = replayed([GOOD.task], world(Blind(hidden=("Ann Lee",))))
    assert missed(episode) == "turn 2 does not return its document"
    swapped = _draft(KISMET, ("Bo Dale was born in", "Kismet was directed by"))
    (episode,) = replayed([swapped.task], world(GRAPH, max_docs=1))
    assert missed(episode) == "turn 1 does not return its document"


def test_a_document_counts_at_its_own_turn_only():
    """GTA-RAG 3.4: at every search turn, its designated document."""
    early = _draft(KISMET, ("Kismet Ann Lee", "the capital of Norway"))
    (episode,) = replayed([early.task], world(GRAPH, max_docs=2))
    assert found_all(episode) == 1.0
    assert missed(episode) == "turn 2 does not return its document"


def test_a_draft_of_more_turns_than_an_episode_has_is_dropped():
    """Ours; GTA-RAG Alg. 1: budget B."""
    (episode,) = replayed([GOOD.task], world(GRAPH, max_turns=2))
    assert missed(episode) == "more turns or tokens than an episode may have"


def test_a_replay_in_which_the_world_failed_says_so():
    """DESIGN law 5."""
    (episode,) = replayed([GOOD.task], world(Blind(down="Ann Lee")))
    assert missed(episode) == "unscored: The index did not answer."


def test_every_path_is_counted_under_what_became_of_it():
    """Issue 5, 5: reasons for every rejection; Table 4's statistics by hops."""
    made = synthesize(Templates(GRAPH), world(GRAPH), hops=(2, 3), wanted=99, max_paths=200, seed=0)
    assert {name: sum(outcomes.values()) for name, outcomes in made.traces.classes.items()} == {
        "2 hop": 100,
        "3 hop": 100,
    }
    kept = sum(outcomes[KEPT] for outcomes in made.traces.classes.values())
    assert kept == len(made.traces.kept)
    assert NO_PATH in made.traces.dropped
    assert "2 hop" in made.traces.table()


def test_without_validation_there_are_as_many_tasks_or_more():
    """GTA-RAG Table 2, "w/o TV": the drafts before the replay."""
    blind = world(Blind(hidden=("Ann Lee",)))
    made = synthesize(Templates(GRAPH), blind, hops=(2,), wanted=99, max_paths=200, seed=0)
    assert {task.id for task in made.tasks} < {task.id for task in made.drafted}
    assert all("Ann Lee" not in task.evidence for task in made.tasks)
    assert any("Ann Lee" in task.evidence for task in made.drafted)


def test_no_more_tasks_are_kept_than_wanted_and_the_first_are_the_same():
    """Ours: how many are wanted does not change which come first."""
    few, many = (
        synthesize(Templates(GRAPH), world(GRAPH), hops=(2,), wanted=n, max_paths=300, seed=0)
        for n in (3, 6)
    )
    assert len(few.tasks) == 3
    assert few.tasks == many.tasks[:3]


def test_a_question_that_came_before_is_left_out():
    """Issue 5, 5: deduplicated."""

    made = synthesize(Same(), world(GRAPH), hops=(2, 3), wanted=9, max_paths=200, seed=0)
    assert len(made.tasks) == 1
    assert made.traces.dropped["the question came before"] >= 1


def test_a_synthesis_of_nothing_is_refused():
    """Ours."""
    with pytest.raises(SettingsError, match="at least one task"):
        synthesize(Templates(GRAPH), world(GRAPH), hops=(2,), wanted=0, max_paths=1, seed=0)
