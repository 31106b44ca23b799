"""Which road a dataset takes: native reading, or torch's own loader, which says why."""

from __future__ import annotations

import copy
import pickle
import random
import re
import warnings

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT, Files, same

import penstock
import penstock.torch as pt


class Mapped(td.Dataset):
    """What a user of torch writes for `map`."""

    def __init__(self, dataset, function):
        self.dataset = dataset
        self.function = function

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.function(self.dataset[index])


def x_of(sample):
    return sample["x"]


def pair_of(sample):
    return sample["x"] * 2, sample["y"]


def negative(sample):
    return {"first": -sample["x"], "name": sample["name"]}


def number_of(sample):
    return sample["y"]


def doubled_batch(batch):
    return {**batch, "x": batch["x"] * 2}


def pairs_of_trees(folder):
    """Trees of torch's datasets over files as torch's users read them, and the same over ours."""
    theirs, ours = Files(folder), pt.Files(folder)
    labels = torch.arange(COUNT) * 3
    rows = torch.arange(COUNT * 2, dtype=torch.float32).reshape(COUNT, 2)

    def mapped(function):
        return Mapped(theirs, function), ours.map(function)

    def stack(*parts):
        return tuple(td.StackDataset(*(part[side] for part in parts)) for side in (0, 1))

    def named(**parts):
        return tuple(td.StackDataset(**{name: part[side] for name, part in parts.items()}) for side in (0, 1))

    def concat(*parts):
        return tuple(td.ConcatDataset([part[side] for part in parts]) for side in (0, 1))

    def subset(part, indices):
        return tuple(td.Subset(each, indices) for each in part)

    plain = (theirs, ours)
    tensor = (td.TensorDataset(rows), pt.Rows(rows).map(lambda row: (row,)))
    chosen = [5, 3, 3, COUNT - 1, 0, 17]
    return {
        "stack of a map and rows": stack(mapped(x_of), (rows, pt.Rows(rows))),
        "stack by name": named(x=plain, y=(labels, pt.Rows(labels))),
        "stack by name of maps": named(x=mapped(x_of), y=mapped(pair_of)),
        "concat of maps": concat(mapped(x_of), mapped(x_of)),
        "concat of different maps": concat(mapped(x_of), subset(mapped(lambda sample: sample["x"] + 1), chosen)),
        "subset of a concat of maps": subset(concat(mapped(number_of), mapped(lambda s: -s["y"])), [0, COUNT, 60, -1]),
        "labels in a tensor": stack(plain, (labels, labels)),
        "labels in a list": stack(plain, (labels.tolist(), labels.tolist())),
        "labels in an array": stack(mapped(x_of), (labels.numpy(), labels.numpy())),
        "labels in text": named(x=mapped(x_of), name=([f"n{i}" for i in range(COUNT)],) * 2),
        "labels in a range": stack(mapped(x_of), (range(COUNT), range(COUNT))),
        "labels in a TensorDataset": stack(plain, (td.TensorDataset(labels, rows),) * 2),
        "labels in a subset": stack(subset(plain, chosen), (td.Subset(labels.tolist(), chosen),) * 2),
        "labels behind samples": concat(mapped(number_of), ([7, 8, 9], [7, 8, 9])),
        "tensors of a map": stack(tensor, mapped(negative)),
        "deep": subset(
            stack(concat(mapped(x_of), mapped(x_of)), subset(concat(plain, plain), range(2 * COUNT - 1, -1, -1))),
            [*range(0, 2 * COUNT, 3)],
        ),
        "map around a stack": (
            Mapped(td.StackDataset(theirs, labels), lambda pair: pair[0]["x"] + pair[1]),
            pt.Mapped(
                td.StackDataset(ours, labels), lambda pair: pair[0]["x"] + pair[1], batched=False, processes=False
            ),
        ),
        "map of a map": (
            Mapped(Mapped(theirs, x_of), torch.exp),
            ours.map(x_of).map(torch.exp),
        ),
        "sum of datasets": (Mapped(theirs, x_of) + Mapped(theirs, x_of), ours.map(x_of) + ours.map(x_of)),
    }


@pytest.mark.parametrize("workers", [0, 2])
def test_trees_of_datasets_are_read_natively(folder, workers):
    for name, (theirs, ours) in pairs_of_trees(folder).items():
        with warnings.catch_warnings():
            warnings.simplefilter("error", pt.NotNativeWarning)
            loader = pt.DataLoader(
                ours, 4, shuffle=True, num_workers=workers, generator=torch.Generator().manual_seed(3)
            )
        expected = list(td.DataLoader(theirs, 4, shuffle=True, generator=torch.Generator().manual_seed(3)))
        assert loader.native is not None, name
        batches = list(loader)
        same(batches, expected)
        assert loader.stats()["road"] == "native"
        assert loader.stats()["samples"] == len(ours)
        assert loader.explain().startswith("native: ")
        apart = list(td.DataLoader(ours, 4, shuffle=True, generator=torch.Generator().manual_seed(3)))
        same(apart, expected)
        samples = list(pt.DataLoader(ours, None, num_workers=workers))
        same(samples, list(td.DataLoader(theirs, None)))


def random_tree(theirs, ours, chance, depth):
    """A random tree of torch's datasets, over both; each sample is a number or a tuple of samples."""
    kind = chance.choice(["leaf", "map", "data"] if depth == 0 else ["subset", "concat", "stack", "named", "map"])
    if kind == "leaf":
        return Mapped(theirs, number_of), ours.map(number_of)
    if kind == "data":
        numbers = [chance.randrange(100) for _ in range(COUNT)]
        data = chance.choice([list, tuple, np.array, torch.tensor])(numbers)
        return data, data
    inner = random_tree(theirs, ours, chance, depth - 1 if depth else 0) if kind != "map" or depth else None
    if kind == "map":
        inner = inner or (theirs, ours)
        function = (lambda sample: sample["y"] + 1) if inner[1] is ours else (lambda sample: {"inner": sample})
        return Mapped(inner[0], function), pt.Mapped(inner[1], function, batched=False, processes=False)
    count = len(inner[1])
    if kind == "subset":
        indices = [chance.randrange(count) for _ in range(chance.randrange(1, COUNT))]
        return td.Subset(inner[0], indices), td.Subset(inner[1], indices)
    if kind == "concat":
        return td.ConcatDataset([inner[0]] * 2), td.ConcatDataset([inner[1]] * 2)
    other = [chance.random() for _ in range(count)]
    if kind == "stack":
        return td.StackDataset(inner[0], other), td.StackDataset(inner[1], other)
    return td.StackDataset(a=inner[0], b=other), td.StackDataset(a=inner[1], b=other)


@pytest.mark.parametrize("seed", range(30))
def test_random_trees_have_torchs_samples(folder, seed):
    chance = random.Random(seed)
    theirs, ours = random_tree(Files(folder), pt.Files(folder), chance, chance.randrange(5))
    loader = pt.DataLoader(ours, 7, num_workers=seed % 3)
    assert (loader.native is not None) == (loader.stats()["road"] == "native")
    same(list(loader), list(td.DataLoader(theirs, 7)))


def test_functions_of_batches_around_the_same_parts(folder):
    files = pt.Files(folder, keys=["x", "y"])
    plain = list(pt.DataLoader(files + files, 8))
    for dataset in (
        files.map(doubled_batch, batched=True) + files.map(doubled_batch, batched=True),
        (files + files),
    ):
        if type(dataset.datasets[0]) is pt.Dataset or isinstance(dataset.datasets[0], pt.Files):
            dataset = pt.Mapped(dataset, doubled_batch, batched=True, processes=False)
        loader = pt.DataLoader(dataset, 8, num_workers=2)
        assert loader.native is not None
        same(list(loader), [doubled_batch(batch) for batch in plain])
    twice = files.map(doubled_batch, batched=True).map(doubled_batch, batched=True)
    same(next(iter(pt.DataLoader(twice, 8)))["x"], plain[0]["x"] * 4)
    behind = files.map(lambda sample: {"x": -sample["x"]}).map(doubled_batch, batched=True)
    same(next(iter(pt.DataLoader(behind, 8)))["x"], -2 * plain[0]["x"])
    with pytest.raises(TypeError, match="cannot follow one of batches"):
        files.map(doubled_batch, batched=True).map(x_of)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_tree_goes_on_where_it_was_and_names_what_failed(folder, tmp_path, workers):
    dataset = td.ConcatDataset([pt.Files(folder).map(x_of), pt.Files(folder).map(lambda sample: sample["x"] * 2)])
    whole = list(pt.DataLoader(dataset, 8))
    loader = pt.DataLoader(dataset, 8, num_workers=workers)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    resumed = pt.DataLoader(dataset, 8)
    resumed.load_state_dict(loader.state_dict())
    same(list(resumed), whole[3:])
    for _ in range(2):
        same(list(resumed), whole)

    for i in range(4):
        torch.save(torch.tensor([i]), tmp_path / f"{i}.pt")
    (tmp_path / "2.pt").write_bytes(b"no tensor")
    torn = td.StackDataset(x=pt.Files(tmp_path).map(lambda x: x * 10), y=[5, 6, 7, 8])
    with pytest.raises(penstock.Error, match=r"2\.pt"):
        list(pt.DataLoader(torn, 4, num_workers=workers))
    (batch,) = pt.DataLoader(torn, 4, num_workers=workers, on_error="skip")
    same(batch, {"x": torch.tensor([[0], [10], [30]]), "y": torch.tensor([5, 6, 8])})
    failing = td.ConcatDataset([torn, td.StackDataset(x=pt.Files(tmp_path / "0.pt").map(lambda x: 1 // x), y=[0])])
    with pytest.raises(RuntimeError, match=r"sample 4: .*0\.pt"):
        list(pt.DataLoader(failing, 1, num_workers=workers, sampler=[4]))


class Own(pt.Files):
    def __getitem__(self, index):
        return -super().__getitem__(index)["y"]


class Holder(td.Dataset):
    def __init__(self, folder):
        self.files = pt.Files(folder)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.files[index]["y"]


class Stream(td.IterableDataset):
    def __init__(self, folder):
        self.files = pt.Files(folder)

    def __iter__(self):
        return (self.files[i]["y"] for i in range(len(self.files)))


def test_what_is_not_native_says_so_once(folder):
    files = pt.Files(folder)
    doubled = files.map(doubled_batch, batched=True)
    cases = {
        r"class Own makes samples of its own": Own(folder),
        r"samples of .*Holder are made by Python": Holder(folder),
        r"samples of .*Stream are made by Python": Stream(folder),
        r"samples of .*ChainDataset are": td.ChainDataset([Stream(folder), Stream(folder)]),
        r"samples of .*Holder are": td.StackDataset(files, Holder(folder)),
        r"samples of .*Mapped are": td.Subset(Mapped(files, x_of), [1, 2]),
        r"function of batches stands inside": td.StackDataset(doubled, files),
    }
    for reason, dataset in cases.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loader = pt.DataLoader(dataset, 4)
            first, second = list(loader), list(loader)
        said = [warning for warning in caught if warning.category is pt.NotNativeWarning]
        assert len(said) == 1
        assert re.search(reason, str(said[0].message))
        assert said[0].filename == __file__
        same(first, list(td.DataLoader(dataset, 4)))
        same(first, second)
        assert loader.native is None
        assert loader.stats()["road"] == "torch"
        assert re.search(reason, loader.stats()["reason"])
        assert re.search(reason, loader.explain())


def test_worker_init_fn_says_what_it_costs(folder):
    with pytest.warns(pt.NotNativeWarning, match="worker_init_fn"):
        loader = pt.DataLoader(pt.Files(folder, keys="x"), 4, worker_init_fn=print)
    same(list(loader), list(pt.DataLoader(pt.Files(folder, keys="x"), 4)))
    loader = pt.DataLoader(pt.Files(folder, keys="x"), 4)
    loader.worker_init_fn = print
    with pytest.warns(pt.NotNativeWarning, match="worker_init_fn"):
        iter(loader)


def test_ordinary_datasets_and_wishes_are_not_remarked_on(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt.NotNativeWarning)
        for dataset in (
            Files(folder),
            [1, 2, 3],
            td.TensorDataset(torch.arange(3)),
            td.Subset(Mapped(Files(folder), x_of), [1]),
        ):
            loader = pt.DataLoader(dataset, 2)
            list(loader)
            assert loader.native is None
            assert loader.stats()["road"] == "torch"
            assert loader.explain().startswith("torch's own loader: ")
    mapped = pt.DataLoader(pt.Files(folder).map(x_of, processes=True), num_workers=1)
    assert mapped.native is not None
    assert "worker processes call" in mapped.explain()


def test_arguments_that_only_native_reading_has(folder):
    with pytest.warns(pt.NotNativeWarning, match="memory_budget"):
        loader = pt.DataLoader([1, 2, 3], memory_budget=1 << 20)
    assert [batch.item() for batch in loader] == [1, 2, 3]
    with pytest.warns(pt.NotNativeWarning) as said:
        pt.DataLoader(Own(folder), memory_budget=1 << 20)
    assert len(said) == 2
    with pytest.raises(ValueError, match="samples of its own"):
        pt.DataLoader(Own(folder), on_error="skip")
    with pytest.warns(pt.NotNativeWarning):
        assert next(iter(pt.DataLoader(Own(folder), 4, device="meta"))).device.type == "meta"


def test_native_collations_do_not_see_what_functions_make(folder):
    mapped = pt.Files(folder).map(x_of)
    with pytest.raises(TypeError, match=r"take those of penstock\.torch"):
        pt.DataLoader(mapped, 4, collate_fn=penstock.pad())
    assert next(iter(pt.DataLoader(mapped, 4, collate_fn=pt.pad()))).shape == (4, 3, 4)


def test_samplers_draw_from_trees(folder):
    labels = list(range(COUNT))
    dataset = td.StackDataset(x=pt.Files(folder).map(x_of), y=labels)
    parts = td.random_split(dataset, [0.7, 0.3], torch.Generator().manual_seed(1))
    weights = torch.arange(COUNT, dtype=torch.float64)
    for make in (
        lambda kind: [kind(part, 5, shuffle=True, generator=torch.Generator().manual_seed(2)) for part in parts],
        lambda kind: [
            kind(dataset, 5, sampler=td.WeightedRandomSampler(weights, 20, generator=torch.Generator().manual_seed(3)))
        ],
        lambda kind: [kind(dataset, 5, sampler=td.DistributedSampler(dataset, 2, rank)) for rank in (0, 1)],
    ):
        ours, theirs = make(pt.DataLoader), make(td.DataLoader)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.native is not None
            same(list(mine), list(other))


def test_explanations(folder):
    files = pt.Files(folder)
    assert "collated natively" in pt.DataLoader(files).explain()
    assert "3 threads read" in pt.DataLoader(files, num_workers=3).explain()
    assert "collate_fn" in pt.DataLoader(files, collate_fn=list).explain()
    assert "functions" in pt.DataLoader(files.map(x_of)).explain()
    assert "function of batches" in pt.DataLoader(files.map(doubled_batch, batched=True)).explain()
    assert "one by one" in pt.DataLoader(files, None).explain()


def test_loaders_of_trees_copy_and_pickle(folder):
    dataset = td.StackDataset(x=pt.Files(folder).map(x_of), y=list(range(COUNT)))
    loader = pt.DataLoader(dataset, 5)
    expected = list(loader)
    same(list(pickle.loads(pickle.dumps(loader))), expected)
    same(list(copy.deepcopy(loader)), expected)
