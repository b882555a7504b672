"""A policy whose turns are known beforehand: for tests, replays and compiled teachers."""

from collections.abc import Callable, Mapping, Sequence

from hopling.episode import Completion, Encoder, Markup, View
from hopling.errors import SettingsError, nearest

# A turn's text, or its pieces (as `Dialect.pieces` gives them), of which only `Markup` may become
# control tokens; a marker at the end is not part of the text.
Written = str | Sequence[str]


class Scripted:
    """Writes the given turns of each task, in order.

    With an encoder a turn gets tokens; the first `Markup` stop is added to them, as a model would
    have sampled it, unless the text already ends in another stop.
    """

    concurrent = False
    max_live = 1024

    def __init__(
        self, turns: Mapping[str, Sequence[Written]], encoder: Encoder | None = None
    ) -> None:
        self.encoder = encoder
        self._write: Callable[[View], Written] = lambda view: _turn(turns, view)

    @classmethod
    def from_function(
        cls, write: Callable[[View], Written], encoder: Encoder | None = None
    ) -> "Scripted":
        """Return the policy whose next turn is `write(view)`.

        >>> from hopling.episode import Prompt
        >>> guess = Scripted.from_function(lambda view: f"turn {len(view.turns)}")
        >>> guess.generate([View(0, "t1", 0, Prompt("Who?"), (), (), ())], ())[0].text
        'turn 0'
        """
        policy = cls({}, encoder)
        policy._write = write
        return policy

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Return each view's next turn.

        Raises SettingsError when a task has no turns, or none left.
        """
        return [self._completion(self._write(view), stops) for view in views]

    def _completion(self, written: Written, stops: Sequence[str]) -> Completion:
        pieces = [written] if isinstance(written, str) else list(written)
        markers = [stop for stop in stops if isinstance(stop, Markup)]
        marked = bool(pieces) and isinstance(pieces[-1], Markup) and pieces[-1] in markers
        text = "".join(pieces[:-1] if marked else pieces)
        if self.encoder is None:
            return Completion(text)
        if markers and not marked and not text.endswith(tuple(stops)):
            pieces.append(markers[0])
        return Completion(text, tokens=tuple(self.encoder.encode(pieces)))


def _turn(turns: Mapping[str, Sequence[Written]], view: View) -> Written:
    if view.task_id not in turns:
        hint = nearest(view.task_id, turns)
        raise SettingsError(f"Scripted has no turns for task {view.task_id!r}.{hint}")
    script = turns[view.task_id]
    if len(view.turns) >= len(script):
        raise SettingsError(
            f"Scripted has {len(script)} turns for task {view.task_id!r}, and turn "
            f"{len(view.turns) + 1} was asked for. End the script with an answer, or lower "
            "max_turns."
        )
    return script[len(view.turns)]
