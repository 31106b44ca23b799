"""Arrays of Python objects (numbers, strings, rows of unlike length) as samples, as np.load(allow_pickle=True) has
them. Nothing in their pickles is run."""

from __future__ import annotations

import os

import numpy as np
import pytest

import penstock


def objects(*items):
    out = np.empty(len(items), object)
    out[:] = items
    return out


def table(rows):
    out = np.empty((len(rows), len(rows[0])), object)
    out[:] = rows
    return out


ARRAYS = {
    "numbers": objects(1, 2.5, -3, True),
    "numbers of NumPy": objects(np.float32(1.5), np.int64(7), np.bool_(False)),
    "strings": objects("a", "bc", "é"),
    "none": objects(None, 1),
    "ragged rows": objects(np.arange(2.0), np.arange(5.0), np.arange(0.0)),
    "ragged rows of unlike types": objects(np.arange(2, dtype="i2"), np.ones((2, 3), "f4")),
    "lists": objects([1, 2], [], ["x"]),
    "lists of arrays": objects([np.arange(2), np.arange(3)], [np.ones(1)]),
    "dicts": objects({"a": 1, "b": np.arange(3)}, {"a": 2, "b": np.arange(4)}),
    "a table": table([[1, "x"], [2.5, None]]),
    "nothing": objects(),
}


def plain(value):
    """As lists and numbers, by which both are compared."""
    if isinstance(value, (np.ndarray, penstock.Tensor)):
        is_objects = isinstance(value, np.ndarray) and value.dtype == object
        return [plain(item) for item in value] if is_objects else (str(value.dtype), value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", ARRAYS)
def test_a_sample_is_what_is_in_the_file(tmp_path, name):
    array = ARRAYS[name]
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "b.npz", x=array, y=np.arange(3))
    np.savez_compressed(tmp_path / "c.npz", y=np.arange(3), x=array)
    dataset = penstock.files([tmp_path / file for file in ("a.npy", "b.npz", "c.npz")])
    wanted = plain(np.load(tmp_path / "a.npy", allow_pickle=True))
    assert plain(dataset[0]) == wanted
    assert plain(dataset[1]["x"]) == wanted
    assert plain(dataset[2]["x"]) == wanted
    assert plain(dataset[1]["y"]) == ("int64", [0, 1, 2])
    only = penstock.files([tmp_path / "b.npz"], keys="x")
    assert plain(only[0]) == {"x": wanted}


def test_batches(tmp_path):
    for i in range(4):
        np.savez(tmp_path / f"{i}.npz", rows=objects(np.full(2, i), np.full(3, i)), label=objects(i, "even"))
    with penstock.DataLoader(penstock.files(tmp_path), batch_size=4) as loader:
        batch = next(iter(loader))
    assert [rows.tolist() for rows in batch["rows"]] == [[[i] * 2 for i in range(4)], [[i] * 3 for i in range(4)]]
    assert batch["label"][0].tolist() == [0, 1, 2, 3]
    assert batch["label"][1] == ["even"] * 4
    np.savez(tmp_path / "4.npz", rows=objects(np.full(9, 4), np.full(1, 4)), label=objects(4, "odd"))
    with penstock.DataLoader(penstock.files(tmp_path), batch_size=5, collate=penstock.samples()) as loader:
        assert [len(sample["rows"][0]) for sample in next(iter(loader))] == [2, 2, 2, 2, 9]


class Runs:
    """What runs something when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_is_run(tmp_path):
    np.save(tmp_path / "a.npy", objects(1, Runs(str(tmp_path / "made"))), allow_pickle=True)
    with pytest.raises(penstock.UnsupportedError):
        penstock.files([tmp_path / "a.npy"])[0]
    loaded = penstock.load(tmp_path / "a.npy")
    assert isinstance(loaded[1], penstock.Opaque)
    assert not (tmp_path / "made").exists()
