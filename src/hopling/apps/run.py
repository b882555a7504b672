"""`hopling run`: a recipe with its settings from flags, a file, a scale, and the paper.

Recipes are the modules of `hopling.recipes` that have `Settings` and `run`. `SCALES` gives values
to a scale by name, and `SWEEP` names a setting of which a comma list is run value by value.
"""

import ast
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console

from hopling.apps.flags import with_flags
from hopling.apps.tables import print_json, print_rows, screen
from hopling.data.estimate import Estimate
from hopling.episode import Ending, Episode
from hopling.errors import SettingsError, nearest
from hopling.evaluation.console import safe, show_episode, table
from hopling.evaluation.report import Report
from hopling.rewards import exact_match
from hopling.settings import describe, load, parse_flags, read_file, setting

CONTEXT = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": list[str](),
}
RUNS = Path("runs")


@dataclass(frozen=True)
class Running:
    """How a recipe is run; the recipe's own settings are flags beside these."""

    name: str | None = setting(None, "ours", "Folder below runs; else the recipe's name.")
    config: str | None = setting(None, "ours", "TOML or JSON file of settings.")
    scale: str | None = setting(None, "ours", "A scale of the recipe, such as small.")
    resume: bool = setting(False, "ours", "Go on where the folder's run was stopped.")
    estimate: bool = setting(False, "ours", "Print what the teacher would cost, and stop.")
    json: bool = setting(False, "ours", "Print the report as JSON.")
    help: bool = setting(False, "ours", "Show the recipe's settings, with sources.")


@dataclass(frozen=True)
class _Job:
    """One run: the recipe's settings and the folder that they leave their results in."""

    settings: object
    folder: Path


@with_flags(Running)
def run(
    context: typer.Context,
    settings: Running,
    recipe: Annotated[str | None, typer.Argument(help="Name of a recipe; none lists them.")] = None,
) -> None:
    """Run a recipe; `hopling run RECIPE --help` shows its settings and where they come from."""
    if recipe is None:
        print(f"{context.get_help()}\n" if settings.help else "Recipes:")
        print_rows(("recipe", "what it does"), list(recipes().items()))
        return
    module = opened(recipe)
    jobs = _jobs(recipe, module, context.args, settings)
    if settings.help:
        _print_settings(recipe, module, jobs[0].settings)
        return
    if settings.estimate:
        _estimate(recipe, jobs, as_json=settings.json)
        return
    # under torchrun the first process writes and speaks for all
    is_first = os.environ.get("RANK", "0") == "0"
    console = screen(to_stderr=settings.json) if is_first else Console(quiet=True)
    if is_first:
        _refuse_folders(jobs, resume=settings.resume)
    reports: dict[Path, Report] = {}
    try:
        for job in jobs:
            reports[job.folder] = module.run(job.settings, job.folder, console)
            if is_first:
                _show(reports[job.folder], job.folder, console)
    except KeyboardInterrupt:
        again = resume_command(recipe, context.args, settings)
        print(f"\nStopped. To go on:\n  {again}", file=sys.stderr)
        raise typer.Exit(130) from None
    if len(jobs) > 1:
        for folder, report in reports.items():
            console.print(safe(f"{folder}:"), table(report))
    if settings.json and is_first:
        numbers = [report.numbers for report in reports.values()]
        print_json(numbers if len(jobs) > 1 else numbers[0])


def recipes() -> dict[str, str]:
    """Return each recipe's name and the first line of its docstring; none is imported."""
    found: dict[str, str] = {}
    for info in iter_modules(import_module("hopling.recipes").__path__):
        source = info.module_finder.find_spec(info.name, None)
        if info.ispkg or source is None or source.origin is None:
            continue
        tree = ast.parse(Path(source.origin).read_text(encoding="utf-8"))
        if {"Settings", "run"} <= {getattr(node, "name", "") for node in tree.body}:
            found[info.name] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def opened(name: str) -> ModuleType:
    """Return the recipe's module.

    Raises SettingsError for an unknown one, with the nearest known.
    """
    known = recipes()
    if name.startswith("-"):
        raise SettingsError(f"{name!r} stands where the recipe's name is due: hopling run RECIPE.")
    if name not in known:
        names = ", ".join(known) or "none"
        raise SettingsError(f"There is no recipe {name!r}.{nearest(name, known)} Known: {names}.")
    return import_module(f"hopling.recipes.{name}")


def resume_command(recipe: str, arguments: Sequence[str], settings: Running) -> str:
    """Return the command that goes on with a stopped run.

    >>> resume_command("sog_r1", ["--pool", "500"], Running(scale="small"))
    'hopling run sog_r1 --scale small --resume --pool 500'
    """
    words = ["hopling", "run", recipe]
    for flag, value in (("name", settings.name), ("config", settings.config)):
        words += [f"--{flag}", value] if value else []
    words += ["--scale", settings.scale] if settings.scale else []
    words += ["--json"] if settings.json else []
    return shlex.join([*words, "--resume", *arguments])


def _jobs(recipe: str, module: ModuleType, arguments: Sequence[str], asked: Running) -> list[_Job]:
    """Return the runs that were asked for: one, or one a value of the setting that is swept."""
    flags = parse_flags(module.Settings, arguments)
    folder = RUNS / (asked.name or recipe)
    sweep = getattr(module, "SWEEP", "")
    values = [value.strip() for value in flags.get(sweep, "").split(",") if value.strip()]
    if len(values) < 2:
        return [_Job(_settings(module, flags, folder, asked), folder)]
    folders = {value: folder.with_name(f"{folder.name}-{value}") for value in values}
    return [
        _Job(_settings(module, {**flags, sweep: value}, place, asked), place)
        for value, place in folders.items()
    ]


def _settings(
    module: ModuleType, flags: Mapping[str, object], folder: Path, asked: Running
) -> object:
    """Return the settings: flags, then the file, then the scale or the resumed run's own."""
    presets: Mapping[str, object] = {}
    if asked.scale is not None:
        scales = getattr(module, "SCALES", {})
        if asked.scale not in scales:
            raise SettingsError(
                f"There is no scale {asked.scale!r}.{nearest(asked.scale, scales)} "
                f"Known: {', '.join(scales) or 'none'}."
            )
        presets = scales[asked.scale]
    begun = folder / "settings.json"
    if asked.resume and begun.exists():
        presets = _without_secrets(read_file(begun))
    file = Path(asked.config) if asked.config else None
    return load(module.Settings, flags, file=file, presets=presets)


def _without_secrets(row: Mapping[str, Any]) -> dict[str, object]:
    """Return saved settings without the values of which a secret was cut out."""
    return {
        name: _without_secrets(value) if isinstance(value, Mapping) else value
        for name, value in row.items()
        if not (isinstance(value, str) and "***" in value)
    }


def _estimate(recipe: str, jobs: Sequence[_Job], *, as_json: bool) -> None:
    from hopling.recipes.questions import estimate
    from hopling.recipes.traces import Asked

    found: dict[str, Estimate] = {}
    for job in jobs:
        if not isinstance(job.settings, Asked):
            raise SettingsError(f"recipe {recipe!r} has no teacher whose cost could be told.")
        with TemporaryDirectory() as folder:
            console = screen(to_stderr=True)
            found[job.folder.name] = estimate(job.settings, Path(folder), console)
    if as_json:
        print_json({name: asdict(one) for name, one in found.items()})
        return
    heads = ("run", "requests", "tokens read", "tokens written", "cost")
    rows = [
        (name, f"{one.requests:,}", f"{one.read:,}", f"{one.written:,}", f"{one.cost:,.2f}")
        for name, one in found.items()
    ]
    print_rows(heads, rows)


def _refuse_folders(jobs: Sequence[_Job], *, resume: bool) -> None:
    begun = [job.folder for job in jobs if job.folder.exists() and any(job.folder.iterdir())]
    if begun and not resume:
        raise SettingsError(
            f"{begun[0]} holds a run already. Go on with it by --resume, or take another folder "
            "by --name."
        )
    if resume and not begun:
        raise SettingsError(f"{jobs[0].folder} holds no run. Leave out --resume to begin one.")


def _show(report: Report, folder: Path, console: Console) -> None:
    page = report.write(folder)
    console.print(table(report))
    if episode := _example(report):
        show_episode(episode, console)
    console.print(f"Report: {page}", markup=False)


def _example(report: Report) -> Episode | None:
    """Return a right answer of the last stage that took calls, else whatever was played first."""
    episodes = list(report.stages.values())[-1].episodes if report.stages else ()
    scored = [episode for episode in episodes if episode.ending is not Ending.UNSCORED]
    right = (episode for episode in scored if episode.observations and exact_match(episode))
    return next(right, next(iter(scored), None))


def _print_settings(recipe: str, module: ModuleType, settings: object) -> None:
    print(f"{(module.__doc__ or '').strip()}\n\nhopling run {recipe} [settings]\n")
    scales = ", ".join(getattr(module, "SCALES", {}))
    own = [
        (entry.flag, entry.value, entry.help)
        for entry in describe(Running())
        if entry.name not in ("help", "scale") or (entry.name == "scale" and scales)
    ]
    print_rows(("flag", "value", "what it does"), own)
    if scales:
        print(f"Scales: {scales}.\n")
    rows = [(entry.flag, entry.value, entry.source, entry.help) for entry in describe(settings)]
    print_rows(("setting", "value", "source", "what it does"), rows)
