"""The flags of `hopling graph build`, and the sources that they make of files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopling.apps.documents import DocumentBuilding
from hopling.apps.tables import screen
from hopling.errors import DataError, SettingsError
from hopling.progress import progress
from hopling.settings import setting

if TYPE_CHECKING:
    from hopling.graphs.layout import LoadReport
    from hopling.graphs.profiles import Profile


@dataclass(frozen=True)
class Building:
    """How files become a graph."""

    out: str = setting("", "ours", "Folder to write.")
    kind: str = setting("triples", "ours", "What the files hold: triples or documents.")
    format: str = setting("", "ours", "What the files are; else their names say it.")
    header: bool = setting(False, "ours", "The first line of tables names their columns.")
    delimiter: str = setting("", "ours", "What parts the fields of tables; else a tab or a comma.")
    profile: str = setting("", "ours", "freebase or wikidata: what is kept of those dumps.")
    drop: tuple[str, ...] = setting((), "ours", "Beginnings of relations that a profile drops.")
    keep: tuple[str, ...] = setting((), "ours", "Relations that a profile keeps all the same.")
    label_languages: tuple[str, ...] = setting((), "ours", "Languages that a profile keeps.")
    statements: bool = setting(False, "ours", "Wikidata: keep statements and their qualifiers.")
    labels: str | None = setting(None, "ours", "TSV file of id and label, or a label property.")
    namespace: str = setting("", "ours", "What is cut from the front of ids, such as an IRI.")
    language: tuple[str, ...] = setting(("en",), "ours", "Languages of the labels shown.")
    memory: int = setting(1024, "ours", "MiB that a build may hold at once.")
    strict: bool = setting(True, "ours", "Stop at a bad line, or else list it in bad_lines.tsv.")
    documents: DocumentBuilding = setting(DocumentBuilding(), "ours")


def build_triples(paths: Sequence[Path], settings: Building) -> "tuple[LoadReport, Profile | None]":
    """Build the index that the settings ask for, and return what was loaded and by which profile.

    Raises DataError for a bad line, with the flag that leaves it out.
    """
    from hopling.graphs.build import BuildSettings, build_index
    from hopling.graphs.formats import Source, format_named
    from hopling.graphs.profiles import profile_named
    from hopling.graphs.terms import LABEL_PREDICATES

    profile = profile_named(
        settings.profile,
        languages=settings.label_languages,
        drop=settings.drop,
        keep=settings.keep,
        statements=settings.statements,
    )
    wanted = format_named(settings.format or ("nt" if profile else ""))
    sources = [
        Source(path, wanted, settings.header, settings.delimiter, profile, read_arrays)
        for path in paths
    ]
    if profile and wanted != "nt":
        raise SettingsError(f"--profile reads N-Triples, not {wanted}. Leave out --format.")
    labels: Sequence[str] | Path = LABEL_PREDICATES
    if settings.labels:
        is_property = "://" in settings.labels and not Path(settings.labels).exists()
        labels = [settings.labels] if is_property else Path(settings.labels)
    with progress("Building", screen(to_stderr=True), unit="bytes") as advance:
        try:
            report = build_index(
                sources,
                settings.out,
                namespace=settings.namespace or (profile.namespace if profile else ""),
                labels=labels,
                settings=BuildSettings(memory_mib=settings.memory, strict=settings.strict),
                on_progress=advance,
            )
        except DataError as error:
            raise DataError(str(error).replace("strict=False", "--no-strict")) from error
    return report, profile


def read_arrays(path: Path) -> Any:
    """Return what a PyG file holds; nothing in it is run."""
    from hopling.training.tensor_files import read_tensors

    return read_tensors(path)
