"""`hopling export`: a run's episodes in the formats of other programs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from hopling.errors import SettingsError


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or a file of episodes.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    format: Annotated[
        Literal["messages", "sharegpt", "inspect"],
        typer.Option(help="OpenAI messages, LLaMA-Factory's ShareGPT, or a log for inspect view."),
    ] = "messages",
    stage: Annotated[str, typer.Option(help="Only the episodes of this stage.")] = "",
) -> None:
    """Write a run's episodes for another program."""
    from hopling.data.formats import read_episodes, write_inspect, write_messages, write_sharegpt
    from hopling.episode import Ending
    from hopling.evaluation.episode_log import EpisodeLog
    from hopling.rewards import exact_match, f1, num_calls

    path = run / "episodes.jsonl" if run.is_dir() else run
    if not path.exists():
        raise SettingsError(
            f"There are no episodes at {path}. Name a run's folder, such as runs/x."
        )
    if stage:
        episodes = [played.episode for played in EpisodeLog(path, stage=stage).read()]
    else:
        episodes = read_episodes(path)
    if not episodes:
        raise SettingsError(f"{path} holds no episodes{f' of stage {stage!r}' if stage else ''}.")
    if format == "inspect":
        write_inspect(
            out,
            episodes,
            task=run.stem,
            model=stage or run.stem,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            scorers={"exact_match": exact_match, "f1": f1, "calls": num_calls},
        )
    else:
        {"messages": write_messages, "sharegpt": write_sharegpt}[format](out, episodes)
    unscored = sum(episode.ending is Ending.UNSCORED for episode in episodes)
    note = f", {unscored} of them unscored" if unscored else ""
    print(f"{out}: {len(episodes):,} episodes{note}")
