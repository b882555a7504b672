"""The one loop: teacher traces, GRPO groups, replays, evaluation and a person come through here."""

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

    A list with each task G times gives G samples of each: copies 0 to G - 1, as `sampling_seed`
    counts them.
    """
    seen: Counter[str] = Counter()
    episodes: list[Episode] = []
    for task in tasks:
        copy_seed = sampling_seed(seed, task.id, seen[task.id])
        seen[task.id] += 1
        episodes.append(environment.begin(task, policy.encoder, seed=copy_seed))
    play(policy, environment, episodes, on_end=on_end)
    return episodes


def sampling_seed(seed: int, task_id: str, copy: int) -> int:
    """Return what fixes one episode's sampling: the run's seed, its task and which copy it is.

    It does not depend on the batch, so a run that is resumed samples what it would have sampled.
    """
    return crc32(f"{seed}/{task_id}/{copy}".encode())


def play(
    policy: Policy,
    environment: Environment,
    episodes: Sequence[Episode],
    *,
    on_end: Callable[[Episode], None] | None = None,
) -> None:
    """Play episodes that were begun until each has its ending.

    A place that falls free is filled with the next episode, so that a slow one idles no batch.
    `on_end` is called as each ends, from several threads if the policy is concurrent.
    """
    report = on_end or (lambda episode: None)
    if policy.concurrent:
        _play_concurrently(policy, environment, episodes, report)
    else:
        _play_in_step(policy, environment, episodes, report)


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
    environment.step_all(live, completions, policy.encoder)
