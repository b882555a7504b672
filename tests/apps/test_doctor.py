from typing import Any

import pytest

from apps.conftest import Hopling
from hopling import apps
from hopling.errors import WorldError
from hopling.graphs import sparql


class Endpoint:
    """Stands for an endpoint that cuts at 10,000 rows, or is down."""

    down = False

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> "Endpoint":
        return self

    def __exit__(self, *error: object) -> None: ...

    def probe_row_cap(self) -> int:
        if self.down:
            raise WorldError(f"{self.url} did not answer (3 tries).")
        return 10_000


def found(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return what was found, by what was looked at."""
    return {row["what"]: row["found"] for row in rows}


def test_doctor_says_what_is_there(hopling: Hopling) -> None:
    """USERS.md need 1."""
    ran = hopling("doctor", "--json")
    rows = found(ran.json)
    assert ran.code == 0
    assert {"hopling", "Python", "cores", "memory", "disk", "extra train", "torch threads"} <= {
        *rows
    }
    assert rows["extra train"] == "installed"


def test_doctor_says_what_to_type_for_what_is_missing(
    hopling: Hopling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue: each extra installed or not and what to type."""
    monkeypatch.setattr(apps.doctor, "_is_installed", lambda name: name not in ("trl", "gguf"))
    monkeypatch.setattr(apps.doctor, "find_spec", lambda name: None)
    rows = {row["what"]: (row["found"], row["advice"]) for row in hopling("doctor", "--json").json}
    assert rows["extra train"] == ("missing trl, gguf", "pip install 'hopling[train]'")
    assert rows["torch"] == ("missing", "pip install 'hopling[train]'")
    assert rows["SmolLM2"][0] == "missing"


def test_a_student_s_memory_is_estimated(hopling: Hopling) -> None:
    """The issue: parameters times bytes; 8e9 x 2 bytes are 14.9 GiB."""
    rows = found(hopling("doctor", "--student", "8B", "--json").json)
    assert rows["8B: play, bf16"].startswith("14.90 GiB")


def test_an_endpoint_is_probed_for_its_row_cap(
    hopling: Hopling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS B02: a cap that says nothing."""
    monkeypatch.setattr(sparql, "SparqlEndpoint", Endpoint)
    ran = hopling("doctor", "--endpoint", "http://t.example/sparql")
    assert (ran.code, "cuts at 10,000 rows" in ran.out) == (0, True)


def test_an_endpoint_that_is_down_exits_with_3(
    hopling: Hopling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """USERS.md 3.2: stable exit codes."""
    monkeypatch.setattr(sparql, "SparqlEndpoint", Endpoint)
    monkeypatch.setattr(Endpoint, "down", True)
    ran = hopling("doctor", "--endpoint", "http://t.example/sparql", "--json")
    assert (ran.code, "3 tries" in found(ran.json)["endpoint"]) == (3, True)
