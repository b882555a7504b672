"""Reads triples and labels from files, one line at a time, and accounts for every line.

N-Triples (`.nt`) and TSV of head, relation, tail (`.tsv`, `.txt`), each also with `.gz` or `.zst`.
TSV has no header and no quoting: "NA", "null" and a lone quote are strings like any other.
"""

import gzip
import io
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, TextIO, TypeVar, cast

from hopling.errors import DataError, SettingsError
from hopling.graphs.terms import Triple, parse_triple

S = TypeVar("S")
T = TypeVar("T")
OnProgress = Callable[[int, int | None], None]

CHUNK_BYTES = 1 << 22

_PACKED = {".gz": "gzip", ".zst": "zstandard"}
try:
    _ISAL_ERROR: type[Exception] = import_module("isal.isal_zlib").error
except ImportError:
    _ISAL_ERROR = zlib.error
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, _ISAL_ERROR)  # what a cut or damaged file raises


class Chunk(NamedTuple):
    """Whole lines of a file; `number` is the first one's."""

    number: int
    text: bytes


class Lines:
    """The lines of several files, with their bad ones and the bytes read so far.

    A bad line raises DataError, or, where `rejects` is given, is counted and written to it.
    """

    def __init__(self, rejects: TextIO | None = None, on_progress: OnProgress | None = None):
        self.bad: Counter[str] = Counter()
        self.examples: list[str] = []
        self._rejects = rejects
        self._on_progress = on_progress or (lambda done, total: None)
        self._done = 0
        self.total: int | None = None
        self.place = ""  # of the line read last, for messages
        self.kind = ""  # "nt" or "tsv" where the name of the file does not say it
        self.kept: Callable[[bytes], bytes] = bytes  # what a profile makes of whole lines

    def triples(self, source: Path, scope: str) -> Iterator[Triple]:
        """Yield the triples of a file; `scope` keeps its blank nodes apart from other files'."""
        for number, line in self._numbered(source):
            triple = self.triple(source, number, line, scope)
            if triple is not None:
                yield triple

    def triple(self, source: Path, number: int, line: bytes, scope: str) -> Triple | None:
        """Return the triple of a line, None where it holds none or is bad."""
        text = self.decoded(source, number, line)
        is_tsv = (self.kind or kind_of(source)) == "tsv"
        if not text or (not is_tsv and (not text.strip() or text.lstrip().startswith("#"))):
            return None
        try:
            if not is_tsv:
                return parse_triple(text, scope)
            head, relation, tail = _fields(text, 3)
            return Triple(head, relation, tail)
        except ValueError as error:
            self.reject(source, number, str(error), text)
            return None

    def labels(self, source: Path) -> Iterator[tuple[str, str]]:
        """Yield the rows (id, label) of a TSV file."""
        for number, line in self._numbered(source):
            text = self.decoded(source, number, line)
            if not text:
                continue
            try:
                node, label = _fields(text, 2)
            except ValueError as error:
                self.reject(source, number, str(error), text)
                continue
            yield node, label

    def chunks(self, source: Path) -> Iterator[Chunk]:
        """Yield a file in pieces of whole lines, and report progress after each."""
        try:
            with source.open("rb") as raw:
                number, rest = 1, b""
                stream = unpacked(source, raw)
                while block := stream.read(CHUNK_BYTES):
                    cut = block.rfind(b"\n") + 1
                    if not cut:
                        rest += block
                        continue
                    text = rest + block[:cut]
                    rest = block[cut:]
                    yield Chunk(number, self.kept(text))
                    number += text.count(b"\n")
                    self._on_progress(self._done + raw.tell(), self.total)
                if rest:
                    yield Chunk(number, self.kept(rest))
                self._done += raw.tell()
                self._on_progress(self._done, self.total)
        except FileNotFoundError as error:
            raise SettingsError(f"There is no file {source}.") from error
        except BROKEN as error:
            raise _not_whole(source, error) from error

    def took(self, source: Path) -> None:
        """Report a file as read that was read in another way."""
        self._done += source.stat().st_size if source.is_file() else 0
        self._on_progress(self._done, self.total)

    def _numbered(self, source: Path) -> Iterator[tuple[int, bytes]]:
        for chunk in self.chunks(source):
            yield from enumerate(io.BytesIO(chunk.text), chunk.number)

    def decoded(self, source: Path, number: int, line: bytes) -> str:
        """Return the text of a line without its end, "" for a bad one."""
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            self.reject(source, number, "not UTF-8", line.decode("utf-8", "backslashreplace"))
            return ""
        if text:
            self.place = f"{source}, line {number}"
        return text

    def reject(self, source: Path, number: int, rule: str, line: str) -> None:
        """Count a bad line and keep it, or raise DataError where none may be left out."""
        line = line.rstrip("\r\n")
        where = f"{source}, line {number}: {rule}"
        if self._rejects is None:
            raise DataError(
                f"{where}: {line[:200]!r}. Mend the line, or leave out bad lines and keep a "
                "list of them (--no-strict; in Python, strict in BuildSettings)."
            )
        self.bad[rule] += 1
        if len(self.examples) < 10:
            self.examples.append(f"{where}: {line[:200]!r}")
        kept = line.replace("\r", "\\r").replace("\n", "\\n")  # a field of CSV may hold them
        self._rejects.write(f"{source}\t{number}\t{rule}\t{kept}\n")


def mapped(function: Callable[[S], T], rows: Iterable[S], *, ahead: int) -> Iterator[T]:
    """Yield what a function makes of each row, in order; threads make the next `ahead` of them."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(ahead) as pool:
        try:
            for row in rows:
                waiting.append(pool.submit(function, row))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def opened(source: Path) -> Iterator[IO[bytes]]:
    """Give a file's content, unpacked.

    Raises SettingsError when there is no such file, DataError when it is not whole.
    """
    try:
        raw = source.open("rb")
    except FileNotFoundError as error:
        raise SettingsError(f"There is no file {source}.") from error
    except OSError as error:
        raise SettingsError(f"{source} cannot be read ({error.strerror}).") from error
    with raw:
        try:
            yield unpacked(source, raw)
        except BROKEN as error:
            raise _not_whole(source, error) from error


def _not_whole(source: Path, error: BaseException) -> DataError:
    packed = _PACKED.get(source.suffix, "packed")
    return DataError(f"{source} is not a whole {packed} file ({error}). Fetch or pack it again.")


def unpacked(source: Path, raw: BinaryIO) -> IO[bytes]:
    """Return the stream of a file's content: `.gz` and `.zst` are decompressed.

    Raises SettingsError for `.zst` without the package zstandard.
    """
    if source.suffix == ".gz":
        try:
            return import_module("isal.igzip").open(raw)  # three times as fast as gzip
        except ImportError:
            return cast(IO[bytes], gzip.open(raw))  # which the stubs do not call a stream
    if source.suffix == ".zst":
        return cast(IO[bytes], _Zstandard(source, raw))
    return raw


class _Zstandard(io.RawIOBase):
    """A stream of several frames, which raises EOFError where the last one is cut short."""

    def __init__(self, source: Path, raw: BinaryIO):
        try:
            self._zstandard = import_module("zstandard")
        except ImportError as error:
            raise SettingsError(
                f"{source} needs the package zstandard: pip install 'hopling[graphs]'."
            ) from error
        self._raw = raw
        self._frame = self._zstandard.ZstdDecompressor().decompressobj()
        self._is_inside = False

    def read(self, size: int = -1) -> bytes:
        """Return about `size` bytes, none at the end."""
        found: list[bytes] = []
        length, block = 0, b""
        while size < 0 or length < size:
            block = block or self._raw.read(1 << 17)
            if not block:
                break
            try:
                text = self._frame.decompress(block)
            except self._zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            self._is_inside, block = not self._frame.eof, b""
            if self._frame.eof:
                block = self._frame.unused_data
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            found.append(text)
            length += len(text)
            if block and length >= size >= 0:
                self._raw.seek(-len(block), io.SEEK_CUR)
        if not block and not found and self._is_inside:
            raise EOFError("it ends in the middle")
        return b"".join(found)


def kind_of(source: Path) -> str:
    """Return "nt" or "tsv" by the file's name.

    Raises SettingsError for a name that says neither.
    """
    name = source.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".nt"):
        return "nt"
    if name.endswith((".tsv", ".txt")):
        return "tsv"
    raise SettingsError(
        f"{source} ends in neither .nt (N-Triples), .tsv nor .txt (head, relation, tail), "
        "each also with .gz or .zst. Rename or convert it."
    )


def _fields(line: str, number: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != number:
        raise ValueError(f"needs {number} tab-separated fields")
    if not all(fields):
        raise ValueError("a field is empty")
    return fields
