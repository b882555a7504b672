"""Times the building of a hop index from a graph like Freebase, beside pyoxigraph's bulk load.

python benchmarks/graph_build.py --triples 1000000 [--memory 1024] [--no-peer]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from freebase_like import NAMESPACE, write

_SEEN = "seconds.json"


def _build(source: Path, folder: Path, memory_mib: int) -> None:
    from hopling.graphs import BuildSettings, build_index

    settings = BuildSettings(memory_mib=memory_mib)
    build_index(source, folder / "index", namespace=NAMESPACE, settings=settings)


def _load(source: Path, folder: Path, memory_mib: int) -> None:
    import pyoxigraph

    store = pyoxigraph.Store(folder / "store")
    store.bulk_load(path=source, format=pyoxigraph.RdfFormat.N_TRIPLES)
    store.flush()


_ENGINES = {"hopling": _build, "pyoxigraph": _load}


def _measured(engine: str, source: Path, folder: Path, memory_mib: int) -> None:
    """Run one engine in this process, and write what it took."""
    wall = time.perf_counter()
    _ENGINES[engine](source, folder, memory_mib)
    wall = time.perf_counter() - wall
    used = resource.getrusage(resource.RUSAGE_SELF)
    seen = {
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,  # of all threads, imports included
        "peak_mib": used.ru_maxrss / 1024,
    }
    (folder / _SEEN).write_text(json.dumps(seen), encoding="utf-8")


def _row(engine: str, source: Path, memory_mib: int, num_lines: int) -> str:
    with tempfile.TemporaryDirectory(dir=source.parent) as name:
        folder = Path(name)
        command = [sys.executable, __file__, "--child", engine, "--source", str(source)]
        command += ["--folder", name, "--memory", str(memory_mib)]
        subprocess.run(command, check=True)
        seen = json.loads((folder / _SEEN).read_text(encoding="utf-8"))
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != _SEEN]
        size = sum(path.stat().st_size for path in files)
        text = sum(path.stat().st_size for path in files if path.name.endswith("_text.npy"))
    wall, cpu, peak = seen["wall"], seen["cpu"], seen["peak_mib"]
    rates = f"{num_lines / wall:,.0f} | {num_lines / cpu:,.0f}"
    sizes = f"{(size - text) / num_lines:.1f} | {size / num_lines:.1f}"
    return f"| {engine} | {wall:.1f} | {cpu:.1f} | {rates} | {peak:,.0f} | {sizes} |"


def main() -> None:
    """Print a table with one row an engine; the triples are lines of the file, labels too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, default=1_000_000, help="also 100000000")
    parser.add_argument("--memory", type=int, default=1024, help="MiB")
    parser.add_argument("--peer", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--child", choices=sorted(_ENGINES), help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _measured(given.child, given.source, given.folder, given.memory)
        return
    print(
        "| engine | wall s | CPU s | lines/s | lines/CPU s | peak MiB | bytes less text | bytes |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "graph.nt"
        write(given.triples, source)
        with source.open("rb") as stream:
            num_lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
        for engine in ("hopling", "pyoxigraph") if given.peer else ("hopling",):
            print(_row(engine, source, given.memory, num_lines), flush=True)


if __name__ == "__main__":
    main()
