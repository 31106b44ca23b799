"""penstock.torch.DataLoader with ranks: torch's DistributedSampler without its traps, and other numbers of ranks that
go on from a state."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
import torch
import torch.utils.data as td

import penstock
import penstock.torch as pt

sys.path.insert(0, str(Path(__file__).parents[1]))
from ranks_support import World, flat, values_of

N = 101
GLOBAL = 24
DATA = {"native": lambda n=N: penstock.rows(list(range(n))), "torch's road": lambda n=N: list(range(n))}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def torchs_states_aside(world):
    """One rank's state. That of another differs in where torch's global generator stood; no order comes from there."""
    return world.loaders[0].state_dict()


@pytest.mark.parametrize("road", DATA)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("remainder", ["pad", "drop"])
def test_the_order_is_that_of_distributed_sampler(road, workers, remainder):
    if road != "native" and workers and remainder == "drop":
        pytest.skip("processes are dear; once is enough")
    data = DATA[road]()
    for shuffle, rank in ((True, 1), (False, 2)):
        sampler = td.DistributedSampler(range(N), 3, rank, shuffle=shuffle, seed=5, drop_last=remainder == "drop")
        options = {"batch_size": 4, "num_workers": workers, "ranks": (rank, 3), "remainder": remainder}
        loader = pt.DataLoader(data, shuffle=shuffle, generator=seeded(5), **options)
        own = pt.DataLoader(data, sampler=sampler, **options)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            got = [batch.tolist() for batch in loader]
            assert flat(got) == list(sampler), "epochs follow each other without set_epoch"
            assert got == [batch.tolist() for batch in own]
        next(iter(loader))
        loader.sampler.set_epoch(7)
        sampler.set_epoch(7)
        assert flat(batch.tolist() for batch in loader) == list(sampler)


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_state_of_an_order_of_another_seed_is_refused(ranks):
    def loader(seed, size, batch, shuffle=True):
        options = {"batch_size": batch, "ranks": (0, size), "generator": seeded(seed)}
        return pt.DataLoader(DATA["native"](96), shuffle=shuffle, **options)

    first, in_order = loader(1, 2, 4), loader(1, 2, 4, shuffle=False)
    for each in (first, in_order):
        next(iter(each))
    batch = 8 // ranks
    with pytest.raises(ValueError, match="of the seed 1, and that of this loader has the seed 2"):
        loader(2, ranks, batch).load_state_dict(first.state_dict())
    loader(1, ranks, batch).load_state_dict(first.state_dict())
    loader(2, ranks, batch, shuffle=False).load_state_dict(in_order.state_dict())


@pytest.mark.parametrize("road", DATA)
@pytest.mark.parametrize("batch_size", [4, None])
def test_exact_counts_each_sample_once(road, batch_size):
    for size in (1, 4, 60):
        data = DATA[road](50)
        steps = [
            list(pt.DataLoader(data, batch_size, ranks=(rank, size), remainder="exact", num_workers=0))
            for rank in range(size)
        ]
        assert len({len(rank) for rank in steps}) == 1
        if batch_size is None:
            counted = [int(value) for rank in steps for value, valid in rank if valid]
        else:
            assert all(valid.dtype == torch.bool for rank in steps for _, valid in rank)
            counted = [value for rank in steps for batch in rank for value, valid in values_of(batch) if valid]
        assert sorted(counted) == list(range(50))


def test_a_mask_has_bad_and_repeated_samples(tmp_path):
    for i in range(3):
        torch.save(torch.tensor([i]), tmp_path / f"{i}.pt")
    (tmp_path / "1.pt").write_bytes(b"damaged")
    dataset = pt.Files(tmp_path)
    masks = [
        [
            valid.tolist()
            for _, valid in pt.DataLoader(dataset, 2, ranks=(rank, 2), remainder="exact", on_error=on_error)
        ]
        for on_error in ("mask", "replace")
        for rank in range(2)
    ]
    assert masks == [[[True, True]], [[False, False]], [[True, True]], [[True, False]]]


def weighted():
    return td.WeightedRandomSampler([1.0 + i % 3 for i in range(N)], 90, generator=seeded(3))


KINDS = {
    "shuffled": lambda data, each, ranks: {"batch_size": each, "shuffle": True},
    "own sampler": lambda data, each, ranks: {
        "batch_size": each,
        "sampler": td.DistributedSampler(range(N), ranks.size, ranks.rank, seed=3),
    },
    "weighted": lambda data, each, ranks: {"batch_size": each, "sampler": weighted()},
    "given batches": lambda data, each, ranks: {"batch_sampler": [[i, i + 1] for i in range(0, 100, 2)]},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("road", DATA)
def test_any_other_number_of_ranks_goes_on(kind, road):
    data, whole = DATA[road](), kind == "given batches"
    remainder = "pad" if whole and road != "native" else "exact"

    def maker(workers):
        return lambda ranks: pt.DataLoader(
            data,
            num_workers=workers if road == "native" else 0,
            ranks=ranks,
            remainder=remainder,
            **KINDS[kind](data, GLOBAL // ranks.size, ranks),
        )

    unstopped = World(maker(0), 1, whole=whole)
    first = unstopped.take()
    for saved, resumed in itertools.product((1, 2, 4, 6), (1, 2, 3, 8)):
        before = World(maker(resumed % 2 * 2), saved, whole=whole)
        got = before.take(24 // saved if whole else 2)
        after = World(maker(saved % 2 * 2), resumed, torchs_states_aside(before), whole=whole)
        got += after.take()
        assert got[: len(first)] == first, f"{saved} ranks, then {resumed}"
        assert got[len(first) :] == (first[: len(got) - len(first)] if remainder == "pad" else [])
    if kind == "shuffled":
        assert after.epoch() == unstopped.epoch(), "and the epoch behind it"


def test_what_cannot_be_exact_is_refused_with_the_reason():
    data = DATA["native"]()

    def make(ranks, each=4, **options):
        return pt.DataLoader(data, each, ranks=ranks, **{"shuffle": True, **options})

    before = World(make, 2)
    before.take(3)
    state = torchs_states_aside(before)
    for ranks, options, reason in (
        ((0, 4), {}, "after batch 3 of each of 2 ranks, and these batches do not divide among 4 ranks"),
        ((0, 4), {"each": 3}, "batches of 4 on each of 2 ranks, but this loader makes batches of 3 on each of 4"),
        ((0, 2), {"each": 3}, "batches of 4, but this loader makes batches of 3"),
        ((0, 3), {"shuffle": False}, r"DistributedSampler\(shuffle=True\)"),
    ):
        with pytest.raises(ValueError, match=reason):
            make(ranks, **options).load_state_dict(state)


def test_the_end_of_an_epoch_is_one_for_all_numbers_of_ranks():
    data = DATA["native"]()

    def make(ranks):
        return pt.DataLoader(data, 5, shuffle=True, ranks=ranks, remainder="drop")

    before = World(make, 4)
    before.take(len(before.loaders[0]))
    after = World(make, 3, torchs_states_aside(before))
    assert after.take() == []
    whole = World(make, 3)
    whole.take()
    assert after.epoch() == whole.epoch()


class Endless(td.IterableDataset):
    def __iter__(self):
        return iter(range(9))


class Otherwise(td.DistributedSampler):
    def __iter__(self):
        return iter(list(super().__iter__())[::-1])


def test_what_ranks_would_not_do_alike_is_refused():
    data = DATA["native"](10)
    for options, reason in (
        ({"sampler": td.DistributedSampler(range(10), 3, 0)}, r"rank 0 of 3, but ranks says rank 0 of 2 \(arguments\)"),
        ({"sampler": td.DistributedSampler(range(10), 2, 1)}, "rank 1 of 2, but ranks says rank 0 of 2"),
        ({"sampler": td.DistributedSampler(range(10), 2, 0, drop_last=True)}, "drop_last=True.*remainder='pad'"),
        ({"sampler": td.DistributedSampler(range(10), 2, 0), "remainder": "drop"}, "drop_last=False.*remainder='drop'"),
        ({"sampler": Otherwise(range(10), 2, 0), "remainder": "exact"}, "deals out in its own way"),
        ({"sampler": td.RandomSampler(range(10))}, "torch's global generator"),
        ({"sampler": penstock.DistributedSampler(10, 3, 0)}, "to 3 ranks itself"),
        ({"batch_sampler": penstock.length_buckets([1] * 10, max_tokens=3, num_replicas=2)}, "to 2 ranks itself"),
        ({"batch_sampler": td.BatchSampler(td.RandomSampler(range(10)), 2, False)}, "torch's global generator"),
        ({"sampler": iter(range(10))}, "without len"),
        ({"sampler": range(10), "shuffle": True}, "mutually exclusive"),
        ({"on_error": "skip"}, "one rank alone"),
        ({"remainder": "half"}, "found remainder='half', expected"),
        ({"remainder": "exact", "drop_last": True}, "drop_last leaves samples out"),
        ({"ranks": None, "remainder": "exact"}, "give the loader its `ranks`"),
        ({"dataset": Endless()}, "an iterable dataset has no order"),
        ({"dataset": list(range(10)), "remainder": "exact", "in_order": False}, "read natively"),
        ({"dataset": penstock.rows([1]), "remainder": "drop"}, "no rank would get any"),
    ):
        with pytest.raises((ValueError, TypeError), match=reason):
            pt.DataLoader(**{"dataset": data, "ranks": (0, 2), **options})


def test_batches_of_a_distributed_sampler_are_not_dealt_twice():
    data = DATA["native"](10)
    sampler = td.DistributedSampler(range(10), 3, 1, shuffle=False)
    loader = pt.DataLoader(data, batch_sampler=td.BatchSampler(sampler, 2, False), ranks=(1, 3), remainder="exact")
    assert [values_of(batch) for batch in loader] == [[(1, True), (4, True)], [(7, True), (0, False)]]
