"""Rows of JSON lines and parquet, whoever asks for them; what is no row comes as a `Bad`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from hopling.errors import DataError, SettingsError
from hopling.graphs.formats import Bad
from hopling.graphs.sources import opened

Row = Mapping[str, Any]


def numbered_rows(
    path: Path, format: Literal["jsonl", "parquet"]
) -> Iterator[tuple[int, Row | Bad]]:
    """Yield each row of a file with its number; blank lines count, and are no rows.

    Raises SettingsError for a file that is not there, DataError for one that is not whole.
    """
    with opened(path) as stream:
        if format == "parquet":
            yield from enumerate(_parquet_rows(path, stream), 1)
        else:
            yield from _json_rows(stream)


def placed_rows(path: Path) -> Iterator[tuple[str, Row | Bad]]:
    """Yield each row of a `.parquet` or `.jsonl` file, also packed, and where it stands."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    is_parquet = name.endswith(".parquet")
    unit = "row" if is_parquet else "line"
    for number, row in numbered_rows(path, "parquet" if is_parquet else "jsonl"):
        yield f"{unit} {number}", row


def parquet_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a parquet file, as `numbered_rows` does."""
    with opened(path) as stream:
        yield from _parquet_rows(path, stream)


def _json_rows(stream: Iterable[bytes]) -> Iterator[tuple[int, Row | Bad]]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            yield number, _json_row(number, line)


def _json_row(number: int, line: bytes) -> Row | Bad:
    rule = "not a JSON object"
    try:
        row = json.loads(line.decode("utf-8-sig"))
        if isinstance(row, dict):
            return row
    except UnicodeDecodeError:
        rule = "not UTF-8"
    except (ValueError, RecursionError):
        pass  # no JSON, or nested too deeply to be read
    return Bad(number, rule, line.decode("utf-8", "backslashreplace"))


def _parquet_rows(path: Path, stream: IO[bytes]) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise SettingsError(
            f"{path} needs pyarrow. Install it: pip install 'hopling[graphs]'."
        ) from error
    try:
        for batch in parquet.ParquetFile(stream).iter_batches():
            yield from batch.to_pylist()
    except (ArrowException, OSError) as error:
        raise DataError(
            f"{path} is not a whole parquet file ({error}). Fetch or write it again."
        ) from error
