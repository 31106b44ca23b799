"""penstock.torch.DataLoader beside torch's own, over the same files: order, values, types, random state, errors."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time
from collections import namedtuple

import numpy as np
import pytest
import torch
import torch.utils.data as td

import penstock
import penstock.torch as pt

COUNT = 53


class Files(td.Dataset):
    """The dataset that a user of torch writes."""

    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return torch.load(self.folder / f"{range(COUNT)[index]:03d}.pt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    random = torch.Generator().manual_seed(1)
    for i in range(COUNT):
        x = torch.randn(3, 4, generator=random)
        pair = (torch.tensor(i, dtype=torch.int16), [torch.full((2,), i * 0.5, dtype=torch.float64)])
        sample = {"x": x, "y": i, "z": i / 4, "even": i % 2 == 0, "name": f"n{i}", "pair": pair}
        torch.save(sample, folder / f"{i:03d}.pt")
    return folder


def same(a, b):
    """Equal in structure, types, dtypes and every bit."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


def both(folder, make, *, epochs=2, seed=7):
    """The batches of each loader and torch's random state behind them; `make(loader class, dataset)`."""
    out = []
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        torch.manual_seed(seed)
        loader = make(loader_class, dataset)
        batches = [batch for _ in range(epochs) for batch in loader]
        out.append((batches, torch.get_rng_state(), loader))
    return out


def compare(folder, make, **options):
    (theirs, their_state, their_loader), (ours, our_state, our_loader) = both(folder, make, **options)
    assert our_loader.native is not None
    assert len(ours) == len(theirs) > 0
    same(ours, theirs)
    assert torch.equal(their_state, our_state)
    if hasattr(their_loader.sampler, "__len__"):
        assert len(their_loader) == len(our_loader)


def summed(samples):
    return {
        "n": len(samples),
        "x": torch.stack([s["x"] for s in samples]).sum(0),
        "names": [s["name"] for s in samples],
    }


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 8},
        {"batch_size": 8, "shuffle": True},
        {"batch_size": 8, "shuffle": True, "drop_last": True},
        {"batch_size": 100},
        {"batch_size": None},
        {"batch_size": None, "shuffle": True},
        {"batch_size": 8, "shuffle": True, "collate_fn": td.default_collate},
        {"batch_size": 8, "shuffle": True, "collate_fn": summed},
        {"batch_size": None, "collate_fn": lambda sample: sample["y"]},
    ],
    ids=str,
)
def test_equals_torch(folder, options, workers):
    # torch's own side runs in one process: its batches are the same for any number, and much slower to get.
    def make(loader_class, dataset):
        return loader_class(dataset, num_workers=workers if loader_class is pt.DataLoader else 0, **options)

    compare(folder, make)


NUMPY_SCALARS = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 bool complex64 complex128".split()


@pytest.mark.parametrize("name", NUMPY_SCALARS)
def test_numpy_scalars_keep_their_type(tmp_path, name):
    samples = [{"y": np.dtype(name).type(value)} for value in (0, 1.5, 100, 3)]
    for i, sample in enumerate(samples):
        torch.save(sample, tmp_path / f"{i}.pt")
    (batch,) = pt.DataLoader(pt.Files(str(tmp_path)), batch_size=4)
    same(batch, td.default_collate(samples))


def test_numpy_scalars_of_several_types_become_what_holds_all(tmp_path):
    samples = [{"y": np.float32(0.5)}, {"y": np.float64(0.1)}, {"y": 0.2}]
    for i, sample in enumerate(samples):
        torch.save(sample, tmp_path / f"{i}.pt")
    (batch,) = pt.DataLoader(pt.Files(str(tmp_path)), batch_size=3)
    assert batch["y"].tolist() == [0.5, 0.1, 0.2]
    assert batch["y"].dtype == torch.float64


SAMPLERS = {
    "random": lambda data, g: td.RandomSampler(data, generator=g),
    "replacement": lambda data, g: td.RandomSampler(data, replacement=True, num_samples=100, generator=g),
    "more than all": lambda data, g: td.RandomSampler(data, num_samples=130, generator=g),
    "subset": lambda data, g: td.SubsetRandomSampler([3, 1, 4, 1, 5, 9, 2, 6], generator=g),
    "weighted": lambda data, g: td.WeightedRandomSampler(torch.arange(COUNT, dtype=torch.float64), 40, generator=g),
    "distributed": lambda data, g: td.DistributedSampler(data, num_replicas=3, rank=1, seed=5),
    "list": lambda data, g: [5, 5, -1, 0],
    "tensor": lambda data, g: torch.randperm(COUNT, generator=torch.Generator().manual_seed(2)),
}


@pytest.mark.parametrize("with_generator", [False, True])
@pytest.mark.parametrize("kind", SAMPLERS)
def test_samplers(folder, kind, with_generator):
    def make(loader_class, dataset):
        generator = torch.Generator().manual_seed(11) if with_generator else None
        return loader_class(dataset, batch_size=6, sampler=SAMPLERS[kind](dataset, generator), generator=generator)

    compare(folder, make)


def test_distributed_epochs(folder):
    for epoch in (0, 1, 5):
        orders = []
        for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
            sampler = td.DistributedSampler(dataset, num_replicas=4, rank=2, drop_last=True)
            sampler.set_epoch(epoch)
            orders.append([y for b in loader_class(dataset, batch_size=5, sampler=sampler) for y in b["y"].tolist()])
        assert orders[0] == orders[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_batch_samplers(folder, workers):
    def make(loader_class, dataset):
        batches = td.BatchSampler(td.RandomSampler(dataset), 9, False)
        return loader_class(dataset, batch_sampler=batches, num_workers=workers if loader_class is pt.DataLoader else 0)

    compare(folder, make)
    compare(folder, lambda c, dataset: c(dataset, batch_sampler=[[1, 2], (3,), torch.tensor([4, -5])]))


VIEWS = {
    "expanded scalar": lambda i, n: torch.tensor(float(i)).expand(n),
    "expanded rows": lambda i, n: torch.arange(i, i + n).expand(3, n),
    "expanded within": lambda i, n: torch.arange(2 * n).reshape(2, 1, n).expand(2, 5, n),
    "overlapping": lambda i, n: torch.arange(float(i), i + n + 2).as_strided((n, 3), (1, 1)),
    "as large as its storage": lambda i, n: torch.arange(i, i + 4).as_strided((2, 2), (0, 3)),
    "with gaps": lambda i, n: torch.arange(i, i + 2 * n)[1::2],
    "transposed": lambda i, n: torch.arange(i, i + 4 * n).reshape(4, n).t(),
}


@pytest.mark.parametrize("n", [4, 100_000])
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_every_kind(tmp_path, name, n):
    samples = [VIEWS[name](i, n) for i in range(7)]
    paths = [tmp_path / f"{i}.pt" for i in range(7)]
    for path, sample in zip(paths, samples, strict=True):
        torch.save(sample, path)
    batches = list(pt.DataLoader(pt.Files(paths), batch_size=3))
    assert [len(batch) for batch in batches] == [3, 3, 1]
    for sample, ours in zip(samples, torch.cat(batches), strict=True):
        assert torch.equal(ours, sample)


def test_a_view_of_more_than_memory_holds_is_refused(tmp_path):
    torch.save(torch.tensor(1.0).expand(2**50), tmp_path / "x.pt")
    with pytest.raises(penstock.Error, match=r"x\.pt|batch") as error:
        next(iter(pt.DataLoader(pt.Files([tmp_path / "x.pt"]))))
    assert "ends before" not in str(error.value)


def test_samples_need_have_nothing_in_common_for_a_function(tmp_path):
    samples = [[1, 2], [torch.ones(2)], {"a": torch.arange(3), "b": 1}, {"b": 2.5}, torch.zeros(4), None]
    for i, sample in enumerate(samples):
        torch.save(sample, tmp_path / f"{i}.pt")
    files = pt.Files(str(tmp_path / "*.pt"))
    for workers in (0, 2):
        (batch,) = pt.DataLoader(files, batch_size=6, collate_fn=list, num_workers=workers)
        assert str(batch) == str(samples)
        (batch,) = pt.DataLoader(files.map(str), batch_size=6, collate_fn=list, num_workers=workers)
        assert batch == [str(sample) for sample in samples]


UNLIKE = {
    "keys in another order": lambda i: {"a": i, "b": i * 2} if i % 2 else {"b": i * 2, "a": i},
    "further keys": lambda i: {"a": i, "b": i} if i % 4 else {"a": i},
    "ints beside floats": lambda i: {"a": i if i % 2 else i / 3},
    "floats beside ints": lambda i: {"a": i / 3 if i % 2 else i},
    "bools beside ints": lambda i: {"a": i if i % 2 else True},
    "dtypes that promote": lambda i: torch.full((2,), i, dtype=torch.float32 if i % 2 else torch.float64),
    "lists beside tuples": lambda i: (torch.tensor(i), i) if i % 2 else [torch.tensor(i), i],
    "a tensor beside a number": lambda i: {"a": torch.full((), i) if i % 4 == 0 else torch.tensor(i + 1)},
}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", UNLIKE)
def test_samples_that_only_torch_stacks(tmp_path, kind, workers, mapped):
    for i in range(30):
        torch.save(UNLIKE[kind](i if i > 7 else 4), tmp_path / f"{i:03d}.pt")

    class Theirs(Files):
        def __len__(self):
            return 30

    def wrapped(batch):
        return {"batch": batch}

    ours = pt.Files(tmp_path)
    if mapped:
        ours = ours.map(wrapped, batched=True)
    theirs = td.DataLoader(Theirs(tmp_path), batch_size=4)
    loader = pt.DataLoader(ours, batch_size=4, num_workers=workers)
    assert loader.native is not None
    for _ in range(2):
        for a, b in zip(theirs, loader, strict=True):
            same(a, b["batch"] if mapped else b)


@pytest.mark.parametrize("workers", [0, 2])
def test_where_torch_cannot_stack_either_the_error_names_the_file(tmp_path, workers):
    for i in range(8):
        torch.save(torch.zeros(3 if i != 5 else 4), tmp_path / f"{i:03d}.pt")
    batches = iter(pt.DataLoader(pt.Files(tmp_path), batch_size=2, num_workers=workers))
    assert len(next(batches)) == len(next(batches)) == 2
    with pytest.raises(penstock.ShapeMismatchError, match=r"005\.pt"):
        next(batches)
    assert torch.equal(next(batches), torch.zeros(2, 3))


def test_indices_are_integers(folder):
    files = pt.Files(str(folder / "*.pt"))
    for sampler in ([1.9], ["3"], [None]):
        with pytest.raises(TypeError):
            list(pt.DataLoader(files, sampler=sampler))
    assert len(list(pt.DataLoader(files, sampler=[np.int64(1), torch.tensor(2), True]))) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_iterate_one_loader_each_for_itself(tmp_path, workers):
    np.save(tmp_path / "r.npy", np.arange(10))
    loader = pt.DataLoader(pt.Rows(tmp_path / "r.npy"), batch_size=3, num_workers=workers)
    epochs = []

    def iterate():
        epochs.extend([batch.tolist() for batch in loader] for _ in range(25))

    threads = [threading.Thread(target=iterate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert epochs == [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]] * 100


@pytest.mark.parametrize("options", [{"num_workers": 10**6}, {"num_workers": 1, "prefetch_factor": 2**40}])
def test_options_without_bounds_are_refused(folder, options):
    with pytest.raises(penstock.InvalidArgumentError, match="must be"):
        list(pt.DataLoader(pt.Files(str(folder / "*.pt")), **options))


def test_a_state_of_other_batches_is_refused(tmp_path):
    np.save(tmp_path / "r.npy", np.arange(10))
    loader = pt.DataLoader(pt.Rows(tmp_path / "r.npy"), batch_size=3)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="batches of 3"):
        pt.DataLoader(pt.Rows(tmp_path / "r.npy"), batch_size=2).load_state_dict(state)
    for wrong in ({"batch": -1}, {"batch": None}, {"random": None}):
        with pytest.raises(ValueError, match="state"):
            loader.load_state_dict({**state, **wrong})
    loader.load_state_dict({**state, "batch": 10**9})
    with pytest.raises(ValueError, match="the epoch has fewer"):
        next(iter(loader))


def test_a_large_order_is_torchs(tmp_path):
    values = np.arange(300_000, dtype=np.int32)
    orders = []
    for loader_class, dataset in (
        (td.DataLoader, td.TensorDataset(torch.from_numpy(values))),
        (pt.DataLoader, pt.Rows(values)),
    ):
        loader = loader_class(dataset, batch_size=4096, shuffle=True, generator=torch.Generator().manual_seed(3))
        batches = [b[0] if isinstance(b, list) else b for b in itertools.islice(loader, 5)]
        orders.append(torch.cat(batches))
    assert torch.equal(orders[0], orders[1])


def test_generators_stand_where_torch_leaves_them(folder):
    """Also after an epoch that was broken off, where the sampler has drawn only what was asked for."""
    states = []
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        generator = torch.Generator().manual_seed(5)
        sampler = td.RandomSampler(dataset, replacement=True, num_samples=64, generator=generator)
        loader = loader_class(dataset, batch_size=4, sampler=sampler, generator=generator)
        next(iter(loader))
        states.append(generator.get_state())
    assert torch.equal(states[0], states[1])


def test_random_split_concat_and_stack(folder):
    def split(loader_class, dataset):
        first, _ = td.random_split(dataset, [0.3, 0.7], generator=torch.Generator().manual_seed(2))
        return loader_class(td.ConcatDataset([first, td.Subset(dataset, [0, -1])]), batch_size=5, shuffle=True)

    compare(folder, split)
    compare(folder, lambda c, dataset: c(td.StackDataset(dataset, dataset), batch_size=5, shuffle=True))


def test_several_arrays(tmp_path):
    images = np.random.default_rng(1).random((20, 3, 2), dtype=np.float32)
    labels = np.arange(20)
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "labels.npy", labels)
    theirs = td.DataLoader(td.TensorDataset(torch.from_numpy(images), torch.from_numpy(labels)), batch_size=6)
    ours = pt.DataLoader(pt.Rows(tmp_path / "images.npy", tmp_path / "labels.npy"), batch_size=6)
    same(list(ours), list(theirs))
    same(
        list(pt.DataLoader(penstock.rows(labels), 6)),
        [b for (b,) in td.DataLoader(td.TensorDataset(torch.from_numpy(labels)), 6)],
    )


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"num_workers": 1, "prefetch_factor": -1},
        {"persistent_workers": True},
        {"sampler": [1], "shuffle": True},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_sampler": [[1]], "drop_last": True},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"batch_size": -2},
        {"no_such_argument": 1},
    ],
    ids=str,
)
def test_arguments_are_refused_as_torch_refuses_them(folder, options):
    errors = []
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        with pytest.raises((ValueError, TypeError)) as caught:
            loader_class(dataset, **options)
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    assert str(errors[0]) == str(errors[1])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of torch's half-made iterator
def test_no_batch_ahead_of_workers_is_refused_as_by_torch(folder):
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        loader = loader_class(dataset, num_workers=1, prefetch_factor=0)
        with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
            iter(loader)


def test_attributes_stay_as_torch_has_them(folder):
    loader = pt.DataLoader(pt.Files(folder), batch_size=4)
    assert isinstance(loader, td.DataLoader)
    for name in ("batch_size", "sampler", "dataset", "drop_last"):
        with pytest.raises(ValueError, match="should not be set after"):
            setattr(loader, name, None)


def test_other_datasets_go_to_torch(folder):
    pairs = namedtuple("Pair", "a b")

    class Named(td.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return pairs(torch.tensor(index), {"k": np.float32(index)})

    theirs, ours = (list(c(Named(), batch_size=2)) for c in (td.DataLoader, pt.DataLoader))
    assert [type(b).__name__ for b in ours] == ["Pair"] * 3
    for a, b in zip(ours, theirs, strict=True):
        same(tuple(a), tuple(b))

    class Stream(td.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    same(list(pt.DataLoader(Stream(), batch_size=2)), list(td.DataLoader(Stream(), batch_size=2)))
    with pytest.raises(ValueError, match="on_error"):
        pt.DataLoader(Named(), on_error="skip")
    with pytest.raises(NotImplementedError, match="position"):
        pt.DataLoader(Named()).state_dict()


def worker_id(_):
    info = td.get_worker_info()
    return -1 if info is None else info.id


def seeded(worker):
    np.random.seed(worker)


def test_processes(folder):
    """A worker_init_fn and map(processes=True) mean torch's processes."""
    loader = pt.DataLoader(pt.Files(folder), batch_size=30, num_workers=2, worker_init_fn=seeded, shuffle=True)
    assert loader.native is None
    assert sorted(y for b in loader for y in b["y"].tolist()) == list(range(COUNT))
    mapped = pt.Files(folder).map(worker_id, processes=True)
    assert {i for b in pt.DataLoader(mapped, 10, num_workers=2) for i in b.tolist()} == {0, 1}
    lengths = pt.Files(folder, keys="y").map(len, batched=True, processes=True)
    assert list(pt.DataLoader(lengths, 50, num_workers=1)) == [1, 1]
    assert td.get_worker_info() is None


@pytest.mark.parametrize("workers", [0, 3])
def test_map(folder, workers):
    def double(sample):
        return {"x2": sample["x"] * 2, "y": sample["y"]}

    threads = set()

    def batch_sum(batch):
        threads.add(threading.current_thread().name)
        return batch["y"].sum().item()

    plain = list(pt.DataLoader(pt.Files(folder), 8))
    mapped = list(pt.DataLoader(pt.Files(folder).map(double), 8, num_workers=workers))
    assert len(mapped) == len(plain)
    for a, b in zip(mapped, plain, strict=True):
        same(a, {"x2": b["x"] * 2, "y": b["y"]})
    sums = list(pt.DataLoader(pt.Files(folder).map(batch_sum, batched=True), 8, num_workers=workers))
    assert sums == [b["y"].sum().item() for b in plain]
    assert ("MainThread" in threads) == (workers == 0)
    same(pt.Files(folder).map(double)[3], double(pt.Files(folder)[3]))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_a_mapped_function_names_the_sample(folder, workers):
    def fails(sample):
        if sample["y"] == 9:
            raise ValueError("odd value")
        return sample["y"]

    iterator = iter(pt.DataLoader(pt.Files(folder).map(fails), 4, num_workers=workers))
    got = [next(iterator).tolist(), next(iterator).tolist()]
    with pytest.raises(ValueError, match=r"odd value \(at sample 9: .*009\.pt\)"):
        next(iterator)
    got += [b.tolist() for b in iterator]
    assert [y for b in got for y in b] == [y for y in range(COUNT) if y not in range(8, 12)]


class TwoPartsError(Exception):
    def __init__(self, code, detail):
        super().__init__(code, detail)
        self.code = code


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_more_than_a_text_are_themselves(folder, workers):
    def fails(sample):
        raise TwoPartsError(7, "x")

    with pytest.raises(TwoPartsError) as caught:
        list(pt.DataLoader(pt.Files(folder).map(fails), num_workers=workers))
    assert caught.value.code == 7
    assert "000.pt" in "".join(getattr(caught.value, "__notes__", ["000.pt"]))


def test_a_timeout_is_for_mapped_functions_too(folder):
    go = threading.Event()

    def slow(sample):
        if sample["y"] == 2:
            go.wait(60)
        return sample["y"]

    iterator = iter(pt.DataLoader(pt.Files(folder).map(slow), timeout=0.2, num_workers=1))
    assert [next(iterator).item() for _ in range(2)] == [0, 1]
    for _ in range(2):
        with pytest.raises(pt.LoaderTimeoutError, match=r"timed out after 0\.2 seconds"):
            next(iterator)
    go.set()
    assert next(iterator).item() == 2


class TestBadSamples:
    @pytest.fixture
    def broken(self, folder, tmp_path):
        for i in range(12):
            data = (folder / f"{i:03d}.pt").read_bytes()
            (tmp_path / f"{i:03d}.pt").write_bytes(data[: len(data) // 2] if i in {3, 4, 11} else data)
        return tmp_path

    @pytest.mark.parametrize("workers", [0, 2])
    def test_raise_names_it_and_goes_on(self, broken, workers):
        iterator = iter(pt.DataLoader(pt.Files(broken, keys="y"), 3, num_workers=workers))
        assert next(iterator)["y"].tolist() == [0, 1, 2]
        with pytest.raises(penstock.Error, match=r"003\.pt: sample 3: "):
            next(iterator)
        assert next(iterator)["y"].tolist() == [6, 7, 8]
        with pytest.raises(penstock.Error, match=r"011\.pt: sample 11: "):
            next(iterator)
        assert next(iterator, None) is None

    @pytest.mark.parametrize("workers", [0, 2])
    def test_skip_and_replace(self, broken, workers):
        for policy, expected in (
            ("skip", [[0, 1, 2], [5], [6, 7, 8], [9, 10]]),
            ("replace", [[0, 1, 2], [5, 5, 5], [6, 7, 8], [9, 10, 0]]),
        ):
            loader = pt.DataLoader(pt.Files(broken, keys="y"), 3, num_workers=workers, on_error=policy)
            for _ in range(2):
                assert [b["y"].tolist() for b in loader] == expected
            assert [(i, what.endswith(f"{i:03d}.pt")) for i, what, _ in loader.set_aside] == [
                (i, True) for i in (3, 4, 11)
            ]
            assert all("003.pt" in why or "ends" in why or "truncated" in why for _, _, why in loader.set_aside[:1])

    def test_a_batch_of_nothing_but_bad_ones_is_left_out(self, broken):
        loader = pt.DataLoader(pt.Files(broken, keys="y"), batch_sampler=[[3, 4], [1]], on_error="skip")
        assert [b["y"].tolist() for b in loader] == [[1]]
        only_bad = penstock.subset(penstock.files(broken), [3, 4])
        assert list(pt.DataLoader(only_bad, 2, on_error="replace")) == []

    def test_samples_that_do_not_fit_together_are_still_an_error(self, tmp_path):
        for i in range(4):
            torch.save(torch.zeros(i + 1), tmp_path / f"{i}.pt")
        with pytest.raises(penstock.ShapeMismatchError, match="stack expects each tensor to be equal size"):
            list(pt.DataLoader(pt.Files(tmp_path), 2, on_error="skip"))
        with pytest.raises(ValueError, match="on_error"):
            pt.DataLoader(pt.Files(tmp_path), on_error="ignore")


class TestChangedUnderTheLoader:
    """Files that change while an epoch runs: an error that names them, or the new content; never a crash."""

    @pytest.fixture
    def files(self, tmp_path):
        for i in range(8):
            torch.save(torch.full((1000,), i), tmp_path / f"{i}.pt")
        return tmp_path

    @pytest.mark.parametrize("workers", [0, 1])
    @pytest.mark.parametrize("change", ["removed", "cut", "emptied", "other shape", "no file"])
    def test_files(self, files, change, workers):
        iterator = iter(pt.DataLoader(pt.Files(files), 2, num_workers=workers, prefetch_factor=1 if workers else None))
        assert next(iterator)[:, 0].tolist() == [0, 1]
        last = files / "7.pt"
        data = last.read_bytes()
        last.unlink()
        if change == "no file":
            last.mkdir()
        elif change == "other shape":
            torch.save(torch.zeros(3), last)
        elif change != "removed":
            last.write_bytes(data[: len(data) // 2] if change == "cut" else b"")
        assert [next(iterator)[:, 0].tolist() for _ in range(2)] == [[2, 3], [4, 5]]
        with pytest.raises((penstock.Error, OSError), match=r"7\.pt"):
            next(iterator)
        assert next(iterator, None) is None

    def test_rewritten_with_the_same_shape(self, files):
        iterator = iter(pt.DataLoader(pt.Files(files), 2))
        next(iterator)
        torch.save(torch.full((1000,), 70), files / "7.pt")
        assert [batch[:, 0].tolist() for batch in iterator][-1] == [6, 70]

    @pytest.mark.parametrize("workers", [0, 2])
    def test_mapped_rows_of_a_file_that_was_cut(self, tmp_path, workers):
        np.save(tmp_path / "x.npy", np.ones((4096, 256), np.float32))
        iterator = iter(pt.DataLoader(pt.Rows(tmp_path / "x.npy"), 8, num_workers=workers))
        assert next(iterator).sum() == 8 * 256
        os.truncate(tmp_path / "x.npy", 8192)
        with pytest.raises(penstock.Error, match=r"x\.npy"):
            list(iterator)


def test_worker_info_is_that_of_no_process(folder):
    mapped = pt.Files(folder).map(worker_id)
    assert {i for batch in pt.DataLoader(mapped, 10, num_workers=2) for i in batch.tolist()} == {-1}


def test_memory_outlives_loader_and_tensors(folder):
    arrays = [batch["x"].numpy() for batch in pt.DataLoader(pt.Files(folder), 8, num_workers=2)]
    gc.collect()
    expected = [batch["x"].numpy().copy() for batch in pt.DataLoader(pt.Files(folder), 8)]
    for array, other in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, other)


class TestResume:
    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("with_generator", [False, True])
    @pytest.mark.parametrize("taken", [0, 1, 4, 7])
    def test_goes_on_exactly(self, folder, taken, with_generator, workers):
        def make(workers):
            generator = torch.Generator().manual_seed(9) if with_generator else None
            return pt.DataLoader(pt.Files(folder), 8, shuffle=True, num_workers=workers, generator=generator)

        torch.manual_seed(4)
        loader = make(workers)
        iterator = iter(loader)
        for _ in range(taken):
            next(iterator)
        state = loader.state_dict()
        rest = [b["y"].tolist() for b in iterator]
        following = [b["y"].tolist() for b in loader] if with_generator else None

        torch.manual_seed(99)
        again = make(2 - workers)
        before = torch.get_rng_state()
        again.load_state_dict(state)
        assert again.state_dict()["batch"] == taken
        assert [b["y"].tolist() for b in again] == rest
        assert with_generator or torch.equal(before, torch.get_rng_state())
        if with_generator:
            assert [b["y"].tolist() for b in again] == following

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("kind", ["random", "weighted", "subset", "batch", "batch distributed"])
    def test_samplers_with_a_generator_of_their_own(self, folder, kind, workers):
        def make(seed):
            dataset, generator = pt.Files(folder, keys="y"), torch.Generator().manual_seed(seed)
            random = td.RandomSampler(dataset, generator=generator)
            options = {
                "random": lambda: {"sampler": random, "batch_size": 8},
                "weighted": lambda: {
                    "sampler": td.WeightedRandomSampler([1.0] * COUNT, 40, generator=generator),
                    "batch_size": 8,
                },
                "subset": lambda: {"sampler": td.SubsetRandomSampler(range(30), generator=generator), "batch_size": 8},
                "batch": lambda: {"batch_sampler": td.BatchSampler(random, 8, True)},
                "batch distributed": lambda: {
                    "batch_sampler": td.BatchSampler(td.DistributedSampler(dataset, 2, 0), 8, False)
                },
            }[kind]()
            return pt.DataLoader(dataset, num_workers=workers, **options)

        loader = make(5)
        list(loader)
        if kind == "batch distributed":
            loader.batch_sampler.sampler.set_epoch(3)
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        rest = [b["y"].tolist() for b in iterator]
        following = [b["y"].tolist() for b in loader]
        again = make(99)
        again.load_state_dict(state)
        assert [b["y"].tolist() for b in again] == rest
        assert [b["y"].tolist() for b in again] == following

    def test_after_the_last_batch_the_next_epoch_begins(self, folder):
        make = lambda: pt.DataLoader(  # noqa: E731
            pt.Files(folder), 20, shuffle=True, generator=torch.Generator().manual_seed(9)
        )
        loader = make()
        list(loader)
        state = loader.state_dict()
        expected = [b["y"].tolist() for b in loader]
        again = make()
        again.load_state_dict(state)
        assert [b["y"].tolist() for b in again] == expected

    def test_survives_torch_save(self, folder, tmp_path):
        loader = pt.DataLoader(pt.Files(folder), 8, sampler=td.DistributedSampler(pt.Files(folder), 2, 0))
        loader.sampler.set_epoch(3)
        iterator = iter(loader)
        next(iterator)
        torch.save(loader.state_dict(), tmp_path / "state.pt")
        rest = [b["y"].tolist() for b in iterator]
        again = pt.DataLoader(pt.Files(folder), 8, sampler=td.DistributedSampler(pt.Files(folder), 2, 0))
        again.load_state_dict(torch.load(tmp_path / "state.pt"))
        assert [b["y"].tolist() for b in again] == rest

    @pytest.mark.parametrize("state", [{}, None, {"kind": "other"}, {"kind": "penstock.torch.DataLoader", "x": 1}])
    def test_refuses_what_is_no_state(self, folder, state):
        with pytest.raises(ValueError, match="state"):
            pt.DataLoader(pt.Files(folder)).load_state_dict(state)

    def test_refuses_another_datasets(self, folder):
        state = pt.DataLoader(pt.Rows(np.zeros(4))).state_dict()
        with pytest.raises(ValueError, match="4 samples, but this one has 53"):
            pt.DataLoader(pt.Files(folder)).load_state_dict(state)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    random = torch.Generator().manual_seed(2)
    x, y = torch.randn(COUNT, 3, generator=random), torch.arange(COUNT)
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "y.npy", y.numpy())
    return td.TensorDataset(x, y), pt.Rows(folder / "x.npy", folder / "y.npy")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("collate", [None, td.default_convert, lambda sample: (type(sample), *sample)])
def test_lists_of_indices_without_batches(arrays, workers, collate):
    def batches(loader_class, dataset):
        sampler = td.BatchSampler(td.RandomSampler(dataset, generator=torch.Generator().manual_seed(3)), 8, False)
        options = {"batch_size": None, "num_workers": workers, "collate_fn": collate}
        return [
            *loader_class(dataset, sampler=sampler, **options),
            *loader_class(dataset, sampler=[[3, -1]], **options),
        ]

    same(batches(pt.DataLoader, arrays[1]), batches(td.DataLoader, arrays[0]))
    same(arrays[1][[4, -2]], arrays[0][[4, -2]])
    with pytest.raises(TypeError, match="one or the other"):
        list(pt.DataLoader(arrays[1], batch_size=None, sampler=[[1], 2], num_workers=1))


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_have_a_length(arrays, workers):
    for dataset, loader_class in zip(arrays, (td.DataLoader, pt.DataLoader), strict=True):
        iterator = iter(loader_class(dataset, batch_size=10, num_workers=workers))
        next(iterator)
        assert len(iterator) == 6
        with pytest.raises(TypeError, match="no len"):
            len(iter(loader_class(dataset, sampler=iter([1]), num_workers=workers)))


def test_classes_take_the_type_of_their_samples():
    assert issubclass(pt.DataLoader[int].__origin__, td.DataLoader)
    assert issubclass(pt.Dataset[int].__origin__, td.Dataset)


def test_datasets_with_samples_of_their_own(folder):
    class Doubled(pt.Dataset):
        def __getitem__(self, index):
            return super().__getitem__(index)["y"] * 2

    class Half(pt.Dataset):
        def __len__(self):
            return super().__len__() // 2

    class Whole(pt.Dataset):
        pass

    class Mapped(pt.Mapped):
        def __getitem__(self, index):
            return -super().__getitem__(index)

    native = pt.Files(folder).native
    assert next(iter(pt.DataLoader(Doubled(native), batch_size=3))).tolist() == [0, 2, 4]
    assert next(iter(pt.DataLoader(td.Subset(Doubled(native), [5, 6]), batch_size=2))).tolist() == [10, 12]
    assert len(list(pt.DataLoader(Half(native)))) == COUNT // 2
    assert pt.DataLoader(Whole(native)).native is native
    mapped = Mapped(pt.Files(folder), lambda sample: sample["y"], batched=False, processes=False)
    assert next(iter(pt.DataLoader(mapped, batch_size=3))).tolist() == [0, -1, -2]


def test_profiles_name_the_loader(arrays):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        batches = len(list(pt.DataLoader(arrays[1], batch_size=10)))
    names = {
        event.key: event.count for event in profile.key_averages() if event.key.startswith("enumerate(DataLoader)#")
    }
    assert names == {"enumerate(DataLoader)#Iteration.__next__": batches + 1}


@pytest.mark.parametrize("index", [-COUNT - 1, COUNT])
def test_errors_say_which_index_the_sampler_gave(arrays, index):
    with pytest.raises(IndexError, match=f"asks for sample {index}, "):
        list(pt.DataLoader(arrays[1], sampler=[index]))


@pytest.mark.skipif(torch.accelerator.is_available(), reason="memory is pinned")
def test_warnings_about_pinning_are_torchs(arrays):
    said = []
    for dataset, loader_class in zip(arrays, (td.DataLoader, pt.DataLoader), strict=True):
        with pytest.warns(UserWarning, match="pin") as caught:
            list(loader_class(dataset, pin_memory=True, pin_memory_device="cuda"))
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1]


def test_endless_samplers(folder):
    class Endless(td.Sampler):
        def __iter__(self):
            return itertools.cycle(range(3))

    for workers in (0, 2):
        loader = pt.DataLoader(pt.Files(folder, keys="y"), 2, sampler=Endless(), num_workers=workers)
        got = [b["y"].tolist() for b in itertools.islice(loader, 5)]
        assert got == [[0, 1], [2, 0], [1, 2], [0, 1], [2, 0]]


def test_several_iterators_at_once(folder):
    loader = pt.DataLoader(pt.Files(folder, keys="y"), 10, num_workers=2)
    for a, b in zip(loader, loader, strict=True):
        same(a, b)


@pytest.mark.parametrize("workers", [0, 2])
def test_padding(tmp_path, workers):
    clips = [torch.randn(n, 2) for n in (3, 5, 1, 4)]
    for i, clip in enumerate(clips):
        torch.save(clip, tmp_path / f"{i}.pt")
    (batch,) = pt.DataLoader(pt.Files(tmp_path), 4, num_workers=workers, collate_fn=pt.pad_to(4))
    expected = torch.nn.utils.rnn.pad_sequence([c[:4] for c in clips], batch_first=True)
    same(batch, expected)
    (batch,) = pt.DataLoader(pt.Files(tmp_path), 4, num_workers=workers, collate_fn=pt.pad(lengths=True, mask=True))
    same(batch["values"], torch.nn.utils.rnn.pad_sequence(clips, batch_first=True))
    assert batch["lengths"].tolist() == [3, 5, 1, 4]
    assert batch["mask"].sum(1).tolist() == [3, 5, 1, 4]
    (batch,) = pt.DataLoader(pt.Files(tmp_path), 4, num_workers=workers, collate_fn=pt.ragged())
    same(batch, clips)


def test_batches_are_the_users_to_write(folder):
    kept = []
    for batch in pt.DataLoader(pt.Files(folder, keys="x"), 8, num_workers=2):
        batch["x"].add_(1)
        kept.append(batch["x"])
    plain = [b["x"] + 1 for b in pt.DataLoader(pt.Files(folder, keys="x"), 8)]
    same(kept, plain)


def test_device_and_pinning(folder):
    loader = pt.DataLoader(pt.Files(folder), 8, device="cpu", pin_memory=True)
    with pytest.warns(UserWarning, match="pin_memory") if not torch.accelerator.is_available() else pytest.warns(None):
        batch = next(iter(loader))
    assert batch["x"].device.type == "cpu"
    meta = next(iter(pt.DataLoader(pt.Files(folder), 8, device="meta")))
    assert meta["x"].device.type == meta["pair"][1][0].device.type == "meta"
    assert next(iter(pt.DataLoader(Files(folder), 8, device="meta")))["x"].device.type == "meta"


def test_a_device_that_torch_has_not_is_torchs_error(folder):
    if torch.cuda.is_available():
        pytest.skip("torch has one")
    with pytest.raises((AssertionError, RuntimeError), match=r"CUDA|NVIDIA driver"):
        next(iter(pt.DataLoader(pt.Files(folder), 8, device="cuda")))


def test_timeout(tmp_path):
    os.mkfifo(tmp_path / "never.pt")
    loader = pt.DataLoader(pt.Files([tmp_path / "never.pt"]), num_workers=1, timeout=0.2)
    start = time.monotonic()
    with pytest.raises((pt.LoaderTimeoutError, penstock.Error)):
        next(iter(loader))
    assert time.monotonic() - start < 30
    assert issubclass(pt.LoaderTimeoutError, RuntimeError)
    assert issubclass(pt.LoaderTimeoutError, TimeoutError)


def test_persistent_workers_draw_one_base_seed(folder):
    states = []
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        torch.manual_seed(3)
        loader = loader_class(dataset, 30, shuffle=True, num_workers=1, persistent_workers=True)
        orders = [[y for b in loader for y in b["y"].tolist()] for _ in range(2)]
        states.append((orders, torch.get_rng_state().tolist()))
    assert states[0] == states[1]


def test_stats(folder):
    loader = pt.DataLoader(pt.Files(folder), 8, num_workers=1)
    assert loader.stats() == {}
    list(loader)
    assert loader.stats()["samples"] == COUNT
