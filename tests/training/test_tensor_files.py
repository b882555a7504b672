"""`.pt` files of others."""

import sys
from types import ModuleType

import pytest
import torch

from hopling.errors import DataError, SettingsError
from hopling.graphs.text_readers import from_arrays
from hopling.training.tensor_files import read_tensors

TAG = {
    "edge_index": torch.tensor([[0, 1], [1, 2]]),
    "raw_texts": ["one", "two", "three"],
    "y": torch.tensor([0, 1, 0]),
    "label_names": ["bird", "tree"],
    "test_mask": torch.tensor([False, True, True]),
}


class Evil:
    """Would write a file when it is unpickled."""

    def __reduce__(self):
        return (open, ("evil.txt", "w"))


def test_a_dictionary_of_tensors_and_lists_becomes_a_graph(tmp_path):
    """PAPERS 8: CNY's and TRN-R1-Zero's `.pt`."""
    torch.save(TAG, tmp_path / "tag.pt")
    read = from_arrays(read_tensors(tmp_path / "tag.pt"))
    assert read.graph.neighbors("1") == ("0", "2")
    assert read.graph.classes["1"] == "tree"
    assert read.splits == {"1": "test", "2": "test"}


def test_data_of_pyg_becomes_a_graph_without_pyg(tmp_path, monkeypatch):
    """PyG's documentation: `Data` keeps its attributes in a `GlobalStorage`."""
    modules = {n: ModuleType(f"torch_geometric.data.{n}") for n in ("data", "storage")}
    for name, kind in (("data", "Data"), ("storage", "GlobalStorage")):
        made = type(kind, (), {"__module__": modules[name].__name__})
        setattr(modules[name], kind, made)
        monkeypatch.setitem(sys.modules, modules[name].__name__, modules[name])
    for name in ("torch_geometric", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    store, data = modules["storage"].GlobalStorage(), modules["data"].Data()
    store._mapping, data._store = TAG, store
    for place, saved in (("one.pt", data), ("dataset.pt", (data, None))):
        torch.save(saved, tmp_path / place)
        read = from_arrays(read_tensors(tmp_path / place))
        assert read.graph.texts["2"] == "three"


def test_a_file_that_would_run_code_is_not_read(tmp_path, monkeypatch):
    """PAPERS 2.5: `torch.load(weights_only=False)` on a download runs whatever it likes."""
    monkeypatch.chdir(tmp_path)
    torch.save({**TAG, "x": Evil()}, tmp_path / "evil.pt")
    with pytest.raises(SettingsError, match="could run code"):
        read_tensors(tmp_path / "evil.pt")
    assert not (tmp_path / "evil.txt").exists()


def test_what_is_no_file_of_torch_is_said_so(tmp_path):
    """CONVENTIONS, "Errors"."""
    (tmp_path / "x.pt").write_bytes(b"PK\x03\x04 no archive")
    for name in ("x.pt", "none.pt"):
        with pytest.raises((DataError, SettingsError), match=f"{name} is"):
            read_tensors(tmp_path / name)
