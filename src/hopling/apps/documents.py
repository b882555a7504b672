"""`hopling graph build --kind documents`: a corpus becomes a graph that is searched in words."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hopling.apps.tables import print_json, print_pairs, print_rows, screen
from hopling.errors import SettingsError
from hopling.progress import progress
from hopling.settings import setting

if TYPE_CHECKING:
    from hopling.graphs.base import Document
    from hopling.graphs.corpus import Corpus
    from hopling.graphs.documents import DocumentGraph
    from hopling.graphs.extract_llm import Complete, Messages
    from hopling.graphs.openie import Extracted, Extractor
    from hopling.graphs.vectors import Embedder

_NUM_SHOWN = 10  # merged names, homonyms and failures that a report lists
_MAX_REPLY_TOKENS = 2048


@dataclass(frozen=True)
class DocumentBuilding:
    """How documents become a graph."""

    extractor: str = setting(
        "", "ours", "spacy, none, or an LLM server's URL; else triples in the files, else spacy."
    )
    served: str = setting("", "ours", "The model's name at that server.")
    embedder: str = setting("", "ours", "minilm, an encoder's folder or name; else words count.")
    passage_words: int = setting(0, "ours", "Cut documents into passages of so many words; 0: no.")
    aliases: str = setting("", "ours", "TSV file of a name and the name that it shall mean.")
    synonymy: float = setting(0.8, "code HippoRAG 2", "Cosine above which two names are joined.")
    estimate: bool = setting(False, "ours", "Only say what the LLM would be asked, and its price.")
    price_read: float = setting(0.0, "ours", "Price of a million tokens that the LLM reads.")
    price_written: float = setting(0.0, "ours", "Price of a million tokens that it writes.")
    budget: float | None = setting(None, "ours", "Stop the LLM when this much is spent.")
    shrink: bool = setting(False, "ours", "Let a smaller graph take the place of a larger one.")


def build_documents(
    sources: Sequence[Path],
    out: Path,
    settings: DocumentBuilding,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Build the graph of a corpus and report; exits with 1 when documents failed.

    A build that was killed goes on where it was, and a finished one reads only what is new.
    """
    from hopling.graphs.corpus import passages, read_corpus
    from hopling.graphs.document_store import EXTRACTIONS, Linking
    from hopling.graphs.documents import DocumentGraph
    from hopling.graphs.openie import Extracted, extract

    corpus = read_corpus(sources, strict=strict)
    documents = corpus.documents
    if settings.passage_words and corpus.extractions is None:
        documents = passages(documents, settings.passage_words)
    if settings.estimate:
        _print_estimate(documents, settings, as_json=as_json)
        return
    journal = out.with_name(f"{out.name}.extractions.jsonl")
    extractor = _extractor(settings, corpus)
    if extractor is None:
        read, name = Extracted(corpus.extractions or []), "given"
    else:
        name = extractor.name
        with progress("Reading", screen(to_stderr=True), unit="documents") as advance:
            read = extract(
                documents, extractor, journal, earlier=out / EXTRACTIONS, on_progress=advance
            )
    graph = DocumentGraph.build(
        documents,
        read.extractions,
        embedder=_embedder(settings.embedder),
        linking=Linking(synonymy=settings.synonymy),
        aliases=read_aliases(Path(settings.aliases)) if settings.aliases else {},
        extractor=name,
    )
    _check_larger(graph, out, settings)
    graph.save(out)
    journal.unlink(missing_ok=True)
    _print_report(graph, out, (corpus, read), as_json=as_json)
    if graph.statistics.failed:
        raise typer.Exit(1)


def is_document_graph(folder: str) -> bool:
    """Return whether a folder holds a document graph."""
    from hopling.graphs.document_store import FORMAT
    from hopling.graphs.layout import MANIFEST

    path = Path(folder) / MANIFEST
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def open_documents(folder: str) -> "DocumentGraph":
    """Return the document graph of a folder, with the embedder that it was built with."""
    from hopling.graphs.document_store import WORDS, read_manifest
    from hopling.graphs.documents import DocumentGraph

    name = read_manifest(Path(folder))["embedder"]
    return DocumentGraph.open(folder, embedder=_embedder("" if name == WORDS else name))


def print_documents(folder: str, *, as_json: bool) -> None:
    """Say what a document graph holds: counts, what was merged, and what failed."""
    _print_report(open_documents(folder), Path(folder), None, as_json=as_json)


def search_documents(folder: str, query: str, *, as_json: bool) -> None:
    """Print the documents that a query finds; exits with 1 when there are none."""
    (found,) = open_documents(folder).retrieve([query])
    if as_json:
        print_json([document._asdict() for document in found])
    elif found:
        rows = [(document.id, document.text[:120]) for document in found]
        print_rows(("document", "text"), rows)
    else:
        print(f"Nothing in {folder} answers {query!r}.")
    if not found:
        raise typer.Exit(1)


def read_aliases(path: Path) -> dict[str, str]:
    """Return a TSV file's names, each with the name that it shall mean."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = [row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if row]
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}).") from error
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not all(cell.strip() for cell in row):
            raise SettingsError(
                f"{path}, row {number}: {row} is not a name, a tab and what it means."
            )
    return {form.strip(): name.strip() for form, name in rows}


def _extractor(settings: DocumentBuilding, corpus: "Corpus") -> "Extractor | None":
    """Return what reads the triples; None where they are given, or not wanted."""
    asked = settings.extractor or ("spacy" if corpus.extractions is None else "none")
    if asked == "none":
        return None
    if asked == "spacy":
        from hopling.graphs.extract_spacy import SpacyExtractor

        return SpacyExtractor()
    if asked.startswith(("http://", "https://")):
        from hopling.graphs.extract_llm import LlmExtractor

        return LlmExtractor(_server(settings, asked), settings.served)
    raise SettingsError(
        f"extractor is {asked!r}; write spacy, none, or the URL of an OpenAI-compatible server."
    )


def _server(settings: DocumentBuilding, url: str) -> "Complete":
    """Return a function that asks the server's model."""
    from hopling.episode import Prompt, View
    from hopling.policies.sampling import Sampling
    from hopling.policies.server import Server
    from hopling.policies.spending import Price

    if not settings.served:
        raise SettingsError(f"{url} may serve several models. Name one: --documents-served NAME.")
    price = None
    if settings.price_read or settings.price_written:
        price = Price(settings.price_read, settings.price_written)
    server = Server(
        url,
        settings.served,
        sampling=Sampling(0.0, max_turn_tokens=_MAX_REPLY_TOKENS),
        price=price,
        budget=settings.budget,
    )
    keys = count()

    def complete(messages: "Messages") -> str:
        told = {message["role"]: message["content"] for message in messages}
        prompt = Prompt(told["user"], told.get("system", ""))
        return server.generate([View(next(keys), "", 0, prompt, (), (), ())], ())[0].text

    return complete


def _embedder(name: str) -> "Embedder | None":
    if not name:
        return None
    from hopling.policies.local_embedder import LocalEmbedder

    return LocalEmbedder.load(name)


def _check_larger(graph: "DocumentGraph", out: Path, settings: DocumentBuilding) -> None:
    """Raise SettingsError when the graph at `out` holds more and may not shrink. [BUGS B16]"""
    if settings.shrink or not is_document_graph(str(out)):
        return
    from hopling.graphs.document_store import read_manifest

    before, now = read_manifest(out)["statistics"], asdict(graph.statistics)
    for name in ("documents", "triples"):
        if now[name] < before[name]:
            raise SettingsError(
                f"The graph at {out} has {before[name]:,} {name}, the one just built "
                f"{now[name]:,}. Write --documents-shrink to replace it, or --out with another "
                "folder."
            )


def _print_estimate(
    documents: "Sequence[Document]", settings: DocumentBuilding, *, as_json: bool
) -> None:
    from hopling.graphs.extract_llm import estimate

    guess = estimate(documents)
    price = settings.price_read * guess.prompt_tokens + settings.price_written * (
        guess.completion_tokens
    )
    pairs = {**guess._asdict(), "price": round(price / 1e6, 2)}
    if as_json:
        print_json(pairs)
    else:
        print_pairs({name.replace("_", " ").removeprefix("num "): n for name, n in pairs.items()})


def _print_report(
    graph: "DocumentGraph",
    folder: Path,
    made: "tuple[Corpus, Extracted] | None",
    *,
    as_json: bool,
) -> None:
    from hopling.graphs.entities import homonyms

    entities, counts = graph.content.facts.entities, asdict(graph.statistics)
    merged = {e.id: dict(e.aliases) for e in entities if len(e.aliases) > 1}
    apart = [[entity.id for entity in group] for group in homonyms(entities)]
    failed = {e.document_id: e.problem for e in graph.content.extractions if e.problem}
    read = {}
    if made:
        corpus, extracted = made
        read = {
            "duplicates dropped": corpus.num_duplicates,
            "empty dropped": corpus.num_empty,
            "bad rows": sum(corpus.bad.values()),
            "read by an earlier run": extracted.num_reused,
            "damaged lines set aside": extracted.num_damaged,
        }
    if as_json:
        print_json({**counts, **read, "merges": merged, "kept_apart": apart, "failures": failed})
        return
    told = {name.replace("_", " "): value for name, value in counts.items()}
    told["average document degree"] = f"{counts['average_document_degree']:.2f}"
    print_pairs({"folder": str(folder), **told, **read})
    if not entities:
        print("No entity was found, so only the documents' text can be searched.")
    for name, forms in sorted(merged.items(), key=lambda one: -len(one[1]))[:_NUM_SHOWN]:
        print(f"  merged into {name!r}: {', '.join(forms)}")
    for ids in apart[:_NUM_SHOWN]:
        print(f"  kept apart: {', '.join(ids)}")
    for document_id, problem in list(failed.items())[:_NUM_SHOWN]:
        print(f"  failed: {document_id}: {problem}")
    if failed:
        print(f"{len(failed)} documents failed. Run the same command again to try only these.")
