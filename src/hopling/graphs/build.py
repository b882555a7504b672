"""Builds a hop index from files of triples.

Terms are sorted once, so that an id's place in the dictionary is its place in every listing.
# limit: the dictionary of terms is held in memory (issue 3).
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from zlib import crc32

import numpy as np

from hopling.errors import SettingsError
from hopling.graphs.layout import LoadReport, replaced, write_arrays
from hopling.graphs.names import Label, folded
from hopling.graphs.sources import Lines, OnProgress, kind_of
from hopling.graphs.terms import LABEL_PREDICATES, Namespace, Triple

LITERAL, RELATION = 1, 2  # a term's kind; 0 is an entity that is no relation
TRIGRAM_BITS = 18

PathName = str | PathLike[str]


def build_index(
    sources: PathName | Sequence[PathName],
    folder: PathName,
    *,
    namespace: str = "",
    labels: Sequence[str] | PathName = LABEL_PREDICATES,
    strict: bool = True,
    on_progress: OnProgress | None = None,
) -> LoadReport:
    """Build a hop index in `folder` from N-Triples and TSV files, and return what was loaded.

    `labels` are the predicates (IRIs) whose literals are labels, or a TSV file of id and label.
    With `strict` the first bad line raises DataError; without, bad lines are counted and kept in
    `bad_lines.tsv`. `on_progress` gets the bytes read and the bytes in all.
    An index that stood in the folder stays until the new one is whole.
    """
    paths = [Path(sources)] if isinstance(sources, str | PathLike) else [Path(s) for s in sources]
    if not paths:
        raise SettingsError("No source given; name at least one .nt or .tsv file.")
    for path in paths:
        kind_of(path)
    label_file: Path | None = None
    predicates: Sequence[str] = ()
    if isinstance(labels, str | PathLike):
        label_file = Path(labels)
    else:
        predicates = labels
    graph = _Graph(Namespace(namespace), Namespace(namespace).predicates(predicates))
    with ExitStack() as stack:
        fresh = stack.enter_context(replaced(Path(folder).absolute()))
        rejects = None
        if not strict:
            rejects = (fresh / "bad_lines.tsv").open("w", encoding="utf-8", newline="\n")
            stack.enter_context(rejects)
        lines = Lines(rejects, on_progress)
        every = [*paths, label_file] if label_file else paths
        lines.total = sum(path.stat().st_size for path in every if path.is_file())
        for scope, path in enumerate(paths):
            for triple in lines.triples(path, str(scope)):
                graph.add(triple)
        for node, text in lines.labels(label_file) if label_file else ():
            graph.name(graph.node(node), Label("", text))
        arrays, report = _arrays(graph, lines)
        write_arrays(fresh, arrays, {"report": asdict(report)})
    return report


@dataclass
class _Graph:
    """Triples as numbers in the order read; literals' numbers are negative in `tails`."""

    namespace: Namespace
    label_predicates: frozenset[str]
    names: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    literals: dict[tuple[str, str], int] = field(default_factory=dict)
    relations: dict[int, int] = field(default_factory=dict)
    heads: array = field(default_factory=lambda: array("i"))
    kinds: array = field(default_factory=lambda: array("i"))
    tails: array = field(default_factory=lambda: array("i"))
    labels: set[tuple[int, Label]] = field(default_factory=set)

    def node(self, name: str) -> int:
        number = self.numbers.get(name)
        if number is None:
            short = self.namespace.shorten(name)
            number = self.numbers.setdefault(short, len(self.names))
            if number == len(self.names):
                self.names.append(short)
            self.numbers[name] = number
        return number

    def name(self, node: int, label: Label) -> None:
        if label.text.strip():
            self.labels.add((node, label))

    def add(self, triple: Triple) -> None:
        head, relation, tail, suffix = triple
        if suffix is not None and relation in self.label_predicates:
            language = suffix[1:] if suffix.startswith("@") else ""
            self.name(self.node(head), Label(language, tail))
            return
        self.heads.append(self.node(head))
        self.kinds.append(self.relations.setdefault(self.node(relation), len(self.relations)))
        if suffix is None:
            self.tails.append(self.node(tail))
        else:
            literal = self.literals.setdefault((tail, suffix), len(self.literals))
            self.tails.append(-1 - literal)


def _arrays(graph: _Graph, lines: Lines) -> tuple[dict[str, np.ndarray], LoadReport]:
    is_relation = graph.relations.keys()
    terms = [(name, RELATION * (i in is_relation), "") for i, name in enumerate(graph.names)]
    first_literal = len(terms)
    terms += [(text, LITERAL, suffix) for text, suffix in graph.literals]
    order = sorted(range(len(terms)), key=terms.__getitem__)
    places = np.empty(len(terms), np.int32)
    places[order] = np.arange(len(terms), dtype=np.int32)
    relation_term = np.sort(places[list(graph.relations)])
    relation_rank = np.searchsorted(relation_term, places[list(graph.relations)])

    raw_tails = np.frombuffer(graph.tails, np.int32)
    tails = places[np.where(raw_tails < 0, first_literal - 1 - raw_tails, raw_tails)]
    heads = places[np.frombuffer(graph.heads, np.int32)]
    edges = np.stack([heads, relation_rank[np.frombuffer(graph.kinds, np.int32)], tails])
    num_read = edges.shape[1]
    edges = _distinct(edges)

    kind = np.array([terms[i][1] for i in order], np.uint8)
    suffixes = sorted({suffix for _, suffix in graph.literals})
    suffix_ids = {suffix: i for i, suffix in enumerate(suffixes)}
    arrays = {
        **_texts("term", [terms[i][0] for i in order]),
        "term_kind": kind,
        "term_suffix": np.array([suffix_ids.get(terms[i][2], 0) for i in order], np.int32),
        **_texts("suffix", suffixes),
        "relation_term": relation_term,
        **_runs("outgoing", edges, len(terms)),
        **_runs("incoming", _turned(edges[:, kind[edges[2]] != LITERAL]), len(terms)),
        **_hashed("term", [terms[i][0] for i in order], kind != LITERAL),
    }
    rows = sorted((int(places[node]), label) for node, label in graph.labels)
    arrays |= _label_arrays(rows, len(terms))
    return arrays, _report(graph, lines, arrays, edges, rows, num_read - edges.shape[1])


def _report(
    graph: _Graph,
    lines: Lines,
    arrays: dict[str, np.ndarray],
    edges: np.ndarray,
    rows: list[tuple[int, Label]],
    duplicates: int,
) -> LoadReport:
    is_node = arrays["term_kind"] != LITERAL
    degrees = np.bincount(edges[0], minlength=len(is_node))
    loops = edges[0] == edges[2]
    degrees += np.bincount(edges[2][~loops], minlength=len(is_node))
    degrees *= is_node
    labelled = np.zeros(len(is_node), bool)
    labelled[[node for node, _ in rows]] = True
    starts, texts = arrays["term_start"], arrays["term_text"].tobytes()
    largest = sorted(np.argsort(-degrees, kind="stable")[:10].tolist(), key=lambda i: -degrees[i])
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(arrays[name].tobytes())
    # a relation may have a label without being an entity of the graph
    entities = is_node & ((degrees > 0) | (labelled & (arrays["term_kind"] != RELATION)))
    return LoadReport(
        graph_hash=digest.hexdigest()[:16],
        namespace=graph.namespace.iri,
        triples=edges.shape[1],
        entities=int(entities.sum()),
        relations=len(graph.relations),
        literals=len(graph.literals),
        labels=dict(sorted(Counter(label.language for _, label in rows).items())),
        labelled=int((labelled & entities).sum()),
        duplicates=duplicates,
        self_loops=int(loops.sum()),
        isolated=int((entities & (degrees == 0)).sum()),
        hubs={
            texts[starts[i] : starts[i + 1]].decode(): int(degrees[i])
            for i in largest
            if degrees[i]
        },
        bad_lines=dict(lines.bad),
        examples=tuple(lines.examples),
    )


def _distinct(edges: np.ndarray) -> np.ndarray:
    edges = edges[:, np.lexsort(edges[::-1])]
    if edges.shape[1] == 0:
        return edges
    is_first = np.ones(edges.shape[1], bool)
    is_first[1:] = (edges[:, 1:] != edges[:, :-1]).any(axis=0)
    return edges[:, is_first]


def _turned(edges: np.ndarray) -> np.ndarray:
    turned = edges[::-1]
    return turned[:, np.lexsort(turned[::-1])]


def _runs(direction: str, edges: np.ndarray, num_terms: int) -> dict[str, np.ndarray]:
    """Return CSR with two levels: a node's runs, one a relation, and a run's values."""
    nodes, relations, values = edges
    starts_run = np.ones(len(nodes), bool)
    starts_run[1:] = (nodes[1:] != nodes[:-1]) | (relations[1:] != relations[:-1])
    run_start = np.flatnonzero(starts_run)
    counts = np.bincount(nodes[run_start], minlength=num_terms)
    return {
        f"{direction}_node": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        f"{direction}_relation": relations[run_start].astype(np.int32),
        f"{direction}_run": np.append(run_start, len(nodes)).astype(np.int64),
        f"{direction}_value": values.astype(np.int32),
    }


def _texts(name: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    encoded = [text.encode() for text in texts]
    sizes = np.array([len(text) for text in encoded], np.int64)
    return {
        f"{name}_start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        f"{name}_text": np.frombuffer(b"".join(encoded), np.uint8),
    }


def _hashed(
    name: str, keys: Sequence[str], wanted: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return buckets of a power of two, at least one a key, of the keys' places."""
    chosen = np.arange(len(keys)) if wanted is None else np.flatnonzero(wanted)
    hashes = np.array([crc32(keys[i].encode()) for i in chosen.tolist()], np.uint32)
    num_buckets = 1 << max(0, len(chosen) - 1).bit_length()
    return _bucketed(f"{name}_bucket", hashes & np.uint32(num_buckets - 1), chosen, num_buckets)


def _bucketed(
    name: str, buckets: np.ndarray, places: np.ndarray, num_buckets: int
) -> dict[str, np.ndarray]:
    counts = np.bincount(buckets.astype(np.int64), minlength=num_buckets)
    return {
        f"{name}_start": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        f"{name}_place": places[np.argsort(buckets, kind="stable")].astype(np.int32),
    }


def _label_arrays(rows: list[tuple[int, Label]], num_terms: int) -> dict[str, np.ndarray]:
    languages = sorted({label.language for _, label in rows})
    numbers = {language: i for i, language in enumerate(languages)}
    counts = np.bincount(np.array([node for node, _ in rows], np.int64), minlength=num_terms)
    keys = [folded(label.text) for _, label in rows]
    return {
        **_texts("label", [label.text for _, label in rows]),
        **_texts("language", languages),
        "label_node": np.array([node for node, _ in rows], np.int32),
        "label_language": np.array([numbers[label.language] for _, label in rows], np.int32),
        "node_label": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        **_hashed("label", keys),
        **_trigram_arrays(keys),
    }


def _trigram_arrays(keys: Sequence[str]) -> dict[str, np.ndarray]:
    """Return, for each bucket of three-character pieces, the labels that hold one."""
    joined = np.frombuffer("".join(f" {key} " for key in keys).encode("utf-32-le"), np.uint32)
    sizes = np.array([len(key) + 2 for key in keys], np.int64)
    owners = np.repeat(np.arange(len(keys)), sizes)
    if len(joined) < 3:
        return _bucketed("trigram", np.empty(0, np.int64), np.empty(0, np.int64), 1)
    within = owners[2:] == owners[:-2]
    buckets = trigram_bucket(joined[:-2], joined[1:-1], joined[2:])[within]
    pairs = np.unique(np.stack([buckets.astype(np.int64), owners[:-2][within]]), axis=1)
    return _bucketed("trigram", pairs[0], pairs[1], 1 << TRIGRAM_BITS)


def trigram_bucket(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """Return the bucket of each three-character piece, from its code points (uint32)."""
    mixed = (first * np.uint32(31) + second) * np.uint32(2654435761) + third * np.uint32(40503)
    return mixed >> np.uint32(32 - TRIGRAM_BITS)
