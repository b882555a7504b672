"""Tests of hopling.graphs.readers.rows: triples, text graphs and corpora read rows alike."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hopling.errors import DataError, SettingsError
from hopling.graphs import build_index
from hopling.graphs.corpus import read_corpus
from hopling.graphs.formats import Bad
from hopling.graphs.readers.rows import numbered_rows
from hopling.graphs.text_readers import read_tables

ROW = b'{"source": "a", "target": "b", "id": "a", "text": "t"}\n'
READERS: dict[str, Callable[[Path], object]] = {
    "triples": lambda path: build_index(path, path.with_name("index")),
    "text graph": lambda path: read_tables(path, path),
    "corpus": lambda path: read_corpus([path]),
}


def test_each_line_is_a_row_or_a_bad_one_with_its_number(tmp_path: Path) -> None:
    """BUGS.md B10, B11: UTF-8, a byte order mark, blank lines and Windows line ends."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"a": "NA"}\r\n\n[1]\n{"a": "\xff"}\n' + 100_000 * b"[" + b"\n{}"
    )
    kinds = [
        (n, row.rule if isinstance(row, Bad) else row) for n, row in numbered_rows(path, "jsonl")
    ]
    assert kinds == [
        (1, {"a": "NA"}),
        (3, "not a JSON object"),
        (4, "not UTF-8"),
        (5, "not a JSON object"),
        (6, {}),
    ]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bad", [b"[1]\n", b'{"cut": ', b'{"text": "\xff"}\n'])
def test_a_bad_row_stops_every_reader_with_file_and_line(
    reader: str, bad: bytes, tmp_path: Path
) -> None:
    """BUGS.md B10; CONVENTIONS, "Errors": file, line and rule."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(ROW + b"\n" + bad)
    with pytest.raises(DataError, match=r"r\.jsonl, line 3: not (a JSON object|UTF-8)"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_is_not_whole_stops_every_reader(reader: str, tmp_path: Path) -> None:
    """Issue 3, "Bad input": cut, damaged in its middle, or no parquet at all."""
    packed = gzip.compress(ROW + random.Random(0).randbytes(9000))
    damaged = bytearray(packed)
    damaged[4000:4040] = bytes(40)
    for name, content, said in [
        ("cut.jsonl.gz", packed[:-2000], "not a whole gzip file"),
        ("damaged.jsonl.gz", bytes(damaged), "gzip file|not (a JSON object|UTF-8)"),
        ("bad.parquet", b"PAR1", "not a whole parquet file"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SettingsError, match=said):
            READERS[reader](tmp_path / name)
