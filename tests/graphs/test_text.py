"""Text graphs in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.errors import SettingsError
from hopling.graphs.text import TextGraph

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


def made(edges, *, directed: bool = False) -> TextGraph:
    """Return a graph of ten nodes."""
    texts = {str(node): f"text of {node}" for node in range(10)}
    return TextGraph.of(texts, [(str(a), str(b)) for a, b in edges], directed=directed)


def test_links_go_both_ways_once_and_never_to_oneself():
    """CNY 3: A is a matrix of zeros and ones."""
    graph = made([(1, 2), (2, 1), (1, 2), (3, 3), (1, 0)])
    assert graph.neighbors("1") == ("0", "2")
    assert graph.neighbors("2") == ("1",)
    assert graph.neighbors("3") == ()
    assert graph.links == [("0", "1"), ("1", "2")]


def test_directed_links_go_one_way():
    """Ours."""
    graph = made([(1, 2), (2, 1), (1, 0)], directed=True)
    assert graph.neighbors("1") == ("0", "2")
    assert graph.neighbors("0") == ()
    assert graph.links == [("1", "0"), ("1", "2"), ("2", "1")]


def test_links_may_be_given_by_node():
    """DESIGN 8, "A world of one's own"."""
    graph = TextGraph.of({"Noether": "", "Gordan": ""}, {"Noether": ["Gordan"]}, directed=True)
    assert graph.neighbors("Noether") == ("Gordan",)
    assert graph.neighbors("Gordan") == ()


def test_numbers_come_in_their_order():
    """Ours: 10 after 9, wherever they stand in the file."""
    graph = TextGraph.of({"10": "", "9": "", "1": ""}, [("1", "10"), ("1", "9")])
    assert graph.neighbors("1") == ("9", "10")


def test_what_is_no_node_has_no_neighbors_and_is_not_in_the_graph():
    """Ours."""
    graph = made([(1, 2)])
    assert graph.neighbors("x") == ()
    assert "x" not in graph
    assert "1" in graph
    assert len(graph) == 10


def test_a_link_to_nowhere_is_refused():
    """Ours: silently dropped, it would be missed by nobody."""
    with pytest.raises(SettingsError, match="a link ends in 'z', which is no node"):
        TextGraph.of({"a": ""}, [("a", "z")])


def test_a_preview_is_a_prefix_of_the_text():
    """CNY 5.1: deterministic prefix, by a budget of each data set; ours: of words."""
    graph = TextGraph.of({"a": "one  two\nthree four"}, [], names={"a": "Alpha"})
    cut = TextGraph(graph.texts, graph.offsets, graph.targets, preview_words=2, text_words=3)
    assert cut.preview("a") == "one two ..."
    assert cut.text("a") == "one two three ..."
    assert graph.preview("a") == "one two three four"


def test_without_words_a_preview_is_the_name():
    """CNY App. D.5: name-only previews."""
    graph = TextGraph.of({"a": "one"}, [], names={"a": "Alpha"})
    bare = TextGraph(graph.texts, graph.offsets, graph.targets, graph.names, preview_words=0)
    assert bare.preview("a") == "Alpha"


def test_a_name_is_the_id_where_there_is_none():
    """Ours."""
    graph = TextGraph.of({"a": "", "b": ""}, [], names={"a": "Alpha", "b": ""})
    assert [graph.name("a"), graph.name("b")] == ["Alpha", "b"]


def test_the_hash_tells_graphs_apart_by_texts_and_links():
    """Ours."""
    assert made([(1, 2)]).graph_hash == made([(2, 1)]).graph_hash
    assert made([(1, 2)]).graph_hash != made([(1, 3)]).graph_hash


@given(EDGES, st.integers(0, 99))
def test_rewiring_keeps_every_degree(edges, seed):
    """CNY 5.3: degree-preserving; texts untouched."""
    graph = made(edges)
    other = graph.rewired(seed=seed)
    degrees = {node: len(graph.neighbors(node)) for node in graph.texts}
    assert {node: len(other.neighbors(node)) for node in other.texts} == degrees
    assert other.texts == graph.texts
    assert all(a in other.neighbors(b) for a in other.texts for b in other.neighbors(a))


@given(EDGES, st.integers(0, 99))
def test_rewiring_a_directed_graph_keeps_both_degrees(edges, seed):
    """CNY 5.3; ours for directed graphs."""
    graph = made(edges, directed=True)
    other = graph.rewired(seed=seed)
    for end in (0, 1):
        before = sorted(link[end] for link in graph.links)
        assert sorted(link[end] for link in other.links) == before


def test_rewiring_moves_most_links_and_follows_its_seed():
    """CNY 5.3: the topology is destroyed."""
    ring = made([(k, (k + 1) % 10) for k in range(10)])
    moved = ring.rewired(seed=1)
    assert len(set(moved.links) & set(ring.links)) <= 5
    assert moved.links == ring.rewired(seed=1).links != ring.rewired(seed=2).links
