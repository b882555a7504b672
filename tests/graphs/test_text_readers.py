"""Text graphs from the formats of others."""

import gzip
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hopling.errors import DataError, SettingsError
from hopling.graphs.text_readers import Columns, from_arrays, read_graphml, read_tables

CSV = 'id,text,class,split\n1,"one, two",tree,train\n2,"a ""quoted""\nline",,\n3,,bird,test\n'
LINKS = "source,target\n1,2\n2,3\n"


def written(folder: Path, **files: str) -> list[Path]:
    """Return the paths of files with these contents; `nodes_csv` is nodes.csv."""
    paths = [folder / name.replace("_", ".") for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def test_tables_with_a_header_are_read(tmp_path):
    """RFC 4180: quotes, commas and line breaks inside a cell."""
    read = read_tables(*written(tmp_path, nodes_csv=CSV, links_csv=LINKS))
    assert read.graph.texts == {"1": "one, two", "2": 'a "quoted"\nline', "3": ""}
    assert read.graph.neighbors("2") == ("1", "3")
    assert read.graph.classes == {"1": "tree", "3": "bird"}
    assert read.splits == {"1": "train", "3": "test"}


def test_json_lines_and_compressed_tabs_give_the_same_graph(tmp_path):
    """Ours; columns may have other names."""
    rows = '{"key": 1, "body": "one"}\n{"key": 2, "body": null, "title": "Two"}\n'
    (nodes,) = written(tmp_path, nodes_jsonl=rows)
    links = tmp_path / "links.tsv.gz"
    links.write_bytes(gzip.compress(b"from\tto\n1\t2\n"))
    columns = Columns(id="key", text="body", name="title", source="from", target="to")
    graph = read_tables(nodes, links, columns=columns).graph
    assert graph.texts == {"1": "one", "2": ""}
    assert graph.neighbors("1") == ("2",)
    assert graph.name("2") == "Two"


def test_parquet_is_read(tmp_path):
    """Ours."""
    parquet.write_table(pa.table({"id": [1, 2], "text": ["a", "b"]}), tmp_path / "n.parquet")
    parquet.write_table(pa.table({"source": [1], "target": [2]}), tmp_path / "e.parquet")
    graph = read_tables(tmp_path / "n.parquet", tmp_path / "e.parquet").graph
    assert graph.neighbors("2") == ("1",)


@pytest.mark.parametrize(
    ("nodes", "links", "message"),
    [
        ("id,text\n1,a\n1,b\n", LINKS, "line 3: id '1' is taken by an earlier node"),
        ("key,text\n1,a\n", LINKS, "line 2: no 'id'; columns: key, text"),
        (CSV, "source,target\n1,\n", "line 2: no 'target'"),
        (CSV, "source,target\n1,9\n", "a link ends in '9', which is no node"),
    ],
)
def test_bad_rows_are_named(tmp_path, nodes, links, message):
    """CONVENTIONS, "Errors": file, line and rule."""
    with pytest.raises(SettingsError, match=message):
        read_tables(*written(tmp_path, nodes_csv=nodes, links_csv=links))


def test_files_that_are_no_tables_are_refused(tmp_path):
    """CONVENTIONS, "Errors"."""
    nodes, links, odd = written(tmp_path, nodes_jsonl="[1]\n", links_csv=LINKS, odd_xls="x")
    with pytest.raises(DataError, match=r"nodes\.jsonl, line 1: not a JSON object: .\[1\]"):
        read_tables(nodes, links)
    with pytest.raises(SettingsError, match=r"is no \.csv"):
        read_tables(odd, links)
    with pytest.raises(SettingsError, match="There is no file"):
        read_tables(tmp_path / "none.csv", links)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_graphml(tmp_path)


GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="text" attr.type="string"/>
<key id="d1" for="node" attr.name="class" attr.type="string"/>
<graph edgedefault="KIND">
<node id="n0"><data key="d0">one &amp; two</data><data key="d1">tree</data></node>
<node id="n1"/><edge source="n0" target="n1"/></graph></graphml>"""


def test_graphml_is_read_with_its_direction(tmp_path):
    """The GraphML primer: keys name the data of nodes; edgedefault says whether edges point."""
    for kind, back in (("directed", ()), ("undirected", ("n0",))):
        (path,) = written(tmp_path, g_graphml=GRAPHML.replace("KIND", kind))
        graph = read_graphml(path).graph
        assert graph.texts == {"n0": "one & two", "n1": ""}
        assert graph.classes == {"n0": "tree"}
        assert graph.neighbors("n1") == back
    (path,) = written(tmp_path, bad_graphml="<graphml><node></graphml>")
    with pytest.raises(DataError, match="is no GraphML"):
        read_graphml(path)


ARRAYS = {
    "edge_index": np.array([[0, 1, 1], [1, 0, 2]]),
    "raw_texts": ["one", "two", "three"],
    "y": np.array([[1], [0], [-1]]),
    "label_names": ["bird", "tree"],
    "train_mask": np.array([True, False, False]),
    "test_mask": np.array([False, True, False]),
}


@pytest.mark.parametrize("data", [ARRAYS, SimpleNamespace(**ARRAYS)], ids=["dict", "Data"])
def test_arrays_of_pyg_and_the_papers_are_read(data):
    """PAPERS 8: the keys of CNY's and TRN-R1-Zero's files; OGB's labels have two dimensions."""
    read = from_arrays(data)
    assert read.graph.texts == {"0": "one", "1": "two", "2": "three"}
    assert read.graph.neighbors("1") == ("0", "2")
    assert read.graph.classes == {"0": "tree", "1": "bird"}
    assert read.splits == {"0": "train", "1": "test"}


def test_arrays_without_texts_need_them():
    """OGB has the texts of its nodes in another file."""
    with pytest.raises(SettingsError, match="no graph with texts: expected edge_index"):
        from_arrays({"edge_index": ARRAYS["edge_index"], "num_nodes": 3})
    given = from_arrays({"edge_index": ARRAYS["edge_index"]}, texts=["a", "b", "c"])
    assert given.graph.texts["2"] == "c"


def test_labels_of_another_length_are_refused():
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="y has 2 values for 3 texts"):
        from_arrays({**ARRAYS, "y": [0, 1]})
