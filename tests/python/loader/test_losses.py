"""Samples that are kept: what a source gave before it threw, what was interrupted, and what stands beside bad ones."""

import _thread
import functools
import itertools
import random
import signal
import threading

import numpy as np
import pytest

import penstock


def outcomes(loader):
    out = []
    batches = iter(loader)
    while True:
        try:
            out.append(next(batches).numpy().tolist())
        except StopIteration:
            return out
        except (ValueError, KeyboardInterrupt) as error:
            out.append(type(error).__name__)


class Counting:
    """0, 1, ... of so many; some raise."""

    def __init__(self, size, bad=(), start=0):
        self.size, self.bad, self.next = size, bad, start

    def __iter__(self):
        return self

    def __next__(self):
        number, self.next = self.next, self.next + 1
        if number >= self.size:
            raise StopIteration
        if number in self.bad:
            raise ValueError("no sample")
        return number


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_what_was_read_before_an_error_comes_after_it(workers, on_error):
    for source, seekable in [(lambda: Counting(13, {7}), False), (lambda start: Counting(13, {7}, start), True)]:
        stream = penstock.stream(source, seekable=seekable)
        loader = penstock.DataLoader(stream, batch_size=5, num_workers=workers, on_error=on_error)
        assert outcomes(loader) == [[0, 1, 2, 3, 4], "ValueError", [5, 6, 8, 9, 10], [11, 12]]


def test_a_state_knows_what_is_held():
    stream = penstock.stream(lambda start: Counting(13, {7}, start), seekable=True)
    loader = penstock.DataLoader(stream, batch_size=5, num_workers=0)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="no sample"):
        next(batches)
    again = penstock.DataLoader(stream, batch_size=5, num_workers=2)
    again.load_state_dict(loader.state_dict())
    assert outcomes(again) == [[5, 6, 8, 9, 10], [11, 12]]
    state = {name: value for name, value in loader.state_dict().items() if name != "read"}
    with pytest.raises(penstock.InvalidArgumentError, match="'read'"):
        again.load_state_dict(state)


def test_a_state_behind_an_error_that_came_before_any_sample():
    def stream():
        return penstock.mix([penstock.stream(lambda: iter(())), penstock.stream(range(4))], [1, 1], end="all")

    loader = penstock.DataLoader(stream(), batch_size=2, num_workers=0)
    with pytest.raises(penstock.InvalidArgumentError, match="gave no samples"):
        next(iter(loader))
    state = loader.state_dict()
    assert (state["batch"], state["read"]) == (1, 0)
    again = penstock.DataLoader(stream(), batch_size=2)
    again.load_state_dict(state)
    whole = outcomes(penstock.DataLoader(stream(), batch_size=2, num_workers=0))
    assert ["InvalidArgumentError", *outcomes(again)] == whole


@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("kind", ["generator", "seekable", "filter", "map and filter"])
def test_an_interruption_loses_nothing(at, kind):
    """Without workers, Ctrl-C arrives inside of the program's own code."""
    done = []

    def interrupted(number):
        if number == at and not done:
            done.append(number)
            _thread.interrupt_main()
            for _ in range(1000):  # until the signal is answered
                pass
        return number

    def numbers(start=0):
        for number in range(start, 8):
            yield interrupted(number) if kind in {"generator", "seekable"} else number

    stream = penstock.stream(numbers, seekable=kind == "seekable")
    if kind == "filter":
        stream = stream.filter(lambda number: interrupted(number) >= 0)
    if kind == "map and filter":
        stream = stream.map(interrupted).filter(lambda number: number >= 0)
    loader = penstock.DataLoader(stream, batch_size=3, num_workers=0)
    found = outcomes(loader)
    assert [one for one in found if one != "KeyboardInterrupt"] == [[0, 1, 2], [3, 4, 5], [6, 7]]


@pytest.mark.parametrize("bad", [None, 1])
def test_what_goes_on_behind_an_interruption_is_not_lost(bad):
    """A call that ends only when the interruption was raised: its batch, or its error, comes next."""
    goes_on = threading.Event()

    def sample(index):
        if not goes_on.is_set():
            _thread.interrupt_main()
            goes_on.wait()
        if index == bad:
            raise ValueError("no sample")
        return index

    loader = penstock.DataLoader(penstock.dataset(6, sample), batch_size=2, num_workers=0)
    batches = iter(loader)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    goes_on.set()
    found = []
    while len(found) < 3:
        try:
            found.append(next(batches).numpy().tolist())
        except ValueError:
            found.append("ValueError")
        except penstock.CancelledError:  # it has not ended yet
            continue
        batch = loader.state_dict()["batch"]
        assert batch == len(found)
    assert found == [[0, 1] if bad is None else "ValueError", [2, 3], [4, 5]]
    assert list(batches) == []


@pytest.mark.parametrize("at", range(8))
def test_the_state_behind_an_interruption_goes_on_with_what_was_not_given(at):
    done = []

    def interrupted(number):
        if number == at and not done:
            done.append(number)
            _thread.interrupt_main()
        return number

    stream = penstock.stream(lambda start: Counting(8, start=start), seekable=True).map(interrupted)
    for data in (stream, penstock.dataset(8, interrupted)):
        done.clear()
        loader = penstock.DataLoader(data, batch_size=3, num_workers=0)
        given, interruptions = [], 0
        try:
            batches = iter(loader)
            while True:
                given.append(next(batches).numpy().tolist())
        except StopIteration:
            pass
        except KeyboardInterrupt:
            interruptions += 1
            again = penstock.DataLoader(data, batch_size=3, num_workers=0)
            again.load_state_dict(loader.state_dict())
            given += outcomes(again)
        assert interruptions == 1
        assert given == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_a_sample_that_is_there_when_a_signal_arrives_comes_next():
    """No code of Python runs between this function and the one who asked, so that the signal is still to be told."""
    interrupting = functools.partial(max, key=_thread.interrupt_main)  # of one number: the number
    samples = iter(penstock.stream([(int(signal.SIGINT),)] * 3).map(interrupting))
    found, interruptions = [], 0
    while len(found) < 3:
        try:
            found.append(int(next(samples)))
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions == 3
    assert found == [signal.SIGINT] * 3
    assert list(samples) == []


def test_a_generator_that_was_interrupted_does_not_end_silently():
    def numbers():
        for number in range(8):
            if number == 4:
                raise KeyboardInterrupt
            yield number

    batches = iter(penstock.DataLoader(penstock.stream(numbers()), batch_size=2, num_workers=0))
    assert [next(batches).numpy().tolist(), next(batches).numpy().tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    with pytest.raises(penstock.InvalidArgumentError, match="are lost"):
        next(batches)


def test_samples_beside_a_bad_one_are_made_once():
    calls, numbers = [], itertools.count(1)  # of which next() gives each number to one thread

    def sample(index):
        calls.append(index)
        if next(numbers) % 50 == 0:
            raise TimeoutError("not this time")
        return index

    loader = penstock.DataLoader(penstock.dataset(6400, sample), batch_size=64, num_workers=2, on_error="skip")
    seen = [index for batch in loader for index in batch.numpy().tolist()]
    assert len(seen) == 6400 - 128
    assert len(calls) == 6400
    assert len(loader.set_aside) == 128


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_repeated_stream_refuses_has_a_number_of_its_own(workers):
    """Else the sample behind it would have that number too, and be left out with it."""

    def keep(number):
        if number % 4 == 3:
            raise ValueError("refused")
        return True

    stream = penstock.stream(list(range(8))).filter(keep).repeat(2)
    loader = penstock.DataLoader(stream, batch_size=4, on_error="skip", num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 4], [5, 6, 0, 1], [2, 4, 5, 6]]
    assert [(index, why.rsplit(": ", 2)[-2]) for index, _, why in loader.set_aside] == [
        (index, "ValueError") for index in (3, 7, 11, 15)
    ]


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_what_random_steps_made_bad_is_set_aside_for_its_epoch_alone(on_error):
    def lucky(number, random):
        if random.random() < 0.3:
            raise ValueError("not this time")
        return number

    def made():
        numbers = penstock.dataset(list(range(20))).map(lucky, seeded=True)
        return penstock.DataLoader(numbers, batch_size=20, num_workers=0, on_error=on_error)

    loader, epochs = made(), []
    for epoch in range(8):
        epochs.append([batch.tolist() for batch in loader])
        again = made()
        again.set_epoch(epoch)
        assert [batch.tolist() for batch in again] == epochs[-1]
    assert len({str(epoch) for epoch in epochs}) > 4
    indices = [index for index, *_ in loader.set_aside]
    assert len(indices) == len(set(indices)) > 10


def test_an_epoch_without_samples_is_one_error_and_ends():
    def bad(_):
        raise ValueError("no")

    loader = penstock.DataLoader(penstock.dataset(40, bad), batch_size=8, num_workers=2, on_error="skip")
    batches = iter(loader)
    with pytest.raises(penstock.InvalidArgumentError, match="no sample of the epoch"):
        next(batches)
    assert list(batches) == []
    assert list(batches) == []
    assert loader.state_dict()["epoch"] <= 1


def test_an_outage_is_no_bad_sample():
    def sample(index):
        if index >= 500:
            raise ConnectionError("no answer")
        return index

    loader = penstock.DataLoader(penstock.dataset(1000, sample), batch_size=10, num_workers=0, on_error="skip")
    batches = iter(loader)
    assert sum(len(next(batches).numpy()) for _ in range(50)) == 500
    with pytest.raises(ConnectionError, match="outage"):
        next(batches)
    assert loader.set_aside == []


class Restless:
    def __len__(self):
        return 100

    def __iter__(self):
        return iter(np.random.permutation(100).tolist())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_that_draws_otherwise_is_an_error(workers):
    rows = penstock.rows(np.arange(100))

    def loader():
        return penstock.DataLoader(rows, batch_size=10, sampler=Restless(), num_workers=workers)

    np.random.seed(1)
    first = loader()
    batches = iter(first)
    taken = [index for _ in range(5) for index in next(batches).numpy().tolist()]
    state = first.state_dict()
    np.random.seed(1)
    again = loader()
    again.load_state_dict(state)
    rest = [index for batch in again for index in batch.numpy().tolist()]
    assert sorted(taken + rest) == list(range(100))
    np.random.seed(2)
    other = loader()
    other.load_state_dict(state)
    with pytest.raises(penstock.ChangedError, match="other indices"):
        next(iter(other))


def test_a_state_of_another_dataset_is_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(12):
            np.save(tmp_path / folder / f"{number:03}.npy", np.array([number]))
    loader = penstock.DataLoader(penstock.files(tmp_path / "a"), batch_size=3)
    next(iter(loader))
    other = penstock.DataLoader(penstock.files(tmp_path / "b"), batch_size=3)
    with pytest.raises(penstock.InvalidArgumentError, match="another dataset"):
        other.load_state_dict(loader.state_dict())


def test_a_state_of_another_tensor_of_a_file_is_refused(tmp_path):
    file = tmp_path / "z.npz"
    np.savez(file, **{"x": np.arange(24), "y": np.arange(24), "a/b/x": np.arange(24), "a/b/y": np.arange(24)})
    assert penstock.rows(file, "x").describe(3) == f"{file}['x'][3]"
    assert penstock.rows(file, "x").slices([2], [5]).describe(0) == f"{file}['x'][2:7]"

    def loader(dataset):
        return penstock.DataLoader(dataset, batch_size=3)

    def rows(key):
        return penstock.rows(file, key)

    for one, other in [
        (rows("x"), rows("y")),
        (rows("a/b/x"), rows("a/b/y")),
        (rows("x").windows(2), rows("y").windows(2)),
        (rows("x").random_windows(2, 9), rows("y").random_windows(2, 9)),
        (rows("x").random_windows(2, 9), rows("x").random_windows(3, 9)),
        (rows("x").concat(rows("x")), rows("x").concat(rows("y"))),
        (penstock.zip(rows("x"), rows("a/b/x")), penstock.zip(rows("y"), rows("a/b/x"))),
        (penstock.zip(rows("x"), rows("a/b/x")), penstock.zip(rows("x"), rows("a/b/y"))),
    ]:
        begun = loader(one)
        next(iter(begun))
        loader(one).load_state_dict(begun.state_dict())
        with pytest.raises(penstock.InvalidArgumentError, match="another dataset"):
            loader(other).load_state_dict(begun.state_dict())


def test_a_state_of_another_stream_is_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(12):
            np.save(tmp_path / folder / f"{number:03}.npy", np.array([number]))

    def stream(folder):
        return penstock.stream(penstock.files(tmp_path / folder))

    def loader(samples):
        return penstock.DataLoader(samples, batch_size=3)

    for one, other in [
        (stream("a"), stream("b")),
        (stream("a").shuffle(4), stream("b").shuffle(4)),
        (penstock.mix([stream("a"), stream("b")], [1, 1]), penstock.mix([stream("b"), stream("a")], [1, 1])),
        (penstock.mix([stream("a"), stream("b")], [1, 1]), penstock.mix([stream("a"), stream("b")], [1, 3])),
    ]:
        begun = loader(one)
        next(iter(begun))
        loader(one).load_state_dict(begun.state_dict())
        with pytest.raises(penstock.InvalidArgumentError, match="another dataset"):
            loader(other).load_state_dict(begun.state_dict())


@pytest.mark.parametrize(
    "order",
    [
        lambda one: {"sampler": penstock.SubsetSampler(range(20) if one else range(20, 40)), "batch_size": 4},
        lambda one: {"sampler": penstock.WeightedSampler([int(one), int(not one)] * 20, 20), "batch_size": 4},
        lambda one: {"batch_sampler": penstock.BatchSampler(penstock.RandomSampler(40), 4 if one else 5)},
        lambda one: {"batch_sampler": penstock.length_buckets(range(1, 41), [20 if one else 30], batch_size=4)},
    ],
    ids=["subset", "weights", "batches", "lengths"],
)
def test_a_state_of_a_sampler_that_was_told_something_else_is_refused(order):
    def loader(one):
        return penstock.DataLoader(penstock.rows(np.arange(40)), num_workers=0, **order(one))

    first = loader(True)
    batches = iter(first)
    next(batches), next(batches)
    state = first.state_dict()
    same, other = loader(True), loader(False)
    same.load_state_dict(state)
    assert [batch.tolist() for batch in same] == [batch.tolist() for batch in batches]
    other.load_state_dict(state)
    with pytest.raises(penstock.ChangedError, match="other indices"):
        next(iter(other))


def test_a_progress_bar_beside_the_loop_does_not_hide_that_functions_draw(monkeypatch):
    class Monitor(threading.Thread):
        __module__ = "tqdm._monitor"

    monitor = Monitor()
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread(), monitor])
    rows = penstock.rows(np.arange(64.0)).map(lambda sample: sample.numpy() + random.random())
    with pytest.warns(UserWarning, match="random, whose generator all worker threads share"):
        assert len(list(penstock.DataLoader(rows, batch_size=8, num_workers=2))) == 8


def test_functions_that_draw_from_shared_generators_are_told_of_once(monkeypatch):
    monkeypatch.setattr(threading, "enumerate", list)  # other tests may have left threads
    rows = penstock.rows(np.arange(64.0))

    def draws(sample):
        return sample.numpy() + random.random() + np.random.rand()

    def twice(loader):
        return [len(list(loader)) for _ in range(2)]

    with pytest.warns(UserWarning, match=r"random and numpy.random.*seeded=True") as told:
        assert twice(penstock.DataLoader(rows.map(draws), batch_size=8, num_workers=2)) == [8, 8]
    assert len(told) == 1
