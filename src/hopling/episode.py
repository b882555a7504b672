"""The nouns of an episode: what was asked, what was done, and every token of it with its source.

Nothing here knows a graph, a tool, a dialect or a model. Masks, rewards and exports are computed
from an `Episode`; none of them looks for tags in text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import count
from typing import Any, Literal, Protocol

Source = Literal["prompt", "policy", "environment"]


class Markup(str):
    """Text that may become control tokens; any other text never does, whatever it holds."""


class Encoder(Protocol):
    """Turns pieces of text into token ids; only `Markup` pieces may yield control tokens."""

    def encode(self, pieces: Sequence[str]) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


@dataclass(frozen=True)
class Task:
    """A question, where the search starts, and what is known of its answer.

    `answers` are names as the tool prints them. `answer_ids` are the nodes behind them, when known.
    `hints`, such as the gold SPARQL or the gold path, are for teachers only.
    """

    id: str
    question: str
    start: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    answer_ids: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    hints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """What a policy is told before its first turn."""

    user: str
    system: str = ""


@dataclass(frozen=True)
class Call:
    """One call of a tool; `span` is where it stands in the turn's text."""

    tool: str
    arguments: Mapping[str, Any]
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Answer:
    """A final answer; `clean` is false when text stands around it that the dialect forbids."""

    text: str
    clean: bool = True


@dataclass(frozen=True)
class Malformed:
    """What could not be read as a call or an answer, and why."""

    reason: str


Action = Call | Answer | Malformed


@dataclass(frozen=True)
class Observation:
    """What a call gave: the text that the policy reads, and the nodes in it, with their names.

    `error` is true when the call could not be carried out and the text says why.
    """

    text: str
    nodes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    error: bool = False


@dataclass(frozen=True)
class Completion:
    """What a policy wrote in one turn.

    `text` leaves out the marker that ended the turn; `tokens` has it, since it was sampled.
    `cut` is true when the turn ended for lack of room.
    """

    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Turn:
    """One turn: the policy's text, what it was read as, and one observation for each call."""

    text: str
    actions: tuple[Action, ...] = ()
    observations: tuple[Observation, ...] = ()

    @property
    def observation(self) -> Observation | None:
        """The first observation of the turn."""
        return self.observations[0] if self.observations else None

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the turn, in the order written."""
        return tuple(action for action in self.actions if isinstance(action, Call))


class Ending(Enum):
    """How an episode ended."""

    ANSWERED = "answered"
    OUT_OF_TURNS = "out of turns"
    CUT = "cut"  # the policy's last turn hit the length limit
    CONTEXT_FULL = "context full"  # no room was left for another turn
    UNSCORED = "unscored"  # the world failed; nothing can be said about the policy


@dataclass(frozen=True)
class Segment:
    """A run of tokens from one source; `logprobs` are the sampler's, for the policy's only."""

    source: Source
    text: str
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True)
class View:
    """What a policy may see of an episode: never the task's answers, evidence or hints.

    `key` names the episode within this process, `seed` fixes its sampling,
    `room` is how many tokens still fit (None: no limit is known).
    """

    key: int
    task_id: str
    seed: int
    prompt: Prompt
    tools: tuple[Mapping[str, Any], ...]
    turns: tuple[Turn, ...]
    tokens: tuple[int, ...]
    room: int | None = None


_keys = count()


@dataclass
class Episode:
    """The record of one task being played; appended to by `read` and `write` only."""

    task: Task
    prompt: Prompt
    tools: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0
    segments: list[Segment] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    ending: Ending | None = None
    reason: str = ""
    key: int = field(default_factory=lambda: next(_keys), compare=False)

    def read(self, source: Source, text: str, tokens: Sequence[int] = ()) -> None:
        """Append text that the policy reads."""
        self.segments.append(Segment(source, text, tuple(tokens)))

    def write(self, completion: Completion) -> None:
        """Append a turn's tokens as they were sampled."""
        segment = Segment("policy", completion.text, completion.tokens, completion.logprobs)
        self.segments.append(segment)

    def view(self, room: int | None = None) -> View:
        """Return what a policy may see."""
        turns, tokens = tuple(self.turns), tuple(self.tokens)
        return View(self.key, self.task.id, self.seed, self.prompt, self.tools, turns, tokens, room)

    @property
    def tokens(self) -> list[int]:
        """Every token in order, shape (T,)."""
        return [token for segment in self.segments for token in segment.tokens]

    @property
    def sampled(self) -> list[bool]:
        """Whether the policy sampled each token, shape (T,)."""
        return [s.source == "policy" for s in self.segments for _ in s.tokens]

    @property
    def logprobs(self) -> list[float]:
        """The sampler's log-probability of each token, 0.0 where none was sampled, shape (T,)."""
        return [
            logprob for s in self.segments for logprob in (s.logprobs or (0.0,) * len(s.tokens))
        ]

    @property
    def answer(self) -> Answer | None:
        """The answer that ended the episode."""
        if self.ending is not Ending.ANSWERED:
            return None
        return next(a for a in reversed(self.turns[-1].actions) if isinstance(a, Answer))

    @property
    def observations(self) -> list[Observation]:
        """Every observation, in order."""
        return [observation for turn in self.turns for observation in turn.observations]

    def to_json(self) -> dict[str, Any]:
        """Return the episode as plain JSON, one line of `episodes.jsonl`."""
        return {
            "task": {**asdict(self.task), "hints": dict(self.task.hints)},
            "prompt": asdict(self.prompt),
            "tools": [dict(tool) for tool in self.tools],
            "seed": self.seed,
            "segments": [asdict(segment) for segment in self.segments],
            "turns": [
                {
                    "text": turn.text,
                    "actions": [{"kind": type(a).__name__, **asdict(a)} for a in turn.actions],
                    "observations": [asdict(o) for o in turn.observations],
                }
                for turn in self.turns
            ],
            "ending": self.ending.value if self.ending else None,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Episode":
        """Return the episode that `to_json` wrote."""
        return cls(
            task=task_from_json(row["task"]),
            prompt=Prompt(**row["prompt"]),
            tools=tuple(row["tools"]),
            seed=row["seed"],
            segments=[_tupled(Segment, segment) for segment in row["segments"]],
            turns=[
                Turn(
                    turn["text"],
                    tuple(_action(a) for a in turn["actions"]),
                    tuple(_tupled(Observation, o) for o in turn["observations"]),
                )
                for turn in row["turns"]
            ],
            ending=Ending(row["ending"]) if row["ending"] else None,
            reason=row["reason"],
        )


def task_from_json(row: Mapping[str, Any]) -> Task:
    """Return the task of a JSON object with `Task`'s field names."""
    return _tupled(Task, row)


def _tupled(cls: Any, row: Mapping[str, Any]) -> Any:
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})


def _action(row: Mapping[str, Any]) -> Action:
    fields = {k: v for k, v in row.items() if k != "kind"}
    kinds: dict[str, Any] = {"Call": Call, "Answer": Answer, "Malformed": Malformed}
    return _tupled(kinds[row["kind"]], fields)
