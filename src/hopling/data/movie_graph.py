"""The index of the movie graph that ships with hopling."""

from pathlib import Path

from rich.console import Console

from hopling.data import tasks
from hopling.graphs.build import LoadReport, build_index
from hopling.progress import progress


def build_movies(folder: Path, console: Console) -> LoadReport | None:
    """Build the index in the folder and return its load report, None if it is there already."""
    if (folder / "manifest.json").is_file():
        return None
    triples, names = tasks.movie_files()
    with progress("Building the movie graph", console, unit="bytes") as advance:
        return build_index(triples, folder, labels=names, on_progress=advance)
