"""Files of others' file systems (penstock.remote) are asked for many pieces at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import penstock
from penstock import remote

PIECE = 8 << 20
FIRST = 16  # pieces that a load begins with


class Far:
    """A file system as fsspec has them, with one file; calls wait until so many are in flight together."""

    def __init__(self, content):
        self.content = content
        self.together = 1
        self.in_flight = self.most = self.calls = 0
        self.fails = False
        self.changed = threading.Condition()

    def info(self, path):
        return {"size": len(self.content)}

    def cat_ranges(self, paths, starts, ends, on_error="raise"):
        with self.changed:
            self.calls += 1
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.most >= self.together, timeout=120)
            self.in_flight -= 1
        if self.fails:
            raise TimeoutError("nobody is there")
        return [self.content[start:end] for start, end in zip(starts, ends, strict=True)]


@pytest.fixture
def array():
    return np.arange((FIRST + 2) * PIECE // 8, dtype=np.int64)


def opened(far):
    archive = penstock.open(remote.from_fsspec(far, "x"))
    far.together = FIRST
    return archive


def test_a_load_has_many_pieces_in_flight(array, tmp_path):
    np.save(tmp_path / "x.npy", array)
    far = Far((tmp_path / "x.npy").read_bytes())
    report = {}
    with opened(far) as archive:
        loaded = archive[""].load(report=report)
    assert np.array_equal(np.asarray(loaded), array)
    assert far.most >= FIRST
    assert FIRST <= report["depth"] <= FIRST + 3
    assert report["depth_limit"] == "plan"


def test_an_error_with_many_in_flight(array, tmp_path):
    np.save(tmp_path / "x.npy", array)
    far = Far((tmp_path / "x.npy").read_bytes())
    with opened(far) as archive:
        far.fails = True
        with pytest.raises(penstock.TimedOutError, match="nobody is there"):
            archive[""].load()


def test_small_tensors_that_lie_together_are_one_call(tmp_path):
    tensors = {f"layer{i:03}": np.full(1000, i, np.float32) for i in range(200)}
    penstock.save(tensors, tmp_path / "x.safetensors")
    far = Far((tmp_path / "x.safetensors").read_bytes())
    with penstock.open(remote.from_fsspec(far, "x")) as archive:
        before = far.calls
        loaded = archive.load()
        assert far.calls == before + 1
    assert all(np.array_equal(np.asarray(loaded[name]), value) for name, value in tensors.items())
