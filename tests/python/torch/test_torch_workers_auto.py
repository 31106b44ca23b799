"""penstock.torch.DataLoader(workers="auto"): batches do not depend on who makes them, and explain() says who does."""

import os
import sys
import time

import pytest
import torch
import torch.utils.data as torch_data
import torch_worker_functions as functions
from torch_worker_pairs import DATASETS, rows, same

import penstock.torch as pt

AUTO = {"num_workers": 2, "workers": "auto"}

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
)


def epochs_until(loader, text, seconds=100):
    out, deadline = [], time.monotonic() + seconds
    while text not in loader.explain():
        assert time.monotonic() < deadline, loader.explain()
        out.append(list(loader))
    return out


@pytest.mark.parametrize("name", ["map", "seeded", "batched seeded", "collate_fn", "no batches"])
def test_batches_are_those_of_threads_before_and_behind_the_decision(name):
    make, given = DATASETS[name]
    options = {"batch_size": 3, "shuffle": True, **given}
    torch.manual_seed(3)
    loader = pt.DataLoader(make(), **options, **AUTO)
    found = epochs_until(loader, "a sample took")
    found += [list(loader), list(loader)]
    torch.manual_seed(3)
    threads = pt.DataLoader(make(), **options, num_workers=2)
    for epoch in found:  # in an order that torch's global generator gives, which nobody else draws from
        assert same(epoch, list(threads))


@pytest.mark.parametrize(("function", "who"), [("slow_here", "worker processes"), ("slow_there", "threads")])
def test_the_way_that_takes_less_time_stays(monkeypatch, function, who):
    monkeypatch.setenv("PENSTOCK_TEST_PROCESS", str(os.getpid()))
    loader = pt.DataLoader(rows().map(getattr(functions, function)), 2, **AUTO)
    assert "both ways are measured" in loader.explain()
    epochs_until(loader, f"{who} call the functions: a sample took")
    of_road = "worker processes call the dataset's" if who == "worker processes" else "these threads call the dataset's"
    assert of_road in loader.explain()
    list(loader)
    assert loader.stats()["worker_processes"] == (0 if who == "threads" else 2)


def test_it_goes_on_from_each_position():
    options = {"batch_size": 3, "shuffle": True}
    torch.manual_seed(5)
    loader = pt.DataLoader(rows(40).map(functions.noisy, seeded=True), **options, **AUTO)
    states, batches = [], []
    for batch in loader:
        batches.append(batch)
        states.append(loader.state_dict())
    for taken, more in ((1, AUTO), (5, {"num_workers": 2}), (9, AUTO)):
        again = pt.DataLoader(rows(40).map(functions.noisy, seeded=True), **options, **more)
        again.load_state_dict(states[taken - 1])
        assert same(list(again), batches[taken:])


def test_functions_that_cannot_be_sent_are_called_in_threads(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    loader = pt.DataLoader(rows().map(lambda sample: sample * 2), 3, **AUTO)
    expected = list(pt.DataLoader(rows().map(functions.twice), 3))
    for epoch in epochs_until(loader, "cannot be sent to a worker process"):
        assert same(epoch, expected)
    assert "these threads call the dataset's functions" in loader.explain()
    assert same(list(loader), expected)


def test_what_threads_cannot_do_processes_do_at_once():
    loader = pt.DataLoader(functions.Own(), 4, worker_init_fn=functions.sets_offset, **AUTO)
    assert torch.cat([batch[1] for batch in loader]).tolist() == list(range(1000, 1010))
    assert "worker processes call the dataset's functions" in loader.explain()
    assert "threads cannot, because torch_worker_functions.Own is no dataset of Penstock's" in loader.explain()


def test_what_neither_can_do_goes_to_torchs_own_loader(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)

    class Local(torch_data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return index

    loader = pt.DataLoader(Local(), 2, num_workers=1, workers="auto", multiprocessing_context="fork")
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    assert loader.stats()["road"] == "torch"
    assert "workers='auto': what the dataset, its functions or collate_fn do cannot be sent" in loader.explain()


def test_without_workers_nothing_is_measured():
    loader = pt.DataLoader(rows().map(functions.process), 2, num_workers=0, workers="auto")
    assert {pid for batch in loader for pid in batch.tolist()} == {os.getpid()}
    assert "the caller's thread does everything" in loader.explain()


def test_errors_name_the_sample_in_both_ways():
    loader = pt.DataLoader(rows().map(functions.refuses_six), 2, **AUTO)
    for _ in range(2):
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(KeyError, match=r"six.*sample 3"):
            next(iterator)
        assert next(iterator).shape == (2, 2)
        assert len(list(iterator)) == 5
