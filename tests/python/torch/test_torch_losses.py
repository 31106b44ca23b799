"""Samples that penstock.torch keeps, and errors that it does not take for an end."""

import itertools
import random
import threading
import warnings

import numpy as np
import pytest
import torch
import torch.utils.data as td

import penstock
import penstock.torch as pt


def bad_with(error):
    def bad(*_):
        raise error

    return bad


ROWS = torch.arange(12.0).reshape(12, 1)
WHERE = ["map", "batched", "processes", "native map", "native dataset", "collate", "source", "getitem", "stream"]


class Own(torch.utils.data.Dataset):
    def __init__(self, function):
        self.function = function

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return self.function(index)


def loader_that_raises(error, where, workers):
    bad, rows = bad_with(error), pt.Rows(ROWS)
    made = {
        "map": lambda: rows.map(bad),
        "batched": lambda: rows.map(bad, batched=True),
        "processes": lambda: rows.map(Raising(error), processes=True),
        "native map": lambda: pt.Dataset(rows.native.map(bad)),
        "native dataset": lambda: pt.Dataset(penstock.dataset(12, bad)),
        "source": lambda: pt.Files(["a", "b"], source=bad),
        "getitem": lambda: Own(Raising(error)),
        "stream": lambda: pt.Stream(penstock.stream(rows.native).map(Raising(error))),
    }.get(where, lambda: rows)()
    return pt.DataLoader(made, batch_size=4, num_workers=workers, collate_fn=bad if where == "collate" else None)


class Raising:
    def __init__(self, error):
        self.error = error

    def __call__(self, *_):
        raise self.error


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("workers", [0, 2])
def test_stop_iteration_is_an_error(where, workers):
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(loader_that_raises(StopIteration("enough"), where, workers))


@pytest.mark.parametrize("where", ["map", "batched", "native map", "native dataset", "collate", "source"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_a_program_goes_through(where, workers, error):
    with pytest.raises(type(error)):
        list(loader_that_raises(error, where, workers))


@pytest.mark.parametrize("on_error", ["skip", "replace", "mask"])
def test_samples_beside_a_bad_one_are_made_once(on_error):
    calls, numbers = [], itertools.count(1)  # of which next() gives each number to one thread

    def sample(index):
        calls.append(index)
        if next(numbers) % 50 == 0:
            raise TimeoutError("not this time")
        return index

    dataset = pt.Dataset(penstock.dataset(640, sample))
    loader = pt.DataLoader(dataset, batch_size=64, num_workers=2, on_error=on_error)
    seen = set()
    for batch in loader:
        seen.update((batch[0] if on_error == "mask" else batch).tolist())
    aside = {index for index, _, _ in loader.set_aside}
    assert len(aside) <= 13
    assert seen >= set(range(640)) - aside
    # A sample that was given may fail where it is asked for once more, to stand for another.
    assert on_error != "skip" or not seen & aside
    assert len(calls) <= 640 + len(aside)


@pytest.mark.parametrize("on_error", ["skip", "replace", "mask"])
def test_many_bad_samples_do_not_hold_up_who_asks_for_them(on_error):
    def sample(index):
        if index % 2:
            raise TimeoutError("every second one")
        return index

    for _ in range(5):
        loader = pt.DataLoader(
            pt.Dataset(penstock.dataset(640, sample)), batch_size=8, num_workers=4, on_error=on_error
        )
        assert sum(1 for _ in loader) == 80
        assert [index for index, _, _ in loader.set_aside] == list(range(1, 640, 2))


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("content", [torch.zeros(2), {1}])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_outage_is_no_bad_sample(tmp_path, on_error, content, workers):
    """Also where samples have no native form, so that they are tried one by one."""
    for number in range(20):
        torch.save(content, tmp_path / f"{number}.pt")
    paths = [str(tmp_path / f"{number}.pt") for number in range(500)]
    loader = pt.DataLoader(pt.Files(paths), 10, num_workers=workers, on_error=on_error, collate_fn=list)
    batches = iter(loader)
    assert [len(next(batches)) for _ in range(2)] == [10, 10]
    with pytest.raises(penstock.NotFoundError, match="taken for an outage"):
        next(batches)
    assert loader.set_aside == []


def test_an_epoch_without_samples_is_one_error_and_ends():
    dataset = pt.Dataset(penstock.dataset(40, bad_with(ValueError("no"))))
    batches = iter(pt.DataLoader(dataset, batch_size=8, num_workers=2, on_error="skip"))
    with pytest.raises(penstock.InvalidArgumentError, match="no sample of the epoch"):
        next(batches)
    assert list(batches) == []
    assert list(batches) == []


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_where_only_bad_samples_are_left_the_epoch_ends_as_the_whole_one_does(workers, on_error):
    def sample(index):
        if index >= 6:
            raise ValueError("no")
        return index

    dataset = pt.Dataset(penstock.dataset(8, sample))

    def loader():
        return pt.DataLoader(dataset, batch_size=2, num_workers=workers, on_error=on_error, collate_fn=list)

    batches = iter(whole := loader())
    for _ in range(3):
        next(batches)
    state = whole.state_dict()
    rest = [[int(one) for one in batch] for batch in batches]
    again = loader()
    again.load_state_dict(state)
    assert [[int(one) for one in batch] for batch in again] == rest


class Restless:
    def __init__(self, draw):
        self.draw = draw

    def __len__(self):
        return 10

    def __iter__(self):
        order = self.draw()
        return iter([order[i : i + 10] for i in range(0, 100, 10)])


def of_numpy():
    return np.random.permutation(100).tolist()


def of_random():
    return random.sample(range(100), 100)


@pytest.mark.parametrize("draw", [of_numpy, of_random])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [lambda: pt.Rows(torch.arange(100)), lambda: Own(int)])
def test_a_sampler_that_draws_otherwise_is_an_error(draw, workers, make):
    def loader():
        dataset = make()
        return pt.DataLoader(dataset, batch_sampler=Restless(draw), num_workers=workers)

    def seed(number):
        np.random.seed(number)
        random.seed(number)

    seed(1)
    first = loader()
    batches = iter(first)
    taken = [index for _ in range(5) for index in next(batches).tolist()]
    state = first.state_dict()
    seed(1)
    again = loader()
    again.load_state_dict(state)
    rest = [index for batch in again for index in batch.tolist()]
    assert sorted(taken + rest) == list(range(100))
    seed(2)
    other = loader()
    other.load_state_dict(state)
    with pytest.raises(ValueError, match="other indices"):
        next(iter(other))


def test_a_state_after_a_resume_goes_on_too():
    np.random.seed(1)
    first = pt.DataLoader(pt.Rows(torch.arange(100)), batch_sampler=Restless(of_numpy), num_workers=2)
    expected = []
    batches = iter(first)
    for _ in range(3):
        expected += next(batches).tolist()
    state = first.state_dict()
    for taken in (2, 3):
        np.random.seed(1)
        again = pt.DataLoader(pt.Rows(torch.arange(100)), batch_sampler=Restless(of_numpy), num_workers=2)
        again.load_state_dict(state)
        batches = iter(again)
        for _ in range(taken):
            expected += next(batches).tolist()
        state = again.state_dict()
    np.random.seed(1)
    last = pt.DataLoader(pt.Rows(torch.arange(100)), batch_sampler=Restless(of_numpy))
    last.load_state_dict(state)
    assert sorted(expected + [index for batch in last for index in batch.tolist()]) == list(range(100))


@pytest.mark.parametrize(
    "order",
    [
        lambda one: {"sampler": td.SubsetRandomSampler(range(20) if one else range(20, 40)), "batch_size": 4},
        lambda one: {"sampler": td.WeightedRandomSampler([one, not one] * 20, 20), "batch_size": 4},
        lambda one: {"sampler": td.DistributedSampler(range(40), 2, 1, seed=int(one)), "batch_size": 4},
        lambda one: {"sampler": td.RandomSampler(range(40), replacement=one), "batch_size": 4},
        lambda one: {"batch_sampler": td.BatchSampler(td.RandomSampler(range(40)), 4 if one else 5, False)},
    ],
    ids=["subset", "weights", "seed", "replacement", "batches"],
)
@pytest.mark.parametrize("native", [False, True])
def test_a_state_of_a_sampler_that_was_told_something_else_is_refused(order, native):
    numbers = torch.arange(40)

    def loader(one):
        return pt.DataLoader(pt.Rows(numbers) if native else numbers, **order(one))

    first = loader(True)
    batches = iter(first)
    next(batches), next(batches)
    state = first.state_dict()
    same = loader(True)
    same.load_state_dict(state)
    assert torch.equal(torch.cat(list(same)), torch.cat(list(batches)))
    other = loader(False)

    def goes_on():
        other.load_state_dict(state)
        next(iter(other))

    with pytest.raises((ValueError, penstock.Error), match=r"other indices|shuffle and sampler"):
        goes_on()


class Rewound:
    """Its own iterator, which begins anew whenever it is asked for one."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        self.place = 0
        return self

    def __next__(self):
        if self.place == len(self.items):
            raise StopIteration
        self.place += 1
        return self.items[self.place - 1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ended", [False, True])
def test_a_sampler_that_is_its_own_iterator_goes_on(workers, ended):
    def loader():
        given = Rewound([[first, first + 1] for first in range(0, 20, 2)])
        return pt.DataLoader(pt.Rows(torch.arange(20)), batch_sampler=given, num_workers=workers)

    first = loader()
    batches = iter(first)
    taken = [next(batches) for _ in range(10 if ended else 3)]
    again = loader()
    again.load_state_dict(first.state_dict())
    assert torch.cat([*taken, *itertools.islice(again, 20)]).tolist() == list(range(20))


def test_a_stream_of_an_iterator_that_begins_anew():
    rows = [torch.tensor([place]) for place in range(7)]
    batches = itertools.islice(pt.DataLoader(pt.Stream(lambda: Rewound(rows)), batch_size=3), 9)
    assert [batch.flatten().tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_state_of_another_dataset_is_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(12):
            np.save(tmp_path / folder / f"{number:03}.npy", np.array([number]))
    loader = pt.DataLoader(pt.Files(tmp_path / "a"), batch_size=3)
    next(iter(loader))
    state = loader.state_dict()
    other = pt.DataLoader(pt.Files(tmp_path / "b"), batch_size=3)
    with pytest.raises(ValueError, match="another dataset"):
        other.load_state_dict(state)
    other.load_state_dict({**state, "dataset": None})
    assert next(iter(other)).flatten().tolist() == [3, 4, 5]


def add_noise(sample, generator):
    assert isinstance(generator, torch.Generator)
    return sample + torch.rand(1, generator=generator)


@pytest.mark.parametrize("batched", [False, True])
def test_seeded_functions_draw_alike_for_any_number_of_workers(batched):
    def epochs(workers):
        dataset = pt.Rows(torch.zeros(32, 1)).map(add_noise, seeded=True, batched=batched)
        loader = pt.DataLoader(
            dataset, batch_size=4, shuffle=True, num_workers=workers, generator=torch.Generator().manual_seed(3)
        )
        return [torch.cat(list(loader)) for _ in range(2)]

    first, second = epochs(0)
    assert not torch.equal(first, second)
    assert len(first.unique()) == (8 if batched else 32)
    for workers in (1, 3):
        assert all(map(torch.equal, epochs(workers), [first, second]))


def test_seeded_functions_behind_each_other_draw_apart():
    chain = pt.Rows(torch.zeros(8, 1)).map(add_noise, seeded=True).map(add_noise, seeded=True)
    once = pt.Rows(torch.zeros(8, 1)).map(add_noise, seeded=True)

    def batch_of(dataset):
        return next(iter(pt.DataLoader(dataset, batch_size=8, generator=torch.Generator().manual_seed(3))))

    assert not torch.allclose(batch_of(chain), 2 * batch_of(once))
    assert chain[0].shape == (1,)


def test_functions_that_draw_from_shared_generators_are_told_of_once(monkeypatch):
    monkeypatch.setattr(threading, "enumerate", list)  # other tests may have left threads
    dataset = pt.Rows(torch.zeros(32, 1)).map(lambda sample: sample + torch.rand(1) + np.random.rand())

    def twice(loader):
        return [len(list(loader)) for _ in range(2)]

    with pytest.warns(UserWarning, match=r"numpy.random and torch.*seeded=True.*processes") as told:
        assert twice(pt.DataLoader(dataset, batch_size=4, num_workers=2)) == [8, 8]
    assert len(told) == 1


@pytest.mark.parametrize("here", [False, True])
def test_threads_of_the_program_may_draw_too(here):
    """Then nobody knows who has drawn, and functions are not blamed."""
    done, told = threading.Event(), []

    def read():
        dataset = pt.Rows(torch.zeros(32, 1)).map(lambda sample: sample + torch.rand(1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            list(pt.DataLoader(dataset, batch_size=4, num_workers=2))
        told.extend(caught)

    other = threading.Thread(target=done.wait if here else read)
    other.start()
    if here:
        read()
        done.set()
    other.join()
    assert not told


def test_a_stream_is_explained():
    loader = pt.DataLoader(pt.Stream(penstock.stream(lambda: iter([1, 2]))), batch_size=2)
    assert "Stream is iterated" in loader.explain()
    assert "no dataset of Penstock's" not in loader.explain()


def test_a_stream_goes_on_behind_an_error():
    def numbers():
        yield from range(3)

    def bad(number):
        if number == 1:
            raise ValueError("no")
        return number

    walk = iter(pt.Stream(penstock.stream(numbers).map(bad)))
    assert next(walk) == 0
    with pytest.raises(ValueError, match="no"):
        next(walk)
    assert next(walk) == 2
