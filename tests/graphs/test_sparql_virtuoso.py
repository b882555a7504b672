"""Tests of hopling.graphs.sparql against a real Virtuoso, where `virtuoso-t` is installed.

It comes from Debian: apt install virtuoso-opensource-7-bin.
"""

import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest

from graphs.conftest import FILMS, NS, RDFS_LABEL
from hopling.errors import WorldError
from hopling.graphs import Connection, Edge, SparqlEndpoint
from hopling.testing import check_graph

CAP = 10_000  # both of the rows of a reply and of those it sorts for a page; Virtuoso's default
NUM_LEAVES = 2 * CAP + 5
SETTINGS = """\
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
DirsAllowed = {folder}
NumberOfBuffers = 3000
MaxDirtyBuffers = 2000
[HTTPServer]
ServerPort = 127.0.0.1:{http}
[SPARQL]
ResultSetMaxRows = {cap}
"""
HUB = "".join(f"<{NS}hub> <{NS}p> <{NS}n{i:05d}> .\n" for i in range(NUM_LEAVES))
MORE = f'<{NS}hub> <{RDFS_LABEL}> "H\\u00FCb \\"1\\""@en .\n<{NS}kismet> <{NS}z> <{NS}\u65e5> .\n'
# a store gives blank nodes ids of its own, which no query can use
TEXT = FILMS.replace("_:r2", f"<{NS}r2>") + MORE


@pytest.fixture(scope="module", params=[b for b in [shutil.which("virtuoso-t")] if b])
def virtuoso(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the address of a Virtuoso server of the films, and of a hub of 20,005 edges."""
    folder = tmp_path_factory.mktemp("virtuoso")
    (folder / "films.nt").write_text(HUB + TEXT, encoding="utf-8")
    sql, http = _free_port(), _free_port()
    settings = SETTINGS.format(folder=folder, sql=sql, http=http, cap=CAP)
    (folder / "virtuoso.ini").write_text(settings)
    serve = [request.param, "+foreground", "+configfile", str(folder / "virtuoso.ini")]
    load = f"ld_dir('{folder}', 'films.nt', '{NS}graph'); rdf_loader_run(); checkpoint;"
    isql = [shutil.which("isql-vt") or "isql", f"127.0.0.1:{sql}", "dba", "dba", f"exec={load}"]
    with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if b"Server online" in line:
                    break
            subprocess.run(isql, check=True, capture_output=True)
            yield f"http://127.0.0.1:{http}/sparql"
        finally:
            process.kill()


@pytest.fixture
def graph(virtuoso: str) -> Iterator[SparqlEndpoint]:
    """Return the graph behind the server."""
    connection = Connection(default_graph=f"{NS}graph", timeout_s=600, max_tries=1)
    with SparqlEndpoint(virtuoso, namespace=NS, connection=connection) as opened:
        yield opened


def test_virtuoso_is_a_graph(graph: SparqlEndpoint) -> None:
    """Issue 3, item 4: an integration test; hopling.testing.check_graph."""
    check_graph(graph, ["ann", "bo", "kismet", "low", "r1"])
    both = graph.neighbors(["kismet", "low"], "outgoing", ["directed_by"], 4)
    assert both == 2 * [[Edge("directed_by", "ann")]]


def test_virtuosos_cap_on_sorted_rows_hides_nothing(graph: SparqlEndpoint) -> None:
    """BUGS.md B02; MEASURED.md, pitfall 9: beyond 10,000 sorted rows Virtuoso refuses (SR353)."""
    leaves = [Edge("p", f"n{i:05d}") for i in range(NUM_LEAVES)]
    assert graph.counts(["hub"], "outgoing") == [{"p": NUM_LEAVES}]
    assert graph.neighbors(["hub"], "outgoing") == [leaves]
    assert graph.neighbors(["hub", "ann"], "outgoing", None, CAP + 1) == [leaves[: CAP + 1], []]
    assert graph.neighbors(["hub"], "outgoing", None, 3) == [leaves[:3]]


def test_virtuoso_says_where_it_cut(graph: SparqlEndpoint) -> None:
    """BUGS.md B02: what was cut is an error, and the cap can be probed."""
    with pytest.raises(WorldError, match=r"gave 10000 rows, where it cuts"):
        graph.query("SELECT * { ?s ?p ?o }")
    assert graph.row_cap == CAP
    assert graph.probe_row_cap() == CAP


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
