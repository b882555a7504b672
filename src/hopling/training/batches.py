"""Which tokens are trained on, in which batches, in which order. Plain lists and no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hopling.environment import Dialect, Environment
from hopling.episode import Action, Answer, Call, Encoder, Episode, Malformed, Turn
from hopling.errors import DataError, SettingsError
from hopling.policies.scripted import Scripted
from hopling.training.settings import SFT

IGNORED = -100  # the label that every loss in torch skips


@dataclass(frozen=True)
class Rows:
    """Traces as token ids, with a label where the policy wrote the token; `kept` are their places.

    The last label of a turn is the marker that ended it, whatever the pad token is. [BUGS B31]
    """

    input_ids: list[list[int]]
    labels: list[list[int]]
    kept: list[int]

    @property
    def lengths(self) -> list[int]:
        """Tokens of each trace."""
        return [len(ids) for ids in self.input_ids]


@dataclass(frozen=True)
class Plan:
    """Micro-batches of a whole run, in order; `accumulation` of them on each process an update."""

    batches: list[list[int]]
    accumulation: int


def rows(traces: Sequence[Episode], *, max_tokens: int) -> Rows:
    """Return the traces' tokens and labels; a trace longer than `max_tokens` is left out.

    Raises SettingsError when a trace has no tokens, or when none is left.
    """
    input_ids, labels, kept = [], [], []
    for place, trace in enumerate(traces):
        tokens, sampled = trace.tokens, trace.sampled
        if not any(sampled):
            raise SettingsError(
                f"trace {trace.task.id!r} has no sampled token to train on. "
                "Encode it for the student first: replay(traces, environment, student.encoder)."
            )
        if len(tokens) <= max_tokens:
            end = len(sampled) - sampled[::-1].index(True)  # what stands after it is never read
            input_ids.append(tokens[:end])
            pairs = zip(tokens[:end], sampled, strict=False)
            labels.append([token if s else IGNORED for token, s in pairs])
            kept.append(place)
    if not kept:
        raise SettingsError(
            f"none of {len(traces)} traces has at most max_tokens = {max_tokens} tokens."
        )
    return Rows(input_ids, labels, kept)


def replay(traces: Sequence[Episode], environment: Environment, encoder: Encoder) -> list[Episode]:
    """Return the traces as the student would have played them: its prompt, dialect and tokens.

    Actions are written in the environment's dialect; observations are the recorded ones, so that no
    graph is asked. Raises DataError when the dialect does not read back what it wrote.
    """
    return [_replayed(trace, environment, encoder) for trace in traces]


def _replayed(trace: Episode, environment: Environment, encoder: Encoder) -> Episode:
    dialect = environment.dialect
    written = [_written(turn, dialect) for turn in trace.turns]
    policy = Scripted({trace.task.id: written}, encoder)
    episode = environment.begin(trace.task, encoder, seed=trace.seed)
    episode.ending = trace.ending
    for number, turn in enumerate(trace.turns, start=1):
        (completion,) = policy.generate([environment.view(episode)], dialect.stops)
        actions = dialect.parse(completion.text)
        if [_bare(action) for action in actions] != [_bare(action) for action in turn.actions]:
            raise DataError(
                f"trace {trace.task.id!r}, turn {number}: the dialect wrote {completion.text!r} "
                f"and read {actions} back; expected {turn.actions}."
            )
        episode.write(completion)
        episode.turns.append(Turn(completion.text, actions, turn.observations))
        if number < len(trace.turns):
            pieces = dialect.reply(turn.observations)
            episode.read("environment", "".join(pieces), encoder.encode(pieces))
    return episode


def _written(turn: Turn, dialect: Dialect) -> list[str]:
    erred = any(isinstance(action, Malformed) for action in turn.actions)
    # in pieces, so that a call's tags are the tokens that a model of this family samples
    return dialect.pieces(turn.text if erred else dialect.write(turn.actions))


def _bare(action: Action) -> object:
    if isinstance(action, Call):
        return action.tool, dict(action.arguments)
    return action.text if isinstance(action, Answer) else "malformed"


def plan(lengths: Sequence[int], settings: SFT, *, processes: int = 1) -> Plan:
    """Return the micro-batches of an SFT run; they depend on the seed and the lengths only.

    With `tokens_per_batch` each update is one bucket of traces of like length for each process.
    Without, it is `batch_size` traces, and each micro-batch holds those of like length.
    """
    rng = Random(settings.seed)
    total = round(settings.epochs * len(lengths))
    if settings.tokens_per_batch:
        batches, accumulation = _buckets(lengths, total, settings.tokens_per_batch, rng=rng), 1
    else:
        each = settings.micro_batch_size * processes
        if settings.batch_size % each:
            raise SettingsError(
                f"batch_size is {settings.batch_size}; expected a multiple of "
                f"micro_batch_size x processes = {each}."
            )
        accumulation = settings.batch_size // each
        order = _shuffled_epochs(len(lengths), total, rng)
        batches = []
        for start in range(0, total, settings.batch_size):
            update = sorted(order[start : start + settings.batch_size], key=lengths.__getitem__)
            batches += _chunks(update, settings.micro_batch_size)
    batches = batches[: len(batches) // processes * processes]  # no process waits for another
    if settings.max_steps is not None:
        batches = batches[: settings.max_steps * accumulation * processes]
    if not batches:
        raise SettingsError(
            f"{len(lengths)} traces and {settings.epochs} epochs give no batch for each of "
            f"{processes} processes; use fewer processes or more epochs."
        )
    return Plan(batches, accumulation)


def task_order(num_tasks: int, batch_size: int, steps: int, *, seed: int) -> list[list[int]]:
    """Return the tasks of each step: every epoch in a new order, no task twice in a step.

    What is left of an epoch when it gives no full batch is left out.
    """
    if num_tasks < batch_size:
        raise SettingsError(
            f"batch_size is {batch_size} but there are {num_tasks} tasks; "
            f"set batch_size to at most {num_tasks}."
        )
    rng = Random(seed)
    order: list[list[int]] = []
    while len(order) < steps:
        epoch = rng.sample(range(num_tasks), num_tasks)
        order += _chunks(epoch[: num_tasks // batch_size * batch_size], batch_size)
    return order[:steps]


def _shuffled_epochs(size: int, total: int, rng: Random) -> list[int]:
    order: list[int] = []
    while len(order) < total:
        order += rng.sample(range(size), size)
    return order[:total]


def _buckets(lengths: Sequence[int], total: int, budget: int, *, rng: Random) -> list[list[int]]:
    """Return buckets whose padded size fits the budget; a longer trace has one of its own."""
    batches: list[list[int]] = []
    while total > 0:
        epoch = rng.sample(range(len(lengths)), len(lengths))[:total]
        total -= len(epoch)
        buckets: list[list[int]] = [[]]
        for trace in sorted(epoch, key=lengths.__getitem__):
            if buckets[-1] and lengths[trace] * (len(buckets[-1]) + 1) > budget:
                buckets.append([])
            buckets[-1].append(trace)
        rng.shuffle(buckets)
        batches += buckets
    return batches


def _chunks(items: list[int], size: int) -> list[list[int]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
