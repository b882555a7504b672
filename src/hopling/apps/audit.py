"""`hopling graph audit`: does a graph fit a file of tasks, and what to do where it does not?"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from hopling.apps.reach import ways
from hopling.episode import Task
from hopling.graphs.base import Direction, Graph
from hopling.graphs.names import folded

_MAX_NODES = 20_000  # whose relations are looked at, those nearest to any start
_DIRECTIONS: tuple[Direction, Direction] = ("outgoing", "incoming")


@dataclass(frozen=True)
class GraphAudit:
    """What a graph has of some tasks; shares are of starts, of answers, and of answers.

    `near_duplicates` are labels that differ in case, spaces or punctuation only, with the ids of
    each. `unreached` are relations on no way of `hops` hops from any start, None where the graph
    does not tell its relations; where `looked_at` is a number, only so many nodes were looked at,
    and relations further off are among the unreached. `missing_starts` and `missing_answers` are
    examples.
    """

    tasks: int
    hops: int
    starts_found: float
    answers_present: float
    answers_reachable: float
    missing_starts: tuple[str, ...]
    missing_answers: tuple[str, ...]
    near_duplicates: dict[str, tuple[str, ...]]
    unreached: tuple[str, ...] | None
    looked_at: int | None
    suggestions: tuple[str, ...]


def audited(
    graph: Graph, tasks: Sequence[Task], *, hops: int, relations: Iterable[str] | None = None
) -> GraphAudit:
    """Return how well a graph fits the tasks; `relations` are all that it has, where it tells."""
    names = [name for task in tasks for name in task.start]
    ids = dict(zip(names, graph.resolve(names), strict=True))
    counts: Counter[str] = Counter()
    missing: dict[str, None] = {}
    for task in tasks:
        start = [id for name in task.start if (id := ids[name])]
        for way in ways(graph, task, start=start, hops=hops):
            counts.update(total=1, present=way.present, reached=way.reached)
            if not way.present:
                missing[way.answer] = None
    found = [id for id in ids.values() if id]
    lost = tuple(name for name in ids if not ids[name])
    unreached, looked_at = None, None
    if relations is not None:
        unseen, looked_at = _unseen(graph, found, hops, relations)
        unreached = tuple(sorted(unseen))
    numbers = {
        "starts_found": sum(ids[name] is not None for name in names) / max(1, len(names)),
        "answers_present": counts["present"] / max(1, counts["total"]),
        "answers_reachable": counts["reached"] / max(1, counts["total"]),
    }
    doubles = _near_duplicates(graph, found, tasks)
    told = _suggestions(graph, numbers, lost, doubles=doubles, hops=hops)
    if unreached:
        told += (_advice_on_unreached(looked_at),)
    return GraphAudit(
        tasks=len(tasks),
        hops=hops,
        **numbers,
        missing_starts=lost[:10],
        missing_answers=tuple(missing)[:10],
        near_duplicates=doubles,
        unreached=unreached,
        looked_at=looked_at,
        suggestions=told,
    )


def rows(audit: GraphAudit) -> dict[str, object]:
    """Return the audit as names and values for a table."""
    shares = {k.replace("_", " "): v for k, v in asdict(audit).items() if isinstance(v, float)}
    unreached = "unknown; only a built graph lists its relations"
    if audit.unreached is not None:
        unreached = str(len(audit.unreached))
    if audit.unreached and audit.looked_at:
        unreached = f"at most {unreached}; {audit.looked_at:,} nodes were looked at"
    return {
        "tasks": audit.tasks,
        "hops": audit.hops,
        **{name: f"{share:.1%}" for name, share in shares.items()},
        "near-duplicate labels": len(audit.near_duplicates),
        "relations never reached": unreached,
    }


def _unseen(
    graph: Graph, starts: Sequence[str], hops: int, relations: Iterable[str]
) -> tuple[set[str], int | None]:
    """Return the relations on no way from the starts, and how many nodes were looked at if not all.

    The nodes nearest to the starts are looked at first.
    """
    unseen, num_seen = set(relations), 0
    known = dict.fromkeys(starts)
    frontier = list(known)
    for hop in range(hops):
        is_cut = num_seen + len(frontier) > _MAX_NODES
        frontier = frontier[: _MAX_NODES - num_seen]
        num_seen += len(frontier)
        fresh: dict[str, None] = {}
        for direction in _DIRECTIONS:
            for counts in graph.counts(frontier, direction):
                unseen -= counts.keys()
            if hop + 1 < hops and not is_cut:
                for edges in graph.neighbors(frontier, direction):
                    fresh |= {e.value: None for e in edges if not e.literal}
        if is_cut and unseen:
            return unseen, num_seen
        if is_cut or not unseen:
            break
        frontier = [node for node in fresh if node not in known]
        known |= fresh
    return unseen, None


def _near_duplicates(
    graph: Graph, starts: Sequence[str], tasks: Sequence[Task]
) -> dict[str, tuple[str, ...]]:
    """Return labels of starts and answers that other nodes have nearly, with the ids."""
    answers = [name for task in tasks for name in task.answers]
    wanted = [label for label in graph.labels(starts) if label] + answers
    found: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(wanted):
        ids = graph.find(name)
        same: dict[str, list[str]] = defaultdict(list)
        for id, label in zip(ids, graph.labels(ids), strict=True):
            same[_bare(label or "")].append(id)
        if len(doubles := same.get(_bare(name), [])) > 1:
            found[name] = tuple(doubles)
    return found


def _bare(label: str) -> str:
    """Return what is left of a label without case, spaces and punctuation."""
    return "".join(c for c in folded(label) if c.isalnum()) or label


def _suggestions(
    graph: Graph,
    shares: dict[str, float],
    lost: Sequence[str],
    *,
    doubles: dict[str, tuple[str, ...]],
    hops: int,
) -> tuple[str, ...]:
    told = []
    if lost:
        like = graph.find(lost[0], 3)
        named = f" (like {lost[0]!r} by label: {', '.join(like)})" if like else ""
        told.append(f"Write `start` as ids of the graph; `graph search` finds them{named}.")
    if shares["answers_present"] < 1:
        told.append(
            "Give tasks `answer_ids`, or name answers as the graph does; else drop those tasks, "
            "or build the graph from more of its source."
        )
    if shares["answers_reachable"] < shares["answers_present"]:
        told.append(f"Answers lie further than {hops} hops: raise --hops, or add what is between.")
    if doubles:
        told.append("Labels stand for several nodes: give `answer_ids`, or merge the nodes.")
    return tuple(told)


def _advice_on_unreached(looked_at: int | None) -> str:
    if looked_at is None:
        return "No task can reach some relations: leave them out for a smaller graph."
    return (
        f"Only the {looked_at:,} nodes nearest to the starts were asked for their relations, so "
        "some listed as never reached may be further off: lower --hops or --limit to be sure."
    )
