"""Samples of every structure, and what batches of them are: the same from torch's loader and from ours."""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import same
from loader_pairs import COUNT, alike, files, outcome, rows

import penstock
import penstock.torch as pt

Ordered = collections.OrderedDict
NO_WORKERS = {"num_workers": 0}

SAMPLES = {
    "ordered": lambda i: Ordered(b=torch.full((2,), i), a=i),
    "ordered within": lambda i: {"k": [Ordered(z=i / 2, y=(i, "t"))], "plain": {"x": i}},
    "ordered around a dict": lambda i: Ordered(d={"x": Ordered(y=torch.tensor(i))}),
    "ordered and empty": lambda i: {"o": Ordered(), "d": {}, "l": [], "t": (), "i": i},
    "dict, then ordered": lambda i: ({"a": i}, Ordered(a=i), [{"a": i}]),
    "numbers for keys": lambda i: {0: torch.tensor(i), 1: i, -5: "x"},
    "keys of every type": lambda i: {True: i, None: i, 1.5: i, b"k": i, "s": i, (1, 2): i},
    "text": lambda i: f"sample {i}",
    "bytes": lambda i: {"b": bytes([i])},
    "bools": lambda i: i % 2 == 0,
    "ints": lambda i: 2**62 + i,
    "floats": lambda i: i / 3,
    "tuples": lambda i: (i, (torch.full((2, 2), i), "n")),
    "nothing in it": lambda i: torch.empty(0, 3),
    "arrays": lambda i: np.full((2, 3), i),
    "half arrays": lambda i: {"a": np.full(2, i, np.float16)},
    "numpy numbers": lambda i: [np.float32(i), np.uint8(i)],
    "sizes": lambda i: {"s": torch.Size([i, 2])},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", SAMPLES)
def test_batches(tmp_path, kind, workers):
    datasets = files(tmp_path, [SAMPLES[kind](i) for i in range(COUNT)])
    alike(list, datasets, NO_WORKERS, batch_size=4, num_workers=workers)
    alike(list, [td.ConcatDataset([d, td.Subset(d, [3, 1])]) for d in datasets], batch_size=4)
    alike(list, [td.StackDataset(d, d) for d in datasets], batch_size=4)


AS_THEY_ARE = sorted(SAMPLES.keys() - {"numpy numbers", "sizes"})


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [k for k in AS_THEY_ARE if "arrays" not in k])
def test_samples_as_they_are(tmp_path, kind, workers):
    datasets = files(tmp_path, [SAMPLES[kind](i) for i in range(5)])
    same([datasets[1][i] for i in range(5)], [datasets[0][i] for i in range(5)])
    same(list(datasets[1]), [datasets[0][i] for i in range(5)])
    options = {"num_workers": workers}
    alike(list, datasets, NO_WORKERS, collate_fn=list, batch_size=3, **options)
    alike(list, datasets, NO_WORKERS, collate_fn=td.default_convert, batch_size=3, **options)
    alike(list, datasets, NO_WORKERS, batch_size=None, **options)
    mapped = pt.DataLoader(datasets[1].map(lambda sample: [sample]), 3, collate_fn=list, **options)
    same(list(itertools.chain(*mapped)), [[datasets[0][i]] for i in range(5)])


def test_arrays_that_torch_has_no_type_for_stay_arrays(tmp_path):
    samples = [{"name": np.array([f"n{i}"]), "when": np.array(["2020-01-01"], "M8[D]"), "i": i} for i in range(4)]
    theirs, ours = files(tmp_path, samples)
    (through_a_loader,) = pt.DataLoader(ours, None, sampler=[2], collate_fn=lambda sample: sample)
    for got in (ours[2], through_a_loader):
        assert got.keys() == samples[2].keys()
        np.testing.assert_array_equal(got["name"], theirs[2]["name"], strict=True)
        np.testing.assert_array_equal(got["when"], theirs[2]["when"], strict=True)
        got["name"][0] = "x"
    for loader in (td.DataLoader(theirs, 2), pt.DataLoader(ours, 2)):
        with pytest.raises(TypeError):
            list(loader)


@pytest.mark.parametrize("collate", [pt.stack(), pt.pad(), pt.ragged()])
def test_mappings_keep_their_type_in_every_collation(tmp_path, collate):
    theirs, ours = files(tmp_path, [Ordered(x=torch.full((i + 1,), i)[:1], d={"y": i}) for i in range(4)])
    natively = next(iter(pt.DataLoader(ours, 4, collate_fn=collate)))
    called = collate([theirs[i] for i in range(4)])
    same(natively, called)
    assert [type(natively), type(natively["d"])] == [Ordered, dict]


def test_mappings_of_other_types_in_functions_of_ours():
    class Own(dict):
        pass

    class Fixed(collections.abc.Mapping):
        def __init__(self, content):
            self.content = content

        def __getitem__(self, key):
            return self.content[key]

        def __len__(self):
            return len(self.content)

        def __iter__(self):
            return iter(self.content)

    for make in (Own, Fixed, Ordered):
        samples = [make({"x": torch.tensor([i])}) for i in range(3)]
        ours, theirs = pt.stack()(samples), td.default_collate(samples)
        assert type(ours) is type(theirs) is make
        assert torch.equal(ours["x"], theirs["x"])
    counts = collections.defaultdict(list, x=torch.tensor([1]))
    assert pt.stack()([counts, counts]).default_factory is list


class Moves:
    """As batches of other libraries are."""

    def __init__(self, tensor):
        self.tensor = tensor

    def to(self, device):
        return Moves(self.tensor.to(device))


def test_batches_on_the_way_to_a_device_keep_their_type(tmp_path):
    made = collections.defaultdict(list, x=torch.ones(2))
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    pair = collections.namedtuple("Pair", "a b")(torch.ones(1), [torch.ones(2)])
    _, ours = rows(tmp_path)
    for batch in (made, Ordered(x=torch.ones(2)), packed, pair, Moves(torch.ones(2))):
        (moved,) = pt.DataLoader(ours, COUNT, collate_fn=lambda _, batch=batch: batch, device="meta")
        assert type(moved) is type(batch)
    (moved,) = pt.DataLoader(ours, COUNT, collate_fn=lambda _: made, device="meta")
    assert moved["x"].device.type == "meta"
    assert moved.default_factory is list


INDICES = {
    "slice": slice(1, 3),
    "slice with steps": slice(None, None, 4),
    "slice beyond": slice(9, 99),
    "slice of the end": slice(-2, None),
    "all": slice(None),
    "none": slice(3, 3),
    "list": [4, -2],
    "empty list": [],
    "range": range(2, 9, 3),
    "tensor": torch.tensor([1, -1]),
    "array": np.array([2, 2]),
    "mask": torch.arange(COUNT) % 3 == 0,
}


@pytest.mark.parametrize("kind", INDICES)
def test_several_rows_at_once_are_those_of_a_tensor_dataset(tmp_path, kind):
    x, y = torch.arange(COUNT * 2.0).reshape(COUNT, 2), torch.arange(COUNT)
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", y.numpy())
    theirs, ours = td.TensorDataset(x, y), pt.Rows(tmp_path / "x.npy", tmp_path / "y.npy")
    index = INDICES[kind]
    same(ours[index], theirs[index])
    if isinstance(index, slice):
        same(td.Subset(ours, [5, 1, 2, 8])[index], td.Subset(theirs, [5, 1, 2, 8])[index])


@pytest.mark.parametrize("index", [1.0, "1", None, (1, 2), {1}])
def test_what_is_no_index_is_refused(tmp_path, index):
    _, ours = rows(tmp_path)
    with pytest.raises(TypeError):
        ours[index]


@pytest.mark.parametrize("index", [COUNT, -COUNT - 1, [0, COUNT], torch.tensor([COUNT])])
def test_what_is_out_of_range_is_an_index_error(tmp_path, index):
    _, ours = rows(tmp_path)
    with pytest.raises(IndexError):
        ours[index]


def test_slices_of_files_and_functions(tmp_path):
    _, ours = files(tmp_path, [Ordered(y=i, d={"n": f"{i}"}) for i in range(5)])
    same(ours[1:3], Ordered(y=torch.tensor([1, 2]), d={"n": ["1", "2"]}))
    same(ours[2:2], Ordered(y=torch.empty(0, dtype=torch.int64), d={"n": []}))
    for index in (slice(1, 3), [1, 2]):
        with pytest.raises(TypeError, match="Subset"):
            ours.map(len)[index]


def test_samplers_without_batches_give_slices_and_lists(tmp_path):
    x = torch.arange(COUNT)
    np.save(tmp_path / "x.npy", x.numpy())
    datasets = td.TensorDataset(x), pt.Rows(tmp_path / "x.npy")
    for sampler in ([slice(0, 3), slice(5, None)], [[1, 2], [], [3]]):
        for workers in (0, 2):
            theirs = [part for (part,) in td.DataLoader(datasets[0], batch_size=None, sampler=sampler)]
            same(list(pt.DataLoader(datasets[1], batch_size=None, sampler=sampler, num_workers=workers)), theirs)


def test_keys_that_are_integers_and_others(tmp_path):
    _, ours = files(tmp_path, [{0: torch.tensor(i), 1: i} for i in range(3)])
    (batch,) = pt.DataLoader(pt.Files(tmp_path, keys=[0]), 3)
    assert {key: part.tolist() for key, part in batch.items()} == {0: [0, 1, 2]}
    for key in (0.5, None, (0,)):
        with pytest.raises(TypeError, match=f"found {type(key).__name__}"):
            pt.Files(tmp_path, keys=[key])
    (batch,) = pt.DataLoader(ours.map(lambda sample: sample[0]), 3)
    assert batch.tolist() == [0, 1, 2]


def test_a_subset_that_grows(tmp_path):
    datasets = rows(tmp_path)

    def case(loader_class, dataset):
        part = td.Subset(dataset, [1, 2])
        loader = loader_class(part, batch_size=2)
        out = [[b.tolist() for b in loader]]
        part.indices.append(5)
        out.append((len(loader), [b.tolist() for b in loader]))
        part.indices = [9]
        out.append((len(loader), [b.tolist() for b in loader]))
        return out

    assert case(pt.DataLoader, datasets[1]) == case(td.DataLoader, datasets[0])


def test_random_split(tmp_path):
    datasets = rows(tmp_path)
    for lengths in ([4, 7], [0.5, 0.5], [0.1, 0.2, 0.7], [0.4], [4, 4]):

        def case(dataset, lengths=lengths):
            parts = td.random_split(dataset, lengths, generator=torch.Generator().manual_seed(1))
            return [[int(part[i]) for i in range(len(part))] for part in parts], [part[:2].tolist() for part in parts]

        theirs, ours = outcome(lambda: case(datasets[0])), outcome(lambda: case(datasets[1]))
        assert str(theirs) == str(ours)


def test_subsets_of_what_is_outside(tmp_path):
    datasets = rows(tmp_path)
    for wrong in ({"sampler": [5]}, {"batch_sampler": [[0, -9]]}):
        assert isinstance(alike(list, [td.Subset(d, [1, 2]) for d in datasets], **wrong), IndexError)
    with pytest.raises(penstock.IndexOutOfRangeError):
        pt.DataLoader(td.Subset(datasets[1], [1, 200]))


REFUSED = {
    "shapes": [torch.ones(1), torch.ones(2)],
    "shapes within": [{"x": (torch.ones(1), 1)}, {"x": (torch.ones(2), 1)}],
    "types and shapes": [torch.ones(1), torch.ones(2, dtype=torch.int64)],
    "lengths": [[1], [1, 2]],
    "keys": [{"a": 1}, {"b": 1}],
    "a number, then text": [{"a": 1}, {"a": "x"}],
    "sets": [{1}, {2}],
    "sparse tensors": [torch.eye(2).to_sparse()] * 2,
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_stacked_is_refused_with_torchs_type(tmp_path, kind, workers):
    datasets = files(tmp_path, REFUSED[kind])
    error = alike(list, datasets, NO_WORKERS, batch_size=2, num_workers=workers)
    assert isinstance(error, penstock.Error)
    assert "001.pt" in str(error) or "000.pt" in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("content", [b"", b"nothing", None])
@pytest.mark.parametrize("workers", [0, 2])
def test_files_that_cannot_be_read_are_refused_with_torchs_type(tmp_path, content, workers):
    datasets = files(tmp_path, [torch.ones(1), torch.ones(1)])
    (tmp_path / "001.pt").unlink()
    if content is not None:
        (tmp_path / "001.pt").write_bytes(content)
    for case in (list, lambda loader: loader.dataset[1]):
        error = alike(case, datasets, NO_WORKERS, num_workers=workers)
        assert isinstance(error, penstock.Error)
        assert "001.pt" in str(error)
