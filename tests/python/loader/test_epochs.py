"""Epochs, resume, and errors in mid-epoch."""

import signal

import numpy as np
import pytest
from loader_data import N, labels_of, pairs

import penstock

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("workers", [0, 1, 2, 8])
def test_batches_do_not_depend_on_workers(folder, workers):
    reference = penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=5, shuffle=True, seed=7)
    loader = penstock.DataLoader(
        penstock.files(folder / "dicts"), batch_size=5, shuffle=True, seed=7, num_workers=workers
    )
    for _ in range(2):
        for a, b in zip(reference, loader, strict=True):
            assert a["name"] == b["name"]
            assert a["x"].equal(b["x"])


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("taken", [0, 1, 4, 8, 9])
def test_resume_in_mid_epoch(folder, before, after, taken):
    def make(workers):
        return penstock.DataLoader(pairs(folder), batch_size=5, shuffle=True, seed=3, num_workers=workers)

    whole = make(0)
    expected = [batch for _ in range(4) for batch in labels_of(whole)]
    first = make(before)
    got = []
    while len(got) < taken:
        for _, y in first:
            got.append(y.tolist())
            if len(got) == taken:
                break
    state = first.state_dict()
    assert all(isinstance(value, (int, str)) for value in state.values())
    second = make(after)
    second.load_state_dict(state)
    got += labels_of(second)
    while len(got) < len(expected):
        got += labels_of(second)
    assert got == expected


def test_states_of_others_are_refused(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=5)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="dataset"):
        loader.load_state_dict({**state, "samples": 5})
    other = penstock.DataLoader(pairs(folder), batch_size=4)
    other.load_state_dict(state)
    with pytest.raises(ValueError, match=r"batches of 5.*batches of 4"):
        other.load_state_dict({**state, "batch": 1})
    other.load_state_dict({key: value for key, value in {**state, "batch": 1}.items() if key != "batch_size"})
    with pytest.raises(ValueError, match="'epoch'"):
        loader.load_state_dict({k: v for k, v in state.items() if k != "epoch"})
    with pytest.raises(ValueError, match="'batch'"):
        loader.load_state_dict({**state, "batch": "x"})
    with pytest.raises(TypeError):
        loader.load_state_dict([1])
    assert len(list(loader)) == len(loader)


def test_states_of_other_orders_are_refused(folder):
    data = pairs(folder)
    shuffled = penstock.DataLoader(data, batch_size=5, shuffle=True)
    next(iter(shuffled))
    state = shuffled.state_dict()
    assert state["order"] == "random"
    for loader in (
        penstock.DataLoader(data, batch_size=5),
        penstock.DataLoader(data, batch_size=5, sampler=range(N)),
        penstock.DataLoader(data, batch_size=5, sampler=penstock.RandomSampler(N, replacement=True)),
    ):
        with pytest.raises(ValueError, match="shuffle and sampler"):
            loader.load_state_dict(state)
        loader.load_state_dict({**state, "batch": 0})
        loader.load_state_dict({key: value for key, value in state.items() if key != "order"})
    penstock.DataLoader(data, batch_size=5, sampler=penstock.DistributedSampler(N, 1, 0)).load_state_dict(state)
    with pytest.raises(ValueError, match="'order'"):
        shuffled.load_state_dict({**state, "order": 3})


def test_epochs(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=10, shuffle=True, num_workers=2)
    assert loader.epoch == 0
    first = labels_of(loader)
    second = labels_of(loader)
    assert first != second
    loader.set_epoch(0)
    assert loader.epoch == 0
    assert labels_of(loader) == first
    loader.set_epoch(1)
    assert labels_of(loader) == second


def test_a_broken_off_epoch_begins_again(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=10, shuffle=True, num_workers=2)
    for _, y in loader:
        first = y.tolist()
        break
    assert labels_of(loader)[0] == first


def test_one_iteration_at_a_time(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=10, num_workers=1)
    old = iter(loader)
    next(old)
    new = iter(loader)
    assert next(new)[1].tolist() == list(range(10))
    with pytest.raises(ValueError, match="iteration"):
        next(old)
    del old
    assert next(new)[1].tolist() == list(range(10, 20))
    assert [len(y) for _, y in new] == [10, 7]
    assert list(new) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_belongs_to_one_batch(folder, tmp_path, workers):
    for i in range(12):
        torch.save(torch.full((2,), i), tmp_path / f"{i:02}.pt")
    (tmp_path / "05.pt").write_bytes(b"rubbish")
    loader = penstock.DataLoader(penstock.files(tmp_path), batch_size=2, num_workers=workers)
    for _ in range(2):
        got, errors = [], []
        iterator = iter(loader)
        while True:
            try:
                batch = next(iterator)
            except StopIteration:
                break
            except penstock.Error as error:
                errors.append(str(error))
            else:
                got.append(batch.tolist())
        assert [b[0][0] for b in got] == [0, 2, 6, 8, 10]
        assert len(errors) == 1
        assert "05.pt" in errors[0]
        assert "5" in errors[0]


def test_options_are_checked(folder):
    labels = penstock.rows(folder / "labels.npy")
    for options in (
        {"batch_size": 0},
        {"batch_size": -1},
        {"num_workers": -1},
        {"prefetch_factor": 0},
        {"timeout": -1},
        {"timeout": 1, "num_workers": 0},
        {"shuffle": True, "sampler": [1]},
        {"batch_sampler": [[1]], "batch_size": 4},
        {"batch_sampler": [[1]], "shuffle": True},
        {"batch_sampler": [[1]], "drop_last": True},
        {"batch_sampler": [[1]], "sampler": [1]},
        {"device": "tpu"},
    ):
        with pytest.raises(penstock.InvalidArgumentError):
            penstock.DataLoader(labels, **options)
    for name, value in {
        "seed": -1,
        "memory_budget": -1,
        "batch_size": 2.0,
        "shuffle": None,
        "drop_last": "no",
        "timeout": None,
        "prefetch_factor": None,
        "num_workers": 1.5,
    }.items():
        with pytest.raises(penstock.Error, match=rf"found {name}="):
            penstock.DataLoader(labels, **{name: value})
    with pytest.raises(penstock.InvalidArgumentError, match="found seed="):
        penstock.DataLoader(labels, seed=2**64)
    with pytest.raises(penstock.InvalidArgumentError, match="found epoch=-1"):
        penstock.DataLoader(labels).set_epoch(-1)
    numbers = {name: np.int64(2) for name in ("batch_size", "num_workers", "prefetch_factor", "seed")}
    loader = penstock.DataLoader(labels, **numbers, shuffle=np.True_, drop_last=1)
    assert len(loader) == len(labels) // 2
    with pytest.raises(penstock.DTypeMismatchError, match="collate"):
        penstock.DataLoader(labels, collate=list)


def test_what_a_signals_handler_raises_loses_no_batch(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(64).repeat(1 << 14))
    rows = penstock.rows(np.load(tmp_path / "x.npy", mmap_mode="r").reshape(64, -1))

    class StopError(Exception):
        pass

    # A handler that runs right behind next() loses what next() returned, whoever wrote it. extend() stores each batch
    # before Python runs a handler.
    def take(batches, got):
        got.extend(batches)

    def stop(number, frame):
        if frame.f_code is take.__code__:
            raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for delay in (0.0005, 0.002, 0.005, 0.01):
            got, batches = [], iter(penstock.DataLoader(rows, batch_size=16, num_workers=1))
            signal.setitimer(signal.ITIMER_REAL, delay)
            for _ in range(2):
                try:
                    take(batches, got)
                except StopError:
                    continue
            assert [int(batch.numpy()[0, 0]) for batch in got] == [0, 16, 32, 48]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_timeout(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(1 << 18))
    # A gigabyte takes longer than a nanosecond, whatever the machine.
    paths = [tmp_path / "x.npy"] * 512
    loader = penstock.DataLoader(penstock.files(paths), batch_size=512, num_workers=1, timeout=1e-9)
    iterator = iter(loader)
    with pytest.raises(TimeoutError, match="1e-09 seconds"):
        next(iterator)
