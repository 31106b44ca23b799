"""penstock.load_async and penstock.save_async."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import penstock


def test_results_and_errors_arrive(tmp_path):
    path = tmp_path / "x.pt"
    assert penstock.save_async({"w": np.arange(6.0), "n": 3}, path).result() is None
    loaded = penstock.load_async(path).result(timeout=60)
    assert loaded["n"] == 3
    assert loaded["w"].tolist() == list(range(6))
    assert penstock.load_async(path, key="n").result() == 3
    with pytest.raises(penstock.NotFoundError):
        penstock.load_async(tmp_path / "none.pt").result()
    error = penstock.save_async(3, tmp_path / "x.npy").exception()
    assert isinstance(error, penstock.UnsupportedError)
    with pytest.raises(penstock.DTypeMismatchError):
        penstock.save_async(object(), path)
    assert os.listdir(tmp_path) == ["x.pt"]


def test_they_are_awaited(tmp_path):
    path = tmp_path / "x.npy"

    async def work():
        await penstock.save_async(np.arange(3), path)
        one, two = await asyncio.gather(penstock.load_async(path), penstock.load_async(path))
        with pytest.raises(penstock.NotFoundError):
            await penstock.load_async(tmp_path / "none.npy")
        return one.tolist(), two.tolist()

    assert asyncio.run(work()) == ([0, 1, 2], [0, 1, 2])


def test_what_is_copied_may_change(tmp_path):
    array = np.arange(200_000.0)
    task = penstock.save_async({"a": array, "b": array[:10]}, tmp_path / "x.pt")
    array[:] = -1
    task.result()
    back = penstock.load(tmp_path / "x.pt")
    assert back["a"].tolist() == list(range(200_000))
    assert back["b"].tolist() == list(range(10))
    assert penstock.save_async({"a": array}, tmp_path / "x.pt", copy=False).result() is None
    assert penstock.load(tmp_path / "x.pt")["a"].tolist() == [-1.0] * 200_000


def test_the_last_save_of_a_path_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tasks = [penstock.save_async(np.full(1000, i), "x.npy" if i % 2 else tmp_path / "x.npy") for i in range(30)]
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    for task in tasks:
        task.result()
    assert penstock.load(tmp_path / "x.npy")[0].item() == 29
    assert os.listdir() == []


def test_a_path_leads_where_the_save_itself_would_go(tmp_path, monkeypatch):
    """A '/' at the end stands for a checkpoint's folder, bytes are a path, and '..' of a link is not undone by text."""
    monkeypatch.chdir(tmp_path)
    os.makedirs("far/away")
    os.symlink("far/away", "link")
    tasks = [penstock.save_async({"x": np.ones(3)}, path) for path in ("ckpt/", b"bytes.npz", "link/../beside.npz")]
    os.chdir("link")
    for task in tasks:
        task.result()
    os.chdir(tmp_path)
    assert penstock.open("ckpt").format == "dcp"
    for path in ("ckpt", "bytes.npz", "far/beside.npz"):
        assert penstock.load(path)["x"].tolist() == [1.0] * 3
    assert not os.path.exists("beside.npz")
    task = penstock.load_async("link/../beside.npz")
    os.chdir("link")
    assert task.result()["x"].shape == (3,)


def test_paths_of_every_kind_lead_where_they_led(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("far")
    np.save("a.npy", np.ones(3))
    (entry,) = (found for found in os.scandir(b".") if found.name == b"a.npy")
    penstock.save_async(np.zeros(2), entry).result()
    for path in (entry, b"a.npy", "a.npy", Path("a.npy")):
        task = penstock.load_async(path)
        os.chdir("far")
        assert task.result().tolist() == [0.0, 0.0]
        os.chdir(tmp_path)
    content = Path("a.npy").read_bytes()
    assert penstock.load_async(content).result().tolist() == [0.0, 0.0]


def test_the_interpreters_end_waits(tmp_path):
    path = tmp_path / "x.npy"
    program = f"import numpy, penstock; penstock.save_async(numpy.ones(3_000_000), {str(path)!r})"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert np.load(path).sum() == 3_000_000


def test_a_forked_child_waits_for_no_save_of_its_parent(tmp_path):
    from penstock._load import background

    path = tmp_path / "x.npy"
    background._LINES[str(path)] = threading.Event()  # of a save that is not over
    try:
        child = os.fork()
        if child == 0:
            try:
                penstock.save_async(np.arange(3), path).result(timeout=60)
            finally:
                os._exit(0 if path.exists() else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        del background._LINES[str(path)]
    assert penstock.load(path).tolist() == [0, 1, 2]
