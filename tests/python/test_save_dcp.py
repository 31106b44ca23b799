"""save(..., "ckpt/"): checkpoints that torch.distributed.checkpoint loads, and what cannot be one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import penstock

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

import penstock.torch as pt  # noqa: E402
from penstock.torch.dcp import StorageWriter  # noqa: E402

warnings.filterwarnings("ignore", message="torch.distributed is disabled")


def content() -> dict:
    return {
        "model": {"w": torch.arange(6.0).reshape(2, 3), "half": torch.ones(5).bfloat16(), "none": torch.zeros(0, 3)},
        "scalar": torch.tensor(7),
        "epoch": 3,
        "notes": {"text": "x", "pair": (1, torch.ones(2)), "list": [1, 2], "empty": {}},
        "layers": [torch.zeros(2), {"w": torch.ones(1)}, "last"],
    }


def blank(value):
    if isinstance(value, dict):
        return {key: blank(item) for key, item in value.items()}
    if isinstance(value, list):
        return [blank(item) for item in value]
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) else None


def assert_same(found, expected) -> None:
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, torch.Tensor):
        assert isinstance(found, torch.Tensor)
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)
    else:
        assert type(found) is type(expected)
        assert found == expected


def loaded_by_torch(folder, expected):
    """What torch's own reader fills a state dict with. It takes an empty dict for nothing to load."""
    found = blank(expected)
    dcp.load(found, checkpoint_id=folder, no_dist=True)
    return found


@pytest.mark.parametrize("format", [None, "dcp"])
def test_torch_loads_what_is_saved(tmp_path, format):
    state = content()
    folder = f"{tmp_path}/ckpt" + ("" if format else "/")
    penstock.save(state, folder, format=format, sync=False)
    assert sorted(os.listdir(tmp_path / "ckpt")) == [".metadata", "__0_0.distcp"]
    del state["notes"]["empty"]
    assert_same(loaded_by_torch(folder, state), state)


def test_it_becomes_the_dict_that_it_was(tmp_path):
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    penstock.save(content(), f"{tmp_path}/ckpt/", sync=False)
    dcp_to_torch_save(tmp_path / "ckpt", tmp_path / "x.pt")
    assert_same(torch.load(tmp_path / "x.pt", weights_only=False), content())
    assert_same(pt.load(tmp_path / "x.pt"), content())
    again = penstock.load(f"{tmp_path}/ckpt")
    assert again["epoch"] == 3
    assert list(again["notes"]) == ["text", "pair", "list", "empty"]
    assert np.array_equal(np.asarray(again["model"]["w"]), content()["model"]["w"])


def test_metadata_says_what_torchs_own_says(tmp_path):
    state = {"w": torch.arange(6.0).reshape(2, 3), "n": {"step": 3, "l": [torch.zeros(2), 1]}}
    penstock.save(state, f"{tmp_path}/ours/", sync=False)
    dcp.save(state, checkpoint_id=tmp_path / "theirs", no_dist=True)
    ours, theirs = (pickle.loads((tmp_path / name / ".metadata").read_bytes()) for name in ("ours", "theirs"))
    assert ours.state_dict_metadata == theirs.state_dict_metadata
    assert ours.planner_data == theirs.planner_data
    assert set(ours.storage_data) == set(theirs.storage_data)
    assert ours.version == theirs.version


def test_every_dtype_of_torch(tmp_path):
    from torch.distributed.checkpoint.metadata import _MEM_FORMAT_ENCODING  # noqa: F401 - it is in the pickle

    names = ["float16", "float32", "float64", "bfloat16", "uint8", "int8", "int16", "int32", "int64", "bool"]
    names += ["complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]
    state = {name: torch.zeros(3).to(getattr(torch, name)) for name in names}
    penstock.save(state, f"{tmp_path}/ckpt/", sync=False)
    found = dict.fromkeys(state)
    for name, value in state.items():
        found[name] = torch.empty_like(value)
    dcp.load(found, checkpoint_id=tmp_path / "ckpt", no_dist=True)
    for name in names:
        assert found[name].dtype == state[name].dtype


def test_tensors_are_aligned_so_that_they_can_be_mapped(tmp_path):
    penstock.save({"a": np.zeros(3, "i1"), "b": np.arange(1000.0)}, f"{tmp_path}/ckpt/", sync=False)
    report = {}
    found = penstock.load(f"{tmp_path}/ckpt", mmap=True, report=report)
    assert report["route"] == "mapped" or "map" in report["why"]
    assert np.array_equal(np.asarray(found["b"]), np.arange(1000.0))


def test_an_earlier_checkpoint_is_replaced(tmp_path):
    for seed in (1, 2):
        penstock.save({"w": np.full(5, seed)}, f"{tmp_path}/ckpt/", sync=False)
        (tmp_path / "ckpt/mine.txt").touch()
        assert np.asarray(penstock.load(tmp_path / "ckpt")["w"])[0] == seed
    assert sorted(os.listdir(tmp_path / "ckpt")) == [".metadata", "__0_1.distcp", "mine.txt"]


def test_a_single_tensor_has_a_name(tmp_path):
    penstock.save(np.arange(3), f"{tmp_path}/ckpt/", sync=False)
    assert list(penstock.load(tmp_path / "ckpt")) == ["tensor"]


REFUSED = {
    "a list": ([np.zeros(2)], "a dict"),
    "a name twice": ({"a": {"b": np.zeros(2)}, "a.b": np.zeros(2)}, "two items"),
    "keys of one text": ({1: [np.zeros(2)], "1": {"a": np.zeros(2)}}, "two keys of the dict are '1'"),
    "keys of one text below": ({"m": {1: {"a": np.zeros(2)}, "1": {"b": np.zeros(2)}}}, "two keys of 'm'"),
    "a key that is a tuple": ({(1, 2): np.zeros(2)}, "neither text nor an integer"),
    "dates": (
        {"t": np.zeros(2, "M8[s]")},
        r"torch has no dtype datetime64\[s\]: .* or save as \.npy or \.npz \(tensor 't'\)$",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_checkpoint_holds_leaves_nothing(tmp_path, what):
    value, words = REFUSED[what]
    with pytest.raises(penstock.UnsupportedError, match=words):
        penstock.save(value, f"{tmp_path}/ckpt/", sync=False)
    assert os.listdir(tmp_path) == []
    penstock.save({"w": np.ones(2)}, f"{tmp_path}/old/", sync=False)
    with pytest.raises(penstock.UnsupportedError, match=words):
        penstock.save(value, f"{tmp_path}/old/", sync=False)
    assert sorted(os.listdir(tmp_path / "old")) == [".metadata", "__0_0.distcp"]
    assert np.asarray(penstock.load(tmp_path / "old")["w"])[0] == 1


def test_folders_above_it_are_made_and_go_when_it_fails(tmp_path):
    with pytest.raises(penstock.UnsupportedError):
        penstock.save(REFUSED[next(iter(REFUSED))][0], f"{tmp_path}/a/b/ckpt/")
    assert os.listdir(tmp_path) == []
    for name in (f"{tmp_path}/a/b/ckpt/", f"file://{tmp_path}/c/ckpt/"):
        penstock.save({"w": np.ones(2)}, name)
    for name in ("a/b", "c"):
        assert np.asarray(penstock.load(tmp_path / name / "ckpt")["w"])[0] == 1


def test_what_holds_itself(tmp_path):
    value: dict = {"w": np.zeros(2)}
    value["again"] = value
    with pytest.raises(penstock.Error):
        penstock.save(value, f"{tmp_path}/ckpt/", sync=False)
    assert os.listdir(tmp_path) == []


def test_where_it_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(penstock.NotDirectoryError):
        penstock.save({"w": np.zeros(2)}, f"{tmp_path}/file/")
    with pytest.raises(penstock.NotDirectoryError):
        penstock.save({"w": np.zeros(2)}, f"{tmp_path}/file/none/ckpt/")
    with pytest.raises(penstock.UnsupportedError, match="as a whole, by save"):
        penstock.Writer(f"{tmp_path}/ckpt/")
    with pytest.raises(penstock.UnsupportedError, match="metadata"):
        penstock.save({"w": np.zeros(2)}, f"{tmp_path}/ckpt/", metadata={"a": "b"})
    assert os.listdir(tmp_path) == ["file"]


BUILD = Path(os.environ.get("PENSTOCK_BUILD", Path(__file__).parents[2] / "build" / "release"))


def convert(*arguments, code: int = 0) -> str:
    words = [str(BUILD / "bin" / "penstock"), "convert", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.mark.parametrize("extension", ["safetensors", "pt", "npz", "npy"])
def test_the_command_converts_to_a_checkpoint_and_back(tmp_path, extension):
    value = {"b": np.arange(7), "w": np.arange(3000.0).reshape(30, 100)}
    file = tmp_path / f"x.{extension}"
    penstock.save(value["w"] if extension == "npy" else value, file, sync=False)
    expected = {"tensor": value["w"]} if extension == "npy" else value
    assert "dcp" in convert(file, f"{tmp_path}/ckpt/")
    state = {name: torch.from_numpy(array) for name, array in expected.items()}
    assert_same(loaded_by_torch(tmp_path / "ckpt", state), state)
    convert(tmp_path / "ckpt", tmp_path / "back.npz")
    assert {name: array.tolist() for name, array in np.load(tmp_path / "back.npz").items()} == {
        name: array.tolist() for name, array in expected.items()
    }


def test_tied_tensors_and_numbers_of_a_pt(tmp_path):
    tied = torch.arange(4.0)
    torch.save(
        {"a": tied, "b": tied, "part": tied[1:3], "t": tied.reshape(2, 2).T, "n": 3, "pair": (tied, 1)},
        tmp_path / "x.pt",
    )
    convert(tmp_path / "x.pt", f"{tmp_path}/ckpt/")
    expected = {"a": tied, "b": tied, "part": tied[1:3], "t": tied.reshape(2, 2).T, "n": 3, "pair": (tied, 1)}
    assert_same(loaded_by_torch(tmp_path / "ckpt", expected), expected)


def test_the_command_does_not_replace(tmp_path):
    penstock.save({"w": np.zeros(3)}, tmp_path / "x.npz", sync=False)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    convert(tmp_path / "x.npz", f"{tmp_path}/ckpt/")
    assert "--force" in convert(tmp_path / "x.npz", f"{tmp_path}/ckpt/", code=1)
    assert "other files" in convert(tmp_path / "x.npz", f"{tmp_path}/other/", code=1)
    assert "is to be converted" in convert(f"{tmp_path}/ckpt", f"{tmp_path}/ckpt/", "--force", code=1)
    convert(tmp_path / "x.npz", f"{tmp_path}/ckpt/", "--force")
    assert "shards" in convert(tmp_path / "x.npz", f"{tmp_path}/new/", "--shard-size", "1MB", code=1)
    assert sorted(os.listdir(tmp_path)) == ["ckpt", "other", "x.npz"]


def test_a_large_file_takes_little_memory(tmp_path):
    with penstock.Writer(tmp_path / "x.npz", compress=True, sync=False) as writer:
        for number in range(4):
            writer.add(f"w{number}", np.zeros(16 << 20, "f4"))  # 256 MB, deflated
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
    )
    words = [str(BUILD / "bin" / "penstock"), "convert", str(tmp_path / "x.npz"), f"{tmp_path}/ckpt/"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 180  # one tensor of 64 MB at a time, which is inflated whole


@pytest.mark.parametrize("url", ["s3://", "az:///", "gcs://bucket/checkpoint/", "S3://bucket/checkpoint/"])
def test_a_url_that_names_no_store_makes_no_folder(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((penstock.UnsupportedError, penstock.InvalidArgumentError)):
        penstock.save({"a": penstock.zeros([2])}, url)
    # torch puts what a rank raises while it writes into an error of its own.
    with pytest.raises((penstock.InvalidArgumentError, CheckpointException), match=r"gcs://|S3://|BUCKET|CONTAINER"):
        dcp.save({"a": torch.zeros(2)}, storage_writer=StorageWriter(url))
    assert os.listdir(tmp_path) == []
