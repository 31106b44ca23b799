"""Folders of torch_checkpointing, in which each rank has files of its own and `metadata.pkl` says which parts."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import penstock
import penstock.torch as pt

PROGRAM = Path(__file__).with_name("rank_folders.py")
PENSTOCK = Path(os.environ.get("PENSTOCK_BUILD", Path(__file__).parents[3] / "build" / "release")) / "bin" / "penstock"
COUNT = 60


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("ranks")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, place, "1", str(COUNT)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return place


def require_same(found, expected, where="model"):
    assert type(found) is type(expected), where
    if isinstance(expected, torch.Tensor):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), where
        assert found.contiguous().view(-1).view(torch.uint8).tolist() == (
            expected.contiguous().view(-1).view(torch.uint8).tolist()
        ), where
    elif isinstance(expected, dict):
        assert set(found) == set(expected), where
        for key, value in expected.items():
            require_same(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, value in enumerate(expected):
            require_same(found[number], value, f"{where}.{number}")
    else:
        assert found == expected, where


def require_whole(folder):
    expected = torch.load(folder / "expected.pt", weights_only=True)
    require_same(pt.load(folder), expected)
    require_same(pt.load(folder / "metadata.pkl"), expected)
    with penstock.open(folder) as archive:
        assert archive.format == "torch_checkpointing"


def test_random_parts_become_whole_tensors(folders):
    for number in range(COUNT):
        require_whole(folders / f"random{number}")


def test_tensors_of_a_class_that_says_its_own_boxes(folders):
    require_whole(folders / "own")


def test_what_the_library_itself_writes(folders):
    require_whole(folders / "manager")
    loaded = pt.load(folders / "manager")["model"]
    assert loaded["w"].untyped_storage().data_ptr() == loaded["tied"].untyped_storage().data_ptr()
    assert pt.load(folders / "manager" / "epoch_0.pt") == 7  # an item that metadata.pkl does not name


def test_a_slice_and_targets(folders):
    whole = torch.load(folders / "own" / "expected.pt", weights_only=True)["own"]["w"]
    with penstock.open(folders / "own") as archive:
        assert np.array_equal(archive["own.w"][1:5, 3:7], whole[1:5, 3:7].numpy())
    target = {"own": {"w": torch.zeros(6, 10)}}
    pt.load_into(target, folders / "own", strict=False)
    assert torch.equal(target["own"]["w"], whole)


def test_weights_are_yielded_by_name(folders):
    whole = torch.load(folders / "own" / "expected.pt", weights_only=True)["own"]
    given = dict(pt.weights(folders / "own", key="own"))
    assert set(given) == {"w", "only0", "only1"}
    assert all(torch.equal(given[name], whole[name]) for name in given)


@pytest.fixture
def own(folders, tmp_path):
    return Path(shutil.copytree(folders / "own", tmp_path / "own"))


def changed(folder, change):
    described = pickle.loads((folder / "metadata.pkl").read_bytes())
    change(described)
    (folder / "metadata.pkl").write_bytes(pickle.dumps(described))


def groups(described):
    return described["metadata"]["own"]["nested_path_to_metadata"]['["w"]']


def group(described, number=1):
    return groups(described)[number]["sharding_metadata"]


LIES = {
    "a box twice": lambda d: group(d)["data"].update(global_offsets=[[1, 0], [1, 0], [5, 0]]),
    "a box outside": lambda d: group(d)["data"].update(global_offsets=[[1, 0], [3, 0], [6, 0]]),
    "outside of its part": lambda d: group(d)["data"].update(local_offsets=[[0, 0], [1, 0], [3, 0]]),
    "negative": lambda d: group(d)["data"].update(local_offsets=[[0, 0], [1, 0], [-1, 0]]),
    "another shape": lambda d: group(d)["data"].update(global_shape=[6, 11]),
    "another dtype": lambda d: [group(d, n)["data"].update(dtype="torch.int32") for n in (0, 1)],
    "no dtype": lambda d: [group(d, n)["data"].update(dtype="torch.nn") for n in (0, 1)],
    "a rank too few": lambda d: groups(d).pop(),
    "no rank": lambda d: groups(d).clear(),
    "a tensor that is nowhere": lambda d: d["metadata"]["own"]["nested_path_to_metadata"].update({'["v"]': groups(d)}),
    "no ranks": lambda d: [each.update(ranks=()) for each in groups(d)],
    "no tensors": lambda d: d["metadata"]["own"]["nested_path_to_metadata"].clear(),
    "no path": lambda d: d["metadata"]["own"]["nested_path_to_metadata"].update({"w": []}),
    "no dict": lambda d: d["metadata"].update(own=3),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_named(own, lie):
    changed(own, LIES[lie])
    with pytest.raises(penstock.CorruptError, match=r"metadata\.pkl|own_[01]\.pt"):
        penstock.load(own)


def test_what_is_not_known_is_refused(own):
    changed(own, lambda d: group(d).update(type="Mine"))
    with pytest.raises(penstock.UnsupportedError, match="Mine"):
        penstock.load(own)
    changed(own, lambda d: d.update(version="3.0"))
    with pytest.raises(penstock.UnsupportedError, match=r"'3\.0'"):
        penstock.load(own)


def test_files_elsewhere_are_not_read(own, tmp_path):
    shutil.copy(own / "own_1.pt", tmp_path / "secret.pt")
    layout = {"file_path": "../secret.pt", "serialization_format": {"type": "TorchSerialization"}}
    changed(own, lambda d: d["metadata"]["own"]["rank_to_layout_info"].update({1: layout}))
    with pytest.raises(penstock.UnsafeError, match="plain file names"):
        penstock.load(own)


def test_a_missing_file_is_named(own):
    (own / "own_1.pt").unlink()
    with pytest.raises(penstock.NotFoundError, match=r"own_1\.pt"):
        penstock.load(own)


def test_any_other_metadata_pkl_stays_a_pickle(tmp_path):
    (tmp_path / "metadata.pkl").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(penstock.UnknownFormatError, match="pickle"):
        penstock.open(tmp_path / "metadata.pkl")


def verified(folder, code):
    done = subprocess.run([PENSTOCK, "verify", "--json", folder], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_it_is_verified(own):
    assert verified(own, 0)["bad"] == []
    data = bytearray((own / "own_1.pt").read_bytes())
    at = data.index(np.arange(10, 13, dtype="f4").tobytes())
    data[at] ^= 1
    (own / "own_1.pt").write_bytes(data)
    assert [bad["path"] for bad in verified(own, 1)["bad"]] == [str(own / "own_1.pt")]
    with pytest.raises(penstock.ChecksumError, match=r"own_1\.pt"):
        penstock.load(own)
