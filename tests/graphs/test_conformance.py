"""Every backend of ours gives the same observations on the same graph."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopling.graphs import HopIndex, RdfStore, SparqlEndpoint, build_index
from hopling.testing import check_graph, check_same_graph

NS = "http://t.example/"
NAME = "http://www.w3.org/2000/01/rdf-schema#label"

NODES = [f"<{NS}{name}>" for name in ("a", "b", "B", "c", "z.y", "hub")]
WORDS = st.sampled_from(["Ann", "ann", "Zo\u00eb", "a|b", "two  words", "007", "x" * 420])
# a typed number is left out: a store rewrites "05" as 5, and the index keeps it
TAGS = ["", "@en", "@en-gb", "@mul", "@de"]
TYPED = st.sampled_from([*TAGS, f"^^<{NS}type>"])
LITERALS = st.builds(lambda word, tag: f'"{word}"{tag}', WORDS, TYPED)
NAMES = st.builds(lambda word, tag: f'"{word}"{tag}', WORDS, st.sampled_from(TAGS))
ENDS = st.sampled_from([*NODES, "_:k"])
TRIPLES = st.tuples(
    ENDS, st.sampled_from([f"<{NS}{r}>" for r in ("p", "q.r", "q.s")]), ENDS | LITERALS
)
LABELS = st.tuples(st.sampled_from([*NODES, f"<{NS}p>"]), st.just(f"<{NAME}>"), NAMES)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(TRIPLES, min_size=1, max_size=30), st.lists(LABELS, max_size=8))
def test_all_backends_give_the_same_observations(
    endpoint: Callable[..., SparqlEndpoint],
    server: Callable,
    triples: list[tuple[str, str, str]],
    labels: list[tuple[str, str, str]],
) -> None:
    """Ours: one contract. BUGS.md B03 (labels), B05 (blank nodes), B13 (loops, many edges)."""
    text = "".join(f"{h} {r} {t} .\n" for h, r, t in [*triples, *labels])
    with TemporaryDirectory() as folder:
        source = Path(folder, "t.nt")
        source.write_text(text, encoding="utf-8")
        build_index(source, Path(folder, "index"), namespace=NS)
        plain = HopIndex.open(Path(folder, "index"), kernel="none")
        nodes = list(plain.nodes())
        compiled = HopIndex.open(Path(folder, "index"), kernel="numba")
        with RdfStore.load(source, Path(folder, "store"), namespace=NS) as store:
            for graph in (compiled, store, endpoint(server(text))):
                check_graph(graph, nodes[:4])
                check_same_graph(graph, plain, nodes)
