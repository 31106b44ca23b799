"""Penstock's samplers in penstock.torch.DataLoader: epochs follow each other as in penstock.DataLoader."""

from __future__ import annotations

import json

import pytest
import torch.utils.data as td

import penstock
import penstock.torch as pt

SIZE = 24


class Numbers(td.Dataset):
    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        return index


class Turned(penstock.Sampler):
    def order(self, seed=0, epoch=0):
        return [(number + epoch) % SIZE for number in range(SIZE)]

    def __len__(self):
        return SIZE


class TurnedBatches(penstock.BatchSampler):
    def __init__(self):
        super().__init__([[0]])

    def batches(self, seed=0, epoch=0):
        return [[epoch, epoch + 1], [5, 6]]


ORDERS = {
    "random": lambda: {"sampler": penstock.RandomSampler(SIZE), "batch_size": 4},
    "weighted": lambda: {"sampler": penstock.WeightedSampler(range(1, SIZE + 1), SIZE), "batch_size": 4},
    "batches of a sampler": lambda: {"batch_sampler": penstock.BatchSampler(penstock.RandomSampler(SIZE), 4)},
    "buckets": lambda: {"batch_sampler": penstock.length_buckets(range(1, SIZE + 1), [9, 17], batch_size=4)},
    "torch's batches": lambda: {"batch_sampler": td.BatchSampler(penstock.RandomSampler(SIZE), 4, False)},
    "own order": lambda: {"sampler": Turned(), "batch_size": 4},
    "own batches": lambda: {"batch_sampler": TurnedBatches()},
}
ROADS = {"native": lambda: pt.Dataset(penstock.rows(list(range(SIZE)))), "torch's": Numbers}


def made(order, road, workers=0, **options):
    return pt.DataLoader(ROADS[road](), **ORDERS[order](), num_workers=workers, **options)


def epoch(loader):
    return [batch.tolist() for batch in loader]


def expected(order, count):
    given = ORDERS[order]()
    ours = penstock.BatchSampler(given["sampler"], 4) if "sampler" in given else given["batch_sampler"]
    if type(ours) is td.BatchSampler:
        ours = penstock.BatchSampler(ours.sampler, 4)
    return [ours.batches(0, number) for number in range(count)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("road", ROADS)
def test_epochs_follow_each_other(order, road):
    loader = made(order, road)
    assert [epoch(loader) for _ in range(3)] == expected(order, 3)


@pytest.mark.parametrize("road", ROADS)
def test_persistent_workers(road):
    loader = made("buckets", road, workers=1, persistent_workers=True)
    assert [epoch(loader) for _ in range(3)] == expected("buckets", 3)


def test_one_that_is_broken_off_begins_again():
    loader = made("random", "native")
    next(iter(loader))
    assert epoch(loader) == expected("random", 1)[0]


def test_what_the_program_sets_counts():
    loader = made("buckets", "native")
    loader.batch_sampler.set_epoch(2)
    assert [epoch(loader), epoch(loader)] == [*expected("buckets", 4)[2:]]


@pytest.mark.parametrize("order", ["random", "buckets", "own order"])
@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("at", [0, 2, 6])
def test_resume_in_a_later_epoch(order, road, at):
    loader = made(order, road)
    epoch(loader)
    batches = iter(loader)
    for _ in range(at):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = made(order, road)
    resumed.load_state_dict(state)
    _, second, third = expected(order, 3)
    assert [epoch(resumed), epoch(resumed)] == [second[at:], third]


def test_ranks_deal_out_each_epoch():
    loaders = [made("random", "native", ranks=(rank, 2)) for rank in range(2)]
    for number in range(2):
        both = [[item for batch in epoch(loader) for item in batch] for loader in loaders]
        assert [item for pair in zip(*both, strict=True) for item in pair] == penstock.RandomSampler(SIZE).order(
            0, number
        )


def test_torchs_loader_takes_an_order_of_ones_own():
    assert epoch(td.DataLoader(Numbers(), 4, sampler=Turned()))[0] == [0, 1, 2, 3]
