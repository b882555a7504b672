"""Readers of documents, and of triples that others extracted."""

import gzip
import json
from pathlib import Path

import pytest

from hopling.errors import DataError, SettingsError
from hopling.graphs.base import Document
from hopling.graphs.corpus import Corpus, passages, read_corpus
from hopling.graphs.openie import Triple

ROWS = [{"title": "Oslo", "text": "In Norway."}, {"title": "Rome", "text": "In Italy."}]
OSLO, ROME = (Document(row["title"], row["title"], row["text"]) for row in ROWS)


def read(folder: Path, name: str, text: str, **options) -> Corpus:
    """Return the corpus of one file of this text."""
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return read_corpus([path], **options)


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.json", "c.json.gz"])
def test_json_corpora_are_read(tmp_path: Path, name: str) -> None:
    """HippoRAG and RouteRAG: a list of {title, text}; JSONL has one a line."""
    lines = "\n".join(map(json.dumps, ROWS)) + "\n\n"
    corpus = read(tmp_path, name, lines if "jsonl" in name else json.dumps(ROWS))
    assert corpus.documents == [OSLO, ROME]
    assert corpus.extractions is None


@pytest.mark.parametrize(
    "row",
    [
        {"_id": "7", "title": "T", "text": "x\ny"},
        {"id": 7, "contents": '"T"\nx\ny'},
        {"id": "7", "title": "T", "contents": "x\ny"},
        {"id": "7", "passage": "T\nx\ny"},
    ],
)
def test_ids_titles_and_texts_under_other_names(tmp_path: Path, row: dict) -> None:
    """USERS 4.4: BEIR and Search-R1 corpora; HippoRAG's passage has its title on top."""
    assert read(tmp_path, "c.jsonl", json.dumps(row)).documents == [Document("7", "T", "x\ny")]


def test_parquet_is_read(tmp_path: Path) -> None:
    """Issue 5: JSONL or parquet."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "c.parquet")
    assert read_corpus([tmp_path / "c.parquet"]).documents == [OSLO, ROME]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"bad\.parquet"):
        read_corpus([tmp_path / "bad.parquet"])


def test_a_folder_of_text_is_a_corpus(tmp_path: Path) -> None:
    """Issue 5: text or Markdown; the first heading is the title, else the file's name."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.md").write_text("intro\n# Heading\nbody")
    (tmp_path / "sub" / "a.txt").write_text("\ufeffplain", encoding="utf-8")
    (tmp_path / "c.png").write_bytes(b"\x89PNG")
    (tmp_path / "empty.txt").write_text(" \n")
    corpus = read_corpus([tmp_path])
    assert [(d.id, d.title) for d in corpus.documents] == [("b.md", "Heading"), ("sub/a.txt", "a")]
    assert corpus.documents[1].text == "plain"
    assert corpus.num_empty == 1


def test_openie_results_of_hipporag_bring_their_triples(tmp_path: Path) -> None:
    """HippoRAG 2's openie_results_ner_*.json."""
    doc = {
        "idx": "chunk-1",
        "passage": "Oslo\nIn Norway.",
        "extracted_entities": ["Oslo", "Norway", ""],
        "extracted_triples": [["Oslo", "is in", "Norway"], ["broken"], []],
    }
    corpus = read(tmp_path, "o.json", json.dumps({"docs": [doc], "avg_ent_chars": 1}))
    assert corpus.documents == [OSLO]
    (extraction,) = corpus.extractions
    assert extraction.entities == ("Oslo", "Norway")
    assert extraction.triples == (Triple("Oslo", "is in", "Norway"),)


def test_tables_of_graphrag_bring_theirs(tmp_path: Path) -> None:
    """USERS 4.3: entities, relationships and text units of graphrag."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    tables = {
        "documents": [{"id": "d1", "title": "atlas.txt", "text": "In Norway."}],
        "text_units": [{"id": "u1", "text": "In Norway.", "document_ids": ["d1"]}],
        "entities": [{"id": "e", "title": "OSLO", "type": "GEO", "text_unit_ids": ["u1"]}],
        "relationships": [
            {"source": "OSLO", "target": "NORWAY", "description": "", "text_unit_ids": ["u1"]}
        ],
    }
    for name, rows in tables.items():
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    corpus = read_corpus([tmp_path])
    assert corpus.documents == [Document("u1", "atlas.txt", "In Norway.")]
    (extraction,) = corpus.extractions
    assert extraction.triples == (Triple("OSLO", "is related to", "NORWAY"),)
    assert extraction.kinds == {"OSLO": "geo"}


def test_what_is_there_twice_is_kept_once(tmp_path: Path) -> None:
    """BUGS B15; issue 5, "Bad input": duplicates; one title may still have two texts."""
    rows = [*ROWS, ROWS[0], {"title": "Oslo", "text": "A ship."}, {"text": "x"}, {"text": "x"}]
    corpus = read(tmp_path, "c.json", json.dumps(rows))
    assert [d.id for d in corpus.documents] == ["Oslo", "Rome", "Oslo #2", "document 4"]
    assert corpus.num_duplicates == 2


def test_empty_texts_are_counted_and_left_out(tmp_path: Path) -> None:
    """BUGS B18: empty texts skipped and counted."""
    corpus = read(tmp_path, "c.json", json.dumps([*ROWS, {"title": "T", "text": " "}]))
    assert (len(corpus.documents), corpus.num_empty) == (2, 1)


def test_half_characters_do_not_reach_the_disk(tmp_path: Path) -> None:
    """Issue 5, "Bad input"."""
    corpus = read(tmp_path, "c.jsonl", '{"id": "a\\ud800", "text": "x\\udfff"}')
    assert corpus.documents[0].text.encode()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("[1]", "not a JSON object"),
        ("{broken", "not a JSON object"),
        (100_000 * '{"text": ', "not a JSON object"),
        ('{"title": "x"}', "must have 'text'; found 'title'"),
        ('{"text": 5}', "must be text"),
        ('{"id": "Oslo", "text": "y"}', "two different documents"),
    ],
)
def test_a_bad_row_is_named_or_counted(tmp_path: Path, line: str, rule: str) -> None:
    """CONVENTIONS, "Errors": file, line and rule."""
    text = f"{json.dumps(ROWS[0])}\n{line}\n"
    with pytest.raises(DataError, match=rf"c\.jsonl, line 2: .*{rule}"):
        read(tmp_path, "c.jsonl", text)
    corpus = read(tmp_path, "c.jsonl", text, strict=False)
    assert corpus.documents == [OSLO]
    assert sum(corpus.bad.values()) == 1


@pytest.mark.parametrize("text", ["", "\n\n", '{"text": ""}'])
def test_an_empty_corpus_is_refused(tmp_path: Path, text: str) -> None:
    """BUGS B14 (1): a clear refusal."""
    with pytest.raises(SettingsError, match="no documents to search"):
        read(tmp_path, "c.jsonl", text)
    (tmp_path / "none").mkdir()
    with pytest.raises(SettingsError, match="no documents to search"):
        read_corpus([tmp_path / "none"])


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="no file or folder"):
        read_corpus([tmp_path / "absent.jsonl"])
    for name, data, rule in [
        ("c.jsonl", b"\xff\xfe", "UTF-8"),
        ("c.jsonl.gz", gzip.compress(b'{"text": "x"}')[:-9], "gzip"),
        ("c.json", b"{", "not JSON"),
        ("c.json", b'{"a": 1}', "list of documents"),
        ("c.docx", b"", "ending"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(SettingsError, match=rule):
            read_corpus([tmp_path / name])


def test_long_documents_become_passages() -> None:
    """Ours: paragraphs stay whole where they fit, nothing is lost."""
    text = "a b c\n\nd e\n\nf g h i j k l"
    found = passages([Document("d", "T", text), Document("s", "", "short")], 5)
    assert [(d.id, d.text) for d in found] == [
        ("d#1", "a b c\n\nd e"),
        ("d#2", "f g h i j"),
        ("d#3", "k l"),
        ("s", "short"),
    ]
