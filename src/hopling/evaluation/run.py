"""The folder that a run leaves, and what a later reader needs to repeat it."""

import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hopling import records
from hopling.errors import SettingsError
from hopling.settings import Json, read_file, to_json

PACKAGES = ("hopling", "numpy", "pyoxigraph", "torch", "transformers", "trl", "peft", "accelerate")


class Run:
    """A folder `runs/NAME` with settings, manifest, episodes, metrics, report and checkpoints.

    A stage that was marked done is not run again, so a killed recipe resumes at its stage.
    """

    def __init__(self, folder: Path, settings: object, *, may_differ: Sequence[str] = ()) -> None:
        """Open the folder, or make it.

        `may_differ` names settings that change no result, such as how much is printed. Raises
        SettingsError, which names what differs, if the folder was made with other settings.
        """
        self.folder = folder
        self.settings = settings
        mine = json.loads(records.redact(json.dumps(to_json(settings))))
        path = folder / "settings.json"
        if path.exists():
            _refuse_others(folder, mine, read_file(path), may_differ)
        else:
            records.write_json(path, mine)

    @property
    def episodes(self) -> Path:
        """The file of all evaluated episodes, one JSON object a line."""
        return self.folder / "episodes.jsonl"

    @property
    def metrics(self) -> Path:
        """The file of training metrics, one JSON object per logged step."""
        return self.folder / "metrics.jsonl"

    def checkpoint(self, stage: str) -> Path:
        """Return the folder of a stage's weights."""
        return self.folder / "checkpoint" / stage

    def done(self, stage: str) -> dict[str, Json] | None:
        """Return what was noted when the stage was marked, None if it was not."""
        path = self.folder / "stages.json"
        return json.loads(path.read_text(encoding="utf-8")).get(stage) if path.exists() else None

    def mark(self, stage: str, info: Mapping[str, Json] | None = None) -> None:
        """Note that a stage is done, with what later stages need of it."""
        path = self.folder / "stages.json"
        stages = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        records.write_json(path, {**stages, stage: dict(info or {})})

    def gather_metrics(self, logs: Iterable[Path]) -> None:
        """Write one metrics file of the stages' own, each row with its stage's folder's name."""
        self.metrics.unlink(missing_ok=True)
        for log in sorted(logs):
            for row in records.read(log):
                records.append(self.metrics, {"stage": log.parent.name, **row})

    def write_manifest(self, row: Mapping[str, Json]) -> None:
        """Write the manifest, without secrets."""
        text = json.dumps(row, ensure_ascii=False, indent=2)
        records.write_text(self.folder / "manifest.json", records.redact(text) + "\n")


def manifest(
    settings: object,
    *,
    seed: int,
    graph_hash: str,
    command: str,
    date: datetime,
) -> dict[str, Json]:
    """Return what a reader needs to repeat the run: versions, platform, seed, graph, command.

    Secrets are replaced by ***. What is not there (torch, a git checkout) is left out.
    """
    torch = sys.modules.get("torch")
    commit = _commit()
    row: dict[str, Json] = {
        "date": date.isoformat(timespec="seconds"),
        "command": command,
        "seed": seed,
        "graph_hash": graph_hash,
        "settings": to_json(settings),
        "versions": _versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    if torch is not None:
        row["torch_threads"] = torch.get_num_threads()
    if commit:
        row["commit"] = commit
    redacted: dict[str, Json] = json.loads(records.redact(json.dumps(row)))
    return redacted


def _refuse_others(folder: Path, mine: object, theirs: object, may_differ: Sequence[str]) -> None:
    differing = sorted({*_differing(mine, theirs, "")} - {*may_differ})
    if differing:
        raise SettingsError(
            f"{folder} was made with other settings: {', '.join(differing)} differ. "
            "Give the same settings to resume it, or another name."
        )


def _differing(mine: object, theirs: object, prefix: str) -> list[str]:
    if not isinstance(mine, Mapping) or not isinstance(theirs, Mapping):
        return [] if mine == theirs else [prefix.removesuffix(".")]
    names = {**mine, **theirs}
    absent = object()
    return [
        found
        for name in names
        for found in _differing(
            mine.get(name, absent), theirs.get(name, absent), f"{prefix}{name}."
        )
    ]


def _versions() -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """Return the commit of the checkout that this file stands in, "" outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
