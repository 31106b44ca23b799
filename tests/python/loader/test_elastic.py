"""Elastic resume: what some ranks saved in the middle of an epoch goes on with any other number of them, and reads what
it would have read without stopping: each sample once, in the same order."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock

sys.path.insert(0, str(Path(__file__).parents[1]))
from ranks_support import World

N = 101
GLOBAL = 24  # samples of a step of all ranks: 1, 2, 3, 4, 6 and 8 divide it
SAVED = (1, 2, 4, 6)
RESUMED = (1, 2, 3, 8)


class Backwards(penstock.Sampler):
    """An order of the program's own, another one in each epoch."""

    def __len__(self):
        return N

    def order(self, seed=0, epoch=0):
        return [(N - 1 - i + seed + epoch) % N for i in range(N)]


def bucketed(**options):
    return penstock.length_buckets([1 + i * 7 % 20 for i in range(N)], max_tokens=60, batch_size=4, **options)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elastic")
    (folder / "files").mkdir()
    for i in range(N):
        np.save(folder / "files" / f"{i:03}.npy", np.array([i]))
    penstock.pack(penstock.files(folder / "files"), folder / "packed")
    numbers = penstock.rows(list(range(N)))
    return {
        "rows": numbers,
        "files": penstock.files(folder / "files"),
        "packed": penstock.packed(folder / "packed"),
        "mixed": penstock.mix(
            [
                penstock.subset(penstock.rows(np.arange(N).reshape(N, 1)), range(60)),
                penstock.subset(penstock.files(folder / "files"), range(60, N)),
            ],
            [60, N - 60],
            end="all",
        ),
    }


KINDS = {
    "in order": ("rows", {}),
    "shuffled": ("rows", {"shuffle": True}),
    "shuffled files": ("files", {"shuffle": True}),
    "shuffled, packed": ("packed", {"shuffle": True}),
    "shuffled, mixed": ("mixed", {"shuffle": True}),
    "weighted": ("rows", {"sampler": lambda: penstock.WeightedSampler([1 + i % 5 for i in range(N)], 90)}),
    "node local": ("files", {"sampler": lambda: penstock.NodeLocalSampler(N, nodes=4, ranks_per_node=2)}),
    "own order": ("rows", {"sampler": Backwards}),
    "bucketed": ("rows", {"batch_sampler": bucketed}),
}


def maker(datasets, kind, each, workers, remainder="exact"):
    """What makes the loader of a rank; `each(size)` is its batch size."""
    data, options = KINDS[kind]
    options = {name: value() if callable(value) else value for name, value in options.items()}
    is_whole = "batch_sampler" in options

    def make(ranks):
        size = {} if is_whole else {"batch_size": each(ranks.size)}
        return penstock.DataLoader(
            datasets[data], **size, **options, seed=3, num_workers=workers, ranks=ranks, remainder=remainder
        )

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("saved", SAVED)
def test_any_other_number_of_ranks_goes_on(datasets, kind, saved):
    whole = kind == "bucketed"
    with_workers = [maker(datasets, kind, lambda size: GLOBAL // size, workers) for workers in (0, 2)]
    unstopped = World(with_workers[0], 1, whole=whole)
    first, second, third = (unstopped.epoch() for _ in range(3))
    for resumed, make in itertools.product(RESUMED, with_workers):
        before = World(make, saved, whole=whole)
        assert before.epoch() == first
        before.iterators = [iter(loader) for loader in before.loaders]
        # Batches are dealt out whole: 24 / saved steps of `saved` ranks are whole steps of any other number of them.
        got = before.take(24 // saved if whole else 2)
        after = World(with_workers[make is with_workers[0]], resumed, before.state(), whole=whole)
        got += after.take()
        assert got == second, f"{saved} ranks, then {resumed}"
        assert after.epoch() == third, "and the epoch behind it"


@pytest.mark.parametrize("saved", SAVED)
@pytest.mark.parametrize("resumed", RESUMED)
def test_with_one_batch_size_it_goes_on_where_batches_divide(datasets, saved, resumed):
    make = maker(datasets, "shuffled", lambda size: 2, 0)
    whole = World(make, 1).epoch()
    refused = []
    for steps in (1, 2, 3, 6):
        before = World(make, saved)
        got = before.take(steps)
        if steps * saved % resumed:
            with pytest.raises(ValueError, match=rf"after batch {steps} of each of {saved} rank.*do not divide among"):
                World(make, resumed, before.state())
            refused.append(steps)
            continue
        assert got + World(make, resumed, before.state()).take() == whole
    assert (refused == []) == (saved % resumed == 0)


@pytest.mark.parametrize("remainder", ["pad", "drop"])
def test_what_remains_is_that_of_the_ranks_that_end_the_epoch(datasets, remainder):
    make = maker(datasets, "shuffled", lambda size: GLOBAL // size, 0, remainder)
    order = World(maker(datasets, "shuffled", lambda size: GLOBAL, 0), 1).epoch()
    before = World(make, 4)
    got = before.take(2)
    assert got + World(make, 3, before.state()).take() == (order + order[:1] if remainder == "pad" else order[:99])


@pytest.mark.parametrize("remainder", ["pad", "drop", "exact"])
def test_behind_the_last_batch_nothing_is_left_for_any_ranks(datasets, remainder):
    make = maker(datasets, "shuffled", lambda size: 5, 0, remainder)
    before = World(make, 4)
    for _ in range(len(before.loaders[0])):
        before.take(1)
    after = World(make, 3, before.state())
    assert after.take() == []
    whole = World(make, 3)
    whole.epoch()
    assert after.epoch() == whole.epoch()


def test_a_loader_without_ranks_is_one_of_one(datasets):
    alone = penstock.DataLoader(datasets["rows"], batch_size=GLOBAL, shuffle=True, seed=3)
    iterator = iter(alone)
    got = [*next(iterator).tolist()]
    after = World(maker(datasets, "shuffled", lambda size: GLOBAL // size, 0), 3, alone.state_dict())
    got += after.take()
    assert got == World(maker(datasets, "shuffled", lambda size: GLOBAL, 0), 1).epoch()


def test_what_cannot_be_exact_is_refused_with_the_reason(datasets):
    make = maker(datasets, "shuffled", lambda size: 4, 0)
    before = World(make, 2)
    before.take(3)
    state = before.state()
    for other, reason in {
        ("shuffled", 3): "batches of 4 on each of 2 ranks, but this loader makes batches of 3 on each of 4",
        ("in order", 4): "order that is random, but this loader's is sequential",
    }.items():
        kind, each = other
        with pytest.raises(ValueError, match=reason):
            World(maker(datasets, kind, lambda size, each=each: each, 0), 4, state)
    with pytest.raises(ValueError, match="a dataset of 101 samples, but this one has 40"):
        penstock.DataLoader(penstock.rows(list(range(40))), batch_size=4, ranks=(0, 4)).load_state_dict(state)


def test_buckets_that_are_dealt_out_themselves_go_on_with_as_many_ranks(datasets):
    def make(rank, size, **options):
        return penstock.DataLoader(
            datasets["rows"], batch_sampler=bucketed(num_replicas=size, rank=rank), seed=3, num_workers=0, **options
        )

    loader = make(0, 2)
    next(iter(loader))
    make(1, 2).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match=r"length buckets of 2 ranks, but this loader's is length buckets of 3 ranks"):
        make(0, 3).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="deals its order out to 2 ranks itself"):
        make(0, 2, ranks=(0, 2))
