import json
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import httpx
import pytest

from hopling import records
from hopling.data.drafts import Draft, Rejected
from hopling.data.generator import DraftJson, Generator
from hopling.data.paths import Path
from hopling.episode import Answer, Malformed
from hopling.errors import WorldError
from hopling.policies.scripted import Scripted
from hopling.policies.server import Server
from hopling.policies.spending import Price
from small_corpus import corpus

GRAPH = corpus()
PATHS = [
    Path(("Kismet", "Ann Lee", "Oslo"), (("Ann Lee",), ("Oslo",))),
    Path(("Low", "Bo Dale"), (("Bo Dale",),)),
]
ROW: dict[str, Any] = {
    "question": "Where was the director of Kismet born?",
    "answer": "Oslo",
    "turns": [
        {"thought": "I look for the director.", "document": 1, "query": "director of Kismet"},
        {"thought": "It is Ann Lee.", "document": 2, "query": "Ann Lee born"},
    ],
    "last_thought": "She was born in Oslo.",
}


def _server(reply: Callable[[str], tuple[int, str]], **options: Any) -> Server:
    """Return a server that answers by what the last message says."""

    def answer(request: httpx.Request) -> httpx.Response:
        status, text = reply(json.loads(request.content)["messages"][-1]["content"])
        usage = {"prompt_tokens": 1000, "completion_tokens": 100}
        body = {"choices": [{"message": {"content": text}}], "usage": usage}
        return httpx.Response(status, json=body)

    transport, price = httpx.MockTransport(answer), Price(read=1.0, written=1.0)
    return Server(
        "http://t.example/v1",
        "m",
        transport=transport,
        price=price,
        sleep=lambda s: None,
        **options,
    )


def _said(row: object) -> str:
    return f"Let me see: {{x}}.\n```json\n{json.dumps(row)}\n```"


def test_a_model_writes_question_answer_and_a_query_for_each_document():
    """GTA-RAG 3.4: question, gold answer and turn-by-turn queries; it need not use every one."""
    told: list[str] = []
    server = _server(lambda text: (200, (told.append(text), _said(ROW))[1]))
    (draft,) = Generator(server, GRAPH, num_distractors=2)(PATHS[:1])
    assert draft == Draft(
        PATHS[0].id,
        ROW["question"],
        ("Oslo",),
        ("Kismet", "Ann Lee"),
        ("director of Kismet", "Ann Lee born"),
        ("I look for the director.", "It is Ann Lee.", "She was born in Oslo."),
    )
    assert (
        told[0].index("Document 3: Oslo") < told[0].index("mislead") < told[0].index("Document 4")
    )
    assert "Document 6" not in told[0]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "No JSON object"),
        ({**ROW, "question": " "}, "'question' must be text"),
        ({**ROW, "answer": 7}, "'answer' must be text"),
        ({**ROW, "turns": "none"}, "'turns' must be a list"),
        ({**ROW, "turns": ROW["turns"][:1]}, "two or more documents"),
        ({**ROW, "turns": ROW["turns"][::-1]}, "in order"),
        ({**ROW, "turns": [{"document": 1}, {"document": 2}]}, "needs a 'query'"),
        ({**ROW, "turns": [{"document": True, "query": "a"}] * 2}, "needs a 'document'"),
    ],
)
def test_what_cannot_be_read_is_told_to_the_model(row: dict[str, Any], problem: str):
    """Issue 5, 5: retries; BUGS B23."""
    (action,) = DraftJson().parse(json.dumps(row))
    assert isinstance(action, Malformed)
    assert problem in action.reason


def test_half_a_draft_is_asked_for_again():
    """Issue 5, 5: retries; BUGS B16: broken JSON is no empty result."""
    told: list[str] = []

    def reply(text: str) -> tuple[int, str]:
        told.append(text)
        return 200, _said(ROW) if "No JSON" in text else json.dumps(ROW)[:-3]

    (draft,) = Generator(_server(reply), GRAPH)(PATHS[:1])
    assert isinstance(draft, Draft)
    assert len(told) == 2
    silent = Generator(_server(lambda text: (200, "no")), GRAPH, max_tries=2)
    assert silent(PATHS[:1]) == [Rejected("the model wrote no draft that can be read")]


def test_a_draft_may_use_documents_of_the_chain_only():
    """GTA-RAG 3.4: the others are distractors."""
    row = {**ROW, "turns": [{**ROW["turns"][0]}, {**ROW["turns"][1], "document": 4}]}
    (draft,) = Generator(_server(lambda text: (200, _said(row))), GRAPH)(PATHS[:1])
    assert draft == Rejected("the draft uses a document that is not of the chain")


def test_what_was_said_is_not_asked_again(tmp_path: FilePath):
    """Issue 5, "Bad input": a killed synthesis resumes to the same result."""
    record = tmp_path / "drafts.jsonl"
    down = _server(
        lambda text: (500, "") if "joined by: Bo" in text else (200, _said(ROW)), retries=0
    )
    first = Generator(down, GRAPH, record)(PATHS)
    assert isinstance(first[1], Rejected)
    assert first[1].reason.startswith("unscored: ")
    told: list[str] = []
    up = _server(lambda text: (200, (told.append(text), _said(ROW))[1]))
    second = Generator(up, GRAPH, record)(PATHS)
    assert len(told) == 1
    assert second[0] == first[0]
    assert [row["task"]["id"] for row in records.read(record)] == [path.id for path in PATHS]
    assert Generator(Scripted({}), GRAPH, record)(PATHS) == second


def test_a_model_that_never_answers_stops_the_synthesis():
    """DESIGN law 5: nothing can be said about the paths; a spent budget ends it too."""
    with pytest.raises(WorldError, match="No question could be written"):
        Generator(_server(lambda text: (500, ""), retries=0), GRAPH)(PATHS)
    spent = _server(lambda text: (200, _said(ROW)), budget=0.001, concurrency=1)
    drafts = Generator(spent, GRAPH)(PATHS)
    assert isinstance(drafts[0], Draft)
    with pytest.raises(WorldError, match="budget"):
        Generator(spent, GRAPH)(PATHS)


def test_a_draft_is_read_as_it_was_written():
    """Ours."""
    answer = Answer(json.dumps(ROW))
    assert DraftJson().parse(DraftJson().write([answer])) == (answer,)
