"""DataLoader(workers="auto"): some batches are made by threads and some by processes, they are all the same, and
explain() says who is asked and why. Which way is faster is decided in tests/data/sample/runner_trial_test.cpp."""

import gc
import os
import sys
import time

import pytest
import worker_functions as functions
from worker_pairs import COUNT, MAPS, batches, rows

import penstock

pytestmark = pytest.mark.slow

AUTO = {"num_workers": 2, "workers": "auto"}

has_lock = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
)


def epochs_until(loader, text, seconds=100):
    """The batches of each epoch until `explain` has the text."""
    out, deadline = [], time.monotonic() + seconds
    while text not in loader.explain():
        assert time.monotonic() < deadline, loader.explain()
        out.append(batches(loader))
    return out


@has_lock
@pytest.mark.parametrize("name", ["chain", "seeded chain", "batched seeded", "own mapped"])
def test_batches_are_those_of_threads_before_and_behind_the_decision(name):
    data = MAPS[name](rows())
    with penstock.DataLoader(data, 3, shuffle=True, seed=5, **AUTO) as loader:
        found = epochs_until(loader, "a sample took")
        found += [batches(loader), batches(loader)]
    loader = penstock.DataLoader(data, 3, shuffle=True, seed=5, num_workers=0)
    assert found == [batches(loader) for _ in found]


@has_lock
@pytest.mark.parametrize(("function", "who"), [("slow_here", "worker processes"), ("slow_there", "threads")])
def test_the_way_that_takes_less_time_stays(monkeypatch, function, who):
    monkeypatch.setenv("PENSTOCK_TEST_PROCESS", str(os.getpid()))
    with penstock.DataLoader(rows().map(getattr(functions, function)), 1, **AUTO) as loader:
        epochs_until(loader, f"{who} call the functions: a sample took")
        assert "2 threads read the samples" in loader.explain()
        batches(loader)
        assert loader.stats()["worker_processes"] == (0 if who == "threads" else 2)


@has_lock
def test_a_short_epoch_decides_nothing_and_the_next_ones_go_on():
    with penstock.DataLoader(rows(2).map(functions.twice), 1, **AUTO) as loader:
        assert "none was to be called so far" in loader.explain()
        first = batches(loader)
        assert "until both ways have been measured" in loader.explain()
        assert all(epoch == first for epoch in epochs_until(loader, "a sample took"))


@has_lock
def test_it_goes_on_from_the_middle_of_an_epoch():
    data = rows(40).map(functions.noisy, seeded=True)
    options = {"batch_size": 2, "shuffle": True, "seed": 3}
    expected = batches(penstock.DataLoader(data, num_workers=0, **options))
    for taken in (1, 7, 15):
        with penstock.DataLoader(data, **AUTO, **options) as loader:
            iterator = iter(loader)
            for _ in range(taken):
                next(iterator)
            state = loader.state_dict()
        with penstock.DataLoader(data, **AUTO, **options) as again:
            again.load_state_dict(state)
            assert batches(again) == expected[taken:]
            assert again.state_dict()["epoch"] == 1


@has_lock
@pytest.mark.parametrize("collated", [False, True])
def test_functions_that_cannot_be_sent_are_called_in_threads(monkeypatch, collated):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    pids = set()

    def local(samples):
        pids.add(os.getpid())
        return samples

    options = {"collate_fn": local} if collated else {}
    data = rows() if collated else rows().map(local).map(functions.twice)
    expected = batches(penstock.DataLoader(data, 3, num_workers=0, **options))
    with penstock.DataLoader(data, 3, **AUTO, **options) as loader:
        found = epochs_until(loader, "cannot be sent to a worker process")
        assert all(epoch == expected for epoch in found)
        assert loader.explain().count("threads call the functions: ") == 1
        assert "local" in loader.explain()
        assert batches(loader) == expected
        assert loader.stats()["worker_processes"] == 0
    assert pids == {os.getpid()}


@has_lock
def test_no_sample_is_set_aside_for_what_cannot_be_sent(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    data = penstock.zip(rows(), rows().map(lambda sample: sample))
    with penstock.DataLoader(data, 3, on_error="skip", **AUTO) as loader:
        for epoch in epochs_until(loader, "cannot be sent"):
            assert len(epoch) == -(-COUNT // 3)
        assert loader.set_aside == []


@has_lock
def test_errors_are_those_of_threads():
    with penstock.DataLoader(rows().map(functions.raises), 3, on_error="skip", **AUTO) as loader:
        for epoch in epochs_until(loader, "a sample took"):
            assert len(epoch) == 4
        assert [index for index, _, _ in loader.set_aside] == [4]


def test_without_workers_nothing_is_measured():
    loader = penstock.DataLoader(rows().map(functions.process), num_workers=0, workers="auto")
    assert {batch.tolist()[0] for batch in loader} == {os.getpid()}
    assert "the caller's thread does everything" in loader.explain()


def test_what_others_explain():
    assert "workers='threads'" in penstock.DataLoader(rows()).explain()
    with pytest.raises(ValueError, match="expected 'threads', 'processes' or 'auto'"):
        penstock.DataLoader(rows(), workers="fibres")
    with pytest.raises(ValueError, match="num_workers says how many"):
        penstock.DataLoader(rows(), workers=2)
    loader = penstock.DataLoader(rows())
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        loader.explain()


@has_lock
def test_a_loader_of_it_pickles_and_its_copy_measures_anew():
    import pickle

    loader = penstock.DataLoader(rows().map(functions.twice), 3, **AUTO)
    copy = pickle.loads(pickle.dumps(loader))
    assert batches(copy) == batches(loader)
    assert "until both ways have been measured" in copy.explain()
    assert "worker processes call" in penstock.DataLoader(rows(), num_workers=1, workers="processes").explain()
    del loader, copy
    gc.collect()
