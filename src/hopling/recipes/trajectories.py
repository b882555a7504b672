"""What GTA-RAG's recipe trains on: questions over paths of documents, validated by replay."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hopling.data.generator import Generator
from hopling.data.synthesis import Synthesis, Writer, synthesize
from hopling.data.templates import Templates
from hopling.environment import Environment
from hopling.episode import Episode, Task
from hopling.errors import SettingsError
from hopling.graphs.documents import DocumentGraph
from hopling.policies.sampling import Sampling
from hopling.policies.server import Server
from hopling.policies.spending import Price
from hopling.recipes.students import TINY
from hopling.settings import setting


@dataclass(frozen=True)
class Served:
    """A model behind a server that writes questions."""

    model: str = setting("", "ours", "Its name; empty fills templates instead.")
    url: str = setting("http://localhost:8000/v1", "ours", "Where it answers.")
    price: tuple[float, ...] = setting((), "ours", "READ,WRITTEN for a million tokens.")
    budget: float | None = setting(None, "ours", "It stops when this is spent.")


class Asked(Protocol):
    """The settings that say which questions are made."""

    @property
    def student(self) -> str: ...

    @property
    def generator(self) -> Served: ...

    @property
    def hops(self) -> tuple[int, ...]: ...

    @property
    def trajectories(self) -> int: ...

    @property
    def held_out(self) -> int: ...

    @property
    def max_paths(self) -> int: ...

    @property
    def seed(self) -> int: ...


@dataclass(frozen=True)
class Material:
    """Tasks to train on, as many that were not validated, tasks held out, and the replays.

    No held-out task is in `unvalidated`, which stands for training without validation.
    """

    made: Synthesis
    train: tuple[Task, ...]
    unvalidated: tuple[Task, ...]
    held_out: tuple[Task, ...]

    @property
    def replays(self) -> list[Episode]:
        """The replays of the tasks to train on."""
        ids = {task.id for task in self.train}
        return [episode for episode in self.made.traces.kept if episode.task.id in ids]

    def table(self) -> str:
        """Return what became of the paths, by hops, and how many tasks there are."""
        counts = f"{len(self.train)} tasks to train on, {len(self.held_out)} held out."
        return f"{self.made.traces.table()}\n{counts}"


def material(asked: Asked, graph: DocumentGraph, world: Environment, record: Path) -> Material:
    """Return the tasks; what a generator wrote is in `record` and not asked for again.

    Raises SettingsError when no task is left to train on.
    """
    made = synthesize(
        _writer(asked, graph, record),
        world,
        hops=asked.hops,
        wanted=asked.trajectories + asked.held_out,
        max_paths=asked.max_paths,
        seed=asked.seed,
    )
    mixed = sorted(made.tasks, key=lambda task: task.id)  # an id is a hash
    held_out, train = mixed[: asked.held_out], mixed[asked.held_out :]
    if not train:
        raise SettingsError(
            f"{len(mixed)} tasks were validated and {asked.held_out} are held out, so none is left "
            "to train on. Hold out fewer, or raise max_paths.\n" + made.traces.table()
        )
    away = {task.id for task in held_out}
    others = sorted((t for t in made.drafted if t.id not in away), key=lambda task: task.id)
    return Material(made, tuple(train), tuple(others[: len(train)]), tuple(held_out))


def _writer(asked: Asked, graph: DocumentGraph, record: Path) -> Writer:
    served = asked.generator
    if not served.model:
        # a tiny student copies what follows a name; what stands before one is beyond it
        return Templates(graph, backward=asked.student != TINY, seed=asked.seed)
    if len(served.price) not in (0, 2):
        raise SettingsError(f"price is {served.price}; write READ,WRITTEN for a million tokens.")
    server = Server(
        served.url,
        served.model,
        sampling=Sampling(max_turn_tokens=8192),  # ours: a thinking model's draft
        price=Price(*served.price) if served.price else None,
        budget=served.budget,
    )
    return Generator(server, graph, record, seed=asked.seed)
