"""The shipped graph's index."""

import io
from pathlib import Path

from rich.console import Console

from hopling.data.movie_graph import build_movies


def test_the_shipped_graph_is_built_once(tmp_path: Path) -> None:
    """Ours: a second run opens what the first has built."""
    console = Console(file=io.StringIO())
    report = build_movies(tmp_path / "graph", console)
    assert report is not None
    assert (report.triples, report.entities) == (133_582, 43_234)
    assert build_movies(tmp_path / "graph", console) is None
