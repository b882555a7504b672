"""Measures `Search` calls on one graph behind several engines, per second of processor time.

Every engine answers the same calls through the same tool, in a process of its own, and must give
the same texts. A server's processor time counts too. Mixed calls are 70 % one entity, 20 % batches
of 20, 10 % hubs. What an engine needs is built in the folder once, the file of triples included.

python benchmarks/graph_calls.py --triples 1000000 10000000 --rounds 5 --folder /tmp/graphs
"""

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import freebase_like
import graph_engines as engines

from hopling.episode import Episode, Prompt, Task
from hopling.graphs import HopIndex, build_index
from hopling.graphs.base import Direction, Graph
from hopling.tools import OneHopSearch

NAMES = ("kernel", "python", "quads", "sqlite", "sparql", "oxigraph server", "virtuoso")
KINDS = ("one", "batch", "hub", "mixed")
CALLS, SECONDS = 20_000, 6.0  # an engine stops at whichever comes first


@dataclass(frozen=True)
class Opened:
    """An engine ready to be asked; `cpu_s` is what a server has used, `pid` whose memory counts."""

    graph: Graph
    cpu_s: Callable[[], float] = lambda: 0.0
    pid: int | str = "self"


def prepared(name: str, triples: int, folder: Path) -> None:
    """Build what the engine needs, unless it is there."""
    source = folder / f"{triples}.nt"
    if not source.exists():
        freebase_like.write(triples, source)
    index = folder / f"i{triples}"
    if not index.exists():
        build_index(source, index, namespace=freebase_like.NAMESPACE)
    store, tables = folder / f"ox{triples}", folder / f"{triples}.db"
    if name in ("quads", "sparql", "oxigraph server") and not store.exists():
        from hopling.graphs import RdfStore

        RdfStore.load(source, store, namespace=freebase_like.NAMESPACE).close()
    if name == "sqlite" and not tables.exists():
        engines.build_sqlite(source, tables)
    if name == "virtuoso" and not (folder / f"virtuoso{triples}").exists():
        engines.virtuoso(source, folder / f"virtuoso{triples}").close()


def opened(name: str, triples: int, folder: Path, stack: ExitStack) -> Opened:
    """Open an engine."""
    store = folder / f"ox{triples}"
    if name in ("kernel", "python"):
        kernel = "numba" if name == "kernel" else "none"
        return Opened(HopIndex.open(folder / f"i{triples}", kernel=kernel))
    if name == "quads":
        from hopling.graphs import RdfStore

        return Opened(stack.enter_context(RdfStore(store, namespace=freebase_like.NAMESPACE)))
    if name == "sqlite":
        return Opened(engines.Sqlite(folder / f"{triples}.db"))
    if name == "sparql":
        return Opened(engines.oxigraph(store))
    if name == "oxigraph server":
        server = engines.oxigraph_server(store)
    else:
        server = engines.virtuoso(folder / f"{triples}.nt", folder / f"virtuoso{triples}")
    stack.callback(server.close)
    return Opened(engines.Sparql(server.query), server.cpu_s, server.process.pid)


Call = tuple[str, list[str], Direction]


def calls(triples: int, folder: Path, seed: int, count: int = CALLS) -> list[Call]:
    """Return calls, each with its kind; entities are drawn evenly among those with edges."""
    index = HopIndex.open(folder / f"i{triples}", kernel="none")
    rng, num_entities = random.Random(seed), freebase_like.num_entities(triples)

    def entity(direction: Direction) -> str:
        while True:
            node = freebase_like.entity(rng.randrange(num_entities))
            if index.counts([node], direction)[0]:
                return node

    hubs: list[tuple[str, Direction]] = [(freebase_like.entity(0), "outgoing")]
    hubs += [(hub, "incoming") for hub in list(index.info().hubs)[1:5]]
    made: list[Call] = []
    for _ in range(count):
        kind = rng.choices(KINDS[:3], (7, 2, 1))[0]
        direction: Direction = rng.choice(["outgoing", "incoming"])
        if kind == "hub":
            hub, direction = rng.choice(hubs)
            made.append((kind, [hub], direction))
        else:
            size = 20 if kind == "batch" else 1
            nodes = list(dict.fromkeys(entity(direction) for _ in range(size)))
            made.append((kind, nodes, direction))
    return made


def measured(name: str, triples: int, folder: Path, seed: int) -> dict[str, Any]:
    """Return an engine's rates, opening time, private memory, and a digest of its texts."""
    asked = calls(triples, folder, seed)
    episode = Episode(Task("calls", ""), Prompt(""))
    with ExitStack() as stack:
        begin = time.perf_counter()
        engine = opened(name, triples, folder, stack)
        tool = OneHopSearch(engine.graph)

        def answer(call: Call) -> str:
            return tool(episode, entities=call[1], direction=call[2]).text

        answer(asked[0])
        opening_s = time.perf_counter() - begin
        texts = [answer(call) for call in asked[:100]]
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
        rates = {kind: _rate(engine, answer, asked, kind) for kind in KINDS}
        return {
            "engine": name,
            **rates,
            "graph only": _graph_rate(engine, asked),
            "opening ms": round(1000 * opening_s, 1),
            "private MiB": round(_private_mib(engine.pid)),
            "digest": digest,
        }


def _rate(
    engine: Opened, answer: Callable[[Call], str], asked: Sequence[Call], kind: str
) -> dict[str, float]:
    chosen = [call for call in asked if kind in ("mixed", call[0])]
    return _timed(engine, answer, chosen)


def _timed(
    engine: Opened, answer: Callable[[Call], object], chosen: Sequence[Call]
) -> dict[str, float]:
    """Return calls per second of processor time and per second, over one pass or SECONDS."""
    begin, cpu, server = time.perf_counter(), time.process_time(), engine.cpu_s()
    count, block = 0, 50
    while count < len(chosen) and time.perf_counter() - begin < SECONDS:
        for call in chosen[count : count + block]:
            answer(call)
        count = min(len(chosen), count + block)
    used = time.process_time() - cpu + engine.cpu_s() - server
    return {"cpu": count / used, "wall": count / (time.perf_counter() - begin)}


def _graph_rate(engine: Opened, asked: Sequence[Call]) -> dict[str, float]:
    """Return the rate of counts, and of rows and their labels where there are at most 50."""
    graph = engine.graph

    def answer(call: Call) -> None:
        counts = graph.counts(call[1], call[2])
        if sum(sum(one.values()) for one in counts) <= 50:
            rows = graph.neighbors(call[1], call[2])
            graph.labels(list({e.value for some in rows for e in some if not e.literal}))

    return _timed(engine, answer, [call for call in asked])


def _private_mib(pid: int | str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"/proc/{pid}/status has no RssAnon")


def started(name: str, triples: int, folder: Path, seed: int) -> "subprocess.Popen[str]":
    """Start measuring an engine in a process of its own."""
    command = [sys.executable, __file__, "--triples", str(triples), "--engine", name]
    command += ["--folder", str(folder), "--seed", str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finished(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return what a process measured."""
    written, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"measuring ended with exit status {process.returncode}")
    return json.loads(written.splitlines()[-1])


def show(triples: int, found: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Print the engines side by side, each with the median of its rounds."""
    base = found[0][0]["digest"]
    print(f"{triples:,} triples")
    print("| engine | one | batch | hub | mixed | graph only | opening ms | private MiB | texts |")
    print("|---|---|---|---|---|---|---|---|---|")
    for rows in found:
        medians = (median(row[kind]["cpu"] for row in rows) for kind in (*KINDS, "graph only"))
        rates = " | ".join(f"{rate:,.0f}" for rate in medians)
        opening, private = (median(r[key] for r in rows) for key in ("opening ms", "private MiB"))
        same = "equal" if {row["digest"] for row in rows} == {base} else "DIFFER"
        print(f"| {rows[0]['engine']} | {rates} | {opening:g} | {private:g} | {same} |")


def two_processes(triples: int, folder: Path, rounds: int) -> None:
    """Print the mixed rate of two processes beside the rate of one, on one index and on two.

    Two processes on two copies share nothing but the machine: what they lose, the machine costs.
    """
    other = folder / "copy"
    if not (other / f"i{triples}").exists():
        shutil.copytree(folder / f"i{triples}", other / f"i{triples}")
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(rounds):
        one = finished(started("kernel", triples, folder, 1))["mixed"]
        for name, second in (("one index", folder), ("two copies", other)):
            pair = [started("kernel", triples, place, 1) for place in (folder, second)]
            both = [finished(process)["mixed"] for process in pair]
            for clock in ("cpu", "wall"):
                ratios[name, clock].append(sum(rate[clock] for rate in both) / one[clock])
    for (name, clock), found in ratios.items():
        spread = f"{min(found):.2f} to {max(found):.2f}"
        print(f"two processes on {name} against one, {clock}: {median(found):.2f}x, {spread}")


def main() -> None:
    """Measure every engine that is installed, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--engine", choices=NAMES)
    parser.add_argument("--only", default=",".join(NAMES), help="engines, such as kernel,sparql")
    parser.add_argument("--rounds", type=int, default=1, help="sizes and engines take turns")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder: Path = given.folder
    if given.engine:
        print(json.dumps(measured(given.engine, given.triples[0], folder, given.seed)))
        return
    folder.mkdir(parents=True, exist_ok=True)
    wanted = given.only.split(",")
    if not shutil.which("virtuoso-t"):
        wanted = [name for name in wanted if name != "virtuoso"]
    found: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    for triples, name in product(given.triples, wanted):
        prepared(name, triples, folder)
    for _, triples, name in product(range(given.rounds), given.triples, wanted):
        found[triples, name].append(finished(started(name, triples, folder, given.seed)))
    for triples in given.triples:
        show(triples, [found[triples, name] for name in wanted])
        if "kernel" in wanted:
            two_processes(triples, folder, given.rounds)


if __name__ == "__main__":
    main()
