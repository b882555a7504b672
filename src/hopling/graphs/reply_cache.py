"""Keeps whole replies of an endpoint, in memory or in a folder, so that equal queries cost nothing.

Only what was read as results gets here; a failure never does. A file is written whole or not at
all and checked when it is read; a damaged one is set aside.
# limit: a folder is never emptied; remove it when the endpoint's data change.
"""

import hashlib
import threading
import warnings
from collections import OrderedDict
from pathlib import Path

from hopling.records import write_bytes


class ReplyCache:
    """Replies by key; without a folder at most `max_replies` of them, the latest used."""

    def __init__(self, folder: Path | None = None, *, max_replies: int = 10_000):
        self._folder = folder
        self._max_replies = max_replies
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, *key: str) -> bytes | None:
        """Return the reply that was kept under the key, None if there is none or it is damaged."""
        name = _name(key)
        with self._lock:
            if self._folder is None:
                if name in self._kept:
                    self._kept.move_to_end(name)
                return self._kept.get(name)
        path = self._folder / name
        try:
            digest, _, body = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if digest == _digest(body):
            return body
        path.replace(path.with_suffix(".damaged"))
        warnings.warn(
            f"The kept reply {path} was damaged. It is set aside, and the endpoint asked again.",
            stacklevel=2,
        )
        return None

    def write(self, body: bytes, *key: str) -> None:
        """Keep a whole reply under the key."""
        name = _name(key)
        with self._lock:
            if self._folder is not None:
                write_bytes(self._folder / name, _digest(body) + b"\n" + body)
                return
            self._kept[name] = body
            self._kept.move_to_end(name)
            while len(self._kept) > self._max_replies:
                self._kept.popitem(last=False)


def _name(key: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(key).encode()).hexdigest()


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
