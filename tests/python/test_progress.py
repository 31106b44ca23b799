"""penstock.load(progress=...) and penstock.save(progress=...)."""

import io
import os
import sys
import threading
import types

import numpy as np
import pytest

import penstock

CONTENT = {"large": np.zeros(20_000_000, "u1"), "small": np.arange(5.0)}
TOTAL = 20_000_040


@pytest.mark.parametrize("name", ["x.npz", "x.pt", "x.safetensors", "x.npy"])
def test_a_function_is_told(tmp_path, name):
    told = []

    def tell(done, total):
        assert threading.current_thread() is threading.main_thread()
        told.append((done, total))

    total = 40 if name == "x.npy" else TOTAL
    path = tmp_path / name
    penstock.save(CONTENT["small"] if name == "x.npy" else CONTENT, path, progress=tell, sync=False)
    assert told[-1] == (total, total)
    assert told == sorted(told)
    assert {each[1] for each in told} == {total}
    told.clear()
    loaded = penstock.load(path, progress=tell)
    assert (loaded if name == "x.npy" else loaded["small"]).tolist() == [0, 1, 2, 3, 4]
    assert told[-1] == (total, total)
    assert told == sorted(told)


@pytest.mark.parametrize("content", [CONTENT, {"small": np.ones(3)}, {}], ids=["large", "small", "empty"])
def test_what_it_raises_stops_the_work(tmp_path, content):
    path = tmp_path / "x.pt"

    def stop(done, total):
        raise ZeroDivisionError(done)

    with pytest.raises(ZeroDivisionError):
        penstock.save(content, path, progress=stop)
    assert os.listdir(tmp_path) == []
    penstock.save(content, path, progress=False, sync=False)
    with pytest.raises(ZeroDivisionError):
        penstock.load(path, progress=stop)
    assert penstock.load(path).keys() == content.keys()


def test_errors_stay_what_they_are(tmp_path):
    with pytest.raises(penstock.NotFoundError):
        penstock.load(tmp_path / "none.pt", progress=True)
    with pytest.raises(penstock.UnsupportedError):
        penstock.save(3, tmp_path / "x.npy", progress=lambda done, total: None)
    with pytest.raises(TypeError, match="progress is True or a function"):
        penstock.save(np.ones(3), tmp_path / "x.npy", progress="yes")
    assert os.listdir(tmp_path) == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_bar_of_ours_on_a_terminal(tmp_path, monkeypatch, stream):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", stream())
    penstock.save(CONTENT, tmp_path / "é.pt", progress=True, sync=False)
    penstock.load(tmp_path / "é.pt", progress=True)
    shown = sys.stderr.getvalue()
    if stream is Terminal:
        assert "saving é.pt" in shown
        assert "loading é.pt" in shown
        assert shown.count("100% of 20.0 MB") == 2
        assert shown.endswith("\n")
    else:
        assert shown == ""


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_tqdm_where_it_is_installed(tmp_path, monkeypatch, stream):
    """In a notebook, too, whose stderr is no terminal."""
    bars = []

    class Bar:
        def __init__(self, **options):
            self.n, self.total, self.closed, self.options = 0, None, False, options
            bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    tqdm, auto = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
    auto.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", tqdm)
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    monkeypatch.setattr(sys, "stderr", stream())
    if stream is not Terminal:
        monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    penstock.save(CONTENT, tmp_path / "x.pt", progress=True, sync=False)
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(TOTAL, TOTAL, True)]
    assert bars[0].options["desc"] == "saving x.pt"


def _archive_load(path, tell):
    with penstock.open(path) as archive:
        archive.load(progress=tell)


def _load_into(path, tell):
    penstock.load_into({"large": np.empty(20_000_000, "u1"), "small": np.empty(5)}, path, progress=tell)


def _torch_load(path, tell):
    pytest.importorskip("penstock.torch").load(path, progress=tell)


@pytest.mark.parametrize("load", [_archive_load, _load_into, _torch_load])
def test_every_load_is_told(tmp_path, load):
    path = tmp_path / "x.safetensors"
    penstock.save(CONTENT, path, sync=False)
    told = []
    load(path, lambda done, total: told.append((done, total)))
    assert told[-1] == (TOTAL, TOTAL)
    assert told == sorted(told)

    def stop(done, total):
        raise ZeroDivisionError(done)

    with pytest.raises(ZeroDivisionError):
        load(path, stop)
    with pytest.raises(TypeError, match="progress is True or a function"):
        load(path, 3)


def test_packing_counts_samples(tmp_path):
    dataset = penstock.rows(np.zeros((100, 1000), "u1"))
    told = []
    penstock.pack(dataset, tmp_path / "a", shard_bytes=20_000, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (100, 100)
    assert told == sorted(told)

    def stop(done, total):
        raise ZeroDivisionError(done)

    with pytest.raises(ZeroDivisionError):
        penstock.pack(dataset, tmp_path / "b", progress=stop)
    assert not (tmp_path / "b").exists()


def test_a_save_of_torch_is_told(tmp_path):
    torch = pytest.importorskip("torch")
    save = pytest.importorskip("penstock.torch").save
    told = []
    save({"w": torch.zeros(1000)}, tmp_path / "x.pt", progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (4000, 4000)
