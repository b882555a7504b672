"""What a teacher model will cost, before it runs; the server's own budget stops it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from hopling.episode import Episode, Prompt, Task
from hopling.errors import SettingsError
from hopling.policies.spending import Price

CHARACTERS_PER_TOKEN = 4.0  # [ours] English, JSON and Markdown tables come to 3.5 to 4.5


@dataclass(frozen=True)
class Habits:
    """How a teacher plays: turns, tokens it writes in one, tokens of an observation, on average."""

    turns: float = 4.5  # [ours] between the paper's calls on WebQSP and CWQ, and the answer's turn
    written: float = 600.0  # [ours] a thinking model; one that does not think writes about 100
    observation: float = 900.0  # [ours] a table of 30 rows

    @classmethod
    def of(cls, episodes: Sequence[Episode]) -> "Habits":
        """Return the habits that these episodes show, counted in characters.

        Raises SettingsError without an episode that has a turn.
        """
        played = [episode for episode in episodes if episode.turns]
        if not played:
            raise SettingsError("no episode to learn a teacher's habits from; play a few first.")
        turns = [turn for episode in played for turn in episode.turns]
        observations = [o for episode in played for o in episode.observations]
        return cls(
            turns=len(turns) / len(played),
            written=mean(_tokens(turn.text) for turn in turns),
            observation=mean([_tokens(o.text) for o in observations] or [0.0]),
        )


@dataclass(frozen=True)
class Estimate:
    """What a run is expected to take; tokens are read anew with every request."""

    requests: int
    read: int
    written: int
    cost: float


def estimate(
    tasks: Sequence[Task],
    prompt: Callable[[Task], Prompt | str],
    price: Price,
    *,
    habits: Habits,
) -> Estimate:
    """Return the requests, tokens and money that playing each task once would take.

    A request reads the prompt and every turn and observation before it.

    >>> task = Task("t1", "Who?")
    >>> estimate([task], lambda t: "x" * 400, Price(1.0, 2.0), habits=Habits(2.0, 10.0, 30.0))
    Estimate(requests=2, read=240, written=20, cost=0.00028)
    """
    read = 0.0
    for task in tasks:
        told = prompt(task)
        text = told if isinstance(told, str) else told.system + told.user
        before = habits.turns * (habits.turns - 1) / 2
        read += habits.turns * _tokens(text) + before * (habits.written + habits.observation)
    requests = habits.turns * len(tasks)
    written = requests * habits.written
    return Estimate(round(requests), round(read), round(written), price.cost(read, written))


def _tokens(text: str) -> float:
    return len(text) / CHARACTERS_PER_TOKEN
