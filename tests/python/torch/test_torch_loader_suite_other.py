"""Datasets that are not Penstock's, errors and interruptions: what torch's own tests expect, through both loaders."""

from __future__ import annotations

import collections
import copy
import gc
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import same
from loader_pairs import COUNT, alike, outcome, rows

import penstock
import penstock.torch as pt

LOADERS = (td.DataLoader, pt.DataLoader)
Pair = collections.namedtuple("Pair", "data label")


class Stream(td.IterableDataset):
    def __init__(self, count=20):
        self.count = count

    def __iter__(self):
        info = td.get_worker_info()
        step = 1 if info is None else info.num_workers
        return iter(range(0 if info is None else info.id, self.count, step))

    def __len__(self):
        return self.count


class Broken(td.Dataset):
    """Each of its odd samples is an error."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index % 2:
            raise NotImplementedError(f"sample {index}")
        return index


class Bulk(td.Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, indices):
        return torch.as_tensor(indices)


class AtOnce(Bulk):
    def __getitems__(self, indices):
        return [-index for index in indices]


class Of(td.Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return self.make(range(5)[index])


class Numbers(list):
    pass


STRUCTURES = {
    "named tuple": lambda i: Pair(Pair(i, -i), f"{i}"),
    "list of its own type": lambda i: Numbers([i, i / 2]),
    "mapping of its own type": lambda i: collections.UserDict(a=i, b=[i]),
    "range": lambda i: range(i, i + 2),
    "array": lambda i: np.ones((2, 3)) * i,
    "half": lambda i: np.float16(i),
    "text array": lambda i: np.array(["x"]),
    "objects": lambda i: np.array([object()]),
    "none": lambda i: None,
    "unlike lengths": lambda i: [i] * (i + 1),
    "unlike shapes": lambda i: torch.ones(i),
    "sparse": lambda i: torch.eye(2).to_sparse(),
}


def ends_alike(case, dataset, **options):
    return alike(case, (dataset, dataset), **options)


@pytest.mark.parametrize("batch_size", [2, None])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_structures(kind, batch_size):
    def case(loader):
        return [dict(batch) if isinstance(batch, collections.UserDict) else batch for batch in loader]

    dataset = Of(STRUCTURES[kind])
    if batch_size is None and kind in {"text array", "objects", "sparse"}:
        theirs, ours = (outcome(lambda c=c: [type(sample) for sample in c(dataset, batch_size=None)]) for c in LOADERS)
        assert theirs == ours
    else:
        ends_alike(case, dataset, batch_size=batch_size)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 7},
        {"batch_size": 7, "drop_last": True},
        {"batch_size": None},
        {"shuffle": False},
        {"shuffle": True},
        {"shuffle": 3},
        {"sampler": 3},
        {"batch_sampler": 3},
    ],
    ids=str,
)
def test_iterable_datasets(options):
    ends_alike(list, Stream(), **options)
    ends_alike(len, Stream(), **options)


def test_iterable_datasets_in_processes():
    for batch_size in (4, None):
        loaders = [c(Stream(), batch_size=batch_size, num_workers=2) for c in LOADERS]
        same(*(list(loader) for loader in loaders))
    assert all(sorted(i for b in c(Stream(), 3, num_workers=2) for i in b.tolist()) == list(range(20)) for c in LOADERS)


def test_an_iterable_that_overruns_its_length_is_warned_about():
    class Long(Stream):
        def __len__(self):
            return 3

    said = []
    for loader_class in LOADERS:
        loader = loader_class(Long(5), batch_size=None)
        assert len(loader) == 3
        with pytest.warns(UserWarning, match="was reported to be 3") as caught:
            assert len(list(loader)) == 5
        said.append(len(caught))
    assert said == [2, 2]


class WithoutLength(td.Dataset):
    def __len__(self):
        raise RuntimeError("it has no length")

    def __getitem__(self, key):
        return key


def test_a_dataset_whose_length_raises_beside_a_sampler():
    """torch does not ask for it then."""
    loader = pt.DataLoader(WithoutLength(), sampler=["a", ("b", 1), 7])
    assert list(loader) == list(td.DataLoader(WithoutLength(), sampler=["a", ("b", 1), 7]))
    assert loader.state_dict()["samples"] is None


class NotedEpoch(list):
    """What it calls epoch is no number."""

    def epoch(self):
        return 3


def test_an_epoch_that_is_no_number_is_none_of_a_position():
    loader = pt.DataLoader(pt.Rows(torch.arange(4)), sampler=NotedEpoch([2, 1]))
    assert json.loads(json.dumps(loader.state_dict()))["sampler_epoch"] is None


def test_chains_and_bulk_loading():
    same(*(list(c(Stream(3) + Stream(2), batch_size=2)) for c in LOADERS))
    same(*(list(c(td.ChainDataset([Stream(3), Stream(2)]))) for c in LOADERS))
    options = {"batch_size": None, "sampler": [[1, 2], [3]]}
    ends_alike(list, Bulk(), **options)
    ends_alike(list, AtOnce(), batch_size=4)


def test_a_dataset_that_grows():
    def case(loader_class, shuffle):
        dataset = [torch.ones(2)] * 4
        loader = loader_class(dataset, shuffle=shuffle)
        dataset.append(torch.ones(2))
        return len(loader), len(list(loader))

    for shuffle in (False, True):
        assert case(pt.DataLoader, shuffle) == case(td.DataLoader, shuffle) == (5, 5)


@pytest.mark.parametrize("dataset", [None, [], 5, object(), {}, "text"])
def test_what_is_hardly_a_dataset(dataset):
    for options in ({}, {"batch_sampler": [[0], []]}):
        options["generator"] = torch.Generator()
        theirs, ours = (outcome(lambda c=c: list(c(dataset, 20, **options))) for c in LOADERS)  # noqa: B023
        assert [theirs[0], str(theirs[1])] == [ours[0], str(ours[1])]
        assert type(theirs[1]) is type(ours[1])


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_in_samples_and_the_batches_between(workers):
    for loader_class in LOADERS:
        iterator = iter(loader_class(Broken(), num_workers=workers))
        seen = []
        while (got := outcome(lambda: next(iterator).item()))[0] != "raised" or not isinstance(got[1], StopIteration):  # noqa: B023
            seen.append(got[1] if got[0] == "gave" else type(got[1]).__name__)
        assert seen == [0, "NotImplementedError", 2, "NotImplementedError", 4, "NotImplementedError"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("error", [KeyError("k"), ValueError("v"), StopIteration(), AssertionError()], ids=repr)
def test_errors_in_functions_of_batches(tmp_path, error, workers):
    """StopIteration would end the loop over the loader, so that it comes as what Python makes of it in generators."""

    def fails(samples):
        if 2 in samples:
            raise error
        return [int(sample) for sample in samples]

    _, ours = rows(tmp_path)
    iterator = iter(pt.DataLoader(ours, 2, collate_fn=fails, num_workers=workers))
    assert next(iterator) == [0, 1]
    raised = RuntimeError if isinstance(error, StopIteration) else type(error)
    with pytest.raises(raised) as caught:
        next(iterator)
    assert type(caught.value.__cause__) is type(error)
    assert next(iterator) == [4, 5]


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_in_samplers(tmp_path, workers):
    class Sampler:
        def __iter__(self):
            yield from range(3)
            raise RuntimeError("no more")

    def case(loader):
        iterator = iter(loader)
        return [str(outcome(lambda: next(iterator).item())[1]) for _ in range(6)]

    class OfTorch(td.TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)[0]

    theirs, ours = rows(tmp_path)
    # With workers, the error comes while the first batches are asked for.
    options = {"sampler": Sampler(), "num_workers": workers, "prefetch_factor": 1 if workers else None}
    options["multiprocessing_context"] = "fork" if workers else None  # its classes cannot be pickled
    assert case(pt.DataLoader(ours, **options)) == case(td.DataLoader(OfTorch(theirs), **options))


def test_a_function_that_is_none(tmp_path):
    datasets = rows(tmp_path)
    assert isinstance(alike(list, datasets, collate_fn=3), TypeError)


def test_batches_with_a_pin_memory_of_their_own_and_no_accelerator(tmp_path):
    class Batch:
        def __init__(self, samples):
            self.samples = samples

        def pin_memory(self):
            raise AssertionError

    if torch.accelerator.is_available():
        pytest.skip("memory is pinned")
    for workers in (0, 1):
        loader = pt.DataLoader(rows(tmp_path)[1], 4, collate_fn=Batch, pin_memory=True, num_workers=workers)
        with pytest.warns(UserWarning, match="no accelerator") as caught:
            assert [len(batch.samples) for batch in loader] == [4, 4, 3]
        assert caught[0].filename == __file__


def test_more_workers_than_processors(tmp_path):
    _, ours = rows(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.DataLoader(ours, num_workers=1000)
        pt.DataLoader(td.Subset(ours, [1]), num_workers=1000)
    for dataset, options in ((Broken(), {}), (ours, {"worker_init_fn": print})):
        for loader_class in LOADERS:
            with pytest.warns(UserWarning, match="will create 1000 worker processes"):
                loader_class(dataset, num_workers=1000, **options)


def test_batches_out_of_order_are_all_there(tmp_path):
    _, ours = rows(tmp_path)
    slow = ours.map(lambda number: time.sleep(0.05 * (int(number) == 0)) or number)
    for dataset in (ours, slow, list(range(COUNT))):
        batches = pt.DataLoader(dataset, 2, num_workers=2, in_order=False)
        assert sorted(number for batch in batches for number in batch.tolist()) == list(range(COUNT))


def test_loaders_are_collected_in_mid_epoch(tmp_path):
    _, ours = rows(tmp_path)
    for options in ({}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}):
        loader = pt.DataLoader(ours, 2, **options)
        iterator = iter(loader)
        next(iterator)
        gone = [weakref.ref(loader), weakref.ref(iterator)]
        del loader, iterator
        gc.collect()
        assert [reference() for reference in gone] == [None, None]


def test_copies_of_a_loader_in_mid_epoch(tmp_path):
    _, ours = rows(tmp_path)
    for options in ({}, {"num_workers": 2, "persistent_workers": True}):
        loader = pt.DataLoader(ours, 2, shuffle=True, generator=torch.Generator().manual_seed(1), **options)
        iterator = iter(loader)
        next(iterator)
        for again in (copy.copy(loader), copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
            assert sorted(number for batch in again for number in batch.tolist()) == list(range(COUNT))
        assert len(list(iterator)) == 5


@pytest.fixture
def interruptible():
    """SIGINT as Python begins with it; a program that a shell started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("workers", [0, 2])
def test_interrupted_in_mid_epoch(tmp_path, workers):
    _, ours = rows(tmp_path)
    waits = threading.Event()

    def slow(number):
        if number == 4 and not waits.is_set():
            waits.wait(60)
        return number

    iterator = iter(pt.DataLoader(ours.map(slow), 2, num_workers=workers))
    assert [next(iterator).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert time.monotonic() - start < 30
    waits.set()
    # Without workers torch loses the batch that was being made.
    assert next(iterator).tolist() == [4, 5]


PROGRAM = """
import sys
import penstock.torch as pt
loader = pt.DataLoader(pt.Rows(sys.argv[1]), 2, num_workers=2, persistent_workers=True)
kept = iter(loader)
next(kept)
for batch in loader:
    if sys.argv[2] == "raise":
        raise RuntimeError("on the way")
    break
"""


@pytest.mark.parametrize("how", ["break", "raise"])
def test_programs_end_in_mid_epoch(tmp_path, how):
    rows(tmp_path)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "rows.npy"), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == (how == "raise")
    assert done.stderr.strip().endswith("RuntimeError: on the way" if how == "raise" else "")
    assert how == "raise" or not done.stderr


def worker_info(_):
    mine = td.get_worker_info()
    return mine.id, mine.num_workers, mine.seed == torch.initial_seed(), isinstance(mine.dataset, pt.Mapped)


def test_worker_info_is_torchs_in_processes(tmp_path):
    _, ours = rows(tmp_path)
    loader = pt.DataLoader(ours.map(worker_info, processes=True), COUNT, num_workers=1, worker_init_fn=abs)
    assert [column.unique().tolist() for column in next(iter(loader))] == [[0], [1], [True], [True]]
    assert td.get_worker_info() is None


def test_epochs_of_distributed_samplers_follow_set_epoch(tmp_path):
    datasets = rows(tmp_path)

    def case(loader):
        out = []
        for epoch in range(3):
            loader.sampler.set_epoch(epoch)
            out.append([batch.tolist() for batch in loader])
        return out

    orders = [
        case(c(d, 2, sampler=td.DistributedSampler(d, 3, 1), drop_last=True))
        for c, d in zip(LOADERS, datasets, strict=True)
    ]
    assert orders[0] == orders[1]
    assert len(set(map(str, orders[1]))) == 3


def test_penstock_collations_of_other_datasets_are_refused():
    with pytest.raises(TypeError, match=r"those of penstock\.torch"):
        pt.DataLoader(Stream(), collate_fn=penstock.stack())
    assert len(list(itertools.islice(pt.DataLoader(Stream(), 4, collate_fn=pt.stack()), 9))) == 5
