"""Other engines as `hopling.graphs.base.Graph`, written as tersely as each allows.

None looks up whether an id exists, and the labels of relations are asked once, so that what is
measured is the engine.
"""

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import httpx
import pyoxigraph as ox
from freebase_like import NAME, NAMESPACE

from hopling.graphs.base import Direction, Edge
from hopling.graphs.names import Label, chosen
from hopling.graphs.sources import Lines
from hopling.graphs.terms import LABEL_PREDICATES, Namespace

Row = tuple[str, ...]
_SHORT = len(NAMESPACE)


class Sparql:
    """A store that answers SPARQL; `query` gives rows of (value, language) or None cells."""

    def __init__(self, query: Callable[[str], Iterable[Sequence[tuple[str, str | None]]]]):
        self._query = query
        self._relation_labels: dict[str, str | None] = {}

    def resolve(self, names: Sequence[str]) -> list[str | None]:
        return list(names)

    def counts(self, nodes: Sequence[str], direction: Direction) -> list[dict[str, int]]:
        found: dict[str, dict[str, int]] = {node: {} for node in nodes}
        text = (
            f"SELECT ?n ?p (COUNT(*) AS ?c) WHERE {{ {_values(nodes)} {_edges(direction)} }} "
            "GROUP BY ?n ?p"
        )
        for (node, _), (relation, _), (count, _) in self._query(text):
            found[node[_SHORT:]][relation[_SHORT:]] = int(count)
        return [found[node] for node in nodes]

    def neighbors(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[list[Edge]]:
        found: dict[str, list[Edge]] = {node: [] for node in nodes}
        text = f"SELECT ?n ?p ?v WHERE {{ {_values(nodes)} {_edges(direction)} }}"
        for (node, _), (relation, _), (value, literal) in self._query(text):
            short = value if literal is not None else value[_SHORT:]
            found[node[_SHORT:]].append(Edge(relation[_SHORT:], short, literal is not None))
        return [sorted(found[node])[:limit] for node in nodes]

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        if nodes and all(node in self._relation_labels for node in nodes):
            return [self._relation_labels[node] for node in nodes]
        found: dict[str, list[Label]] = {}
        for (node, _), (text, language) in self._query(
            f"SELECT ?n ?l WHERE {{ {_values(nodes)} ?n {NAME} ?l }}"
        ):
            found.setdefault(node[_SHORT:], []).append(Label(language or "", text))
        labels = [chosen(found.get(node, ()), ["en"]) for node in nodes]
        texts = [label.text if label else None for label in labels]
        pairs = zip(nodes, texts, strict=True)
        self._relation_labels |= {node: text for node, text in pairs if node.count(".") == 2}
        return texts

    def find(self, name: str, limit: int = 10) -> list[str]:
        return []


def _values(nodes: Sequence[str]) -> str:
    return f"VALUES ?n {{ {' '.join(f'<{NAMESPACE}{node}>' for node in nodes)} }}"


def _edges(direction: Direction) -> str:
    if direction == "incoming":
        return "?v ?p ?n"
    return f"?n ?p ?v FILTER(?p != {NAME})"


def oxigraph(folder: Path) -> Sparql:
    """Return a store on disk, asked by SPARQL in this process."""
    store = ox.Store.read_only(str(folder / "store"))

    def query(text: str) -> Iterator[list[tuple[str, str | None]]]:
        for row in store.query(text):
            yield [
                (term.value, (term.language or "") if isinstance(term, ox.Literal) else None)
                for term in row
            ]

    return Sparql(query)


class Server:
    """A server's process that answers SPARQL over HTTP."""

    def __init__(self, command: Sequence[str], url: str, default_graph: str = ""):
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._client = httpx.Client(headers={"Accept": "application/sparql-results+json"})
        self._url, self._graph = url, default_graph
        for _ in range(1_800):
            if self.process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with exit status {self.process.returncode}")
            try:
                list(self.query("ASK { ?s ?p ?o }"))
                return
            except httpx.HTTPError:
                time.sleep(0.1)
        self.close()
        raise SystemExit(f"{command[0]} did not answer within 3 minutes")

    def query(self, text: str) -> Iterator[list[tuple[str, str | None]]]:
        """Yield the rows of a SELECT."""
        data = {"query": text}
        if self._graph:
            data["default-graph-uri"] = self._graph
        reply = self._client.post(self._url, data=data).raise_for_status().json()
        names = reply["head"].get("vars", [])
        for row in reply.get("results", {}).get("bindings", []):
            yield [
                (row[n]["value"], row[n].get("xml:lang", "") if "lit" in row[n]["type"] else None)
                for n in names
            ]

    def cpu_s(self) -> float:
        """Return the processor seconds that the server has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()


def oxigraph_server(folder: Path) -> Server:
    """Return the Oxigraph server on a store's folder."""
    port = free_port()
    binary = str(Path(sys.executable).with_name("oxigraph"))
    command = [binary, "serve-read-only", "--location", str(folder / "store")]
    return Server([*command, "--bind", f"127.0.0.1:{port}"], f"http://127.0.0.1:{port}/query")


_VIRTUOSO = """\
[Database]
DatabaseFile = {folder}/virtuoso.db
ErrorLogFile = {folder}/virtuoso.log
LockFile = {folder}/virtuoso.lck
TransactionFile = {folder}/virtuoso.trx
xa_persistent_file = {folder}/virtuoso.pxa
[TempDatabase]
DatabaseFile = {folder}/temp.db
TransactionFile = {folder}/temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql}
DirsAllowed = {source}
NumberOfBuffers = 170000
MaxDirtyBuffers = 130000
[HTTPServer]
ServerPort = 127.0.0.1:{http}
[SPARQL]
ResultSetMaxRows = 1000000
"""


def virtuoso(source: Path, folder: Path) -> Server:
    """Return a Virtuoso server that holds the triples of a file, loaded if they are not yet."""
    is_loaded = (folder / "virtuoso.db").exists()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "virtuoso.lck").unlink(missing_ok=True)
    sql, http = free_port(), free_port()
    settings = _VIRTUOSO.format(folder=folder, source=source.parent, sql=sql, http=http)
    (folder / "virtuoso.ini").write_text(settings)
    server = Server(
        ["virtuoso-t", "+foreground", "+configfile", str(folder / "virtuoso.ini")],
        f"http://127.0.0.1:{http}/sparql",
        "http://t.example/graph",
    )
    if not is_loaded:
        script = (
            f"ld_dir('{source.parent}', '{source.name}', 'http://t.example/graph'); "
            "rdf_loader_run(); checkpoint;"
        )
        isql = shutil.which("isql-vt") or "isql"
        subprocess.run(
            [isql, f"127.0.0.1:{sql}", "dba", "dba", f"exec={script}"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    return server


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Sqlite:
    """Edges and labels in tables sorted by node, with counts for nodes of more than 50 edges."""

    def __init__(self, path: Path):
        self._db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self._relations = [name for (name,) in self._db.execute("SELECT id FROM r ORDER BY k")]

    def resolve(self, names: Sequence[str]) -> list[str | None]:
        return list(names)

    def _number(self, node: str) -> int:
        found = self._db.execute("SELECT k FROM n WHERE id = ?", (node,)).fetchone()
        return found[0] if found else -1

    def counts(self, nodes: Sequence[str], direction: Direction) -> list[dict[str, int]]:
        found = []
        side, names = direction[0], self._relations
        for node in map(self._number, nodes):
            kept = self._db.execute(f"SELECT counts FROM {side}c WHERE n = ?", (node,)).fetchone()
            if kept:
                found.append(json.loads(kept[0]))
                continue
            rows = self._db.execute(f"SELECT r FROM {side} WHERE n = ?", (node,))
            found.append(dict(Counter(names[relation] for (relation,) in rows)))
        return found

    def neighbors(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[list[Edge]]:
        text = f"""SELECT e.r, n.id, n.literal FROM {direction[0]} e JOIN n ON n.k = e.v
            WHERE e.n = ?"""
        return [
            sorted(
                Edge(self._relations[relation], value, bool(literal))
                for relation, value, literal in self._db.execute(text, (self._number(node),))
            )[:limit]
            for node in nodes
        ]

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        text = "SELECT label FROM n WHERE id = ?"
        rows = [self._db.execute(text, (node,)).fetchone() for node in nodes]
        return [row[0] if row else None for row in rows]

    def find(self, name: str, limit: int = 10) -> list[str]:
        return []


def build_sqlite(source: Path, path: Path) -> None:
    """Load a file of N-Triples into the tables of `Sqlite`."""
    passing = path.with_suffix(".passing")
    passing.unlink(missing_ok=True)
    db = sqlite3.connect(passing)
    db.executescript(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
        "CREATE TABLE n (k INTEGER PRIMARY KEY, id TEXT, literal INTEGER, label TEXT);"
        "CREATE TABLE r (k INTEGER PRIMARY KEY, id TEXT);"
        "CREATE TABLE o (n INTEGER, r INTEGER, v INTEGER, PRIMARY KEY (n, r, v)) WITHOUT ROWID;"
        "CREATE TABLE i (n INTEGER, r INTEGER, v INTEGER, PRIMARY KEY (n, r, v)) WITHOUT ROWID;"
        "CREATE TABLE oc (n INTEGER PRIMARY KEY, counts TEXT);"
        "CREATE TABLE ic (n INTEGER PRIMARY KEY, counts TEXT);"
    )
    nodes: dict[tuple[str, bool], int] = {}
    relations: dict[str, int] = {}
    labels: dict[str, list[Label]] = {}
    edges: list[tuple[int, int, int]] = []
    shorten = Namespace(NAMESPACE).shorten
    for head, relation, tail, suffix in Lines().triples(source, "0"):
        if relation in LABEL_PREDICATES:
            labels.setdefault(shorten(head), []).append(Label((suffix or "")[1:], tail))
            continue
        short = tail if suffix is not None else shorten(tail)
        edges.append(
            (
                nodes.setdefault((shorten(head), False), len(nodes)),
                relations.setdefault(shorten(relation), len(relations)),
                nodes.setdefault((short, suffix is not None), len(nodes)),
            )
        )
    names = [id for id in labels if (id, False) not in nodes]
    shown = {id: chosen(some, ["en"]) for id, some in labels.items()}
    rows = [(k, id, literal, shown.get(id)) for (id, literal), k in nodes.items()]
    rows += [(len(nodes) + i, id, False, shown[id]) for i, id in enumerate(names)]
    db.executemany(
        "INSERT INTO n VALUES (?, ?, ?, ?)",
        ((k, id, lit, label.text if label and not lit else None) for k, id, lit, label in rows),
    )
    db.execute("CREATE INDEX by_id ON n (id)")
    db.executemany("INSERT INTO r VALUES (?, ?)", ((k, id) for id, k in relations.items()))
    literals = {k for (_, literal), k in nodes.items() if literal}
    db.executemany("INSERT OR IGNORE INTO o VALUES (?, ?, ?)", sorted(edges))
    turned = sorted((v, r, n) for n, r, v in edges if v not in literals)
    db.executemany("INSERT OR IGNORE INTO i VALUES (?, ?, ?)", turned)
    _count_hubs(db, list(relations))
    db.commit()
    db.close()
    passing.rename(path)


def _count_hubs(db: sqlite3.Connection, relations: Sequence[str]) -> None:
    for side in ("o", "i"):
        hubs: dict[int, dict[str, int]] = {}
        rows = db.execute(
            f"""SELECT n, r, COUNT(*) FROM {side} WHERE n IN
            (SELECT n FROM {side} GROUP BY n HAVING COUNT(*) > 50) GROUP BY n, r"""
        )
        for node, relation, count in rows:
            hubs.setdefault(node, {})[relations[relation]] = count
        db.executemany(
            f"INSERT INTO {side}c VALUES (?, ?)",
            ((node, json.dumps(counts)) for node, counts in hubs.items()),
        )
