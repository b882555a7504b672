"""`hopling graph`: build an index from files, say what is in it, search, walk, export."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from hopling.apps.building import Building, build_triples
from hopling.apps.documents import (
    build_documents,
    is_document_graph,
    print_documents,
    search_documents,
)
from hopling.apps.flags import AsJson, with_flags
from hopling.apps.tables import print_json, print_pairs, print_rows, screen
from hopling.apps.texts import texts
from hopling.apps.world import MOVIES, open_graph
from hopling.errors import SettingsError
from hopling.settings import setting

if TYPE_CHECKING:
    from hopling.graphs.hop_index import HopIndex
    from hopling.graphs.layout import LoadReport

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command()(texts)

Folder = Annotated[
    str, typer.Argument(help=f"Folder of a graph, an endpoint's URL, or {MOVIES}, the shipped one.")
]
Language = Annotated[str, typer.Option(help="Languages of labels, such as de,en.")]


@dataclass(frozen=True)
class Auditing:
    """Which tasks a graph should fit."""

    tasks: str = setting("", "ours", f"File of tasks, or {MOVIES}.")
    hops: int = setting(4, "ours", "How far answers may be.")
    limit: int | None = setting(None, "ours", "Take this many tasks from the front.")


@app.command()
@with_flags(Building)
def build(
    sources: Annotated[
        list[Path], typer.Argument(help="Files such as .nt.gz, .ttl, .tsv, .csv, .pt; or a corpus.")
    ],
    settings: Building,
    *,
    as_json: AsJson = False,
) -> None:
    """Build a graph that can be searched at once from files of triples, tables or graphs."""
    from hopling.graphs.hop_index import HopIndex

    if not settings.out:
        raise SettingsError("No folder to write was named. Write --out FOLDER.")
    if settings.kind == "documents":
        out = Path(settings.out)
        build_documents(sources, out, settings.documents, strict=settings.strict, as_json=as_json)
        return
    if settings.kind != "triples":
        raise SettingsError(f"kind is {settings.kind!r}; write triples or documents.")
    report, profile = build_triples(sources, settings)
    index = HopIndex.open(settings.out, languages=settings.language)
    dropped = dict(profile.dropped) if profile else {}
    _print_report(report, index, as_json=as_json, dropped=dropped)


@app.command()
@with_flags(Auditing)
def audit(folder: Folder, settings: Auditing, *, as_json: AsJson = False) -> None:
    """Say how well a graph fits a file of tasks, and what to do where it does not."""
    from hopling.apps.audit import audited, rows
    from hopling.apps.evaluate import read
    from hopling.graphs.hop_index import HopIndex

    if settings.hops < 1:
        raise SettingsError(f"hops is {settings.hops}; expected at least 1.")
    tasks = read(settings.tasks, limit=settings.limit, splits=["train", "valid", "test", "unseen"])
    graph = open_graph(folder, console=screen(to_stderr=True))
    relations = graph.relations() if isinstance(graph, HopIndex) else None
    found = audited(graph, tasks, hops=settings.hops, relations=relations)
    if as_json:
        print_json(asdict(found))
        return
    print_pairs(rows(found))
    lists = {
        "starts not found": found.missing_starts,
        "answers not in the graph": found.missing_answers,
        "labels of several nodes": tuple(found.near_duplicates)[:10],
        "relations never reached": (found.unreached or ())[:10],
    }
    for name, examples in lists.items():
        if examples:
            print(f"{name}: {', '.join(examples)}")
    for line in found.suggestions:
        print(f"- {line}")


@app.command()
def info(
    folder: Folder,
    language: Language = "en",
    check: Annotated[
        bool, typer.Option("--check", help="Read all of it, and name damage.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a graph holds: edges, entities, labels, hubs, and what was left out.

    With --check, read every array instead, and exit with 1 when one is not what was written.
    """
    from hopling.graphs.hop_index import HopIndex

    if is_document_graph(folder) and not check:
        print_documents(folder, as_json=as_json)
        return
    index = open_graph(folder, languages=_listed(language), console=screen(to_stderr=True))
    if not isinstance(index, HopIndex):
        raise SettingsError(f"{folder} is an endpoint; only a built graph keeps counts of itself.")
    if check:
        _print_damage(index.folder, as_json=as_json)
    else:
        _print_report(index.info(), index, as_json=as_json)


@app.command()
def export(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="File to write, such as films.graphml.")],
    language: Language = "en",
) -> None:
    """Write a graph as GraphML, which networkx, Gephi and Cytoscape read.

    Nodes have their shown label, and literals as text without datatype or language.
    """
    from hopling.graphs.hop_index import HopIndex
    from hopling.graphs.readers import graphml

    index = open_graph(folder, languages=_listed(language), console=screen(to_stderr=True))
    if not isinstance(index, HopIndex):
        raise SettingsError(f"{folder} is an endpoint; build a graph of its dump to export it.")
    if out.suffix != ".graphml":
        raise SettingsError(f"out is {str(out)!r}; expected a name that ends in .graphml.")
    nodes = (
        graphml.Node(id, label or "", [(e.relation, e.value) for e in edges if e.literal])
        for id in index.nodes()
        for label, edges in zip(index.labels([id]), index.neighbors([id], "outgoing"), strict=True)
    )
    edges = (triple for triple in index.triples() if triple.suffix is None)
    changed = graphml.write(out, index.relations(), nodes, edges)
    print(f"{out}: {index.info().entities:,} nodes.")
    if changed:
        print(f"{changed:,} texts hold characters that XML has not; they became \ufffd.")


@app.command()
def search(
    folder: Folder,
    name: Annotated[str, typer.Argument(help="An id, a label, its beginning, or one like it.")],
    limit: Annotated[int, typer.Option(help="How many ids to list.")] = 10,
    language: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Find ids by id or label: the same label, in another case, one that begins so, similar.

    In a graph of documents, find documents by a query in words.
    """
    if is_document_graph(folder):
        search_documents(folder, name, as_json=as_json)
        return
    graph = open_graph(folder, languages=_listed(language), console=screen(to_stderr=True))
    ids = graph.find(name, limit)
    rows = [
        (id, label, sum(out.values()), sum(incoming.values()))
        for id, label, out, incoming in zip(
            ids,
            graph.labels(ids),
            graph.counts(ids, "outgoing"),
            graph.counts(ids, "incoming"),
            strict=True,
        )
    ]
    head = ("id", "label", "outgoing", "incoming")
    if as_json:
        print_json([dict(zip(head, row, strict=True)) for row in rows])
    elif rows:
        print_rows(head, rows)
    else:
        print(f"Nothing in {folder} is called {name!r} or like it.")
    if not rows:
        raise typer.Exit(1)


@app.command()
def hop(
    folder: Folder,
    ids: Annotated[list[str], typer.Argument(help="Ids of entities.")],
    direction: Annotated[str, typer.Option(help="outgoing or incoming.")] = "outgoing",
    properties: Annotated[str, typer.Option(help="Keep only these, such as a,b.")] = "",
    language: Language = "en",
    as_json: AsJson = False,
) -> None:
    """Walk one hop: print exactly what a model reads when it calls Search."""
    from hopling.episode import Episode, Prompt, Task
    from hopling.tools import OneHopSearch

    graph = open_graph(folder, languages=_listed(language), console=screen(to_stderr=True))
    episode = Episode(Task("hop", ""), Prompt(""))
    tool = OneHopSearch(graph)
    seen = tool(episode, entities=ids, direction=direction, properties=_listed(properties))
    if as_json:
        print_json({"text": seen.text, "nodes": list(seen.nodes), "names": list(seen.names)})
    else:
        print(seen.text)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _print_damage(folder: Path, *, as_json: bool) -> None:
    from hopling.graphs.layout import check_arrays

    damaged = check_arrays(folder)
    if as_json:
        print_json({"damaged": damaged})
    elif damaged:
        print(f"Damaged: {', '.join(damaged)}.")
        print(f"Build the graph again: hopling graph build SOURCE --out {folder}")
    else:
        print(f"{folder} is as it was written.")
    if damaged:
        raise typer.Exit(1)


def _print_report(
    report: "LoadReport",
    index: "HopIndex",
    *,
    as_json: bool,
    dropped: Mapping[str, int] = MappingProxyType({}),
) -> None:
    if as_json:
        print_json(asdict(report) | ({"dropped": dict(dropped)} if dropped else {}))
        return
    share = f" ({report.labelled / report.entities:.1%})" if report.entities else ""
    languages = ", ".join(f"{n:,} {name or 'untagged'}" for name, n in report.labels.items())
    print_pairs(
        {
            "folder": index.folder,
            "triples": report.triples,
            "entities": report.entities,
            "with a label": f"{report.labelled:,}{share}",
            "labels": languages or "none; policies will read ids only",
            "relations": report.relations,
            "literals": report.literals,
            "duplicates dropped": report.duplicates,
            "self loops": report.self_loops,
            "isolated": report.isolated,
            "bad lines": sum(report.bad_lines.values()),
            "namespace": report.namespace or "none",
            "graph hash": report.graph_hash,
        }
    )
    for reason, count in dropped.items():
        print(f"  {count:,} lines dropped by the profile: {reason}")
    for rule, count in report.bad_lines.items():
        print(f"  {count:,} lines: {rule}")
    for example in report.examples:
        print(f"  {example}")
    labels = index.labels(list(report.hubs))
    hubs = zip(report.hubs.items(), labels, strict=True)
    print_rows(("hub", "label", "edges"), [(id, label, edges) for (id, edges), label in hubs])
