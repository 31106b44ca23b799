"""Files of others' file systems (penstock.remote) are asked for many pieces at once."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_memory_that_a_failed_read_was_to_fill_is_let_go_of(array, tmp_path):
    """It is C++'s, and may be gone, while tracebacks keep the view of it."""
    np.save(tmp_path / "x.npy", array[:10000])
    far = Far((tmp_path / "x.npy").read_bytes())
    with penstock.open(remote.from_fsspec(far, "x")) as archive:
        far.fails = True
        with pytest.raises(penstock.TimedOutError) as caught:
            archive[""].load()
    views = [local for entry in caught.traceback for local in entry.frame.f_locals.values()]
    views = [local for local in views if isinstance(local, memoryview)]
    assert views
    for view in views:
        with pytest.raises(ValueError, match="released"):
            bytes(view)


INTERRUPTED = """
import os, signal, socket, sys, threading
import penstock
signal.signal(signal.SIGINT, signal.default_int_handler)
server = socket.create_server(("127.0.0.1", 0))
asked, left = threading.Event(), threading.Event()
def say_nothing():
    connection, _ = server.accept()
    connection.recv(1)
    asked.set()
    while connection.recv(65536):
        pass
    left.set()
def interrupt():
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=say_nothing, daemon=True).start()
threading.Thread(target=interrupt, daemon=True).start()
url = f"http://127.0.0.1:{server.getsockname()[1]}/x.npy"
def call():
    penstock.%s
try:
    call()
except KeyboardInterrupt:
    print("left" if left.wait(60) else "still asks")
"""


@pytest.mark.parametrize("call", ["rows(url)", "load(url)", "load(url, progress=print)", "files([url])[0]"])
def test_a_server_is_asked_no_more_behind_ctrl_c(call):
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED % call],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PENSTOCK_REMOTE_TIMEOUT": "3600", "PENSTOCK_REMOTE_HEDGES": "0"},
    )
    assert result.stdout == "left\n", result.stderr


def test_small_tensors_that_lie_together_are_one_call(tmp_path):
    tensors = {f"layer{i:03}": np.full(1000, i, np.float32) for i in range(200)}
    penstock.save(tensors, tmp_path / "x.safetensors")
    far = Far((tmp_path / "x.safetensors").read_bytes())
    with penstock.open(remote.from_fsspec(far, "x")) as archive:
        before = far.calls
        loaded = archive.load()
        assert far.calls == before + 1
    assert all(np.array_equal(np.asarray(loaded[name]), value) for name, value in tensors.items())
