"""What torch's own tests of its DataLoader expect of arguments, samplers and iterators, run through both loaders."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import same
from loader_pairs import COUNT, alike, rows

import penstock
import penstock.torch as pt

NO_WORKERS = {"num_workers": 0, "prefetch_factor": None}


@pytest.fixture
def numbers(tmp_path):
    return rows(tmp_path)


def lists(loader):
    return [batch.tolist() for batch in loader]


SAMPLERS = {
    "range": lambda: {"sampler": range(2, 9)},
    "list": lambda: {"sampler": [5, 5, -1]},
    "bools": lambda: {"sampler": [True, False]},
    "array": lambda: {"sampler": np.array([3, 1])},
    "generator": lambda: {"sampler": (i * 2 for i in range(4))},
    "tuples": lambda: {"batch_sampler": [(0, 1), (2, 3, 4), (10,)]},
    "sets and generators": lambda: {"batch_sampler": [{7}, (i for i in (1, 2))]},
    "rows of a tensor": lambda: {"batch_sampler": torch.tensor([[1, 2], [3, 4]])},
    "no number": lambda: {"sampler": [1.5]},
    "text": lambda: {"sampler": ["1"]},
    "not iterable": lambda: {"sampler": 3},
    "batches not iterable": lambda: {"batch_sampler": 3},
    "out of range": lambda: {"sampler": [0, 99]},
    "a number for a batch": lambda: {"batch_sampler": [[1], 2]},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", SAMPLERS)
def test_samplers_are_any_iterable(numbers, kind, workers):
    class Theirs(td.Dataset):
        def __getitem__(self, index):
            return torch.tensor(range(COUNT)[index])

        def __len__(self):
            return COUNT

    options = SAMPLERS[kind]
    theirs = td.DataLoader(Theirs(), **options()) if kind != "no number" else None
    ours = pt.DataLoader(numbers[1], num_workers=workers, **options())
    if kind in {"no number", "text", "not iterable", "batches not iterable", "a number for a batch"}:
        with pytest.raises(TypeError):
            list(ours)
    elif kind == "out of range":
        with pytest.raises(IndexError):
            list(ours)
    else:
        assert lists(ours) == lists(theirs)
        if kind == "generator":
            assert lists(ours) == lists(theirs) == []


@pytest.mark.parametrize("batch_size", [1, 2, 4, COUNT, 40, None])
@pytest.mark.parametrize("drop_last", [False, True])
def test_lengths(numbers, batch_size, drop_last):
    alike(len, numbers, batch_size=batch_size, drop_last=drop_last)
    alike(lambda loader: (len(loader), len(iter(loader)), len(list(loader))), numbers, batch_size=batch_size)
    alike(lists, numbers, batch_size=batch_size, drop_last=drop_last)


@pytest.mark.parametrize("batch_size", [True, np.int64(2), torch.tensor(2), 2.0, "2", 0])
def test_batch_sizes_of_every_type(numbers, batch_size):
    alike(lists, numbers, batch_size=batch_size)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_empty_batch_goes_to_the_function(numbers, workers):
    batches = [[0, 1], [], [2]]
    options = {"batch_sampler": batches, "num_workers": workers, "collate_fn": len}
    assert alike(list, numbers, NO_WORKERS, **options) == [2, 0, 1]
    mapped = pt.DataLoader(numbers[1].map(lambda number: -number), **{**options, "collate_fn": list})
    same(list(mapped), [[torch.tensor(0), torch.tensor(-1)], [], [torch.tensor(-2)]])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("collate", [None, pt.stack(), pt.ragged(), penstock.stack()])
def test_of_an_empty_batch_nothing_is_stacked_and_the_next_one_comes(numbers, workers, collate):
    options = {"batch_sampler": [[0, 1], [], [2]], "num_workers": workers, "collate_fn": collate}
    iterator = iter(pt.DataLoader(numbers[1], **options))
    assert [int(number) for number in next(iterator)] == [0, 1]
    with pytest.raises(IndexError, match="a batch of no samples"):
        next(iterator)
    assert [int(number) for number in next(iterator)] == [2]
    assert next(iterator, None) is None
    with pytest.raises(IndexError):
        list(td.DataLoader(numbers[0], batch_sampler=[[0, 1], [], [2]]))


def test_an_empty_batch_counts_in_positions(numbers):
    options = {"batch_sampler": [[0, 1], [], [2], [3]], "collate_fn": list}
    loader = pt.DataLoader(numbers[1], **options)
    iterator = iter(loader)
    next(iterator), next(iterator)
    again = pt.DataLoader(numbers[1], num_workers=2, **options)
    again.load_state_dict(loader.state_dict())
    same(list(again), [[torch.tensor(2)], [torch.tensor(3)]])
    for _ in range(2):
        epoch = iter(again)
        assert [int(number) for number in next(epoch)] == [0, 1]
        assert [list(map(int, batch)) for batch in epoch] == [[], [2], [3]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of torch's half-made iterator
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("generator", [5, "a", object()])
def test_what_is_no_generator_is_refused_when_the_iteration_begins(numbers, generator, shuffle, workers):
    options = {"generator": generator, "shuffle": shuffle, "num_workers": workers}
    for loader_class, dataset in zip((td.DataLoader, pt.DataLoader), numbers, strict=True):
        loader = loader_class(dataset, **options)
        with pytest.raises(TypeError, match=r"random_\(\).*generator="):
            iter(loader)


@pytest.mark.parametrize("timeout", [1, 0.5])
def test_a_timeout_is_one_of_workers(numbers, timeout):
    assert "timeout" in str(alike(list, numbers, timeout=timeout))


@pytest.mark.parametrize(
    "options",
    [
        {"multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "bad"},
        {"num_workers": 1, "multiprocessing_context": object()},
        {"batch_sampler": [[1]], "shuffle": 3},
        {"batch_sampler": [[1]], "drop_last": 3},
        {"batch_sampler": [[1]], "sampler": [1]},
        {"num_workers": None},
        {"timeout": None},
    ],
    ids="-".join,
)
def test_arguments_are_refused_alike(numbers, options):
    assert isinstance(alike(list, numbers, **options), Exception)


@pytest.mark.parametrize("options", [{"num_workers": 2, "prefetch_factor": 1.5}, {"num_workers": 2.0}], ids=str)
def test_parts_of_workers_are_refused(numbers, options):
    """By torch too, which leaves half of an iterator behind."""
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        iter(pt.DataLoader(numbers[1], **options))


@pytest.mark.parametrize("context", [None, "fork", "spawn", "forkserver", torch.multiprocessing.get_context("spawn")])
def test_contexts_are_taken_and_kept(numbers, context):
    loader = pt.DataLoader(numbers[1], 4, num_workers=2, multiprocessing_context=context)
    theirs = td.DataLoader(numbers[0], 4, num_workers=2, multiprocessing_context=context)
    assert type(loader.multiprocessing_context) is type(theirs.multiprocessing_context)
    assert lists(loader) == lists(td.DataLoader(numbers[0], 4))


def test_setting_attributes_afterwards(numbers):
    def case(loader):
        out = []
        for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader"):
                setattr(loader, name, 1)
        loader.collate_fn = len
        loader.anything = 3
        out.append(list(loader))
        loader.collate_fn, loader.generator = list, torch.Generator().manual_seed(3)
        out.append([len(batch) for batch in loader])
        return out, loader.anything

    alike(case, numbers, batch_size=4)


def test_an_iteration_keeps_what_it_began_with(numbers):
    def case(loader):
        iterator = iter(loader)
        first = next(iterator)
        loader.collate_fn = len
        return [first, *iterator, *loader]

    alike(case, numbers, batch_size=4)
    loader = pt.DataLoader(numbers[1], 4, num_workers=2)
    iterator = iter(loader)
    loader.num_workers = 0
    assert lists(iterator) == lists(loader)


def test_a_worker_init_fn_that_is_set_afterwards_means_processes(numbers):
    loader = pt.DataLoader(numbers[1].map(lambda batch: -batch, batched=True), 4)
    expected = lists(loader)
    loader.worker_init_fn = print
    assert lists(loader) == expected
    assert loader.native is None


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_are_torchs(numbers, workers):
    iterator = iter(pt.DataLoader(numbers[1], 4, num_workers=workers))
    next(iterator)
    assert isinstance(iterator, td.dataloader._BaseDataLoaderIter)
    assert iter(iterator) is iterator
    assert iterator._num_yielded == 1
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(NotImplementedError, match="cannot be pickled"):
            attempt(iterator)
    list(iterator)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)


@pytest.mark.parametrize("workers", [0, 2])
def test_breaking_off_and_beginning_again(numbers, workers):
    def case(loader):
        torch.manual_seed(5)
        out = [[b.tolist() for b in itertools.islice(loader, taken)] for taken in (2, 0, 9, 1)]
        return out, torch.get_rng_state()

    alike(case, numbers, batch_size=3, shuffle=True, num_workers=workers)
    alike(lambda loader: [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)], numbers, batch_size=4)


class TestPersistentWorkers:
    """The first iterator is the only one; `iter` begins it anew."""

    OPTIONS = {"num_workers": 2, "persistent_workers": True, "batch_size": 4}  # noqa: RUF012

    def test_it_is_one_iterator(self, numbers):
        def case(loader):
            first = iter(loader)
            assert loader._iterator is first
            batches = [next(first).tolist()]
            assert iter(loader) is first
            batches += lists(first)
            with pytest.raises(StopIteration):
                next(first)
            batches += lists(loader)
            assert iter(loader) is first
            # Both of these are that one, so that they take turns.
            return batches, [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)]  # noqa: B905

        batches, turns = alike(case, numbers, **self.OPTIONS)
        assert len(batches) == 7
        assert turns == [([0, 1, 2, 3], [4, 5, 6, 7])]

    def test_what_changes_between_epochs(self, numbers):
        loader = pt.DataLoader(numbers[1], **self.OPTIONS)
        assert lists(loader)[-1] == [8, 9, 10]
        loader.collate_fn = len
        assert list(loader) == [4, 4, 3]
        assert isinstance(pickle.loads(pickle.dumps(loader)), pt.DataLoader)
        assert list(copy.copy(loader)) == [4, 4, 3]

    def test_functions_begin_anew_too(self, numbers):
        loader = pt.DataLoader(numbers[1].map(lambda number: number * 2), **self.OPTIONS)
        for taken in (1, 0, 3):
            iterator = iter(loader)
            assert [next(iterator).tolist() for _ in range(taken)] == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20]][
                :taken
            ]

    @pytest.mark.parametrize("at_end", [False, True])
    def test_states_of_a_later_epoch(self, numbers, at_end):
        def make():
            return pt.DataLoader(numbers[1], shuffle=True, **self.OPTIONS)

        torch.manual_seed(4)
        loader = make()
        list(loader)
        iterator = iter(loader)
        next(iterator)
        if at_end:
            list(iterator)
        state = loader.state_dict()
        expected = [lists(loader) if at_end else lists(iterator), lists(loader), lists(loader)]
        assert len(expected[0]) == (3 if at_end else 2)
        fresh = make()
        for again in (fresh, loader):
            again.load_state_dict(state)
            assert [lists(again) for _ in range(3)] == expected
