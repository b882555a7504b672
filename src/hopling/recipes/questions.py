"""What a recipe asks, and the graph that it asks it on."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hopling.data.benchmarks import Benchmark, benchmark
from hopling.data.estimate import Estimate
from hopling.data.movie_graph import build_movies
from hopling.data.tasks import relabeled
from hopling.episode import Task
from hopling.errors import SettingsError
from hopling.graphs import HopIndex, SparqlEndpoint
from hopling.recipes.stages import Stages
from hopling.recipes.traces import WALKED, Asked, estimated


def questions_and_graph(
    asked: Asked, stages: Stages
) -> tuple[Benchmark, HopIndex | SparqlEndpoint]:
    """Return the questions, with answers named as the graph names them, and the graph.

    The graph is a hop index or an endpoint; the shipped movies are built into the run's folder.
    Raises SettingsError when either is missing.
    """
    name, where = asked.benchmark, asked.graph
    if where.startswith(("http://", "https://")):
        namespace = "" if name in WALKED else "http://rdf.freebase.com/ns/"
        graph: HopIndex | SparqlEndpoint = SparqlEndpoint(where, namespace=namespace)
    elif name == "movies" and not where:
        graph = HopIndex.open(stages.shared(lambda: _movies(stages.folder, stages.console)))
    elif not where:
        raise SettingsError(
            f"benchmark {name!r} needs its graph: --graph with the folder that `hopling graph "
            "build` wrote, or with an endpoint's URL."
        )
    else:
        graph = HopIndex.open(Path(where))
    found = benchmark(name, Path(asked.data) if asked.data else None)

    def chosen(tasks: Sequence[Task]) -> tuple[Task, ...]:
        some = [task for task in tasks if not asked.hops or task.hints.get("hops") in asked.hops]
        return tuple(some if name == "movies" else relabeled(some, graph))

    splits = (found.train, found.valid, found.test, found.unseen)
    train, valid, test, unseen = map(chosen, splits)
    return Benchmark(train, valid, test, unseen, found.dropped), graph


def estimate(asked: Asked, folder: Path, console: Console) -> Estimate:
    """Return what the teacher is expected to take, without asking it.

    `folder` gets the graph of the movies, if they are asked.
    """
    stages = Stages(folder, asked, console, seed=0)
    found, graph = questions_and_graph(asked, stages)
    return estimated(asked, graph, found.train[: asked.pool])


def _movies(folder: Path, console: Console) -> Path:
    index = folder / "graph"
    if report := build_movies(index, console):
        console.print(f"Movie graph: {report.triples:,} triples, {report.entities:,} entities.")
    return index
