"""Walks on the frontier, worked by hand on the graph of text_world."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.episode import Episode, Prompt, Task
from hopling.errors import SettingsError, ToolError
from hopling.graphs.text import TextGraph
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.testing import check_tool
from hopling.tools.walk import Walk, previews
from text_world import TASK, graph, played, world

WALK = Walk(graph())
NODES = [str(k) for k in range(20)]


def star() -> TextGraph:
    """Return a graph in which node 0 has 19 neighbors."""
    return TextGraph.of(dict.fromkeys(NODES, "x"), [("0", node) for node in NODES])


def frontiers(*walks: str) -> list[list[str]]:
    """Return the frontier after each walk."""
    turns = [f"<walk>{node}</walk>" for node in walks]
    return [WALK.frontier(played(*turns[:k])) for k in range(1, len(turns) + 1)]


def test_the_frontier_is_that_of_equation_2():
    """CNY Eq. 2, by hand: F0 = N(a) = {b, c}; F1 = {c} + (N(b) - read) = {c, d}; F2 = {d}; F3 = {}.

    N(c) = {a, b} adds nothing, since a and b have been read.
    """
    assert WALK.first(TASK) == ["b", "c"]
    assert frontiers("b", "c", "d") == [["c", "d"], ["d"], []]


def test_a_node_that_was_read_never_comes_back():
    """CNY Eq. 2; the public code lets it: c has the neighbor b, which was read before it."""
    episode = played("<walk>b</walk>", "<walk>c</walk>", "<walk>b</walk>")
    again = episode.turns[2].observations[0]
    assert again.error
    assert again.text == "Node b was read already. Frontier: d."
    assert "b" not in WALK.frontier(episode)


def test_a_walk_must_be_on_the_frontier_when_it_is_issued():
    """CNY Alg. 1: d is reached by b only, and a walk that was refused does not count later."""
    episode = played("<walk>d</walk>", "<walk>b</walk>")
    early, late = (turn.observations[0] for turn in episode.turns)
    assert (early.error, late.error) == (True, False)
    assert early.text == "Node d is not on the frontier. Frontier: b, c."
    assert WALK.read(episode) == ["b"]


def test_what_is_no_id_and_what_is_no_action_are_told_so():
    """CNY 4.1, code: three kinds of bad walks, each with its own message."""
    (turn, nothing) = played("<walk>the tree</walk>", "I wonder.").turns
    assert turn.observations[0].text == (
        "There is no node 'the tree'; write the id of a node that was listed. Frontier: b, c."
    )
    assert nothing.observations[0].text == (
        "The turn holds no action. Write <walk>NODE</walk>, or end with <answer>ANSWER</answer>."
    )


def test_an_empty_frontier_asks_for_the_answer():
    """Ours; the public code takes every id then."""
    task = Task("t", "alone", ("h",), ("x",))
    (turn,) = played("<walk>a</walk>", task=task).turns
    assert turn.observations[0].text == (
        "Node a is not on the frontier. No node is left to walk to: give your answer."
    )


def test_a_walk_reveals_the_text_and_previews_what_it_opens():
    """CNY 4.1; DESIGN law 4: the nodes stand beside the text."""
    (turn,) = played("<think>A tree?</think><walk> b </walk>").turns
    assert turn.observations[0].text == "[b] a tall green tree\n[d]: one small bird"
    assert turn.observations[0].nodes == ("b", "d")
    assert turn.observations[0].names == ("Beech", "Dove")


def test_a_node_without_text_can_be_read():
    """Ours: a node without text or neighbors is a node."""
    bare = Task("t", "far", ("e",), ("x",))
    assert played("<walk>f</walk>", task=bare).turns[0].observations[0].text == "[f] (no text)"


def test_a_message_lists_a_few_ids_of_many():
    """PAPERS 2.2: it lists a few valid ids."""
    with pytest.raises(ToolError, match=r"Frontier: 1, 2, 3, .*, 12 \.\.\.\.$"):
        Walk(star())(Episode(Task("t", "?", ("0",)), Prompt("?")), node="77")


def test_an_edge_walks_from_both_ends():
    """CNY App. D.4: the initial frontier is the union, without the two anchors."""
    assert WALK.first(Task("t", "?", ("b", "e"))) == ["a", "c", "d", "f"]
    assert WALK.first(Task("t", "?", ("a", "b"))) == ["c", "d"]


def test_caps_draw_by_the_node_alone():
    """CNY Table 9, code: the same task shows the same frontier in every episode of a group."""
    for walk in (Walk(star(), max_first=3), Walk(star(), max_new=3)):
        first = walk.first(Task("t", "?", ("0",)))
        assert len(first) == 3
        assert first == walk.first(Task("another", "?", ("0",)))
        assert first == sorted(first, key=int)
    assert len(Walk(star(), max_first=3).opened("0")) == 19


def test_the_budget_of_walks_counts_those_that_were_carried_out():
    """CNY Alg. 1, T_max; max_turns of the environment counts turns, the answer's included."""
    walk = Walk(graph(), max_walks=1)
    turns = ("<walk>x</walk>", "<walk>b</walk>", "<walk>d</walk>", "<answer>tree</answer>")
    episode = played(*turns, walk=walk)
    texts = [turn.observations[0].text for turn in episode.turns[:-1]]
    assert texts[2] == "All 1 walks are used. Give your answer."
    assert walk.read(episode) == ["b"]


def test_a_limit_below_one_is_refused():
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="max_walks is 0; expected 1 or more"):
        Walk(graph(), max_walks=0)


def test_interleaved_episodes_walk_as_separate_ones():
    """DESIGN law 1: the frontier is computed from the episode."""
    scripts = {
        "t": ["<walk>b</walk>", "<walk>d</walk>"],
        "u": ["<walk>c</walk>", "<walk>b</walk>"],
    }
    tasks = [TASK, Task("u", "?", ("a",), ("x",))]
    together = rollout(Scripted(scripts), world(max_turns=2), tasks)
    alone = [rollout(Scripted(scripts), world(max_turns=2), [task])[0] for task in tasks]
    assert [e.turns for e in together] == [e.turns for e in alone]


def test_the_tool_passes_its_suite():
    """Ours: hopling.testing; an episode of the suite starts at the argument itself."""

    class Anywhere(Walk):
        """A walk whose frontier holds node 4 from the start."""

        def frontier(self, episode: Episode) -> list[str]:
            return ["4"]

    check_tool(Anywhere(star()), {"node": "4"})


def test_previews_are_lines_of_id_and_prefix():
    """CNY App. F.1."""
    assert previews(graph(), ["b"]) == ["[b]: a tall green tree"]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20), st.data())
def test_every_frontier_is_the_neighbors_of_what_was_read_without_it(edges, data):
    """CNY Eq. 2, unrolled: F_k = N(read) - read, the start being read."""
    drawn = TextGraph.of(dict.fromkeys(NODES[:8], "x"), [(str(a), str(b)) for a, b in edges])
    walk, task = Walk(drawn), Task("t", "?", ("0",), ("x",))
    read, turns = ["0"], []
    while frontier := sorted({n for r in read for n in drawn.neighbors(r)} - {*read}):
        episode = played(*turns, task=task, walk=walk) if turns else Episode(task, Prompt("?"))
        assert sorted(walk.frontier(episode)) == frontier
        read.append(data.draw(st.sampled_from(frontier)))
        turns.append(f"<walk>{read[-1]}</walk>")
