import networkx
from hypothesis import given
from hypothesis import strategies as st

from hopling.apps.reach import ways
from hopling.episode import Episode, Prompt, Task
from hopling.tools import OneHopSearch
from small_graph import SmallGraph

NODES = [f"m.{i}" for i in range(8)]
EDGES = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(["r", "s"]), st.sampled_from(NODES)),
    max_size=14,
    unique=True,
)


@given(
    edges=EDGES, start=st.sampled_from(NODES), end=st.sampled_from(NODES), hops=st.integers(0, 4)
)
def test_an_answer_is_reached_iff_a_plain_search_reaches_it(
    edges: list[tuple[str, str, str]], start: str, end: str, hops: int
) -> None:
    """networkx's shortest paths, with edges walked either way."""
    graph = SmallGraph(edges, {node: f"Name {node}" for node in NODES})
    task = Task("t", "?", answers=(f"Name {end}",), answer_ids=(end,))
    (way,) = ways(graph, task, start=[start], hops=hops)
    plain = networkx.Graph([(head, tail) for head, _, tail in edges])
    plain.add_nodes_from(NODES)
    lengths = networkx.single_source_shortest_path_length(plain, start, cutoff=hops)
    assert way.reached == (end in lengths)
    assert (way.call is None) == (not way.reached or start == end)


@given(edges=EDGES, start=st.sampled_from(NODES), end=st.sampled_from(NODES))
def test_the_call_of_a_way_prints_the_answer(
    edges: list[tuple[str, str, str]], start: str, end: str
) -> None:
    """Ours: the call is one that the tool can carry out."""
    graph = SmallGraph(edges, {node: f"Name {node}" for node in NODES})
    task = Task("t", "?", answers=(f"Name {end}",), answer_ids=(end,))
    (way,) = ways(graph, task, start=[start], hops=4)
    if way.call:
        seen = OneHopSearch(graph)(Episode(task, Prompt("?")), **way.call.arguments)
        assert way.answer in seen.names


def test_a_hub_is_not_read_when_the_answer_has_few_edges() -> None:
    """Ours: the search grows at its cheaper end."""
    rows = [("m.0", "has", f"m.{i}") for i in range(1, 500)] + [("m.7", "in", "m.900")]
    graph = SmallGraph(rows, {"m.900": "Far"})
    (way,) = ways(graph, Task("t", "?", answers=("Far",)), start=["m.0"], hops=2)
    assert way.reached
    assert ("m.0",) not in graph.read
