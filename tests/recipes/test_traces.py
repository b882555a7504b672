"""A recipe's teacher: what it will cost, and where its budget ends."""

import json
from functools import partial
from pathlib import Path

import httpx
import pytest

from hopling.data.tasks import movies
from hopling.errors import SettingsError
from hopling.graphs import HopIndex, build_index
from hopling.policies.server import Server
from hopling.recipes import traces
from hopling.recipes.traces import Asked, estimated, taught
from hopling.tools import OneHopSearch

PRICED = {"teacher": "big", "teacher_price_read": 1.0, "teacher_price_written": 1000.0}


@pytest.fixture
def graph(tmp_path: Path) -> HopIndex:
    """Two triples; the stub teacher answers without looking at them."""
    source = tmp_path / "small.tsv"
    source.write_text("Ann\tknows\tBob\nBob\tknows\tAnn\n", encoding="utf-8")
    build_index(source, tmp_path / "index")
    return HopIndex.open(tmp_path / "index")


def teacher(asked: list[dict]) -> partial:
    """Return what stands for Server: it notes each request and answers for 1,000 tokens."""

    def reply(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        message = {"role": "assistant", "content": "Final answer: {Nobody}"}
        usage = {"prompt_tokens": 0, "completion_tokens": 1000}
        return httpx.Response(200, json={"choices": [{"message": message}], "usage": usage})

    return partial(Server, concurrency=1, transport=httpx.MockTransport(reply))


def test_a_budget_stops_the_teacher_and_a_larger_one_goes_on(
    graph: HopIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 2: budget stop and resume; each request costs 1, and none is made twice."""
    asked: list[dict] = []
    monkeypatch.setattr(traces, "Server", teacher(asked))
    tasks, record = list(movies("train"))[:3], tmp_path / "traces.jsonl"
    settings = partial(Asked, benchmark="movies", student="tiny", **PRICED)
    search = OneHopSearch(graph, 50)
    first = taught(settings(teacher_budget=2.0), search, tasks, record=record)
    assert len(asked) == 2
    assert sum(n for why, n in first.dropped.items() if why.startswith("unscored")) == 1
    second = taught(settings(teacher_budget=5.0), search, tasks, record=record)
    assert len(asked) == 3
    assert not any(why.startswith("unscored") for why in second.dropped)


def test_an_estimate_asks_nobody(graph: HopIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2: `--estimate`; the default habits are 4.5 turns of 600 tokens."""
    asked: list[dict] = []
    monkeypatch.setattr(traces, "Server", teacher(asked))
    tasks = list(movies("train"))[:10]
    found = estimated(Asked(benchmark="movies", **PRICED), graph, tasks)
    assert (found.requests, found.written, asked) == (45, 27_000, [])
    assert found.cost == pytest.approx(found.read / 1e6 + 27.0)


def test_half_a_price_and_no_teacher_are_refused(graph: HopIndex) -> None:
    """Ours: neither could be told apart from what is free."""
    with pytest.raises(SettingsError, match="give both"):
        estimated(Asked(benchmark="movies", teacher="big", teacher_price_read=1.0), graph, [])
    with pytest.raises(SettingsError, match="teacher is ''"):
        estimated(Asked(benchmark="movies"), graph, [])
