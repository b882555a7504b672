"""An environment tells a task to a policy and carries out what the policy does.

It knows no concrete tool, dialect, graph or policy, and it has no state: what a tool must remember
is computed from the episode, so one environment serves interleaved episodes and threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol

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
        episode.write(completion)
        actions = self.dialect.parse(completion.text, cut=completion.cut)
        answered = len(actions) == 1 and isinstance(actions[0], Answer)
        observations: list[Observation] = []
        if not answered and not completion.cut:
            try:
                observations = [self._carry_out(episode, action) for action in actions]
            except WorldError as error:
                episode.ending, episode.reason = Ending.UNSCORED, str(error)
        episode.turns.append(Turn(completion.text, actions, tuple(observations)))
        if answered:
            episode.ending = Ending.ANSWERED
        elif completion.cut:
            episode.ending = Ending.CUT
        elif len(episode.turns) >= self.max_turns:
            episode.ending = episode.ending or Ending.OUT_OF_TURNS
        if not episode.ending:
            pieces = self.dialect.reply(observations)
            tokens = encoder.encode(pieces) if encoder else ()
            episode.read("environment", "".join(pieces), tokens)
            if self._room(episode) == 0:
                episode.ending = Ending.CONTEXT_FULL

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
        try:
            signature(tool).bind(episode, **action.arguments)
        except TypeError as error:
            takes = ", ".join([*signature(tool).parameters][1:])
            return Observation(f"{tool.name}: {error}. Arguments: {takes}.", error=True)
        try:
            return tool(episode, **action.arguments)
        except ToolError as error:
            return Observation(str(error), error=True)

    def _room(self, episode: Episode) -> int | None:
        if self.max_tokens is None:
            return None
        return max(0, self.max_tokens - sum(len(s.tokens) for s in episode.segments))


__all__ = ["Call", "Dialect", "Environment", "Tool"]
