"""A loader that resumes, and the two epochs behind that: in another process, from another seed, with other draws."""

from __future__ import annotations

import json
import multiprocessing

import numpy as np
import pytest
import torch
import torch.utils.data as td

import penstock.torch as pt

COUNT = 23
BATCHES = 6  # of 4


class Numbers(td.Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index


class Parts(td.IterableDataset):
    """Each worker has every nth."""

    def _numbers(self):
        worker = td.get_worker_info()
        if worker is not None:
            assert type(worker.dataset) is type(self)
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return range(first, COUNT, step)

    def __iter__(self):
        yield from self._numbers()


class ShuffledParts(Parts):
    """In an order that is drawn here, in this process or in the workers."""

    def __iter__(self):
        numbers = self._numbers()
        for i in torch.randperm(len(numbers)).tolist():
            yield numbers[i]


class KnowsWhere:
    def __init__(self, numbers):
        self.numbers = numbers
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= len(self.numbers):
            raise StopIteration
        self.at += 1
        return self.numbers[self.at - 1]

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class WithIterator(Parts):
    def __iter__(self):
        return KnowsWhere(self._numbers())


class WithState(Parts):
    """A dataset that knows where it is, and begins anew behind its end."""

    at = 0

    def __iter__(self):
        numbers = self._numbers()
        while self.at < len(numbers):
            self.at += 1
            yield numbers[self.at - 1]
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Counts(Numbers):
    """A dataset with samples that depend on how many it gave."""

    given = 0

    def __getitem__(self, index):
        self.given += 1
        return index + 1000 * self.given

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


class Ones(td.Sampler):
    """Draws an index at a time from torch's global generator."""

    def __iter__(self):
        for _ in range(COUNT):
            yield int(torch.randint(COUNT, ()))

    def __len__(self):
        return COUNT


class Eager(td.Sampler):
    """Draws when its iterator is made."""

    def __iter__(self):
        return iter(torch.randperm(COUNT).tolist())

    def __len__(self):
        return COUNT


class Positioned(td.Sampler):
    """Knows its position, and begins anew behind its end."""

    def __init__(self):
        self.given = 0
        self.begin = None

    def __len__(self):
        return COUNT

    def __iter__(self):
        self.given, self.begin = self.begin or 0, None
        for i in range(self.given, COUNT):
            self.given += 1
            yield i

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.begin = state["given"]


def native():
    return pt.Rows(np.arange(COUNT))


def same(value):
    return value


CASES = {
    "shuffle": lambda: (native(), {"shuffle": True}),
    "shuffle, mapped": lambda: (native().map(same), {"shuffle": True}),
    "shuffle, with a generator": lambda: (native(), {"shuffle": True, "generator": torch.Generator().manual_seed(3)}),
    "one by one": lambda: (native(), {"shuffle": True, "batch_size": None}),
    "replacement": lambda: (native(), {"sampler": td.RandomSampler(range(COUNT), replacement=True, num_samples=90)}),
    "remainder": lambda: (native(), {"sampler": td.RandomSampler(range(COUNT), num_samples=2 * COUNT)}),
    "own generator": lambda: (
        native(),
        {"sampler": td.RandomSampler(range(COUNT), True, 90, generator=torch.Generator().manual_seed(6))},
    ),
    "weighted": lambda: (native(), {"sampler": td.WeightedRandomSampler([1.0] * COUNT, COUNT)}),
    "subset": lambda: (native(), {"sampler": td.SubsetRandomSampler(range(COUNT))}),
    "batches": lambda: (
        native(),
        {"batch_sampler": td.BatchSampler(td.RandomSampler(range(COUNT)), 4, True), "batch_size": 1},
    ),
    "eager": lambda: (native(), {"sampler": Eager()}),
    "positioned": lambda: (native(), {"sampler": Positioned()}),
    "Python's, shuffled": lambda: (Numbers(), {"shuffle": True}),
    "Python's, in order": lambda: (Numbers(), {}),
    "Python's, one by one": lambda: (Numbers(), {"shuffle": True, "batch_size": None}),
    "Python's, positioned": lambda: (Numbers(), {"sampler": Positioned()}),
    "a list": lambda: (list(range(COUNT)), {"shuffle": True}),
    "processes": lambda: (native().map(same, processes=True), {"shuffle": True}),
    "batches in processes": lambda: (native().map(same, processes=True, batched=True), {"shuffle": True}),
    "iterable": lambda: (Parts(), {}),
    "iterable, one by one": lambda: (Parts(), {"batch_size": None}),
    "iterable, drop_last": lambda: (Parts(), {"drop_last": True}),
    "iterable, shuffled": lambda: (ShuffledParts(), {}),
    "iterator with a state": lambda: (WithIterator(), {}),
    "iterable with a state": lambda: (WithState(), {}),
    "iterable with a state, one by one": lambda: (WithState(), {"batch_size": None}),
    "with a state": lambda: (Counts(), {"shuffle": True}),
}
PYTHONS = {name for name in CASES if not isinstance(CASES[name]()[0], pt.Dataset | pt.Mapped)} | {
    "processes",
    "batches in processes",
}


def loader_of(case, workers, persistent=False):
    dataset, options = CASES[case]()
    return pt.DataLoader(
        dataset, **{"batch_size": 4, "num_workers": workers, "persistent_workers": persistent, **options}
    )


def numbers(batch, draws=3):
    torch.rand(draws)  # as training draws
    return batch.tolist() if isinstance(batch, torch.Tensor) else batch


def part(batches, draws=3):
    return [numbers(batch, draws) for batch in batches]


def stopped(case, workers, taken, persistent=False):
    """The state there, and what comes behind it."""
    torch.manual_seed(4)
    loader = loader_of(case, workers, persistent)
    part(loader)
    if taken is None:
        state = loader.state_dict()
        rest = part(loader)
    else:
        batches = iter(loader)
        part(batches.__next__() for _ in range(taken))
        state = loader.state_dict()
        rest = part(batches)
    return json.loads(json.dumps(state)), [rest, part(loader), part(loader)]


def resumed(case, workers, state, persistent=False):
    torch.manual_seed(99)
    loader = loader_of(case, workers, persistent)
    loader.load_state_dict(state)
    torch.rand(7)  # as a network that is made now
    epochs = [part(loader) for _ in range(3)]
    assert json.dumps(loader.state_dict())
    return epochs


def check(case, workers, taken, persistent=False):
    state, expected = stopped(case, workers, taken, persistent)
    assert resumed(case, workers, state, persistent) == expected


@pytest.mark.parametrize("taken", [0, 1, 3, 5, None])
@pytest.mark.parametrize("case", CASES)
def test_without_workers(case, taken):
    check(case, 0, taken)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("taken", [0, 1, 5, None])
@pytest.mark.parametrize("case", [case for case in CASES if case not in PYTHONS])
def test_with_threads(case, taken, persistent):
    check(case, 2, taken, persistent)


@pytest.mark.parametrize(("taken", "persistent"), [(1, False), (4, True), (None, False), (None, True)])
@pytest.mark.parametrize("case", sorted(PYTHONS))
def test_with_processes(case, taken, persistent):
    check(case, 2, taken, persistent)


@pytest.mark.parametrize("make", [native, Numbers])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_samplers_that_draw_an_index_at_a_time(make, workers, taken):
    """What was drawn ahead is drawn again, so that the program may not draw in between."""

    def loader_of_ones():
        return pt.DataLoader(make(), 4, sampler=Ones(), num_workers=workers)

    loader = loader_of_ones()
    batches = iter(loader)
    part((next(batches) for _ in range(taken)), draws=0)
    state = loader.state_dict()
    expected = [part(batches, draws=0), part(loader, draws=0), part(loader, draws=0)]
    torch.manual_seed(99)
    again = loader_of_ones()
    again.load_state_dict(state)
    assert [part(again, draws=0) for _ in range(3)] == expected


@pytest.mark.parametrize("case", ["shuffle", "Python's, shuffled", "own generator"])
@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0)])
def test_with_another_number_of_workers(case, before, after):
    state, expected = stopped(case, before, 2)
    assert resumed(case, after, state) == expected


def _resumed_in(case, state, results):
    results.put(resumed(case, 0, state))


def test_in_another_process():
    state, expected = stopped("shuffle", 2, 3)
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    process = spawn.Process(target=_resumed_in, args=("shuffle", state, results))
    process.start()
    assert results.get(timeout=120) == expected
    process.join(60)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, "all", None])
@pytest.mark.parametrize("seed_of", [lambda epoch: epoch, lambda epoch: 5], ids=["another each time", "the same"])
def test_programs_that_seed_each_epoch(seed_of, taken, workers):
    def epoch(loader, number):
        torch.manual_seed(seed_of(number))
        return part(loader)

    loader = loader_of("shuffle", workers)
    epoch(loader, 0)
    torch.manual_seed(seed_of(1))
    batches = iter(loader)
    for _ in range(BATCHES if taken in {"all", None} else taken):
        next(batches)
    if taken is None:
        assert next(batches, None) is None
    state = loader.state_dict()
    first = [part(batches)] if taken is not None else []
    expected = [*first, epoch(loader, 2), epoch(loader, 3)]

    torch.manual_seed(99)
    again = loader_of("shuffle", 2 - workers)
    again.load_state_dict(state)
    assert [epoch(again, number) for number in range(4 - len(expected), 4)] == expected


@pytest.mark.parametrize("sampler", [None, "distributed", "list", "generator"])
def test_torchs_generator_is_left_alone_where_no_order_follows_from_it(sampler):
    """Ranks of a distributed program have different ones, and may share a state."""

    def make():
        rows = native()
        chosen = {"distributed": td.DistributedSampler(rows, 2, 0), "list": list(range(9))}.get(sampler)
        if sampler == "generator":
            chosen = td.RandomSampler(rows, generator=torch.Generator().manual_seed(1))
        return pt.DataLoader(rows, 2, sampler=chosen)

    loader = make()
    batches = iter(loader)
    next(batches)
    for state in (loader.state_dict(), (list(batches), loader.state_dict())[1]):
        torch.manual_seed(99)
        before = torch.get_rng_state()
        again = make()
        again.load_state_dict(state)
        assert torch.equal(torch.get_rng_state(), before)
        next(iter(again))
        assert torch.equal(torch.get_rng_state(), before) or state["batch"] == 0  # then a base seed is drawn


def test_states_of_iterable_datasets_are_of_as_many_workers():
    state, _ = stopped("iterable", 2, 1)
    loader = loader_of("iterable", 0)
    loader.load_state_dict(state)
    with pytest.raises(ValueError, match="one of 2 workers, but this loader has 0"):
        iter(loader)


def test_a_state_from_before_the_first_epoch():
    for case in CASES:
        torch.manual_seed(4)
        loader = loader_of(case, 0)
        state = loader.state_dict()
        expected = [part(loader) for _ in range(3)]
        assert resumed(case, 0, state) == expected


def test_the_program_may_say_how_often_a_state_is_wanted():
    loader = pt.DataLoader(Numbers(), 4, num_workers=1, snapshot_every_n_steps=3)
    batches = iter(loader)
    next(batches), next(batches)
    assert loader.state_dict()["batch"] == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_count_as_their_batches(workers):
    class Fails(Numbers):
        def __getitem__(self, index):
            if index == 5:
                raise ValueError(index)
            return index

    context = "fork" if workers else None  # Fails cannot be pickled
    loader = pt.DataLoader(Fails(), 4, num_workers=workers, multiprocessing_context=context)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="5"):
        next(batches)
    again = pt.DataLoader(Fails(), 4, num_workers=workers, multiprocessing_context=context)
    again.load_state_dict(loader.state_dict())
    assert part(again) == part(batches)
