"""However an epoch ends, nothing of it is left in cycles of references, and its threads go."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import types

import numpy as np
import pytest
import torch
import torch.utils.data as td
from waiting import comes_true, threads_here

import penstock
import penstock.torch as pt

COUNT = 40


class FailsError(Exception):
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endings")
    np.save(folder / "rows.npy", np.arange(COUNT))
    (folder / "files").mkdir()
    (folder / "sparse").mkdir()
    for i in range(12):
        np.save(folder / "files" / f"{i:02d}.npy", np.arange(3))
        torch.save(torch.eye(3).to_sparse(), folder / "sparse" / f"{i:02d}.pt")
    (folder / "files" / "07.npy").write_bytes(b"no array")
    (folder / "sparse" / "07.pt").write_bytes(b"no tensor")
    return folder


def fails_at(number):
    def function(row):
        if int(row) == number:
            raise FailsError(number)
        return row

    return function


def fails(batch):
    raise FailsError


class Sampler(td.Sampler):
    def __init__(self, fails_behind):
        self.fails_behind = fails_behind

    def __iter__(self):
        yield from range(self.fails_behind)
        raise FailsError

    def __len__(self):
        return COUNT


def slow(row):
    time.sleep(0.15)
    return row


def interrupted(row):
    if int(row) == 9:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
    return row


def whole(loader):
    list(loader)


def broken_off(loader):
    for _ in loader:
        break


def half(loader):
    batches = iter(loader)
    next(batches), next(batches)


def twice(loader):
    batches = iter(loader)
    next(batches)
    again = iter(loader)
    next(again), next(batches)


def on(loader):
    """Goes on behind each error."""
    batches = iter(loader)
    while True:
        try:
            next(batches)
        except StopIteration:
            return
        except (FailsError, penstock.Error, RuntimeError):
            pass


def resumed(loader):
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(loader.state_dict())
    list(loader)


ENDINGS = {
    "finished": (lambda f, w: (pt.Rows(f / "rows.npy"), {}), whole),
    "finished, mapped": (lambda f, w: (pt.Rows(f / "rows.npy").map(int), {}), whole),
    "broken off": (lambda f, w: (pt.Rows(f / "rows.npy"), {}), broken_off),
    "broken off, mapped": (lambda f, w: (pt.Rows(f / "rows.npy").map(int), {}), broken_off),
    "dropped": (lambda f, w: (pt.Rows(f / "rows.npy").map(int), {}), half),
    "two at a time": (lambda f, w: (pt.Rows(f / "rows.npy").map(int), {}), twice),
    "resumed": (lambda f, w: (pt.Rows(f / "rows.npy").map(int), {}), resumed),
    "a function": (lambda f, w: (pt.Rows(f / "rows.npy").map(fails_at(9)), {}), whole),
    "a function, going on": (lambda f, w: (pt.Rows(f / "rows.npy").map(fails_at(9)), {}), on),
    "a function of batches": (lambda f, w: (pt.Rows(f / "rows.npy").map(fails, batched=True), {}), whole),
    "collate_fn": (lambda f, w: (pt.Rows(f / "rows.npy"), {"collate_fn": fails}), whole),
    "collate_fn, mapped": (lambda f, w: (pt.Rows(f / "rows.npy").map(int), {"collate_fn": fails}), on),
    "collation": (lambda f, w: (pt.Rows(f / "rows.npy").map(lambda row: torch.ones(int(row))), {}), whole),
    "a sampler": (lambda f, w: (pt.Rows(f / "rows.npy"), {"sampler": Sampler(9)}), whole),
    "a sampler, mapped": (lambda f, w: (pt.Rows(f / "rows.npy").map(int), {"sampler": Sampler(9)}), whole),
    "a file": (lambda f, w: (pt.Files(f / "files"), {}), whole),
    "a file, going on": (lambda f, w: (pt.Files(f / "files"), {}), on),
    "a file, mapped": (lambda f, w: (pt.Files(f / "files").map(torch.clone), {}), on),
    "a file, left out": (lambda f, w: (pt.Files(f / "files"), {"on_error": "skip"}), whole),
    "samples that Python makes": (lambda f, w: (pt.Files(f / "sparse"), {"batch_size": None}), on),
    "samples that cannot be stacked": (lambda f, w: (pt.Files(f / "sparse"), {}), on),
    "an index": (lambda f, w: (pt.Rows(f / "rows.npy"), {"sampler": [1, 2, 99, 3, 4, 5]}), on),
    "time": (lambda f, w: (pt.Rows(f / "rows.npy").map(slow), {"timeout": 0.05} if w else {}), half),
    "Ctrl-C": (lambda f, w: (pt.Rows(f / "rows.npy").map(interrupted), {}), whole),
    "torch's road": (lambda f, w: (list(range(COUNT)), {}), whole),
    "torch's road, broken off": (lambda f, w: (list(range(COUNT)), {}), broken_off),
    "torch's road, collate_fn": (lambda f, w: (list(range(COUNT)), {"collate_fn": fails}), whole),
}


def end(ending, folder, workers, options):
    make, use = ENDINGS[ending]
    dataset, more = make(folder, workers)
    loader = pt.DataLoader(dataset, **{"batch_size": 4, "num_workers": workers, **options, **more})
    with contextlib.suppress(FailsError, penstock.Error, RuntimeError, IndexError, TypeError, KeyboardInterrupt):
        use(loader)
    loader.stats()


def ours(thing):
    """What an epoch consists of; not what torch and Python's other modules leave."""
    if isinstance(thing, types.FrameType):
        return "penstock" in thing.f_code.co_filename.split(os.sep) or thing.f_code.co_filename == __file__
    module = getattr(type(thing), "__module__", "")
    if module.startswith("concurrent.futures") or module.partition(".")[0] == "penstock":
        return True
    return isinstance(thing, (FailsError, torch.Tensor))


@pytest.fixture
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.usefixtures("no_collection")
def test_nothing_stays(folder, ending, workers, persistent):
    if persistent and (workers == 0 or ending.startswith("torch's")):
        pytest.skip("there is nothing that persists, or processes of torch's")
    options = {"persistent_workers": True} if persistent else {}
    end(ending, folder, workers, options)
    before = threads_here()  # with those that torch computes with
    for _ in range(2):
        end(ending, folder, workers, options)
    assert comes_true(lambda: threads_here() <= before)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    left = [thing for thing in gc.garbage if ours(thing)]
    assert not left, [(type(thing), thing) for thing in left]


TAKERS = 6


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["plain", "mapped", "mapped batches", "collate_fn", "samples", "sparse", "on_error"])
def test_several_threads_take_from_one_iterator(folder, kind, workers):
    rows, sparse = pt.Rows(folder / "rows.npy"), pt.Files(folder / "sparse")
    dataset, options = {
        "plain": (rows, {}),
        "mapped": (rows.map(torch.clone), {}),
        "mapped batches": (rows.map(torch.clone, batched=True), {}),
        "collate_fn": (rows, {"collate_fn": torch.stack}),
        "samples": (rows, {"batch_size": None}),
        "sparse": (sparse, {"batch_size": None, "sampler": range(7)}),
        "on_error": (pt.Files(folder / "files"), {"on_error": "skip"}),
    }[kind]

    def make(**more):
        return pt.DataLoader(dataset, **{"batch_size": 3, "num_workers": workers, **options, **more})

    expected = [plain(batch) for batch in make()]
    for persistent in (False, True) if workers else (False,):
        loader = make(persistent_workers=persistent)
        for _ in range(2):
            taken, errors = take_with_threads(iter(loader))
            assert not errors
            assert sorted(map(str, taken)) == sorted(map(str, expected))


def plain(batch):
    return (batch.to_dense() if batch.is_sparse else batch).tolist()


def take_with_threads(batches):
    taken, errors, start = [], [], threading.Barrier(TAKERS)

    def take():
        start.wait()
        try:
            while (batch := next(batches, None)) is not None:
                taken.append(plain(batch))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take, daemon=True) for _ in range(TAKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return taken, errors


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_to_one_of_several_threads(folder, workers):
    batches = iter(pt.DataLoader(pt.Rows(folder / "rows.npy").map(fails_at(9)), 1, num_workers=workers))
    taken = []

    def take():
        while True:
            try:
                taken.append(next(batches).item())
            except StopIteration:
                return
            except FailsError:
                taken.append("error")

    threads = [threading.Thread(target=take, daemon=True) for _ in range(TAKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(map(str, taken)) == sorted(map(str, [*(i for i in range(COUNT) if i != 9), "error"]))


def test_a_function_that_takes_the_next_batch_itself(folder):
    def function(batch):
        if 8 in batch.tolist():
            return torch.cat([batch, next(batches)])
        return batch

    batches = iter(pt.DataLoader(pt.Rows(folder / "rows.npy").map(function, batched=True), 4))
    assert torch.cat(list(batches)).tolist() == list(range(COUNT))


def drop_in_a_child():
    kept[0] = None
    gc.collect()
    print("dropped", file=sys.stderr, flush=True)


kept = [None]


@pytest.mark.parametrize("kind", ["plain", "mapped", "sparse", "native", "native iteration"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_that_drops_what_the_parent_iterates_says_nothing(folder, kind, workers, capfd):
    rows = pt.Rows(folder / "rows.npy")
    native = penstock.DataLoader(rows.native, num_workers=workers)
    make = {
        "plain": lambda: iter(pt.DataLoader(rows, num_workers=workers)),
        "mapped": lambda: iter(pt.DataLoader(rows.map(int), num_workers=workers)),
        "sparse": lambda: iter(pt.DataLoader(pt.Files(folder / "sparse"), None, num_workers=workers)),
        "native": lambda: native,
        "native iteration": lambda: iter(native),
    }[kind]
    kept[0] = make()
    if kind != "native":
        next(kept[0])
    child = multiprocessing.get_context("fork").Process(target=drop_in_a_child)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert capfd.readouterr().err == "dropped\n"
    if kind != "native":
        next(kept[0])
    kept[0] = None


@pytest.mark.parametrize("workers", [0, 2])
def test_figures_where_torchs_collation_stacks_the_first_batch(tmp_path, workers, capfd):
    for i in range(6):
        torch.save({"x": i} if i % 2 else {"x": float(i)}, tmp_path / f"{i}.pt")
    loader = pt.DataLoader(pt.Files(tmp_path), batch_size=2, num_workers=workers)
    batches = iter(loader)
    next(batches)
    assert loader.stats()["function_seconds"] > 0
    str(loader.stats())
    assert len(list(batches)) == 2
    before = threads_here()
    for _ in loader:
        break
    assert comes_true(lambda: threads_here() <= before)
    assert capfd.readouterr().err == ""
