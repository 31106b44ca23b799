"""What a batch does not pay for: objects for indices in order, looks at tensors that torch trusts, threads for calls
that are over before a thread has begun."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import torch
import torch.utils.data as td

import penstock.torch as pt
from penstock.torch import _shared_parts
from penstock.torch.loader import _finish, _wanted
from penstock.torch.loader._position import Position
from penstock.torch.loader._settings import drawn_from, settings_of

ROWS = np.arange(103 * 3, dtype="f4").reshape(103, 3)


class Own(td.Dataset):
    """A dataset of the program's, which is asked for whole batches."""

    def __init__(self):
        self.asked = []

    def __len__(self):
        return len(ROWS)

    def __getitem__(self, index):
        return {"x": torch.from_numpy(ROWS[index]), "y": [torch.ones(2), 3]}

    def __getitems__(self, indices):
        self.asked.append(indices)
        return [self[index] for index in indices]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [1, 10, 103, 200])
def test_batches_in_order_are_ranges_of_the_same_indices(size, drop_last, workers):
    loader = pt.DataLoader(pt.Rows(ROWS), size, drop_last=drop_last, num_workers=workers)
    drawn = list(drawn_from(settings_of(loader)))
    assert all(type(batch) is range for batch in drawn)
    theirs = td.DataLoader(td.TensorDataset(torch.from_numpy(ROWS)), size, drop_last=drop_last)
    assert [list(batch) for batch in drawn] == list(theirs.batch_sampler)
    assert [batch.tolist() for batch in loader] == [batch[0].tolist() for batch in theirs]


def test_every_other_order_is_what_the_sampler_gives():
    for arguments in ({"shuffle": True}, {"sampler": [3, -1, 4]}, {"sampler": np.array([3, 2])}):
        drawn = list(drawn_from(settings_of(pt.DataLoader(pt.Rows(ROWS), 2, **arguments))))
        assert all(type(batch) is list for batch in drawn)
    batches = [np.array([1, 2]), torch.tensor([3, -1]), [np.int64(5), 6], (7,), range(4, 0, -1), range(-2, 0)]
    got = [batch.tolist() for batch in pt.DataLoader(pt.Rows(ROWS), batch_sampler=batches)]
    assert got == [ROWS[np.asarray(batch)].tolist() for batch in batches]


def test_a_list_that_the_sampler_goes_on_changing_is_copied():
    batch = []

    def batches():
        for begin in range(0, 12, 3):
            batch[:] = range(begin, begin + 3)
            yield batch

    class Sampler:
        def __iter__(self):
            return batches()

    got = [rows[:, 0].tolist() for rows in pt.DataLoader(pt.Rows(ROWS), batch_sampler=Sampler(), num_workers=2)]
    assert got == [ROWS[begin : begin + 3, 0].tolist() for begin in range(0, 12, 3)]


def test_an_epoch_in_order_goes_on_in_the_middle():
    loader = pt.DataLoader(pt.Rows(ROWS), 10, num_workers=2)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    other = pt.DataLoader(pt.Rows(ROWS), 10)
    other.load_state_dict(loader.state_dict())
    assert [batch.tolist() for batch in other] == [batch.tolist() for batch in iterator]


def test_datasets_of_the_program_are_asked_for_lists():
    dataset = Own()
    loader = pt.DataLoader(dataset, 10)
    iterator = iter(loader)
    next(iterator)
    other = pt.DataLoader(dataset, 10)
    other.load_state_dict(loader.state_dict())
    list(other)
    assert dataset.asked[0] == list(range(10))
    assert all(type(indices) is list for indices in dataset.asked)


def test_tensors_of_the_programs_datasets_are_not_looked_at(monkeypatch):
    """torch's own loader does not either."""
    monkeypatch.setattr(_shared_parts, "require_storages", lambda *_: pytest.fail("looked at"))
    batch = next(iter(pt.DataLoader(Own(), 4)))
    assert batch["x"].tolist() == ROWS[:4].tolist()


def test_a_subset_by_an_array_is_the_same_subset():
    order = torch.tensor([5, 1, -1, 7])
    for indices in (order, order.numpy(), order.to(torch.int32), order.numpy().astype("u1")[:2]):
        subset = td.Subset(pt.Rows(ROWS), indices)
        [batch] = pt.DataLoader(subset, 10)
        assert batch.tolist() == ROWS[np.asarray(indices, "i8")].tolist()


class Clock:
    """A clock that a call moves on."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(_finish, "perf_counter", lambda: self.now)


def test_brief_calls_are_made_where_the_batch_is_taken(monkeypatch):
    clock, here = Clock(monkeypatch), []

    def function(batch):
        here.append(threading.current_thread() is threading.main_thread())
        clock.now += 1e-6 if len(here) != 60 else 1
        return batch

    loader = pt.DataLoader(pt.Rows(np.arange(400)).map(function, batched=True), 4, num_workers=2)
    assert torch.cat(list(loader)).tolist() == list(range(400))
    assert not any(here[:16])
    assert all(here[30:60])
    assert not any(here[60:76]), "one was long"


def test_functions_that_set_something_of_their_thread_stay_in_threads(monkeypatch):
    Clock(monkeypatch)
    setters = {
        "grad": lambda: torch.set_grad_enabled(False),
        "autocast": lambda: torch.set_autocast_enabled("cpu", True),
        "autocast's type": lambda: torch.set_autocast_dtype("cpu", torch.float16),
        "device": lambda: torch.set_default_device("meta"),
    }
    for name, set_it in setters.items():
        here = []

        def function(batch, set_it=set_it, here=here):
            here.append(threading.current_thread() is threading.main_thread())
            set_it()
            return batch

        list(pt.DataLoader(pt.Rows(np.arange(400)).map(function, batched=True), 4, num_workers=2))
        assert not any(here), name
        assert torch.is_grad_enabled()
        assert not torch.is_autocast_enabled("cpu")
        assert torch.ones(1).device.type == "cpu"


def test_long_calls_are_made_in_threads(monkeypatch):
    clock, here = Clock(monkeypatch), []

    def function(batch):
        here.append(threading.current_thread() is threading.main_thread())
        clock.now += 1e-2
        return batch

    loader = pt.DataLoader(pt.Rows(np.arange(400)).map(function, batched=True), 4, num_workers=2)
    assert torch.cat(list(loader)).tolist() == list(range(400))
    assert not any(here)


def test_errors_of_brief_calls_name_the_batch(monkeypatch):
    Clock(monkeypatch)

    def function(batch):
        if 200 in batch:
            raise KeyError("two hundred")
        return batch

    iterator = iter(pt.DataLoader(pt.Rows(np.arange(400)).map(function, batched=True), 4, num_workers=2))
    got = [next(iterator).tolist() for _ in range(50)]
    with pytest.raises(KeyError, match="begins with sample 200"):
        next(iterator)
    got += [batch.tolist() for batch in iterator]
    assert [index for batch in got for index in batch] == [*range(200), *range(204, 400)]


def test_reads_take_arrays_of_indices():
    assert _wanted._plain_indices([1, 2]) == [1, 2]
    for other in ([1, -1], [True, 1], [np.int64(1)], (1, 2), np.array([1]), None, [1, 2**70]):
        assert _wanted._plain_indices(other) is None


class Counted(td.IterableDataset):
    def __iter__(self):
        return iter(ROWS)

    def __len__(self):
        return 50


def test_batches_of_an_iterable_dataset_are_labelled_for_a_profiler_alone(monkeypatch):
    labels = []
    record = torch.autograd.profiler.record_function
    monkeypatch.setattr(torch.autograd.profiler, "record_function", lambda name: labels.append(name) or record(name))
    assert len(list(pt.DataLoader(Counted(), 10))) == 11
    assert not labels
    with torch.profiler.profile():
        assert len(list(pt.DataLoader(Counted(), 10))) == 11
    assert len(labels) == 12


def test_an_iterable_dataset_is_held_against_the_length_that_was_asked_for():
    loader = pt.DataLoader(Counted(), batch_size=None)
    assert len(loader) == 50
    with pytest.warns(UserWarning, match="51 samples have been fetched"):
        assert len(list(loader)) == 103


def native_threads():
    return set(os.listdir("/proc/self/task"))


def started(loader):
    """Threads that begin with the first batch."""
    before, batches = native_threads(), iter(loader)
    next(batches)
    return native_threads() - before


def test_rows_in_memory_start_no_thread(tmp_path):
    rows = torch.from_numpy(ROWS)
    for dataset in (
        pt.Rows(rows),
        pt.Rows(rows, rows),
        td.Subset(pt.Rows(rows), [3, 1]),
        pt.Rows(rows).map(lambda row: row),
    ):
        for size in (None, 1, 10):
            assert started(pt.DataLoader(dataset, size)) == set()
    np.save(tmp_path / "rows.npy", ROWS)
    assert started(pt.DataLoader(pt.Rows(tmp_path / "rows.npy"), 10))
    assert started(pt.DataLoader(pt.Rows(rows), 10, num_workers=1))
    assert started(pt.DataLoader(pt.Rows(torch.zeros(2, 9 << 20, dtype=torch.uint8)), 2))


class Endless:
    """Whoever asks it again behind its end gets another epoch, and no end."""

    def __init__(self, batches):
        self.batches, self.at = batches, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == len(self.batches):
            self.at = 0
            raise StopIteration
        self.at += 1
        return self.batches[self.at - 1]


def test_a_sampler_is_asked_once_for_its_end():
    loader = pt.DataLoader(pt.Rows(ROWS), batch_sampler=Endless([[1, 2], [5]]))
    for _ in range(3):
        assert [rows[:, 0].tolist() for rows in loader] == [[3.0, 6.0], [15.0]]


@pytest.mark.parametrize("size", [None, 1, 2, 40])
@pytest.mark.parametrize("how", ["in order", "shuffled", "sampler", "mapped", "collated"])
def test_steps_give_what_torch_gives_and_go_on_anywhere(size, how):
    rows, labels = torch.from_numpy(ROWS[:11]), torch.arange(11)
    options = {"shuffled": {"shuffle": True}, "sampler": {"sampler": [3, 10, 0, 3]}}.get(how, {})
    if how == "collated":
        options["collate_fn"] = lambda samples: samples

    def loader(kind, dataset):
        return kind(dataset, size, generator=torch.Generator().manual_seed(3), **options)

    ours = pt.Rows(rows, labels).map(lambda sample: sample) if how == "mapped" else pt.Rows(rows, labels)
    theirs, mine = loader(td.DataLoader, td.TensorDataset(rows, labels)), loader(pt.DataLoader, ours)
    for _ in range(2):
        wanted = list(theirs)
        got, states, kinds = [], [], []
        for batch in mine:
            got.append(batch)
            kinds.append(type(batch))
            states.append(mine.state_dict())
        assert repr(got) == repr(wanted)
        assert kinds == [type(batch) for batch in wanted]
        for at, state in enumerate(states[:-1], 1):
            other = loader(pt.DataLoader, ours)
            other.load_state_dict(state)
            assert repr(list(other)) == repr(wanted[at:])


def test_a_bad_index_is_the_error_of_its_batch_alone():
    loader = pt.DataLoader(pt.Rows(ROWS), batch_sampler=[[0], [103], [2, -1], [4]])
    batches, got = iter(loader), []
    for _ in range(4):
        try:
            got.append(next(batches)[:, 0].tolist())
        except IndexError as error:
            got.append(str(error))
    assert got[0] == [0.0]
    assert "103" in got[1]
    assert got[2:] == [[6.0, 306.0], [12.0]]
    assert list(batches) == []
    assert loader.stats()["batches"] == 3


def test_a_seed_of_samples_is_made_where_something_is_drawn_from_it(monkeypatch):
    made = []
    whole = Position.sample_seed
    monkeypatch.setattr(Position, "sample_seed", lambda self: made.append(1) or whole(self))

    def seeds_of(dataset, **arguments):
        made.clear()
        for _ in pt.DataLoader(dataset, 10, **arguments):
            pass
        return len(made)

    rows = pt.Rows(ROWS)
    assert seeds_of(rows) == 0
    assert seeds_of(rows, shuffle=True) == 0
    assert seeds_of(rows.random_flip([0])) == 1
    assert seeds_of(rows.map(lambda row: row, seeded=False)) == 1
    assert seeds_of(rows, collate_fn=list) == 1
    assert seeds_of(rows, num_workers=1) == 1
