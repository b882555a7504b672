"""Rows survive a crash, files are whole or absent, secrets stay out of text."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopling import records
from hopling.errors import DataError


def test_a_torn_last_line_is_set_aside_and_the_job_resumes_on_a_fresh_line(tmp_path: Path) -> None:
    """BUGS B34: three lines, the third cut; resume a five-item job; five valid unique lines."""
    path = tmp_path / "results.jsonl"
    path.write_text('{"id": 0}\n{"id": 1}\n{"id": 2, "te')
    done = {row["id"] for row in records.read(path)}
    for item in set(range(5)) - done:
        records.append(path, {"id": item})
    assert done == {0, 1}
    assert [row["id"] for row in records.read(path)] == [0, 1, 2, 3, 4]
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert (tmp_path / "results.jsonl.torn").read_text() == '{"id": 2, "te\n'


def test_a_whole_last_line_that_lost_its_end_is_kept(tmp_path: Path) -> None:
    """Ours, after BUGS B34: a row that can be read is not thrown away."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 0}\n{"id": 1}')
    assert len(records.read(path)) == 2
    records.append(path, {"id": 2})
    assert [row["id"] for row in records.read(path)] == [0, 1, 2]
    assert not (tmp_path / "rows.jsonl.torn").exists()


def test_a_torn_line_longer_than_a_block_is_set_aside_whole(tmp_path: Path) -> None:
    """Ours, after BUGS B34: a torn episode may be longer than what is read at once."""
    path = tmp_path / "rows.jsonl"
    torn = '{"text": "' + "x" * 200_000
    path.write_text('{"id": 0}\n' + torn)
    records.append(path, {"id": 1})
    assert [row["id"] for row in records.read(path)] == [0, 1]
    assert (tmp_path / "rows.jsonl.torn").read_text() == torn + "\n"


@settings(deadline=None, max_examples=50)
@given(cut=st.integers(min_value=0), rows=st.lists(st.text(), min_size=1, max_size=4))
def test_a_cut_at_any_byte_loses_at_most_the_row_it_hit(
    tmp_path_factory: pytest.TempPathFactory, cut: int, rows: list[str]
) -> None:
    """Ours, after BUGS B34: every prefix of a file can be read and resumed."""
    path = tmp_path_factory.mktemp("cut") / "rows.jsonl"
    for text in rows:
        records.append(path, {"text": text})
    whole = path.read_bytes()
    cut %= len(whole) + 1
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    records.append(path, {"text": "next"})
    texts = [row["text"] for row in records.read(path)]
    assert texts in ([*rows[:kept], "next"], [*rows[: kept + 1], "next"])


def test_a_bad_line_within_the_file_is_named(tmp_path: Path) -> None:
    """CONVENTIONS: a message says what was found, what was expected and what to do."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 0}\n[1]\n{"id": 2}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl, line 2: b'\[1\]' is not a JSON object"):
        records.read(path)


def test_a_file_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    """Ours: a first run and a resumed run start alike."""
    assert records.read(tmp_path / "none.jsonl") == []


def test_half_a_character_survives_the_file(tmp_path: Path) -> None:
    """RFC 8259, 8.2: JSON may escape what UTF-8 cannot hold; no episode is lost to it."""
    path = tmp_path / "rows.jsonl"
    records.append(path, {"text": "a\ud83d\u00e9"})
    assert records.read(path) == [{"text": "a\ud83d\u00e9"}]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """BUGS B17: write, then rename."""
    path = tmp_path / "report.json"
    records.write_json(path, {"em": 0.5})
    with pytest.raises(TypeError):
        records.write_json(path, {"em": object()})
    with pytest.raises(UnicodeEncodeError):
        records.write_text(path, "\ud800")
    assert json.loads(path.read_text()) == {"em": 0.5}
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("http://ann:pw@host:1/sparql failed", "http://***@host:1/sparql failed"),
        ("http://ann:p@w@host/sparql", "http://***@host/sparql"),
        ("'https://token@host/x'", "'https://***@host/x'"),
        ("key sk-test-DO-NOT-LOG-123.", "key ***."),
        ("mail me@example.org, http://host/a@b", "mail me@example.org, http://host/a@b"),
        ("short", "short"),
    ],
)
def test_text_leaves_without_secrets(text: str, clean: str) -> None:
    """BUGS B35: neither a password in a URL nor a key of the environment reaches a file."""
    environment = {"TEACHER_API_KEY": "sk-test-DO-NOT-LOG-123", "HOME": "/home/x", "A_KEY": "short"}
    assert records.redact(text, environment) == clean
