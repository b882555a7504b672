"""Builds a hop index from files of triples, within a bound on memory whatever their size.

Lines become rows of hashes on disk, terms a sorted dictionary, hashes places in it, and edges CSR
in both directions. Terms are sorted once, so that an id's place in the dictionary is its place in
every listing. With and without numba the index is the same, byte by byte.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Literal, get_args

from hopling.errors import SettingsError
from hopling.graphs.collect import Collector, Hash, HashCollision, blake
from hopling.graphs.dictionary import (
    LITERAL,
    RELATION,
    write_dictionary,
    write_term_buckets,
)
from hopling.graphs.edge_arrays import write_edges
from hopling.graphs.formats import LABEL, Source, triples_of
from hopling.graphs.label_arrays import trigram_bucket, write_labels
from hopling.graphs.layout import IndexWriter, LoadReport, replaced
from hopling.graphs.load_report import Reading, Written, reported, write_mediators
from hopling.graphs.sources import Lines, OnProgress
from hopling.graphs.terms import LABEL_PREDICATES, Namespace

__all__ = ["LITERAL", "RELATION", "BuildSettings", "build_index", "trigram_bucket"]

PathName = str | PathLike[str]
From = PathName | Source
Scanner = Literal["auto", "numba", "none"]
Scan = Callable[[Lines, Path, str, Collector], None]

_PAYS_AFTER = 4 << 20  # bytes of text; loading numba takes as long as scanning these in Python
_LEAST_MIB = 64
_RATIO = {".gz": 10, ".zst": 12}  # of text to what is compressed; a guess that costs only memory
_MAX_BITS = 8


@dataclass(frozen=True)
class BuildSettings:
    """How an index is built.

    `memory_mib` bounds what is held at once; Python with its packages takes some 150 MiB more.
    With `strict` the first bad line raises DataError; without, bad lines are counted and kept in
    `bad_lines.tsv`. `mediators` are ids: of relations, whose values are then mediators, and of
    types, of which all nodes with an edge to one are; without any, a mediator is a node without a
    label that has two edges or more. `scanner` is what reads lines: "numba", "none" (Python), or
    "auto", numba where it is installed and the files are large enough to pay for loading it.
    """

    memory_mib: int = 1024
    strict: bool = True
    mediators: Sequence[str] = ()
    scanner: Scanner = "auto"

    def __post_init__(self) -> None:
        if self.memory_mib < _LEAST_MIB:
            raise SettingsError(
                f"memory_mib is {self.memory_mib}; a build needs at least {_LEAST_MIB}."
            )
        if self.scanner not in get_args(Scanner):
            raise SettingsError(f"scanner is {self.scanner!r}; write 'auto', 'numba' or 'none'.")


def build_index(
    sources: From | Sequence[From],
    folder: PathName,
    *,
    namespace: str = "",
    labels: Sequence[str] | PathName = LABEL_PREDICATES,
    settings: BuildSettings = BuildSettings(),
    on_progress: OnProgress | None = None,
) -> LoadReport:
    """Build a hop index in `folder` from files of triples, and return what was loaded.

    `labels` are the predicates (IRIs) whose literals are labels, or a TSV file of id and label.
    `on_progress` gets the bytes read and the bytes in all.
    An index that stood in the folder stays until the new one is whole.
    Raises DataError for a bad line, and SettingsError when the disk is full.
    """
    given = [sources] if isinstance(sources, str | PathLike | Source) else sources
    wanted = [each if isinstance(each, Source) else Source(Path(each)) for each in given]
    if not wanted:
        raise SettingsError("No source given; name at least one .nt or .tsv file.")
    for source in wanted:
        source.check()
    label_file: Path | None = None
    predicates: Sequence[str] = ()
    if isinstance(labels, str | PathLike):
        label_file = Path(labels)
    else:
        predicates = labels
    names = Namespace(namespace)
    reading = Reading(wanted, label_file, names, names.predicates(predicates) | {LABEL})
    for seed in count():
        try:
            with replaced(Path(folder).absolute()) as fresh:
                return _built(reading, fresh, settings, on_progress, seed)
        except HashCollision:
            continue
    raise AssertionError


def _built(
    reading: Reading,
    fresh: Path,
    settings: BuildSettings,
    on_progress: OnProgress | None,
    seed: int,
) -> LoadReport:
    budget = int(settings.memory_mib * (1 << 20))
    with ExitStack() as stack:
        rejects = None
        if not settings.strict:
            rejects = (fresh / "bad_lines.tsv").open("w", encoding="utf-8", newline="\n")
            stack.enter_context(rejects)
        lines = Lines(rejects, on_progress)
        lines.total = sum(path.stat().st_size for path in reading.files if path.is_file())
        size = sum(
            path.stat().st_size * _RATIO.get(path.suffix, 1)
            for path in reading.files
            if path.is_file()
        )
        writer = IndexWriter(fresh)
        hashed, scanned = _scanner(settings.scanner, size, seed)
        bits = min(_MAX_BITS, max(0, (4 * size // budget).bit_length()))
        collector = Collector(
            writer.work, reading.namespace, reading.label_predicates, bits=bits, hashed=hashed
        )
        stack.callback(collector.close)
        for scope, source in enumerate(reading.sources):
            if source.is_lines:
                lines.kind, lines.kept = source.kind, source.kept
                scanned(lines, source.path, str(scope), collector)
                continue
            for triple in triples_of(lines, source, str(scope)):
                collector.add(triple)
        lines.kept = bytes
        for node, text in lines.labels(reading.label_file) if reading.label_file else ():
            collector.add_label(node, text)
        hashes = collector.finish()
        part = budget // 4
        places = write_dictionary(collector, hashes, writer, max_bytes=part)
        part = budget // 8  # labels and edges are written side by side
        with ThreadPoolExecutor(1) as pool:
            labels = pool.submit(write_labels, collector, places, writer, max_bytes=part)
            buckets = pool.submit(write_term_buckets, places, writer, max_bytes=part)
            edges = write_edges(collector, places, writer, max_bytes=part)
            languages = labels.result()
            buckets.result()
        write_mediators(writer, settings.mediators, reading.namespace)
        written = Written(places, edges, languages, collector.num_edges)
        report = reported(writer, lines, reading, written)
        writer.finish({"report": asdict(report)})
    return report


def _scanner(wanted: Scanner, size: int, seed: int) -> tuple[Hash, Scan]:
    """Return how texts are hashed and files read: compiled, or in Python."""
    if wanted == "none" or (wanted == "auto" and size < _PAYS_AFTER):
        return blake(seed), _read
    try:
        from hopling.graphs.scan import FastScan
    except ImportError as error:
        if wanted == "auto":
            return blake(seed), _read
        raise SettingsError(
            f"scanner is 'numba', which cannot be imported ({error}). "
            "Install it: pip install 'hopling[graphs]'; or write scanner='none'."
        ) from error
    fast = FastScan(seed)
    return fast.hashed, fast.read


def _read(lines: Lines, source: Path, scope: str, collector: Collector) -> None:
    for triple in lines.triples(source, scope):
        collector.add(triple)
