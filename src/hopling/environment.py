"""An environment tells a task to a policy and carries out what the policy does.

It knows no concrete tool, dialect, graph or policy, and it has no state: what a tool must remember
is computed from the episode, so one environment serves interleaved episodes and threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import Signature, isfunction, signature
from typing import Any, Protocol, runtime_checkable

from hopling.episode import (
    Action,
    Answer,
    Call,
    Completion,
    Encoder,
    Ending,
    Episode,
    Malformed,
    Observation,
    Prompt,
    Task,
    Turn,
    View,
)
from hopling.errors import ToolError, WorldError, nearest


class Tool(Protocol):
    """A callable with a name, and a JSON schema (OpenAI's function form) that describes it.

    Raises ToolError for a call that the policy got wrong, WorldError when the graph did not answer.
    Arguments that it has no place for, or that are missing, never reach it.
    """

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Mapping[str, Any]: ...

    def __call__(self, episode: Episode, /, **arguments: Any) -> Observation: ...


@runtime_checkable
class BatchedTool(Tool, Protocol):
    """A tool that carries out the calls of many episodes at once, each as if it came alone.

    A call that its policy got wrong gives a ToolError in its place. Where the whole batch raises
    WorldError, the calls are made one by one.
    """

    def many(
        self, episodes: Sequence[Episode], arguments: Sequence[Mapping[str, Any]], /
    ) -> Sequence[Observation | ToolError]: ...


class Dialect(Protocol):
    """Reads and writes turns.

    `opening` and `reply` return pieces of text, of which only `Markup` may yield control tokens.
    `stops` are the markers at which a turn ends. `pieces` takes a whole turn's text apart for
    encoding, with the end marker that its author would have sampled.
    """

    @property
    def stops(self) -> tuple[str, ...]: ...

    def opening(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> list[str]: ...

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]: ...

    def reply(self, observations: Sequence[Observation]) -> list[str]: ...

    def write(self, actions: Sequence[Action], thought: str = "") -> str: ...

    def pieces(self, text: str) -> list[str]: ...


@dataclass(frozen=True)
class Environment:
    """Prompt, tools, dialect and limits.

    `max_turns` counts the answer's turn; `max_tokens` is the context's size, prompt included.
    """

    prompt: Callable[[Task], Prompt | str]
    tools: tuple[Tool, ...]
    dialect: Dialect
    max_turns: int
    max_tokens: int | None = None

    def begin(self, task: Task, encoder: Encoder | None = None, *, seed: int = 0) -> Episode:
        """Return a new episode that holds the opening."""
        prompt = self.prompt(task)
        if isinstance(prompt, str):
            prompt = Prompt(prompt)
        schemas = tuple(tool.schema for tool in self.tools)
        episode = Episode(task, prompt, schemas, seed)
        pieces = self.dialect.opening(prompt, schemas)
        episode.read("prompt", "".join(pieces), encoder.encode(pieces) if encoder else ())
        if self._room(episode) == 0:
            episode.ending = Ending.CONTEXT_FULL
        return episode

    def view(self, episode: Episode) -> View:
        """Return what a policy may see of the episode, and how many tokens it may still write."""
        return episode.view(self._room(episode))

    def step(
        self, episode: Episode, completion: Completion, encoder: Encoder | None = None
    ) -> None:
        """Carry out one turn of the policy and append what it reads next.

        An exception that is neither the policy's fault nor the world's passes through.
        """
        self.step_all([episode], [completion], encoder)

    def step_all(
        self,
        episodes: Sequence[Episode],
        completions: Sequence[Completion],
        encoder: Encoder | None = None,
    ) -> None:
        """Carry out one turn of each episode; a batched tool gets all its calls at once."""
        turns: list[tuple[Action, ...]] = []
        for episode, completion in zip(episodes, completions, strict=True):
            episode.write(completion)
            turns.append(self.dialect.parse(completion.text, cut=completion.cut))
        known = self._known(episodes, completions, turns)
        for place, (episode, completion) in enumerate(zip(episodes, completions, strict=True)):
            self._finish(episode, completion, turns[place], known.get(place, {}))
            if not episode.ending:
                pieces = self.dialect.reply(episode.turns[-1].observations)
                tokens = encoder.encode(pieces) if encoder else ()
                episode.read("environment", "".join(pieces), tokens)
                if self._room(episode) == 0:
                    episode.ending = Ending.CONTEXT_FULL

    def _finish(
        self,
        episode: Episode,
        completion: Completion,
        actions: tuple[Action, ...],
        known: Mapping[int, Observation],
    ) -> None:
        answered = _is_answer(actions)
        observations: list[Observation] = []
        if not answered and not completion.cut:
            try:
                observations = [
                    known[number] if number in known else self._carry_out(episode, action)
                    for number, action in enumerate(actions)
                ]
            except WorldError as error:
                episode.ending, episode.reason = Ending.UNSCORED, str(error)
        episode.turns.append(Turn(completion.text, actions, tuple(observations)))
        if answered:
            episode.ending = Ending.ANSWERED
        elif completion.cut:
            episode.ending = Ending.CUT
        elif len(episode.turns) >= self.max_turns:
            episode.ending = episode.ending or Ending.OUT_OF_TURNS

    def _known(
        self,
        episodes: Sequence[Episode],
        completions: Sequence[Completion],
        turns: Sequence[tuple[Action, ...]],
    ) -> dict[int, dict[int, Observation]]:
        """Return what batched tools gave, by the episode's place and the action's number."""
        found: dict[int, dict[int, Observation]] = {}
        for tool in self.tools:
            if not isinstance(tool, BatchedTool):
                continue
            calls = [
                (place, number, action)
                for place, actions in enumerate(turns)
                if not _is_answer(actions) and not completions[place].cut
                for number, action in enumerate(actions)
                if isinstance(action, Call) and action.tool == tool.name
                if _takes(tool, episodes[place], action) is None
            ]
            if len(calls) < 2:
                continue
            whose = [episodes[place] for place, _, _ in calls]
            try:
                given = tool.many(whose, [action.arguments for _, _, action in calls])
            except WorldError:
                continue
            for (place, number, _), seen in zip(calls, given, strict=True):
                if isinstance(seen, ToolError):
                    seen = Observation(str(seen), error=True)
                found.setdefault(place, {})[number] = seen
        return found

    def _carry_out(self, episode: Episode, action: Action) -> Observation:
        if isinstance(action, Malformed):
            return Observation(action.reason, error=True)
        if isinstance(action, Answer):
            return Observation("An answer stands in a turn of its own, without calls.", error=True)
        tool = next((tool for tool in self.tools if tool.name == action.tool), None)
        if tool is None:
            names = [tool.name for tool in self.tools]
            hint = nearest(action.tool, names)
            message = f"There is no tool {action.tool!r}.{hint} Tools: {', '.join(names)}."
            return Observation(message, error=True)
        if problem := _takes(tool, episode, action):
            return Observation(problem, error=True)
        try:
            return tool(episode, **action.arguments)
        except ToolError as error:
            return Observation(str(error), error=True)

    def _room(self, episode: Episode) -> int | None:
        if self.max_tokens is None:
            return None
        return max(0, self.max_tokens - sum(len(s.tokens) for s in episode.segments))


def _is_answer(actions: Sequence[Action]) -> bool:
    return len(actions) == 1 and isinstance(actions[0], Answer)


def _takes(tool: Tool, episode: Episode, call: Call) -> str | None:
    """Return what is wrong with a call's arguments, None where the tool has a place for each."""
    takes = _signature(type(tool).__call__) if isfunction(type(tool).__call__) else signature(tool)
    try:
        takes.bind(episode, **call.arguments)
    except TypeError as error:
        return f"{tool.name}: {error}. Arguments: {', '.join([*takes.parameters][1:])}."
    return None


@lru_cache(maxsize=128)
def _signature(method: Callable[..., Any]) -> Signature:
    """Return the signature of a method without its self, read once for each class."""
    whole = signature(method)
    return whole.replace(parameters=[*whole.parameters.values()][1:])


__all__ = ["BatchedTool", "Call", "Dialect", "Environment", "Tool"]
