"""A language model as extractor: what it is asked, what counts as a reply, what failure means."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hopling.errors import WorldError
from hopling.graphs.base import Document
from hopling.graphs.extract_llm import LlmExtractor, estimate, parts
from hopling.graphs.openie import Triple, extract

NAMES = json.dumps({"entities": [{"name": "Oslo", "kind": "place"}, "Norway", {"kind": "x"}, None]})
FACTS = json.dumps({"triples": [["Oslo", "is in", "Norway"], ["broken"], "Oslo"]})
PAGE = Document("d", "Oslo", "Oslo is in Norway.")


class Model:
    """A model that gives, for each document's number, the replies of a script, and counts."""

    def __init__(self, *script: str) -> None:
        self.script = list(script)
        self.asked: list[str] = []

    def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the next reply; an exclamation mark is a server that does not answer."""
        self.asked.append(messages[-1]["content"])
        reply = self.script.pop(0) if self.script else NAMES
        if reply == "!":
            raise WorldError("status 429")
        return reply


def extractor(model: Callable[[Sequence[Mapping[str, str]]], str], **options) -> LlmExtractor:
    """Return an extractor that asks one thing after the other."""
    return LlmExtractor(model, "test", concurrency=1, **options)


def test_names_come_first_and_facts_are_asked_with_them() -> None:
    """GTA-RAG Eq. 4, as HippoRAG does it: named entities, then triples that are told of them."""
    model = Model(NAMES, f"<think>{{}}</think>```json\n{FACTS}\n```")
    (found,) = extractor(model).extract([PAGE])
    assert found.entities == ("Oslo", "Norway")
    assert found.triples == (Triple("Oslo", "is in", "Norway"),)
    assert found.kinds == {"Oslo": "place"}
    assert '"named_entities": ["Oslo", "Norway"]' in model.asked[1]
    assert model.asked[0].startswith("Title: Oslo\nOslo is in Norway.")


@pytest.mark.parametrize(
    "reply", ["", "{}", "no JSON", '{"entities": "x"}', '{"entities": [', "[]"]
)
def test_a_reply_that_is_not_what_was_asked_is_asked_for_again(reply: str) -> None:
    """BUGS B16, B17: bad JSON does not look like an empty extraction."""
    model = Model(reply, NAMES, FACTS)
    (found,) = extractor(model).extract([PAGE])
    assert found.status == "done"
    assert "Reply with JSON alone" in model.asked[1]
    (failed,) = extractor(Model(*[reply] * 9), tries=2).extract([PAGE])
    assert failed.status == "failed"
    assert "2 tries" in failed.problem


def test_an_honest_nothing_is_empty_and_not_failed() -> None:
    """BUGS B16: status empty."""
    (found,) = extractor(Model('{"entities": []}', '{"triples": []}')).extract([PAGE])
    assert found.status == "empty"


def test_b16_ok_ok_silence_bad_json_and_hollow(tmp_path: Path) -> None:
    """BUGS B16: the second run touches only documents 3-5 and leaves 1-2 byte-identical."""
    pages = [Document(str(n), f"T{n}", f"Text {n}.") for n in range(1, 6)]
    journal = tmp_path / "j.jsonl"
    bad = Model(NAMES, FACTS, NAMES, FACTS, "!", "nonsense", "nonsense", "{}", "{}")
    first = extract(pages, extractor(bad, tries=2), journal).extractions
    assert [one.status for one in first] == ["done", "done", "failed", "failed", "failed"]
    kept = journal.read_bytes().split(b"\n")[:2]
    good = Model(*[NAMES, FACTS] * 3)
    second = extract(pages, extractor(good, tries=2), journal).extractions
    assert {asked[7:9] for asked in good.asked} == {"T3", "T4", "T5"}
    assert [one.status for one in second] == ["done"] * 5
    assert journal.read_bytes().split(b"\n")[:2] == kept


def test_a_server_that_stays_silent_ends_the_run_and_keeps_what_was_read(tmp_path: Path) -> None:
    """Issue 5: budget and resume; DESIGN 3: the world failed."""
    pages = [Document(str(n), "", f"Text {n}.") for n in range(9)]
    model = Model(NAMES, FACTS, *"!!!!!!!!!!")
    with pytest.raises(WorldError, match="3 documents in a row"):
        extract(pages, extractor(model, max_silent=3), tmp_path / "j.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["done", "failed", "failed"]


def test_many_documents_at_once_keep_their_order_and_count() -> None:
    """Ours: replies come in any order."""
    pages = [Document(str(n), "", f"Text {n}.") for n in range(20)]

    def model(messages: Sequence[Mapping[str, str]]) -> str:
        told = messages[-1]["content"]
        if "named_entities" in told:
            return FACTS
        return json.dumps({"entities": [told.split(".")[0]]})

    found = extract(pages, LlmExtractor(model, "test", concurrency=4)).extractions
    assert [one.entities for one in found] == [(f"Text {n}",) for n in range(20)]


def test_a_huge_document_is_shown_in_pieces_and_read_as_one() -> None:
    """Issue 5, "Bad input"."""
    page = Document("h", "T", "Oslo is here. " * 1500)
    pieces = parts(page)
    assert len(pieces) == 3
    assert all(piece.startswith("Title: T\n") for piece in pieces)
    model = Model(*[NAMES, FACTS] * 3)
    (found,) = extractor(model).extract([page])
    assert found.entities == ("Oslo", "Norway")
    assert len(model.asked) == 6


def test_an_estimate_counts_requests_and_tokens() -> None:
    """USERS, need 6: what it costs is said before."""
    guess = estimate([PAGE] * 10)
    assert (guess.num_documents, guess.num_requests) == (10, 20)
    assert guess.prompt_tokens > 10 * guess.completion_tokens > 0


def test_the_name_says_model_and_prompts() -> None:
    """BUGS B17: another model's results are not taken for this one's."""
    assert LlmExtractor(Model(), "a").name != LlmExtractor(Model(), "b").name
