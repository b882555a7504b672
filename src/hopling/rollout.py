"""The one loop: teacher traces, GRPO groups, replays, evaluation and the viewer come through here."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol
from zlib import crc32

from hopling.environment import Environment
from hopling.episode import Completion, Encoder, Ending, Episode, Task, View
from hopling.errors import WorldError


class Policy(Protocol):
    """Writes the next turn of each episode that it is shown.

    `max_live` is how many episodes it takes at once; `concurrent` says that `generate` may be
    called from as many threads, each with one view. `encoder` is None where it sees messages only.
    """

    @property
    def encoder(self) -> Encoder | None: ...

    @property
    def max_live(self) -> int: ...

    @property
    def concurrent(self) -> bool: ...

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]: ...


def rollout(
    policy: Policy,
    environment: Environment,
    tasks: Sequence[Task],
    *,
    seed: int = 0,
    on_end: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play one episode per task and return them in the tasks' order.

    A place that falls free is filled with the next task, so that a slow episode idles no batch.
    Sampling depends on `seed`, the task's id and how often the task came before, never on the
    batch; a list with each task G times is G samples of each.
    """
    seen: Counter[str] = Counter()
    episodes: list[Episode] = []
    for task in tasks:
        sampling_seed = crc32(f"{seed}/{task.id}/{seen[task.id]}".encode())
        seen[task.id] += 1
        episodes.append(environment.begin(task, policy.encoder, seed=sampling_seed))
    report = on_end or (lambda episode: None)
    if policy.concurrent:
        _play_concurrently(policy, environment, episodes, report)
    else:
        _play_in_step(policy, environment, episodes, report)
    return episodes


def _play_in_step(
    policy: Policy,
    environment: Environment,
    episodes: Sequence[Episode],
    report: Callable[[Episode], None],
) -> None:
    waiting = list(reversed(episodes))
    live: list[Episode] = []
    while waiting or live:
        while waiting and len(live) < policy.max_live:
            live.append(waiting.pop())
        _one_turn(policy, environment, [e for e in live if not e.ending])
        for episode in live:
            if episode.ending:
                report(episode)
        live = [episode for episode in live if not episode.ending]


def _play_concurrently(
    policy: Policy,
    environment: Environment,
    episodes: Sequence[Episode],
    report: Callable[[Episode], None],
) -> None:
    def play(episode: Episode) -> None:
        while not episode.ending:
            _one_turn(policy, environment, [episode])
        report(episode)

    with ThreadPoolExecutor(policy.max_live) as pool:
        for _ in pool.map(play, episodes):
            pass


def _one_turn(policy: Policy, environment: Environment, live: Sequence[Episode]) -> None:
    if not live:
        return
    views = [environment.view(episode) for episode in live]
    try:
        completions = policy.generate(views, environment.dialect.stops)
    except WorldError as error:
        for episode in live:
            episode.ending, episode.reason = Ending.UNSCORED, str(error)
        return
    for episode, completion in zip(live, completions, strict=True):
        environment.step(episode, completion, policy.encoder)
