"""The file that keeps episodes as they end, so that a run that was killed plays only the rest."""

from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from hopling import records
from hopling.episode import Episode


@dataclass(frozen=True)
class Played:
    """An episode that has ended, which copy of its task it is, and how long it took.

    `seconds` runs from its first turn's start; episodes in one batch share the clock.
    """

    episode: Episode
    copy: int
    seconds: float

    @property
    def key(self) -> tuple[str, int]:
        """The task's id and the copy, which no two episodes of a stage share."""
        return self.episode.task.id, self.copy


class EpisodeLog:
    """The episodes of one stage in a file that other stages may share.

    Without a path it keeps nothing. It may be written from several threads.
    """

    def __init__(self, path: Path | None = None, *, stage: str = "") -> None:
        self.path = path
        self.stage = stage
        self._lock = Lock()

    def add(self, played: Played) -> None:
        """Append an episode that has ended."""
        if self.path is None:
            return
        row = {"stage": self.stage, "copy": played.copy, "seconds": played.seconds}
        with self._lock:
            records.append(self.path, {**row, **played.episode.to_json()})

    def read(self) -> list[Played]:
        """Return the episodes of this stage; one played again counts as it ended last."""
        if self.path is None:
            return []
        found: dict[tuple[str, int], Played] = {}
        for row in records.read(self.path):
            if row["stage"] == self.stage:
                played = Played(Episode.from_json(row), row["copy"], row["seconds"])
                found[played.key] = played
        return list(found.values())
