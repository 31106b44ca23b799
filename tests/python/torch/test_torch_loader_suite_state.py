"""What torchdata's tests of its StatefulDataLoader expect of a loader's state, for that one and for ours."""

from __future__ import annotations

import itertools
import pickle

import pytest
import torch
import torch.utils.data as td
from loader_pairs import rows

import penstock.torch as pt

stateful = pytest.importorskip("torchdata.stateful_dataloader")

COUNT = 50
LOADERS = {"torchdata's": stateful.StatefulDataLoader, "ours": pt.DataLoader}
both = pytest.mark.parametrize("kind", LOADERS)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return rows(tmp_path_factory.mktemp("state"), COUNT)


def loader_of(kind, numbers, **options):
    dataset = numbers[kind == "ours"]
    return LOADERS[kind](dataset, **{"batch_size": 7, **options})


def lists(batches):
    return [batch.tolist() for batch in batches]


class Counting(td.Sampler):
    """A sampler that knows its own position."""

    def __init__(self, size):
        self.size = size
        self.given = 0
        self.begin = None

    def __len__(self):
        return self.size

    def __iter__(self):
        self.given, self.begin = self.begin or 0, None
        for i in range(self.given, self.size):
            self.given += 1
            yield i

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.begin = state["given"]


@pytest.mark.parametrize("options", [{}, {"batch_size": None}, {"drop_last": True}], ids=str)
@pytest.mark.parametrize("taken", [0, 1, 6, "all"])
@both
def test_goes_on_behind_what_was_taken(numbers, kind, taken, options):
    def make():
        sampler = td.RandomSampler(range(COUNT), generator=torch.Generator().manual_seed(13))
        return loader_of(kind, numbers, sampler=sampler, **options)

    loader = make()
    iterator = iter(loader)
    for _ in range(len(loader) if taken == "all" else taken):
        next(iterator)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = lists(iterator)
    again = make()
    again.load_state_dict(state)
    assert lists(again) == rest
    for _ in range(2 if kind == "ours" else 0):
        assert lists(again) == lists(loader)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("taken", [0, 4, 7])
def test_with_workers_that_stay_or_not(numbers, taken, persistent):
    def make():
        generator = torch.Generator().manual_seed(13)
        return loader_of(
            "ours", numbers, shuffle=True, generator=generator, num_workers=3, persistent_workers=persistent
        )

    loader = make()
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    state = loader.state_dict()
    rest = lists(iterator)
    following = [lists(loader), lists(loader)]
    again = make()
    again.load_state_dict(state)
    assert [lists(again) for _ in range(3)] == [rest, *following]


@both
def test_back_and_forth_in_one_loader(numbers, kind):
    loader = loader_of(kind, numbers, shuffle=True)
    iterator = iter(loader)
    start = loader.state_dict()
    seen = [lists([next(iterator)])[0] for _ in range(3)]
    middle = loader.state_dict()
    loader.load_state_dict(middle)
    seen += lists(loader)
    loader.load_state_dict(start)
    assert lists(loader) == seen


@pytest.mark.parametrize("batch_size", [None, 4])
@both
def test_the_state_of_the_end_is_that_of_the_next_beginning(numbers, kind, batch_size):
    def make():
        generator = torch.Generator().manual_seed(15)
        return loader_of(kind, numbers, shuffle=True, batch_size=batch_size, generator=generator)

    loader = make()
    list(loader)
    state = loader.state_dict()
    expected = [lists(loader) for _ in range(3)]
    assert len(expected[0]) == (COUNT if batch_size is None else 13)
    again = make()
    again.load_state_dict(state)
    assert len(lists(again)) == len(expected[0])
    if kind == "ours":
        # torchdata's begins with the generator as it finds it.
        again.load_state_dict(state)
        assert [lists(again) for _ in range(3)] == expected


@both
def test_a_state_replaces_the_iteration_that_is_under_way(numbers, kind):
    loader = loader_of(kind, numbers, sampler=range(COUNT))
    list(loader)
    state = loader.state_dict()
    again = loader_of(kind, numbers, sampler=range(COUNT))
    iterator = iter(again)
    next(iterator), next(iterator)
    again.load_state_dict(state)
    for _ in range(3):
        assert lists(again) == lists(loader)


@both
def test_a_state_of_a_resumed_loader_is_one_too(numbers, kind):
    def make():
        sampler = td.RandomSampler(range(COUNT), generator=torch.Generator().manual_seed(2))
        return loader_of(kind, numbers, sampler=sampler)

    loader = make()
    expected = lists(loader)
    state = None
    got = []
    for _ in range(4):
        part = make()
        if state is not None:
            part.load_state_dict(state)
        iterator = iter(part)
        got += lists(itertools.islice(iterator, 2))
        state = part.state_dict()
    assert got == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_with_a_state_of_their_own(numbers, workers):
    loader = loader_of("ours", numbers, sampler=Counting(COUNT), num_workers=workers)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    state = loader.state_dict()
    rest = lists(iterator)
    again = loader_of("ours", numbers, sampler=Counting(COUNT), num_workers=2 - workers)
    again.load_state_dict(state)
    assert lists(again) == rest
    for _ in range(2):
        assert lists(again) == lists(loader)


class Shuffled(td.BatchSampler):
    """Batches in an order of their own in each epoch, around a sampler that knows nothing of it."""

    def __init__(self):
        super().__init__(td.SequentialSampler(range(COUNT)), 4, False)
        self.epoch = 0

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.epoch)
        return iter([[int(i) for i in part] for part in torch.randperm(COUNT, generator=generator).split(4)])


class ShuffledByItself(Shuffled):
    def __iter__(self):
        self.epoch += 1
        return super().__iter__()

    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, state):
        self.epoch = state["epoch"]


class ShuffledWhenTold(Shuffled):
    def set_epoch(self, epoch):
        self.epoch = epoch


@pytest.mark.parametrize("taken", [0, 2])
@pytest.mark.parametrize("batches", [ShuffledByItself, ShuffledWhenTold])
def test_batch_samplers_with_a_state_or_an_epoch_of_their_own(batches, taken):
    def begun(epoch):
        if batches is ShuffledWhenTold:
            loader.batch_sampler.set_epoch(epoch)
        return iter(loader)

    def make():
        return pt.DataLoader(pt.Rows(torch.arange(COUNT)), batch_sampler=batches())

    loader = make()
    for epoch in range(2):
        list(begun(epoch))
    iterator = begun(2) if taken else None
    for _ in range(taken):
        next(iterator)
    state = loader.state_dict()
    expected = lists(iterator if taken else loader)
    again = make()
    again.load_state_dict(state)
    assert lists(again) == expected


@pytest.mark.parametrize(("before", "after"), [(0, 3), (3, 0), (1, 2)])
def test_the_number_of_workers_may_change(numbers, before, after):
    """torchdata's refuses that."""
    loader = loader_of("ours", numbers, num_workers=before, shuffle=True)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    expected = [lists(iterator), lists(loader), lists(loader)]
    again = loader_of("ours", numbers, num_workers=after, shuffle=True)
    again.load_state_dict(state)
    assert [lists(again) for _ in range(3)] == expected
