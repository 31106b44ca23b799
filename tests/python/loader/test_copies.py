"""Loaders, samplers and collations in pickles and copies; samplers that programs derive."""

import copy
import itertools
import multiprocessing
import pickle

import numpy as np
import pytest
from loader_data import N

import penstock

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle {p}": (lambda x, p=p: pickle.loads(pickle.dumps(x, p))) for p in PROTOCOLS},
}
SAMPLERS = {
    "sequential": lambda: penstock.SequentialSampler(9),
    "random": lambda: penstock.RandomSampler(9, num_samples=5),
    "subset": lambda: penstock.SubsetSampler(iter([4, 1, 3]), shuffle=True),
    "weighted": lambda: penstock.WeightedSampler([1, 2, 3], 7),
    "distributed": lambda: penstock.DistributedSampler(9, 2, 1),
    "distributed sampler": lambda: penstock.DistributedSampler(penstock.SubsetSampler([5, 6, 7]), 2, 0, False),
    "batches of a sampler": lambda: penstock.BatchSampler(penstock.RandomSampler(9), 4),
    "batches of indices": lambda: penstock.BatchSampler(iter(range(7)), 3, True),
    "given batches": lambda: penstock.BatchSampler([[1, 2], [0]]),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_copy(name, how):
    sampler = SAMPLERS[name]()
    other = COPIES[how](sampler)
    assert type(other) is type(sampler)
    assert list(other) == list(sampler)
    assert len(other) == len(sampler)
    draw = "batches" if "batches" in name else "order"
    assert getattr(other, draw)(3, 2) == getattr(sampler, draw)(3, 2)


class Backwards(penstock.Sampler):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def __len__(self):
        return self.size

    def __iter__(self):
        return iter(range(self.size - 1, -1, -1))


class Rotated(penstock.Sampler):
    """By seed and epoch."""

    def order(self, seed=0, epoch=0):
        return [(i + seed + epoch) % 5 for i in range(5)]


class Doubled(penstock.RandomSampler):
    def __init__(self, dataset, note):
        super().__init__(dataset)
        self.note = note

    def order(self, seed=0, epoch=0):
        return [i for i in super().order(seed, epoch) for _ in range(2)]

    def __len__(self):
        return 2 * super().__len__()


class WithoutInit(penstock.Sampler):
    def __init__(self, indices):
        self.indices = indices

    def __iter__(self):
        return iter(self.indices)


class Pairs(penstock.BatchSampler):
    def __iter__(self):
        return iter([[0, 1], [4]])


def values(loader):
    return [batch.tolist() for batch in loader]


def numbers():
    return penstock.rows(list(range(5)))


@pytest.mark.parametrize("workers", [0, 2])
def test_derived_samplers_decide_the_order(workers):
    def loader(sampler, **options):
        return penstock.DataLoader(numbers(), 2, sampler=sampler, num_workers=workers, **options)

    assert values(loader(Backwards(5))) == [[4, 3], [2, 1], [0]]
    rotated = loader(Rotated(), seed=1)
    assert values(rotated) == [[1, 2], [3, 4], [0]]
    assert values(rotated) == [[2, 3], [4, 0], [1]]
    doubled = Doubled(5, "note")
    flat = list(itertools.chain(*values(loader(doubled, seed=4))))
    assert flat == doubled.order(4, 0)
    assert values(loader(WithoutInit([3, 3, 1]))) == [[3, 3], [1]]
    pairs = Pairs([[2]])
    assert values(penstock.DataLoader(numbers(), batch_sampler=pairs, num_workers=workers)) == [[0, 1], [4]]


def test_derived_samplers_lie_within_others():
    batches = penstock.BatchSampler(Backwards(5), 2)
    assert list(batches) == [[4, 3], [2, 1], [0]]
    assert values(penstock.DataLoader(numbers(), batch_sampler=batches)) == [[4, 3], [2, 1], [0]]
    part = penstock.DistributedSampler(Backwards(5), 2, 0, shuffle=False)
    assert list(part) == [4, 2, 0]
    assert values(penstock.DataLoader(numbers(), 5, sampler=part)) == [[4, 2, 0]]

    class Raises(Backwards):
        def __iter__(self):
            raise LookupError("mine")

    for within in (penstock.BatchSampler(Raises(5), 2), penstock.DistributedSampler(Raises(5), 2, 0)):
        with pytest.raises(LookupError, match="mine"):
            list(within)
    with pytest.raises(LookupError, match="mine"):
        list(penstock.DataLoader(numbers(), batch_sampler=penstock.BatchSampler(Raises(5), 2)))


def test_the_base_class_says_what_a_derived_one_needs():
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(penstock.Sampler())
    with pytest.raises(TypeError, match="__len__"):
        len(penstock.Sampler())


def test_derived_samplers_keep_their_attributes():
    for how in COPIES.values():
        other = how(Doubled(5, ["note"]))
        assert type(other) is Doubled
        assert other.note == ["note"]
        assert other.order(4) == Doubled(5, "").order(4)
        assert list(how(Backwards(3))) == [2, 1, 0]


LOADERS = {
    "plain": lambda data: penstock.DataLoader(data, 4, num_workers=0),
    "shuffled": lambda data: penstock.DataLoader(data, 4, shuffle=True, seed=3, num_workers=2, drop_last=True),
    "sampler": lambda data: penstock.DataLoader(data, 3, sampler=penstock.RandomSampler(len(data))),
    "derived": lambda data: penstock.DataLoader(data, 3, sampler=Backwards(len(data))),
    "list": lambda data: penstock.DataLoader(data, 2, sampler=[3, 1, 2, 2, 5]),
    "batches": lambda data: penstock.DataLoader(data, batch_sampler=penstock.BatchSampler([[1, 2], [0], [3, 4]])),
    "padded": lambda data: penstock.DataLoader(data, 4, collate=penstock.pad_to(7, mask=True), timeout=30.0),
}


def plain(value):
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value.tolist()


@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle 0", "pickle 2", "pickle 5"])
@pytest.mark.parametrize("name", LOADERS)
def test_loaders_go_on_where_the_other_stands(folder, name, how):
    data = penstock.files(folder / "clips") if name == "padded" else penstock.rows(folder / "images.npy")
    loader = LOADERS[name](data)
    batches = iter(loader)
    next(batches)
    other = COPIES[how](loader)
    assert other.state_dict() == loader.state_dict()
    rest = [plain(batch) for batch in batches]
    assert [plain(batch) for batch in other] == rest
    for _ in range(2):
        assert [plain(batch) for batch in other] == [plain(batch) for batch in loader]
    assert (other.batch_size, other.num_workers, other.seed) == (loader.batch_size, loader.num_workers, loader.seed)


def total(loader):
    return sum(batch.numpy().astype("i8").sum() for batch in loader)


def test_loaders_go_to_processes(folder):
    loader = penstock.DataLoader(penstock.rows(folder / "images.npy"), 7, shuffle=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(total, (loader,)) == total(loader)


def test_what_cannot_be_pickled_is_named(folder):
    class Local:
        def __len__(self):
            return 3

        def __iter__(self):
            return iter([0, 1, 2])

    loader = penstock.DataLoader(penstock.rows(folder / "images.npy"), sampler=Local())
    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        pickle.dumps(loader)
    memory = penstock.DataLoader(penstock.rows(penstock.open((folder / "images.npy").read_bytes()).load()))
    assert len(pickle.loads(pickle.dumps(memory))) == N
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        copy.copy(loader)


def test_a_copy_writes_no_trace(folder, tmp_path):
    loader = penstock.DataLoader(penstock.rows(folder / "images.npy"), trace=tmp_path / "trace.json")
    with pytest.raises(ValueError, match="trace"):
        copy.copy(loader).write_trace()


def test_loader_subclasses_keep_their_attributes(folder):
    other = pickle.loads(pickle.dumps(Named("train", penstock.rows(folder / "images.npy"))))
    assert (type(other), other.name, len(other)) == (Named, "train", len(range(0, N, 5)))


class Named(penstock.DataLoader):
    def __init__(self, name, dataset):
        super().__init__(dataset, 5)
        self.name = name


@pytest.mark.parametrize("how", COPIES)
def test_collations_copy(how):
    for rule in (penstock.stack(), penstock.ragged(), penstock.samples(), penstock.pad(keys=iter(["a"]))):
        assert type(COPIES[how](rule)) is penstock.Collate


LISTS = {
    "ints": [1, 2, 3],
    "floats": [0.5, 1.5],
    "bools": [True, False],
    "nested": [[1, 2], [3, 4]],
    "tuple": (4, 5),
    "strings": ["a", "ü", ""],
    "arrays": [np.ones((2, 2)), np.zeros((2, 2))],
    "tensors": [penstock.ones(3), penstock.zeros(3)],
}


@pytest.mark.parametrize("name", LISTS)
def test_rows_of_lists(name):
    given = LISTS[name]
    for dataset in (penstock.rows(given), pickle.loads(pickle.dumps(penstock.rows(given)))):
        assert len(dataset) == len(given)
        (batch,) = penstock.DataLoader(dataset, len(given))
        expected = list(given) if name == "strings" else np.asarray([np.asarray(one) for one in given]).tolist()
        assert (batch if name == "strings" else batch.tolist()) == expected
        pair = penstock.zip(dataset, penstock.rows(list(range(len(given)))))
        assert pair[1][1].tolist() == 1
    with pytest.raises(penstock.Error):
        penstock.rows([])
    with pytest.raises(penstock.Error, match="position 1"):
        penstock.rows(["a", 1])
