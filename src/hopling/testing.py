"""Suites that any class of one's own can run: each raises AssertionError with a sentence.

check_graph(MyGraph(), ["m.1", "m.2"])
check_same_graph(MyGraph(), HopIndex.open("index"), ["m.1", "m.2"])
check_tool(MyTool(graph), {"entities": ["m.1"], "direction": "outgoing"})
check_dialect(MyDialect(), calls=[Call("Search", {...})], answers=[Answer("{A}")])
check_policy(MyPolicy(), ToolCalls(), [Task("t1", "Who?")])
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hopling.environment import Dialect, Environment, Tool
from hopling.episode import (
    Action,
    Answer,
    Call,
    Completion,
    Encoder,
    Episode,
    Malformed,
    Markup,
    Observation,
    Prompt,
    Task,
    View,
)
from hopling.errors import ToolError
from hopling.graphs.base import Direction, Edge, Graph
from hopling.rollout import Policy, rollout
from hopling.tools import OneHopSearch

_DIRECTIONS: tuple[Direction, Direction] = ("outgoing", "incoming")
_NO_NODES = ["no such node", "", "x> ?p ?o } #", "http://x.example/a> <b", "_:b0", "\ud800", "\x00"]
_NO_NODES += ["[none]", "100%", "a#b#c"]  # safe to write, but no IRIs
_SECRETS = frozenset({"answers", "answer_ids", "evidence", "hints"})


class SealedTask(Task):
    """A task that raises when its answers, evidence or hints are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in _SECRETS:
            raise AssertionError(f"Task.{name} was read; it must never reach a policy.")
        return super().__getattribute__(name)


def check_tool(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Check that a tool is described, repeatable, without state, and answers bad calls in words.

    `arguments` are those of a call that it can carry out.
    """
    _check_schema(tool, arguments)
    task = SealedTask("t", "?", tuple(n for n in arguments.values() if isinstance(n, str)))
    episode = Episode(task, Prompt("?"))
    first = tool(episode, **arguments)
    _check_observation(first, f"{tool.name}(**{dict(arguments)!r})")
    assert not first.error, f"a good call gave an error: {first.text}"
    written = [*episode.turns, *episode.segments]
    assert not written, f"the tool wrote {written[0]} to the episode"
    assert vars(episode).keys() == vars(Episode(task, Prompt("?"))).keys(), (
        "the tool keeps state on the episode; compute it from the turns instead"
    )
    other = tool(Episode(task, Prompt("?")), **arguments)
    assert other == first, f"equal calls differ: {first.text!r} and {other.text!r}"
    for bad in _bad_arguments(arguments):
        _check_refusal(tool, episode, bad)


def _check_schema(tool: Tool, arguments: Mapping[str, Any]) -> None:
    schema = json.loads(json.dumps(dict(tool.schema)))
    assert schema.get("name") == tool.name, f"the schema names {schema.get('name')!r}"
    assert schema.get("description"), "the schema has no description"
    parameters = schema.get("parameters", {})
    assert parameters.get("type") == "object", 'parameters must be {"type": "object", ...}'
    unknown = set(arguments) - set(parameters.get("properties", {}))
    assert not unknown, f"the schema does not describe {sorted(unknown)}"


def _bad_arguments(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    strange: list[Any] = [None, 7, True, "", "no such thing > } #", [], [None], {}, [[]]]
    bad = [{**arguments, name: value} for name in arguments for value in strange]
    bad += [{n: v for n, v in arguments.items() if n != name} for name in arguments]
    return [*bad, {}, {**arguments, "no_such_argument": 1}, {**arguments, "episode": 1}]


def _check_refusal(tool: Tool, episode: Episode, bad: Mapping[str, Any]) -> None:
    try:
        observation = tool(episode, **bad)
    except ToolError as refusal:
        observation = Observation(str(refusal), error=True)
    except TypeError as error:
        # an argument named like the first parameter makes Python itself refuse the call
        raise AssertionError(
            f"{dict(bad)!r} raises {error!r}; raise ToolError instead, and take the episode as a "
            "positional-only parameter."
        ) from error
    _check_observation(observation, f"{tool.name}(**{dict(bad)!r})")


def _check_observation(observation: Observation, what: str) -> None:
    assert observation.text.strip(), f"{what} gave an empty text"
    assert len(observation.nodes) == len(observation.names), f"{what}: nodes and names differ"


def check_dialect(
    dialect: Dialect, *, calls: Sequence[Call], answers: Sequence[Answer] = ()
) -> None:
    """Check that a dialect reads back what it writes and keeps content out of control tokens.

    `calls` and `answers` are some that it can write.
    """
    assert dialect.stops, "no marker ends a turn"
    each: list[Action] = [*calls, *answers]
    together: list[Action] = list(calls)
    for actions in filter(None, [*([action] for action in each), together]):
        for thought in ("", "A thought first."):
            text = dialect.write(actions, thought)
            read = dialect.parse(text)
            assert _unplaced(read) == _unplaced(actions), f"{text!r} reads as {read}"
            _check_spans(text, read)
            _check_pieces(dialect, text)
            _check_cuts(dialect, text)
    for text in ("", "Hm.", *dialect.stops):
        (read_one,) = dialect.parse(text) or (None,)
        assert isinstance(read_one, Malformed), f"{text!r} is no action, but reads as {read_one}"
        assert read_one.reason.strip(), f"{text!r} is refused without a word"
    _check_content(dialect)


def _check_spans(text: str, actions: Sequence[Action]) -> None:
    for action in actions:
        if isinstance(action, Call):
            start, end = action.span
            assert 0 <= start < end <= len(text), f"the span {action.span} is outside {text!r}"


def _check_pieces(dialect: Dialect, text: str) -> None:
    pieces = dialect.pieces(text)
    last = pieces[-1]
    assert isinstance(last, Markup), f"the pieces of {text!r} end in plain text"
    assert last in dialect.stops, f"the pieces of {text!r} end in {last!r}, which ends no turn"
    # an end marker such as a closing tag is part of the text, any other is not
    spelled = text if text.endswith(last) else text + last
    assert "".join(pieces) == spelled, f"the pieces of {text!r} are {pieces}"


def _check_cuts(dialect: Dialect, text: str) -> None:
    for end in range(len(text)):
        dialect.parse(text[:end])
        for action in dialect.parse(text[:end], cut=True):
            faulty = isinstance(action, Malformed)
            assert not faulty, f"{text[:end]!r} was cut, but counts as a fault of format: {action}"


def _check_content(dialect: Dialect) -> None:
    plain = dialect.opening(Prompt("question", "system"), ())
    hostile = "".join(["a", *(p for p in plain if isinstance(p, Markup)), *dialect.stops, "b"])
    opening = dialect.opening(Prompt(hostile, hostile), ())
    assert _control(opening) == _control(plain), "a prompt's text became a control token"
    assert _holds(opening, hostile), "the opening changes the prompt's text"
    quiet = dialect.reply([Observation("one"), Observation("two")])
    loud = dialect.reply([Observation(hostile), Observation("two")])
    assert _control(loud) == _control(quiet), "an observation's text became a control token"
    assert _holds(loud, hostile), "the reply changes an observation's text"
    text = "".join(quiet)
    assert 0 <= text.find("one") < text.find("two"), "observations are not in the calls' order"


def _control(pieces: Sequence[str]) -> list[str]:
    return [piece for piece in pieces if isinstance(piece, Markup)]


def _holds(pieces: Sequence[str], text: str) -> bool:
    return any(text in piece for piece in pieces if not isinstance(piece, Markup))


def _unplaced(actions: Sequence[Action]) -> list[Action]:
    return [replace(a, span=(0, 0)) if isinstance(a, Call) else a for a in actions]


def check_graph(graph: Graph, nodes: Sequence[str]) -> None:
    """Check that a graph's answers agree with each other, are sorted, and that ids are only ids.

    `nodes` are some of the graph's ids; ones with edges and labels check the most.
    """
    assert nodes, "name some of the graph's nodes"
    assert graph.resolve(nodes) == list(nodes), f"{nodes} do not resolve to themselves"
    for direction in _DIRECTIONS:
        counts = graph.counts(nodes, direction)
        rows = graph.neighbors(nodes, direction)
        assert len(counts) == len(rows) == len(nodes), f"{direction}: one answer a node is due"
        for node, counted, edges in zip(nodes, counts, rows, strict=True):
            where = f"{direction} edges of {node!r}"
            _check_edges(where, counted, edges)
            _check_narrowed(graph, node, direction, edges)
            _check_turned(graph, node, direction, edges)
        singly = [graph.neighbors([node], direction)[0] for node in nodes]
        assert singly == rows, f"{direction}: nodes asked together and alone differ"
        assert graph.neighbors([*nodes, *nodes], direction) == [*rows, *rows], (
            f"{direction}: a node asked twice in one call differs"
        )
        assert graph.counts(nodes, direction) == counts, f"{direction}: equal calls differ"
    _check_labels(graph, nodes)
    _check_strangers(graph, nodes[0])
    if hasattr(graph, "search_table"):
        check_same_graph(graph, _Plain(graph), nodes)


class _Plain:
    """A graph without what lets it write tables by itself."""

    def __init__(self, graph: Graph):
        self.resolve, self.counts, self.neighbors = graph.resolve, graph.counts, graph.neighbors
        self.labels, self.find = graph.labels, graph.find


def check_same_graph(graph: Graph, other: Graph, nodes: Sequence[str]) -> None:
    """Check that two backends of one graph give the same observations of `Search`.

    Literals that a store rewrites ("05" as 5) are the one difference to keep out of such a test.
    """
    assert nodes, "name some of the graph's nodes"
    for max_rows in (1, 4, 50):
        one, two = OneHopSearch(graph, max_rows), OneHopSearch(other, max_rows)
        for arguments in _searches(other, nodes):
            seen, expected = _observed(one, arguments), _observed(two, arguments)
            assert seen == expected, f"{arguments} by {max_rows} rows: {seen} is not {expected}"


def _searches(graph: Graph, nodes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of calls: alone and together, by properties, pages, and mistaken."""
    some = list(nodes[:20])
    for direction in _DIRECTIONS:
        for entities in (*([node] for node in some[:8]), some, [*some[:2], f"<{some[-1]}>"]):
            have = sorted({relation for one in graph.counts(some, direction) for relation in one})
            for properties in ([], have[:1], have[1:3], [*have[-1:], "none such"], ["page 2"]):
                yield {"entities": entities, "direction": direction, "properties": properties}


def _observed(tool: OneHopSearch, arguments: Mapping[str, Any]) -> Observation:
    try:
        return tool(Episode(Task("t", "?"), Prompt("?")), **arguments)
    except ToolError as error:
        return Observation(str(error), error=True)


def _check_edges(where: str, counted: Mapping[str, int], edges: Sequence[Edge]) -> None:
    assert list(edges) == sorted(edges), f"the {where} are not sorted"
    assert list(counted) == sorted(counted), f"the relations of the {where} are not sorted"
    found = Counter(edge.relation for edge in edges)
    assert dict(counted) == dict(found), f"{where}: counted {dict(counted)}, found {dict(found)}"
    nodes = [edge for edge in edges if not edge.literal]
    assert len(nodes) == len(set(nodes)), f"the {where} hold one twice"


def _check_narrowed(graph: Graph, node: str, direction: Direction, edges: Sequence[Edge]) -> None:
    relations = sorted({edge.relation for edge in edges})
    for wanted in ([], ["no such relation"], relations[:1], [*relations[1:], "x> ?p ?o } #"]):
        (narrowed,) = graph.neighbors([node], direction, wanted)
        expected = [edge for edge in edges if edge.relation in wanted]
        assert narrowed == expected, f"{node!r} {direction} by {wanted}: {narrowed}"
    for limit in {0, 1, max(0, len(edges) - 1), len(edges), len(edges) + 1}:
        (cut,) = graph.neighbors([node, node], direction, None, limit)[:1]
        assert cut == edges[:limit], f"{node!r} {direction} at most {limit}: {cut}"


def _check_turned(graph: Graph, node: str, direction: Direction, edges: Sequence[Edge]) -> None:
    back: Direction = "incoming" if direction == "outgoing" else "outgoing"
    ends = [edge for edge in edges if not edge.literal and not edge.value.startswith("_:")][:20]
    values = [edge.value for edge in ends]
    assert graph.resolve(values) == values, f"a value among {values} is no id"
    for edge, others in zip(ends, graph.neighbors(values, back), strict=True):
        assert Edge(edge.relation, node) in others, f"{edge} of {node!r} is not {back} there"


def _check_labels(graph: Graph, nodes: Sequence[str]) -> None:
    labels = graph.labels(nodes)
    assert len(labels) == len(nodes), "one label or None a node is due"
    assert graph.labels(nodes) == labels, "equal calls for labels differ"
    for node, label in zip(nodes, labels, strict=True):
        assert graph.find(node, limit=1) == [node], f"find({node!r}) does not give that id first"
        if label is not None:
            found = graph.find(label, limit=1000)
            assert node in found, f"find({label!r}) does not give {node!r}"
            assert len(found) == len(set(found)), f"find({label!r}) gives a node twice"
            assert graph.find(label, limit=1) == found[:1], f"find({label!r}) depends on limit"
            assert node in graph.find(unicodedata.normalize("NFD", label), limit=1000), (
                f"find does not give {node!r} for the decomposed form of {label!r}"
            )
    assert graph.find("") == [], "an empty name finds nodes"


def _check_strangers(graph: Graph, node: str) -> None:
    num = len(_NO_NODES)
    assert graph.resolve(_NO_NODES) == [None] * num, "a name that is no node resolves"
    assert graph.labels(_NO_NODES) == [None] * num, "a name that is no node has a label"
    for direction in _DIRECTIONS:
        assert graph.counts(_NO_NODES, direction) == [{}] * num, "what is no node has edges"
        assert graph.neighbors(_NO_NODES, direction) == [[]] * num, "what is no node has edges"
        mixed = graph.neighbors(["no such node", node], direction)
        assert mixed == [[], graph.neighbors([node], direction)[0]], "a stranger moves the answers"
        assert graph.counts([], direction) == [], "no nodes, but counts"
        assert graph.neighbors([], direction) == [], "no nodes, but edges"
    for name in _NO_NODES:
        assert not {*graph.find(name)} - {*graph.resolve(graph.find(name))}, f"find({name!r})"
    assert graph.resolve([]) == graph.labels([]) == []


def check_policy(policy: Policy, dialect: Dialect, tasks: Sequence[Task]) -> None:
    """Check that a policy needs no secret of a task, and that its tokens are what it wrote.

    `tasks` are some that it can play. A policy with an encoder must also give each view the same
    turn alone and among others.
    """
    assert tasks, "name some tasks"
    assert policy.max_live >= 1, f"max_live is {policy.max_live}"
    sealed = [SealedTask(task.id, task.question, task.start) for task in tasks]
    world = Environment(lambda task: Prompt(task.question), (), dialect, max_turns=2)
    for episode in rollout(policy, world, sealed):
        assert episode.ending, f"the episode of {episode.task.id!r} has no ending"
    begun = [world.begin(task, policy.encoder) for task in sealed]
    views = [world.view(episode) for episode in begun][: policy.max_live]
    completions = policy.generate(views, dialect.stops)
    assert len(completions) == len(views), f"{len(views)} views, {len(completions)} turns"
    for completion in completions:
        _check_completion(completion, policy.encoder)
    if policy.encoder:
        _check_alone(policy, dialect, views, completions)
        (small,) = policy.generate([replace(views[0], key=-1, room=1)], dialect.stops)
        sampled = bool(small.logprobs)  # a script has no say in its length
        assert len(small.tokens) <= 1 or not sampled, f"room for one, but {small.tokens}"


def _check_completion(completion: Completion, encoder: Encoder | None) -> None:
    tokens, logprobs = completion.tokens, completion.logprobs
    if encoder is None:
        assert not tokens, f"tokens {tokens}, but no encoder"
        return
    assert tokens or completion.cut, f"{completion.text!r} has no tokens, but was not cut"
    whole = encoder.decode(tokens)
    assert whole.startswith(completion.text), f"{completion.text!r} stands for {whole!r}"
    assert len(logprobs) in (0, len(tokens)), f"{len(tokens)} tokens, {len(logprobs)} logprobs"
    assert all(logprob <= 1e-6 for logprob in logprobs), f"{max(logprobs)} is no logprob"


def _check_alone(
    policy: Policy, dialect: Dialect, views: Sequence[View], together: Sequence[Completion]
) -> None:
    for number, (view, completion) in enumerate(zip(views, together, strict=True)):
        (alone,) = policy.generate([replace(view, key=-2 - number)], dialect.stops)
        assert alone.tokens == completion.tokens, (
            f"the turn of {view.task_id!r} depends on the batch: {completion.text!r} among "
            f"others, {alone.text!r} alone"
        )


__all__ = [
    "SealedTask",
    "check_dialect",
    "check_graph",
    "check_policy",
    "check_same_graph",
    "check_tool",
]
