"""penstock.torch.DataLoader beside torch's own, over the same files: order, values, types, random state."""

from __future__ import annotations

import gc
import itertools
import threading

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT, Files, compare, same, summed

import penstock
import penstock.torch as pt


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
    ids="-".join,
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


def test_memory_outlives_loader_and_tensors(folder):
    arrays = [batch["x"].numpy() for batch in pt.DataLoader(pt.Files(folder), 8, num_workers=2)]
    gc.collect()
    expected = [batch["x"].numpy().copy() for batch in pt.DataLoader(pt.Files(folder), 8)]
    for array, other in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("collate", [None, td.default_convert, lambda sample: (type(sample), *sample)])
def test_lists_of_indices_without_batches(arrays, workers, collate):
    def batches(loader_class, dataset):
        sampler = td.BatchSampler(td.RandomSampler(dataset, generator=torch.Generator().manual_seed(3)), 8, False)
        options = {"batch_size": None, "num_workers": workers, "collate_fn": collate}
        options["multiprocessing_context"] = "fork" if workers else None  # a lambda cannot be pickled
        return [
            *loader_class(dataset, sampler=sampler, **options),
            *loader_class(dataset, sampler=[[3, -1]], **options),
        ]

    same(batches(pt.DataLoader, arrays[1]), batches(td.DataLoader, arrays[0]))
    same(arrays[1][[4, -2]], arrays[0][[4, -2]])
    with pytest.raises(TypeError, match="one or the other"):
        list(pt.DataLoader(arrays[1], batch_size=None, sampler=[[1], 2], num_workers=1))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, lambda some: range(some[0], some[-1] + 1)])
def test_indices_in_order_without_batches(arrays, workers, kind):
    """Each of them is a stack of rows, whatever says which."""
    some = [[0, 1, 2], [3, 4, 5]]
    expected = [list(arrays[1][each]) for each in some]
    sampler = td.BatchSampler(td.SequentialSampler(range(6)), 3, False)
    for given in (sampler, list(map(kind, some))):
        same(list(pt.DataLoader(arrays[1], batch_size=None, sampler=given, num_workers=workers)), expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_have_a_length(arrays, workers):
    for dataset, loader_class in zip(arrays, (td.DataLoader, pt.DataLoader), strict=True):
        iterator = iter(loader_class(dataset, batch_size=10, num_workers=workers))
        next(iterator)
        assert len(iterator) == 6
        with pytest.raises(TypeError, match="no len"):
            len(iter(loader_class(dataset, sampler=iter([1]), num_workers=workers)))


def test_profiles_name_the_loader(arrays):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        batches = len(list(pt.DataLoader(arrays[1], batch_size=10)))
    names = {
        event.key: event.count for event in profile.key_averages() if event.key.startswith("enumerate(DataLoader)#")
    }
    assert names == {"enumerate(DataLoader)#Iteration.__next__": batches + 1}


@pytest.mark.parametrize("workers", [0, 2])
def test_profiles_name_loaders_of_python_datasets(workers):
    loader = pt.DataLoader([torch.zeros(2)] * 6, batch_size=2, num_workers=workers)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        assert len(list(loader)) == 3
    counts = [e.count for e in profile.key_averages() if e.key.startswith("enumerate(DataLoader)#")]
    assert counts == [4]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_longer_than_its_length_warns_as_in_torch(workers):
    class Longer(td.IterableDataset):
        def __len__(self):
            return 2

        def __iter__(self):
            return iter(range(4))

    for kind in (td.DataLoader, pt.DataLoader):
        loader = kind(Longer(), batch_size=None, num_workers=workers)
        len(loader)
        with pytest.warns(UserWarning, match="was reported to be 2"):
            list(loader)


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


def test_stats(folder):
    loader = pt.DataLoader(pt.Files(folder), 8, num_workers=1)
    assert loader.stats() == {"road": "native"}
    list(loader)
    assert loader.stats()["samples"] == COUNT
