"""What torchdata's own tests expect of states with Python datasets, of its StatefulDataLoader and of ours."""

from __future__ import annotations

import copy
import itertools
import json
import pickle

import numpy as np
import pytest
import torch
import torch.utils.data as td
from state_datasets import (
    EagerNumbers,
    Generates,
    OwnWalk,
    Records,
    Restarts,
    SamplesAll,
    SamplesWalk,
    SlowFirst,
    SlowSecond,
    SlowSecondWalk,
    Stateless,
    Tells,
    Toggles,
    Walks,
)

import penstock.torch as pt

stateful = pytest.importorskip("torchdata.stateful_dataloader")
from torchdata.stateful_dataloader.sampler import RandomSampler, StatefulDistributedSampler  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*worker processes in total|'set_vital'")

LOADERS = {"torchdata's": stateful.StatefulDataLoader, "ours": pt.DataLoader}
# torchdata's own answers do not change with ours: they run at night, but for the first test below.
both = pytest.mark.parametrize("kind", ["ours", pytest.param("torchdata's", marks=pytest.mark.nightly)])
WORKERS = [(0, False), (3, False), (3, True)]  # and whether they stay
SIZE = 20


def same(samples):
    return samples


def loader_of(kind, dataset, workers=0, persistent=False, **options):
    return LOADERS[kind](dataset, num_workers=workers, persistent_workers=persistent, **{"collate_fn": same, **options})


def take(batches, count):
    return list(itertools.islice(batches, count))


def plain(value):
    """Tensors and tuples as lists, so that they compare."""
    if isinstance(value, torch.Tensor):
        return ["tensor", value.tolist()]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def copied(state):
    return pickle.loads(pickle.dumps(state))


ITERABLES = {
    "walks": Walks,
    "walks that draw": lambda: Walks(draws=True),
    "its own iterator": lambda: OwnWalk(range(SIZE)),
    "its own iterator that draws": lambda: OwnWalk(range(SIZE), True),
    "begins anew": Restarts,
    "a generator": Generates,
    "no state": Stateless,
    "toggles": Toggles,
}
MAPS = {
    "records that draw": lambda: Records(draws=True),
    "native": lambda: pt.Rows(np.arange(SIZE)),
    "mapped": lambda: pt.Rows(np.arange(SIZE)).map(same),
}
SAMPLERS = {
    "random": lambda: td.RandomSampler(range(SIZE), generator=torch.Generator().manual_seed(13)),
    "an iterator with a state": SamplesWalk,
    "with a state": SamplesAll,
    "torchdata's random one": lambda: RandomSampler(range(SIZE), generator=torch.Generator().manual_seed(3)),
    "torchdata's distributed one": lambda: StatefulDistributedSampler(range(SIZE), 2, 1, True, 3),
}


def check_rest(kind, make, taken, *, further_epochs=2):
    """Ours gives the epochs behind it too."""
    loader = make()
    batches = iter(loader)
    take(batches, taken)
    state = copied(loader.state_dict())
    further = range(further_epochs if kind == "ours" else 0)
    expected = [list(batches), *(list(loader) for _ in further)]
    torch.manual_seed(99)
    again = make()
    again.load_state_dict(state)
    assert plain([list(again), *(list(again) for _ in further)]) == plain(expected)


@pytest.mark.parametrize(
    ("kind", "workers", "persistent"),
    [*(("ours", *workers) for workers in WORKERS), ("torchdata's", 0, False), ("torchdata's", 3, True)],
)
@pytest.mark.parametrize("dataset", ITERABLES)
def test_the_rest_of_iterable_datasets(kind, dataset, workers, persistent):
    cases = [(None, 9, 2), (4, 1, 5), (None, 0, 1), (4, 3, 1)]
    for batch_size, taken, every in cases[: 4 if workers == 0 else 2 if persistent else 1]:
        options = {"batch_size": batch_size, "snapshot_every_n_steps": every}
        check_rest(kind, lambda o=options: loader_of(kind, ITERABLES[dataset](), workers, persistent, **o), taken)


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, True)])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("dataset", MAPS)
def test_the_rest_in_the_order_of_samplers(dataset, sampler, workers, persistent):
    # What is drawn in this process comes from the program's own generator, and with ranks the workers' seeds do.
    settled = dataset != "records that draw" or (workers > 0 and sampler != "torchdata's distributed one")
    for batch_size, taken in [(None, 0), (4, 1)]:

        def make(size=batch_size):
            return loader_of("ours", MAPS[dataset](), workers, persistent, batch_size=size, sampler=SAMPLERS[sampler]())

        check_rest("ours", make, taken, further_epochs=2 if settled else 0)


@pytest.mark.parametrize(("workers", "persistent"), WORKERS)
@both
def test_a_state_of_the_beginning(kind, workers, persistent):
    """Loaded into the loader that gave it."""
    for make, options in [
        *[(make, {}) for name, make in ITERABLES.items() if "own" not in name and name != "toggles"],
        (lambda: Records(draws=True), {}),
        (Records, {"shuffle": True}),
    ]:
        loader = loader_of(kind, make(), workers, persistent, snapshot_every_n_steps=10, **options)
        batches = iter(loader)
        state = copied(loader.state_dict())
        expected = plain(list(batches))
        loader.load_state_dict(state)
        got = list(loader)
        if make is Generates and not (workers == 0 or persistent):
            got = [[(number, 0) for number, _ in batch] for batch in got]  # the workers' copies count
        assert plain(got) == expected


@pytest.mark.parametrize(("workers", "persistent"), WORKERS)
@both
def test_back_to_the_middle_and_to_the_beginning(kind, workers, persistent):
    loader = loader_of(kind, Records(10, draws=True), workers, persistent, shuffle=True, snapshot_every_n_steps=15)
    batches = iter(loader)
    begin = copied(loader.state_dict())
    seen = take(batches, 4)
    loader.load_state_dict(copied(loader.state_dict()))
    seen += list(loader)
    loader.load_state_dict(begin)
    assert list(loader) == seen


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize(("workers", "persistent"), WORKERS)
def test_a_state_of_the_end(workers, persistent, batch_size):
    """In a loader that was begun, or in a new one: the next epochs are those of the loader that was not stopped."""
    for make, options in [
        *[(make, {}) for name, make in ITERABLES.items() if name not in {"toggles", "walks", "its own iterator"}],
        (lambda: Records(draws=True), {}),
        (Records, {"shuffle": True}),
    ]:
        for begun in {False, True} if workers == 0 else {batch_size is None}:

            def made(make=make, options=options):
                generator = torch.Generator().manual_seed(4)
                return loader_of(
                    "ours", make(), workers, persistent, batch_size=batch_size, generator=generator, **options
                )

            torch.manual_seed(3)
            loader = made()
            list(loader)
            state, random = copied(loader.state_dict()), torch.get_rng_state()
            expected = [list(loader), list(loader)]
            again = made()
            if begun:
                take(iter(again), 2)
            torch.set_rng_state(random)  # which the datasets themselves draw from where there are no workers
            again.load_state_dict(state)
            assert plain([list(again), list(again)]) == plain(expected)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("make", [Walks, Generates, Stateless])
@pytest.mark.parametrize("drop_last", [False, True])
def test_workers_that_ended_before_the_others(make, persistent, drop_last):
    """With a last batch that is full, or not."""
    if drop_last and not persistent:
        pytest.skip("is as without")
    for taken in (3, 5, 6):
        check_rest(
            "ours",
            lambda: loader_of("ours", make((3, 10, 5)), 3, persistent, batch_size=3, drop_last=drop_last),
            taken if not drop_last else taken - 1,
        )


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (4, True)])
@both
def test_epochs_that_a_dataset_counts(kind, workers, persistent):
    def make():
        return loader_of(kind, Generates((2, 5, 9, 7)), workers, persistent)

    loader = make()
    first = list(loader)
    state = copied(loader.state_dict())
    expected = [list(loader), list(loader)]
    assert expected == [[[(number, epoch) for number, _ in batch] for batch in first] for epoch in (1, 2)]
    again = make()
    take(iter(again), 2)
    again.load_state_dict(state)
    assert [list(again), list(again)] == expected


@pytest.mark.parametrize(("every", "taken"), [(0, 11), (17, 13), (1, 5)])
@both
def test_a_state_soon_after_a_state(kind, every, taken):
    """Before each of the workers has given a batch."""

    def make():
        return loader_of(kind, Walks((10, 10, 10, 10), True), 4, True, batch_size=2, snapshot_every_n_steps=every)

    loader = make()
    batches = iter(loader)
    take(batches, taken)
    state = copied(loader.state_dict())
    take(batches, 2)
    expected = list(batches)
    loader.load_state_dict(state)
    take(iter(loader), 2)
    again = make()
    again.load_state_dict(copied(loader.state_dict()))
    assert list(again) == expected


@pytest.mark.parametrize("workers", [0, 4])
@both
def test_states_that_a_dataset_goes_on_changing(kind, workers):
    def make():
        return loader_of(kind, Toggles(), workers, workers > 0)

    loader = make()
    batches = iter(loader)
    take(batches, 7)
    state = loader.state_dict()
    kept = copied(state)
    take(batches, 2)
    further = loader.state_dict()
    expected = list(batches)
    if kind == "ours" or workers:
        assert plain(state) == plain(kept)
    again = make()
    again.load_state_dict(copied(kept))
    part = iter(again)
    take(part, 2)
    if kind == "ours":
        assert plain(again.state_dict()) == plain(further)
    assert list(part) == expected
    if kind == "ours":
        for _ in range(2):  # what is loaded is not changed either
            again = make()
            again.load_state_dict(kept)
            assert list(again)[2:] == expected


@pytest.mark.parametrize("workers", [0, 2])
@both
def test_what_a_dataset_tells_is_what_it_is_told(kind, workers):
    for taken in range(1, len(Tells.STATES)):
        loader = loader_of(kind, Tells(), workers, batch_size=None)
        batches = iter(loader)
        take(batches, taken * max(workers, 1))
        again = loader_of(kind, Tells(), workers, batch_size=None)
        again.load_state_dict(copied(loader.state_dict()))
        told = take(iter(again), max(workers, 1))
        assert plain(told) == plain([Tells.STATES[taken - 1]] * max(workers, 1))


@pytest.mark.parametrize("workers", [0, 3])
def test_states_in_json(workers):
    """torchdata's holds a tensor where it shuffles."""
    for make, options in [
        (Walks, {}),
        (lambda: Records(tells=False), {"sampler": SamplesWalk()}),
        (lambda: Records(tells=False), {"shuffle": True}),
        (MAPS["native"], {"shuffle": True, "generator": torch.Generator().manual_seed(3)}),
    ]:
        loader = loader_of("ours", make(), workers, **options)
        list(loader)
        batches = iter(loader)
        take(batches, 4)
        state = json.dumps(loader.state_dict())
        expected = plain([list(batches), list(loader), list(loader)])
        again = loader_of("ours", make(), workers, **options)
        again.load_state_dict(json.loads(state))
        assert plain([list(again), list(again), list(again)]) == expected


@pytest.mark.parametrize(("workers", "persistent"), WORKERS)
@both
def test_states_before_the_first_epoch(kind, workers, persistent):
    def make(draws=True):
        return loader_of(kind, Records(draws=draws), workers, persistent)

    loader = make(draws=False)
    state = loader.state_dict()
    expected = list(loader)
    take(iter(loader), 2)
    loader.load_state_dict(state)
    assert [list(loader), list(loader)] == [expected, expected]

    loader = make()
    state = copied(loader.state_dict())
    expected = list(loader)
    again = make()
    take(iter(again), 3)
    again.load_state_dict(state)
    assert plain(again.state_dict()) == plain(state)
    assert list(again) == expected

    for taken in (2, 9):
        loader = make()
        batches = iter(loader)
        take(batches, taken)
        state = copied(loader.state_dict())
        expected = list(batches)
        again = make()
        again.state_dict()
        again.load_state_dict(state)
        assert plain(again.state_dict()) == plain(state)
        assert list(again) == expected


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@both
def test_the_last_batch_and_the_end(kind, workers, shuffle):
    loader = loader_of(kind, Records(), workers, shuffle=shuffle)
    for _ in loader:
        inside = copied(loader.state_dict())
    behind = loader.state_dict()
    for state, count in ((inside, 0), (behind, SIZE)):
        again = loader_of(kind, Records(), workers, shuffle=shuffle)
        again.load_state_dict(state)
        assert len(list(again)) == count
        assert len(list(again)) == SIZE


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@both
def test_two_epochs_and_two_epochs_are_four(kind, workers, shuffle):
    def make():
        return loader_of(kind, Records(), workers, shuffle=shuffle)

    torch.manual_seed(0)
    loader = make()
    got = [list(loader), list(loader)]
    again = make()
    again.load_state_dict(loader.state_dict())
    got += [list(again), list(again)]
    torch.manual_seed(0)
    loader = make()
    assert got == [list(loader) for _ in range(4)]


@pytest.mark.parametrize("workers", [0, 2])
@both
def test_a_dataset_is_begun_once(kind, workers):
    class Begun(Restarts):
        def __next__(self):
            return super().__next__(), self.begun

    loader = loader_of(kind, Begun(), workers)
    batches = iter(loader)
    seen = take(batches, 3)
    again = loader_of(kind, Begun(), workers)
    again.load_state_dict(loader.state_dict())
    assert {begun for batch in [*seen, *again] for _, begun in batch} == {1}


@pytest.mark.parametrize("make", [SlowFirst, SlowSecond, SlowSecondWalk])
@pytest.mark.parametrize("taken", [4, 8])
def test_batches_that_overtook_others(make, taken):
    """Each sample comes once, whichever came first. torchdata promises nothing there."""

    def new():
        return loader_of("ours", make(), 2, in_order=False, batch_size=None)

    loader = new()
    seen = take(iter(loader), taken)
    state = copied(loader.state_dict())
    json.dumps(state)
    again = new()
    again.load_state_dict(state)
    seen += take(iter(again), 1)
    once_more = new()
    once_more.load_state_dict(again.state_dict())
    seen += list(once_more)
    assert sorted(seen) == list(range(10))
    assert sorted(once_more) == list(range(10))


def test_a_loader_in_order_goes_on_where_batches_overtook_others():
    loader = loader_of("ours", SlowFirst(), 2, in_order=False, batch_size=None)
    seen = take(iter(loader), 4)
    assert 0 not in seen
    again = loader_of("ours", SlowFirst(), 0, batch_size=None)
    again.load_state_dict(loader.state_dict())
    assert list(again) == sorted(set(range(10)) - set(seen))


@pytest.mark.parametrize(("before", "after"), [(2, 0), (2, 3)])
def test_datasets_states_are_of_as_many_workers(before, after):
    loader = loader_of("ours", Records(), before)
    batches = iter(loader)
    take(batches, 2)
    again = loader_of("ours", Records(), after)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match=f"one of {before} workers, but this loader has {after}, and each has a"):
        iter(again)


def test_a_state_that_cannot_be_pickled_is_an_error():
    class Odd(Records):
        def state_dict(self):
            return {"function": lambda: None}

    with pytest.raises(Exception, match="pickle"):
        list(loader_of("ours", Odd(), 1))


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("options", [{"batch_size": None}, {"batch_size": 3}, {"batches": 3}], ids=str)
@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_that_draw_when_they_are_asked_for_an_iterator(workers, options, persistent):
    """torch asks for two of them where it has workers."""
    size = options.get("batches")
    chosen = {"batch_sampler" if size else "sampler": EagerNumbers(batch=size)}
    if not size:
        chosen["batch_size"] = options["batch_size"]

    def make(kind, dataset):
        return kind(dataset, num_workers=workers, persistent_workers=persistent and workers > 0, **chosen)

    def epochs(loader, count=3):
        return [[torch.as_tensor(batch).tolist() for batch in loader] for _ in range(count)]

    torch.manual_seed(1)
    expected = epochs(make(td.DataLoader, range(SIZE)), 4)
    for dataset in (range(SIZE), pt.Rows(np.arange(SIZE))):
        for taken in (0, 1, None):
            torch.manual_seed(1)
            loader = make(pt.DataLoader, dataset)
            seen = epochs(loader, 1)
            if taken is None:
                state = loader.state_dict()
                wanted = expected[1:]
            else:
                batches = iter(loader)
                take(batches, taken)
                state = copied(loader.state_dict())
                wanted = [expected[1][taken:], *expected[2:]]
            assert seen == expected[:1]
            torch.manual_seed(99)
            again = make(pt.DataLoader, dataset)
            again.load_state_dict(state)
            assert epochs(again) == wanted


def test_states_are_copies():
    loader = loader_of("ours", MAPS["native"](), sampler=SamplesAll(), batch_size=4)
    batches = iter(loader)
    take(batches, 2)
    state = loader.state_dict()
    kept = copy.deepcopy(state)
    expected = [list(batches), list(loader)]
    assert state == kept
    for _ in range(2):
        again = loader_of("ours", MAPS["native"](), sampler=SamplesAll(), batch_size=4)
        again.load_state_dict(kept)
        assert plain([list(again), list(again)]) == plain(expected)
