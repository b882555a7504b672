"""`hopling graph build --kind documents`: what it writes, says, resumes and refuses."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from apps.conftest import Hopling
from hopling.apps import documents as module
from hopling.graphs.base import Document
from hopling.graphs.documents import DocumentGraph, Extraction, Triple
from hopling.policies import server

ROWS = [
    {"title": "Kismet", "text": "Kismet is a 1944 film directed by William Dieterle."},
    {"title": "William Dieterle", "text": "He was born in Ludwigshafen."},
    {"title": "Rome", "text": "Rome lies on the Tiber."},
]


class Given:
    """An extractor that knows one triple a document, and fails where it is told to."""

    name = "given"

    def __init__(self, failing: Sequence[str] = ()) -> None:
        self.failing, self.asked = failing, []

    def extract(self, documents: Sequence[Document]) -> Iterator[Extraction]:
        """Yield an extraction for each document."""
        for document in documents:
            self.asked.append(document.id)
            if document.id in self.failing:
                yield Extraction(document.id, problem="bad JSON")
            else:
                yield Extraction(document.id, triples=(Triple(document.id, "is in", "Europe"),))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a file of three documents, one of them twice."""
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(map(json.dumps, [*ROWS, ROWS[0]])))
    return path


def with_extractor(monkeypatch: pytest.MonkeyPatch, extractor: Given) -> Given:
    """Let builds read with this extractor."""
    monkeypatch.setattr(module, "_extractor", lambda settings, corpus: extractor)
    return extractor


def test_a_corpus_becomes_a_graph_that_answers(hopling: Hopling, corpus: Path) -> None:
    """Issue 5: one command, spaCy by default; statistics beside what was left out."""
    out = corpus.parent / "g"
    ran = hopling("graph", "build", corpus, "--kind", "documents", "--out", out, "--json")
    assert ran.code == 0
    assert (ran.json["documents"], ran.json["duplicates dropped"]) == (3, 1)
    assert ran.json["triples"] > 2
    found = hopling("graph", "search", out, "Who directed Kismet?", "--json")
    assert {"Kismet", "William Dieterle"} <= {row["id"] for row in found.json}
    said = hopling("graph", "info", out)
    assert "relation edges" in said.out
    assert hopling("graph", "search", out, "zzz").code == 1


def test_failed_documents_are_said_and_tried_again(
    hopling: Hopling, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS B16: non-zero exit, and the next run reads only what is missing."""
    build = ("graph", "build", corpus, "--kind", "documents", "--out", corpus.parent / "g")
    with_extractor(monkeypatch, Given(failing=["Rome"]))
    ran = hopling(*build)
    assert ran.code == 1
    assert "failed: Rome: bad JSON" in ran.out
    again = with_extractor(monkeypatch, Given())
    assert hopling(*build).code == 0
    assert again.asked == ["Rome"]
    assert not (corpus.parent / "g.extractions.jsonl").exists()


def test_a_smaller_graph_does_not_replace_a_larger_one(
    hopling: Hopling, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS B16: 570 nodes were overwritten by 111."""
    out = corpus.parent / "g"
    build = ("graph", "build", corpus, "--kind", "documents", "--out", out)
    with_extractor(monkeypatch, Given())
    assert hopling(*build).code == 0
    corpus.write_text(json.dumps(ROWS[0]))
    refused = hopling(*build)
    assert refused.code == 2
    assert "has 3 documents, the one just built 1" in refused.err
    assert len(DocumentGraph.open(out).documents) == 3
    assert hopling(*build, "--documents-shrink").code == 0
    assert len(DocumentGraph.open(out).documents) == 1


def test_merges_are_listed_and_an_alias_table_undoes_them(hopling: Hopling, tmp_path: Path) -> None:
    """BUGS B15: merges listed, reversible; triples that come with the files are used."""
    docs = [
        {"idx": n, "passage": f"T{n}\nx", "extracted_triples": [[name, "is", "big"]]}
        for n, name in enumerate(["ACME Corp", "Acme corp"])
    ]
    (tmp_path / "o.json").write_text(json.dumps({"docs": docs}))
    build = ("graph", "build", tmp_path / "o.json", "--kind", "documents", "--json")
    ran = hopling(*build, "--out", tmp_path / "g")
    assert ran.json["merges"] == {"ACME Corp": {"ACME Corp": 1, "Acme corp": 1}}
    (tmp_path / "aliases.tsv").write_text("Acme corp\tAcme (band)\n")
    table = ("--documents-aliases", tmp_path / "aliases.tsv")
    apart = hopling(*build, "--out", tmp_path / "h", *table)
    assert apart.json["entities"] == 3
    assert apart.json["merges"] == {}
    (tmp_path / "aliases.tsv").write_text("one column\n")
    assert "row 1" in hopling(*build, "--out", tmp_path / "i", *table).err


def test_an_llm_reads_behind_a_server(
    hopling: Hopling, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5: any OpenAI-compatible LLM; its estimate comes before."""
    asked = []

    def reply(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        asked.append(body)
        facts = {"triples": [["Kismet", "has", "director"]]}
        names = {"entities": [{"name": "Kismet", "kind": "work"}]}
        text = json.dumps(facts if "named_entities" in body["messages"][-1]["content"] else names)
        return httpx.Response(200, json={"choices": [{"message": {"content": text}}]})

    real = httpx.Client
    monkeypatch.setattr(
        server.httpx,
        "Client",
        lambda **given: real(**{**given, "transport": httpx.MockTransport(reply)}),
    )
    build = ("graph", "build", corpus, "--kind", "documents", "--out", corpus.parent / "g")
    llm = ("--documents-extractor", "http://localhost:1/v1", "--json")
    guess = hopling(*build, *llm, "--documents-estimate", "--documents-price-read", "100")
    assert guess.json["num_requests"] == 6
    assert guess.json["price"] > 0
    assert not asked
    assert "--documents-served" in hopling(*build, *llm).err
    ran = hopling(*build, *llm, "--documents-served", "some-model")
    assert ran.code == 0
    assert len(asked) == 6
    assert {body["model"] for body in asked} == {"some-model"}
    assert ran.json["triples"] == 1


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (("--documents-extractor", "magic"), "extractor is 'magic'"),
        (("--documents-synonymi", "1"), "No such option"),
    ],
)
def test_flags_that_cannot_be_are_refused(
    hopling: Hopling, corpus: Path, flags: Sequence[str], rule: str
) -> None:
    """CONVENTIONS, "Errors"."""
    build = ("graph", "build", corpus, "--kind", "documents", "--out", corpus.parent / "g")
    ran = hopling(*build, *flags)
    assert ran.code == 2
    assert rule in ran.err
    kind = hopling("graph", "build", corpus, "--kind", "pictures", "--out", corpus.parent / "g")
    assert kind.code == 2
    assert "pictures" in kind.err


def test_an_empty_corpus_is_refused_and_passages_are_cut(hopling: Hopling, tmp_path: Path) -> None:
    """BUGS B14 (1): a clear refusal, non-zero exit."""
    (tmp_path / "c").mkdir()
    build = ("graph", "build", tmp_path / "c", "--kind", "documents", "--out", tmp_path / "g")
    ran = hopling(*build)
    assert ran.code == 2
    assert "no documents to search" in ran.err
    (tmp_path / "c" / "a.txt").write_text("one two three four five")
    cut = ("--documents-passage-words", "2", "--documents-extractor", "none")
    assert hopling(*build, *cut, "--json").json["documents"] == 3
