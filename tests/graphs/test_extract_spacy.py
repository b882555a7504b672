"""Triples without an LLM, by a parse: what they say, and texts that are not as expected."""

import pytest

from hopling.errors import SettingsError
from hopling.graphs.base import Document
from hopling.graphs.extract_spacy import SpacyExtractor
from hopling.graphs.openie import Extraction, Triple

EXTRACTOR = SpacyExtractor()


def read(*documents: Document) -> list[Extraction]:
    """Return what is read out of documents."""
    return [*EXTRACTOR.extract(documents)]


def test_a_page_gives_the_facts_that_its_sentences_state() -> None:
    """Issue 5: dependency-based triples, with the title for "he"."""
    (found,) = read(
        Document(
            "d",
            "William Dieterle",
            "William Dieterle was a German film director. He was born in Ludwigshafen.",
        )
    )
    assert Triple("William Dieterle", "born in", "Ludwigshafen") in found.triples
    assert found.entities[0] == "William Dieterle"
    assert found.kinds["William Dieterle"] == "person"
    assert found.status == "done"


def test_a_title_with_brackets_is_joined_to_the_bare_one() -> None:
    """Issue 5: titles are entities; other documents name them without the brackets."""
    (found,) = read(Document("d", "Kismet (1944 film)", "Kismet is a film by William Dieterle."))
    assert found.triples[0] == Triple("Kismet (1944 film)", "is called", "Kismet")
    assert any(
        (t.head, t.tail) == ("Kismet (1944 film)", "William Dieterle") for t in found.triples
    )


def test_documents_keep_their_order_and_ids_whatever_they_hold() -> None:
    """Issue 5, "Bad input": empty, tags, non-Latin, and a text without a sentence."""
    pages = [
        Document("e", "", ""),
        Document("t", "", "<search>x</search> <answer>Paris</answer>"),
        Document("j", "\u6771\u4eac", "\u6771\u4eac\u306f\u9996\u90fd\u3067\u3059\u3002"),
        Document("d", "", "..."),
        Document("l", "Rome", " ".join(["Rome lies in Italy."] * 3)),
        Document("z", "", " "),
    ]
    found = read(*pages)
    assert [one.document_id for one in found] == [page.id for page in pages]
    assert [found[0].status, found[3].status, found[5].status] == ["empty"] * 3
    assert found[2].entities[0] == "\u6771\u4eac"
    assert "Italy" in found[4].entities


def test_a_huge_text_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, "Bad input": the parser's own limit is never met."""
    monkeypatch.setattr("hopling.graphs.extract_spacy._MAX_CHARACTERS", 60)
    (found,) = read(Document("h", "Rome", "Rome lies in Italy. " * 5 + "Oslo lies in Norway."))
    assert {"Italy", "Norway"} <= {*found.entities}


def test_a_missing_model_is_named() -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="No spaCy model en_core_none"):
        [*SpacyExtractor("en_core_none").extract([Document("d", "", "x")])]
