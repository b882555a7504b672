from pathlib import Path

import torch

from apps.conftest import Hopling
from hopling.data.text_graphs import labeled_graph

CSV = "id,text,class,split,name\na,one  tree,plant,train,A\nb,a bird,animal,test,\nc,rest,,,\n"


def test_tables_become_a_folder_that_can_be_walked(hopling: Hopling, tmp_path: Path) -> None:
    """Ours: what is written is what the recipe reads, under numbers."""
    (tmp_path / "n.csv").write_text(CSV)
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\n")
    command = ["graph", "texts", tmp_path / "n.csv", tmp_path / "e.csv", "--out", tmp_path / "f"]
    ran = hopling(*command, "--name", "zoo", "--json")
    assert ran.json == {"nodes": 3, "links": 2, "classes": 2, "train tasks": 1, "test tasks": 1}
    hopling(*command, "--name", "second")
    for name, first in (("zoo", 0), ("second", 3)):
        read = labeled_graph(name, folder=tmp_path / "f")
        own = [str(first + k) for k in range(3)]
        assert list(read.graph.texts.items()) == list(
            zip(own, ["one tree", "a bird", "rest"], strict=True)
        )
        assert read.graph.neighbors(own[1]) == (own[0], own[2])
        assert read.classes == ("animal", "plant")
        assert [t.answers for t in read.tasks["test"]] == [("animal",)]
    again = hopling(*command, "--name", "zoo")
    assert again.code == 2
    assert "holds a graph 'zoo'; give this one another name" in again.err


def test_a_pt_file_becomes_a_folder_too(hopling: Hopling, tmp_path: Path) -> None:
    """PAPERS 8: the `.pt` dictionaries of CNY and TRN-R1-Zero."""
    tag = {
        "edge_index": torch.tensor([[0], [1]]),
        "raw_texts": ["one", "two"],
        "y": torch.tensor([0, 1]),
        "label_names": ["x", "y"],
        "test_mask": torch.tensor([True, True]),
    }
    torch.save(tag, tmp_path / "cora.pt")
    ran = hopling("graph", "texts", tmp_path / "cora.pt", "--out", tmp_path / "f", "--name", "cora")
    assert ran.code == 0, ran.err
    assert len(labeled_graph("cora", folder=tmp_path / "f").tasks["test"]) == 2


def test_other_files_are_refused(hopling: Hopling, tmp_path: Path) -> None:
    """CONVENTIONS, "Errors": what was found, what was expected."""
    ran = hopling("graph", "texts", tmp_path / "x.xls", "--out", tmp_path / "f", "--name", "x")
    assert ran.code == 2
    assert "expected one .pt or .graphml file, or two tables" in " ".join(ran.err.split())
