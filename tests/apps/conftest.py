"""The command line as a function, a small graph of films, and tasks on it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from chatter import tiny_tokenizer
from hopling.apps.cli import main
from hopling.dialects import ToolCalls, braced
from hopling.episode import Answer, Call, View
from hopling.graphs import build_index
from hopling.policies.local import LocalModel
from hopling.policies.scripted import Scripted

TRIPLES = [
    ("m.1", "directed_by", "m.3"),
    ("m.2", "directed_by", "m.3"),
    ("m.1", "has_actor", "m.4"),
    ("m.2", "has_actor", "m.5"),
    ("m.6", "written_by", "m.7"),
]
NAMES = {
    "m.1": "Kismet",
    "m.2": "The Long Night",
    "m.3": "Ann Lee",
    "m.4": "Dale, Jr.",
    "m.5": "Cy",
    "m.6": "Night",
    "m.7": "Far Off",
}
ASKED = {
    "t1": {"question": "who directed Kismet", "start": ["m.1"], "answers": ["Ann Lee"]},
    "t2": {"question": "who acts in Kismet", "start": ["m.1"], "answers": ["Dale, Jr."]},
    "t3": {"question": "who acts for Ann Lee", "start": ["m.3"], "answers": ["Dale, Jr.", "Cy"]},
}
DIALECT = ToolCalls()


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return what was printed as JSON."""
        return json.loads(self.out)


Hopling = Callable[..., Ran]


@pytest.fixture
def hopling(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Hopling:
    """Return the command line; its cache and its runs are in a folder of the test's own."""
    monkeypatch.setenv("HOPLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    return run


def write_rows(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """Write a TSV file and return its path."""
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """Return the folder of a graph of three films, of which one stands apart."""
    triples = write_rows(tmp_path / "films.tsv", TRIPLES)
    names = write_rows(tmp_path / "names.tsv", list(NAMES.items()))
    build_index(triples, tmp_path / "films", labels=names)
    return tmp_path / "films"


def write_tasks(path: Path, asked: dict[str, dict[str, Any]]) -> Path:
    """Write a task file and return its path."""
    rows = [json.dumps({"id": id, **row}) for id, row in asked.items()]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Return a file of three tasks on the films."""
    return write_tasks(tmp_path / "tasks.jsonl", ASKED)


def player(answers: dict[str, list[str]], *, turns: list[str] | None = None) -> Scripted:
    """Return a policy that looks at m.1 and then answers; `turns` notes whose turn it wrote."""

    def write(view: View) -> str:
        if turns is not None:
            turns.append(view.task_id)
        if not view.turns and view.tools:
            call = Call("Search", {"entities": ["m.1"], "direction": "outgoing"})
            return DIALECT.write([call], "Let me look.")
        return DIALECT.write([Answer(braced(answers[view.task_id]))])

    return Scripted.from_function(write)


@pytest.fixture
def student(tmp_path: Path) -> Path:
    """Return the checkpoint of a run: a random Qwen2 of two layers that never ends a turn."""
    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        initializer_range=0.2,
        eos_token_id=None,
        bos_token_id=None,
        tie_word_embeddings=True,
    )
    folder = tmp_path / "student" / "checkpoint" / "sft"
    LocalModel(Qwen2ForCausalLM(config), tokenizer).save(folder)
    return folder
