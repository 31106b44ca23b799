"""What a loader's iterations hold, for how long, and how programs end meanwhile."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from waiting import comes_true, threads_here

import penstock
import penstock.torch as pt
from penstock.torch.loader._threads import Threads


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(40))
    return tmp_path / "rows.npy"


def plus_one(value):
    return value + 1


@pytest.fixture
def no_collection():
    """Objects go by their counts alone, as in programs that stop the collector of cycles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.usefixtures("no_collection")
def test_loaders_go_with_their_threads(path, mapped, persistent):
    before = threads_here()
    dataset = pt.Rows(path).map(plus_one) if mapped else pt.Rows(path)
    for _ in range(3):
        loader = pt.DataLoader(dataset, batch_size=4, num_workers=2, persistent_workers=persistent)
        next(iter(loader))
        gone = weakref.ref(loader)
        del loader
        assert gone() is None
    assert comes_true(lambda: threads_here() <= before)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.usefixtures("no_collection")
def test_a_loader_that_stays_keeps_no_threads_between_iterations(path, mapped):
    before = threads_here()
    dataset = pt.Rows(path).map(plus_one) if mapped else pt.Rows(path)
    loader = pt.DataLoader(dataset, batch_size=4, num_workers=2)
    for number, _ in enumerate(loader):
        if number == 1:
            break
    assert comes_true(lambda: threads_here() <= before)
    assert loader.state_dict()["batch"] == 2
    assert loader.stats()["batches"] >= 2

    batches = iter(loader)
    assert len(list(batches)) == 10
    assert comes_true(lambda: threads_here() <= before)
    assert next(batches, None) is None
    assert loader.stats()["samples"] == 40
    assert loader.state_dict()["batch"] == 0


def _list_in_a_child(what, results):
    try:
        results.put(len(list(what)))
    except penstock.Error as error:
        results.put(str(error))


@pytest.mark.parametrize("persistent", [False, True])
def test_mapped_loaders_in_forked_children(path, persistent):
    def slow(value):
        time.sleep(0.05)
        return value

    loader = pt.DataLoader(pt.Rows(path).map(slow), batch_size=4, num_workers=2, persistent_workers=persistent)
    batches = iter(loader)
    next(batches)
    fork = multiprocessing.get_context("fork")
    for what, expected in ((batches, "stayed in the parent"), (loader, "10")):
        results = fork.Queue()
        child = fork.Process(target=_list_in_a_child, args=(what, results))
        child.start()
        assert expected in str(results.get(timeout=60))
        child.join(60)
        assert child.exitcode == 0
    assert len(list(batches)) == 9


PROGRAM = """
import sys, threading, time
import numpy as np
import penstock, penstock.torch as pt
path, kind, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
rows, indices = pt.Rows(path), [number % 40 for number in range(1_000_000)]
# A daemon thread that is in one of torch's operations aborts a program that ends, even as it lets go of a tensor.
kept = []
make = {
    "torch": lambda: pt.DataLoader(rows, sampler=indices, num_workers=workers),
    "mapped": lambda: pt.DataLoader(rows.map(lambda batch: batch, batched=True), sampler=indices, num_workers=workers),
    "native": lambda: penstock.DataLoader(rows.native, sampler=indices, num_workers=workers),
    "load": lambda: (penstock.load(path) for _ in indices),
}[kind]
def work():
    for batch in make():
        kept.append(batch)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
"""


# Each program starts an interpreter with torch: one of a kind on every change, the others at night.
@pytest.mark.parametrize(
    ("kind", "workers", "times"),
    [
        ("torch", 2, 1),
        ("mapped", 2, 1),
        ("native", 2, 1),
        ("load", 0, 1),
        *(
            pytest.param(kind, workers, 5, marks=pytest.mark.nightly)
            for kind in ("torch", "mapped", "native", "load")
            for workers in (0, 2)
        ),
    ],
)
def test_programs_end_while_daemon_threads_read(path, kind, workers, times):
    for _ in range(times):
        command = [sys.executable, "-c", PROGRAM, str(path), kind, str(workers)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")


WAITS = """
import atexit, sys, time
import penstock.torch as pt
calls = []
def slow(row):
    calls.append(int(row))
    time.sleep(float(sys.argv[2]) if row > 5 else 0)
    return row
loader = pt.DataLoader(pt.Rows(sys.argv[1]).map(slow), batch_size=4, num_workers=2)
batches = iter(loader)
next(batches)
if sys.argv[3] == "list":
    atexit.register(lambda: print(len(list(pt.DataLoader(pt.Rows(sys.argv[1]).map(float), num_workers=2)))))
"""


EARLY = """
import atexit, sys
def late():
    import penstock.torch as pt
    print(len(list(pt.DataLoader(pt.Rows(sys.argv[1]).map(lambda row: row + 1), num_workers=2))))
atexit.register(late)
import penstock.torch
"""

UNDER_WAY = """
import os, sys, threading, time
import penstock.torch as pt
forked, ending = sys.argv[2] == "forked", sys.argv[3]
begun = threading.Event()
def slow(row):
    if row > 1:
        begun.set()
        time.sleep(0.2)
        os.write(1, b"whole ")
    return row / 2  # torch lets go of the lock here and takes it again, which the end of Python forbids
if forked and (child := os.fork()):
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
batches = iter(pt.DataLoader(pt.Rows(sys.argv[1]).map(slow), batch_size=2, num_workers=2))
next(batches)
begun.wait()
if ending == "broken off":
    del batches
"""


@pytest.mark.parametrize("ending", ["open", "broken off"])
@pytest.mark.parametrize("process", ["first", "forked"])
def test_programs_wait_for_calls_under_way(path, process, ending):
    command = [sys.executable, "-c", UNDER_WAY, str(path), process, ending]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "whole" in done.stdout


LET_GO = """
import os, sys, threading, time
import penstock.torch as pt
begun = threading.Event()
class Result:
    def __del__(self):
        time.sleep(0.2)
        os.write(1, b"whole ")
def slow(batch):
    if 0 in batch:
        return None
    begun.set()
    time.sleep(0.2)
    return Result()
batches = iter(pt.DataLoader(pt.Rows(sys.argv[1]).map(slow, batched=True), batch_size=2, num_workers=1))
next(batches)
begun.wait()
del batches
"""


def test_programs_wait_for_results_that_nobody_takes(path):
    command = [sys.executable, "-c", LET_GO, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole ", "")


def test_programs_wait_for_no_calls_that_are_queued(path):
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", WAITS, str(path), "3600", ""], timeout=120, check=True)
    assert time.monotonic() - begin < 60  # and not hours


@pytest.mark.parametrize("early", [False, True])
def test_mapped_loaders_in_functions_at_exit(path, early):
    """`early`: functions that were registered before the module, and run after what it does at the end."""
    code = WAITS if not early else EARLY
    command = [sys.executable, "-c", code, str(path), "0", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "40"


class TestThreads:
    def test_results_come_for_each_call(self):
        threads = Threads(3, "test")
        futures = [threads.submit(divmod, 7, divisor) for divisor in (1, 2, 0, 3)]
        assert futures[0].result() == (7, 0)
        with pytest.raises(ZeroDivisionError):
            futures[2].result()
        assert futures[3].result() == (2, 1)

    def test_calls_that_have_not_begun_are_cancelled(self):
        release = threading.Event()
        threads = Threads(1, "test")
        running = threads.submit(release.wait, 60)
        assert comes_true(running.running)
        waiting = threads.submit(divmod, 1, 1)
        threads.close()
        assert waiting.cancelled()
        release.set()
        assert running.result() is True

    def test_without_threads_calls_are_made_at_once(self, monkeypatch):
        def refuse(self):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert Threads(2, "test").submit(divmod, 7, 2).done()
