"""Programs that set torch's, NumPy's and safetensors' names to ours: nothing calls itself for ever."""

from __future__ import annotations

import collections
import copy
import io
import pickle

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from load_pairs import same

import penstock.numpy as pn
import penstock.torch as pt


@pytest.fixture(autouse=True)
def replaced(monkeypatch):
    names = {
        torch: (pt, "save", "load"),
        torch.serialization: (pt, "save", "load"),
        np: (pn, "save", "load", "savez", "savez_compressed"),
        safetensors: (pt, "safe_open"),
        safetensors.torch: (pt, "load_file", "save_file", "load_model", "save_model"),
        safetensors.numpy: (pn, "load_file", "save_file"),
    }
    for package, (ours, *functions) in names.items():
        for name in functions:
            monkeypatch.setattr(package, name, getattr(ours, name))


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}])
@pytest.mark.parametrize(
    "value",
    [
        {"a": torch.ones(2), "n": [1, "x"]},
        collections.defaultdict(int, a=1),
        {"array": np.arange(3.0), "tensor": torch.ones(2)},
        torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.quint8),
    ],
)
def test_files_of_torch(tmp_path, value, options):
    for target in (tmp_path / "x.pt", io.BytesIO()):
        torch.save(value, target, **options)
        if isinstance(target, io.BytesIO):
            target.seek(0)
        loaded = torch.load(target)
        assert type(loaded) is type(value)
        if isinstance(value, dict) and "a" in value:
            same(loaded, value)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool, torch.int8, torch.uint16]
)
def test_pickles_and_copies_of_tensors(dtype):
    tensor = torch.ones(3, dtype=dtype)
    same(pickle.loads(pickle.dumps({"t": tensor, "view": tensor[1:]}))["t"], tensor)
    same(copy.deepcopy(tensor), tensor)


def test_pickles_of_modules_and_optimizers():
    module = torch.nn.Linear(2, 2)
    same(pickle.loads(pickle.dumps(module)).state_dict(), module.state_dict())
    pickle.loads(pickle.dumps(torch.optim.Adam(module.parameters())))
    quantized = torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.quint8)
    assert torch.equal(pickle.loads(pickle.dumps(quantized)).dequantize(), quantized.dequantize())


@pytest.mark.filterwarnings("ignore")
def test_distributed_checkpoints(tmp_path):
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    state = {"a": torch.arange(4.0), "epoch": 3, "inner": {"x": torch.ones(2)}}
    checkpoint.save(state, checkpoint_id=tmp_path)
    target = {"a": torch.zeros(4), "epoch": 0, "inner": {"x": torch.zeros(2)}}
    checkpoint.load(target, checkpoint_id=tmp_path)
    same(target, state)


def test_code_is_refused_as_ever(tmp_path):
    torch.save(torch.ones(1), tmp_path / "x.pt")
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False would run code"):
        torch.load(tmp_path / "x.pt", weights_only=False)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "U3"])
def test_files_of_numpy(tmp_path, dtype):
    array = np.ones(3, dtype)
    np.save(tmp_path / "x.npy", array)
    assert np.array_equal(np.load(tmp_path / "x.npy"), array)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", a=array)
        assert np.array_equal(np.load(tmp_path / "x.npz")["a"], array)
        with open(tmp_path / "y.npz", "wb") as file:
            save(file, a=array)
        assert np.array_equal(np.load(tmp_path / "y.npz")["a"], array)


def test_files_of_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.torch.save_file({"a": torch.ones(2)}, path)
    same(safetensors.torch.load_file(path), {"a": torch.ones(2)})
    with safetensors.safe_open(path, "pt") as file:
        same(file.get_tensor("a"), torch.ones(2))
    safetensors.numpy.save_file({"a": np.ones(2)}, path)
    assert safetensors.numpy.load_file(path)["a"].tolist() == [1, 1]
    module = torch.nn.Linear(2, 2)
    safetensors.torch.save_model(module, path)
    assert safetensors.torch.load_model(torch.nn.Linear(2, 2), path) == (set(), [])
