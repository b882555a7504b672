"""Extractions are kept document by document: resumed, repaired, never done when they failed."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hopling.errors import DataError, WorldError
from hopling.graphs.base import Document
from hopling.graphs.openie import (
    Extraction,
    Triple,
    extract,
    from_row,
    tidied_triples,
    tidy,
    to_row,
)

PAGES = [Document(str(n), f"Title {n}", f"Text {n}.") for n in range(1, 6)]


class Reader:
    """An extractor that fails on some documents, dies at one, and notes what it was asked."""

    def __init__(
        self, failing: Sequence[str] = (), dies_at: str = "", name: str = "reader"
    ) -> None:
        self.failing, self.dies_at, self.name = failing, dies_at, name
        self.asked: list[str] = []

    def extract(self, documents: Sequence[Document]) -> Iterator[Extraction]:
        """Yield one triple for each document."""
        for document in documents:
            if document.id == self.dies_at:
                raise WorldError("gone")
            self.asked.append(document.id)
            if document.id in self.failing:
                yield Extraction(document.id, problem="bad JSON")
            else:
                yield Extraction(document.id, (document.title,), (Triple("a", "b", document.id),))


def test_failed_documents_alone_are_tried_again(tmp_path: Path) -> None:
    """BUGS B16: 5 documents of which 3-5 fail; the second run leaves 1-2 byte-identical."""
    journal = tmp_path / "j.jsonl"
    first = extract(PAGES, Reader(failing=("3", "4", "5")), journal)
    assert [one.status for one in first.extractions] == ["done", "done", *["failed"] * 3]
    begin = journal.read_bytes().split(b"\n")[:2]
    again = Reader()
    second = extract(PAGES, again, journal)
    assert again.asked == ["3", "4", "5"]
    assert second.num_reused == 2
    assert journal.read_bytes().split(b"\n")[:2] == begin
    assert second.extractions == extract(PAGES, Reader()).extractions


def test_a_killed_run_goes_on_to_the_same_result(tmp_path: Path) -> None:
    """Issue 5: a killed build resumes to the same result."""
    journal = tmp_path / "j.jsonl"
    with pytest.raises(WorldError):
        extract(PAGES, Reader(dies_at="4"), journal)
    again = Reader()
    assert extract(PAGES, again, journal).extractions == extract(PAGES, Reader()).extractions
    assert again.asked == ["4", "5"]


def test_a_damaged_journal_is_set_aside_and_its_documents_read_again(tmp_path: Path) -> None:
    """BUGS B17: cut the file in half, damage a line: the same output as a clean run."""
    journal = tmp_path / "j.jsonl"
    whole = extract(PAGES, Reader(), journal).extractions
    lines = journal.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b'"done"', b'"empty"')
    torn = b"\n".join(lines)
    journal.write_bytes(torn[: len(torn) // 2])
    again = Reader()
    repaired = extract(PAGES, again, journal)
    assert repaired.extractions == whole
    assert repaired.num_damaged == 2
    assert again.asked == ["2", "3", "4", "5"]
    assert len((tmp_path / "j.jsonl.damaged").read_bytes().splitlines()) == 2
    assert extract(PAGES, Reader(), journal).num_damaged == 0


def test_what_changed_is_read_again(tmp_path: Path) -> None:
    """BUGS B17: an entry counts for its title, text and extractor only, whatever the id."""
    journal = tmp_path / "j.jsonl"
    extract(PAGES, Reader(), journal)
    renamed = PAGES[0]._replace(id="other")
    changed = PAGES[1]._replace(text="new")
    reader = Reader()
    found = extract([renamed, changed], reader, journal)
    assert reader.asked == ["2"]
    assert [one.document_id for one in found.extractions] == ["other", "2"]
    newer = Reader(name="reader 2")
    extract(PAGES, newer, journal)
    assert len(newer.asked) == 5


def test_a_document_that_the_extractor_forgot_has_failed() -> None:
    """BUGS B16: chunks do not vanish."""

    class Forgetful(Reader):
        def extract(self, documents: Sequence[Document]) -> Iterator[Extraction]:
            return (one for one in super().extract(documents) if one.document_id != "2")

    found = extract(PAGES, Forgetful()).extractions
    assert [one.status for one in found] == ["done", "failed", *["done"] * 3]


def test_a_row_reads_back_and_a_wrong_one_is_refused() -> None:
    """BUGS B17: validated on reading."""
    one = Extraction("d", ("Zo\u00eb",), (Triple("a", "b", "c"),), {"Zo\u00eb": "person"})
    row = json.loads(json.dumps(to_row(one)))
    assert from_row(row) == one
    assert Extraction("d").status == "empty"
    for change in (
        {"triples": [["a", "b"]]},
        {"entities": [1]},
        {"kinds": []},
        {"status": "done?"},
    ):
        with pytest.raises(DataError):
            from_row({**row, **change})


def test_only_names_become_names() -> None:
    """BUGS B16: what a model writes is checked before it is kept."""
    messy = [
        ["a", "b", "c"],
        ["a", "b"],
        "abc",
        None,
        ["", "b", "c"],
        ["a", "b", "c"],
        [1, "b", {}],
    ]
    assert tidied_triples(messy) == (Triple("a", "b", "c"),)
    assert [tidy(x) for x in ("x" * 300, True, "...", 3.5)] == ["", "", "", "3.5"]
