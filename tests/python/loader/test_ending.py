"""How iterations end: broken off, closed, interrupted, forked, at exit."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from ctrl_c import answers_ctrl_c
from loader_data import N, pairs

import penstock

pytestmark = pytest.mark.slow


def threads():
    return len(os.listdir("/proc/self/task"))


def settled(measure, expected):
    """Threads that were told to end may take a moment to vanish from /proc."""
    for _ in range(2000):
        if measure() <= expected:
            return True
        time.sleep(0.01)
    return False


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("dataset", ["pairs", "dicts"])
def test_broken_off_loops_leak_nothing(folder, dataset):
    make = {"pairs": lambda: pairs(folder), "dicts": lambda: penstock.files(folder / "dicts")}[dataset]
    for batch in penstock.DataLoader(make(), batch_size=2, num_workers=2):
        del batch
        break
    gc.collect()
    before = threads(), descriptors()
    for _ in range(20):
        for _ in penstock.DataLoader(make(), batch_size=2, num_workers=4):
            break
    gc.collect()
    assert settled(threads, before[0])
    assert settled(descriptors, before[1])


def test_breaking_off_stops_the_workers_of_a_loader_that_stays(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=1, num_workers=4)
    for _ in loader:
        break
    made = []
    assert settled(lambda: made.append(loader.stats()["batches"]) or len(made) < 2 or made[-1] - made[-2], 0)
    made = loader.stats()["batches"]
    time.sleep(0.05)
    assert loader.stats()["batches"] == made < N
    assert len(list(loader)) == N


def test_closing(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=4, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    for call in (lambda: next(iterator), lambda: iter(loader), lambda: len(loader), loader.state_dict):
        with pytest.raises(ValueError, match="closed"):
            call()
    loader.close()
    with penstock.DataLoader(pairs(folder), batch_size=4, num_workers=2) as loader:
        next(iter(loader))
    with pytest.raises(ValueError, match="closed"):
        iter(loader)


def test_closing_from_another_thread(folder):
    class Slow(list):
        def __iter__(self):
            time.sleep(0.3)
            return super().__iter__()

    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=Slow(range(8)), num_workers=2)
    threading.Timer(0.1, loader.close).start()

    def iterate_again_and_again():
        for _ in range(10):
            list(loader)

    with pytest.raises(penstock.Error):
        iterate_again_and_again()


def test_several_threads_share_an_iteration(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=1, num_workers=2)
    iterator = iter(loader)
    got = []

    def work():
        for _, y in iterator:
            got.append(y.item())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(got) == list(range(N))


def run(code, folder, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_in_a_loop(folder, workers):
    setup = f"loader = penstock.DataLoader(penstock.rows('labels.npy'), num_workers={workers})"
    answers_ctrl_c(folder, setup, "while True: list(loader)")


def test_ctrl_c_while_a_worker_waits_for_a_sampler(folder):
    slow = "type('Slow', (list,), {'__iter__': lambda self: time.sleep(3) or iter([1, 2])})"
    setup = f"loader = penstock.DataLoader(penstock.rows('labels.npy'), sampler={slow}([1, 2]), num_workers=2)"
    answers_ctrl_c(folder, setup, "next(iter(loader))")


ENDLESS = {"sampler": "itertools.cycle([0])", "batch_sampler": "itertools.repeat([0, 1])"}


@pytest.mark.parametrize("kind", ENDLESS)
def test_ctrl_c_while_an_endless_sampler_is_counted(folder, kind):
    call = f"penstock.DataLoader(penstock.rows('labels.npy'), {kind}={ENDLESS[kind]})"
    answers_ctrl_c(folder, "import itertools", call)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ENDLESS)
def test_ctrl_c_while_an_endless_sampler_is_read(folder, kind, workers):
    """In the caller's thread and in a thread of the loader's; another pass reads it again."""
    endless = f"type('Endless', (), {{'__len__': lambda s: 1 << 40, '__iter__': lambda s: {ENDLESS[kind]}}})()"
    setup = (
        "import itertools; "
        f"loader = penstock.DataLoader(penstock.rows('labels.npy'), {kind}={endless}, num_workers={workers})"
    )
    answers_ctrl_c(folder, setup, "next(iter(loader))")


@pytest.mark.parametrize("call", ["penstock.SubsetSampler(endless)", "penstock.BatchSampler([endless])"])
def test_ctrl_c_while_endless_indices_are_kept(folder, call):
    answers_ctrl_c(folder, "import itertools; endless = itertools.cycle([0])", call)


@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_while_a_batch_takes_long(tmp_path, workers):
    """A batch that takes seconds of reading in the caller's thread is broken off, and another loader works after it."""
    np.save(tmp_path / "x.npy", np.zeros(1 << 18))
    files = "penstock.files(['x.npy'] * 4000)"
    setup = f"loader = penstock.DataLoader({files}, batch_size=2000, num_workers={workers})"
    after = "print(*next(iter(penstock.DataLoader(penstock.files(['x.npy'] * 2), batch_size=2))).shape)"
    assert answers_ctrl_c(tmp_path, setup, "next(iter(loader))", after) == ["2", "262144"]


FORKED = """
    import os, sys, penstock
    loader = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except penstock.InvalidArgumentError as error:
            print(error, flush=True)
        own = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=37, num_workers=2)
        print(next(iter(own)).shape, flush=True)
        sys.exit(0)  # destroys the parent's loader, whose threads are not here
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), len(list(iterator)))
"""


def test_forked_children_neither_hang_nor_use_the_parents_loader(folder):
    result = run(FORKED, folder)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "fork" in lines[0]
    assert lines[1:] == ["(37,)", "0 18"]


EXITS = """
    import sys, threading, penstock
    loader = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=1, num_workers=4)
    iterator = iter(loader)
    next(iterator)
    {then}
"""


@pytest.mark.parametrize(
    "then", ["pass", "sys.exit(3)", "sys.keep = loader, iterator", "cycle = [iterator]; cycle.append(cycle)"]
)
def test_exit_with_a_running_loader(folder, then):
    result = run(EXITS.format(then=then), folder)
    assert result.returncode == (3 if "exit" in then else 0)
    assert result.stderr == ""


def test_multiprocessing_workers_inherit_no_trouble(folder):
    code = """
    import multiprocessing, sys, penstock
    loader = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    def work(i):
        return penstock.load(sys.argv[1] + "/labels.npy")[i].item()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(5)))
    print(len(list(iterator)))
    """
    result = run(code, folder)
    assert result.stdout.splitlines() == ["[0, 1, 2, 3, 4]", "18"], result.stderr


CALLED = """
    import os, sys, threading, time, penstock
    begun = threading.Event()
    def slow(sample):
        begun.set()
        time.sleep(0.2)
        os.write(1, b"whole ")
        return sample
    if {forked} and (child := os.fork()):
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    dataset = penstock.rows(sys.argv[1] + "/labels.npy").map(slow)
    iterator = iter(penstock.DataLoader(dataset, batch_size=8, num_workers=2))
    threading.Thread(target=lambda: next(iterator), daemon=True).start()
    begun.wait()
"""


@pytest.mark.parametrize("forked", [False, True])
def test_the_end_waits_for_calls_under_way(folder, forked):
    result = run(CALLED.format(forked=forked), folder)
    assert (result.returncode, result.stderr) == (0, "")  # and the thread that has no batch any more says nothing
    assert "whole" in result.stdout


LET_GO = """
    import os, threading, time, numpy as np, penstock
    begun, watched = threading.Event(), threading.Event()
    class Memory:
        def __init__(self, index):
            self.held = np.full(50_000, index)  # too large to be copied at once
            self.__array_interface__ = self.held.__array_interface__
        def __del__(self):
            if watched.is_set():
                begun.set()
                time.sleep(0.2)
                os.write(1, b"whole ")
    dataset = penstock.dataset(1000, lambda index: np.asarray(Memory(index)))
    iterator = iter(penstock.DataLoader(dataset, batch_size=1, num_workers=1))
    next(iterator)
    watched.set()
    threading.Thread(target=lambda: list(iterator), daemon=True).start()
    begun.wait()
"""


def test_the_end_waits_for_objects_that_workers_let_go_of(folder):
    result = run(LET_GO, folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert "whole" in result.stdout
