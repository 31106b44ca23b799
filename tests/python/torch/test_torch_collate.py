"""pad, pad_to, ragged and stack of penstock.torch: natively and on torch tensors they give the same."""

from __future__ import annotations

import copy
import pickle
from collections import namedtuple

import numpy as np
import pytest
import torch
import torch.utils.data as td
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from load_pairs import same

import penstock
import penstock.torch as pt

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int16", "uint8", "bool", "complex64"]


class Samples(td.Dataset):
    """Not one of Penstock's."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def batches(dataset, rule, workers=0):
    return list(pt.DataLoader(dataset, 4, collate_fn=rule, num_workers=workers))


def plain(value):
    """Without the storages, which natively are parts of a block."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def check(tmp_path, samples, rule):
    for i, sample in enumerate(samples):
        torch.save(sample, tmp_path / f"{i:03}.pt")
    native = pt.DataLoader(pt.Files(tmp_path), 4, collate_fn=rule)
    assert native.native is not None
    foreign = batches(Samples(samples), rule)
    same(plain(list(native)), plain(foreign))
    return foreign


def samples_of(dtype, lengths=(3, 5, 2, 4, 1, 7), rest=(2,)):
    torch.manual_seed(0)
    make = lambda n: (torch.randn(n, *rest, dtype=torch.float64) * 9).to(getattr(torch, dtype))  # noqa: E731
    return [{"x": make(n), "y": i, "z": (torch.tensor(float(i)), "text")} for i, n in enumerate(lengths)]


@pytest.mark.parametrize("mode", ["zero", "constant", "reflect", "replicate"])
@pytest.mark.parametrize("length", [None, 0, 3, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_modes(tmp_path, dtype, length, mode):
    lengths = (3, 5, 2, 4, 2, 7)
    options = {"mode": mode, "value": 1 if mode == "constant" else 0, "lengths": True, "mask": True}
    rule = pt.pad(**options) if length is None else pt.pad_to(length, **options)
    (first, second) = check(tmp_path, samples_of(dtype, lengths), rule)
    assert first["x"]["lengths"].tolist() == [min(n, length if length is not None else n) for n in lengths[:4]]
    assert second["x"]["mask"].sum(1).tolist() == [min(n, length if length is not None else n) for n in lengths[4:]]


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_dimensions(tmp_path, dim):
    samples = [torch.randn(*((2, n, 3) if dim in (1, -2) else (n, 2, 3) if dim == 0 else (2, 3, n))) for n in (3, 1, 2)]
    check(tmp_path, samples, pt.pad(dim))


def test_only_some_keys(tmp_path):
    samples = [{"x": torch.randn(n), "w": torch.randn(2), "deep": {"x": [torch.ones(n, 1)]}} for n in (2, 3)]
    (batch,) = check(tmp_path, samples, pt.pad(keys="x", lengths=True))
    assert batch["w"].shape == (2, 2)
    assert batch["deep"]["x"][0]["lengths"].tolist() == [2, 3]


def test_stack_and_ragged(tmp_path):
    check(tmp_path, [(torch.ones(2, i + 1), i, {"k": "v"}) for i in range(5)], pt.ragged())
    check(tmp_path, [(torch.ones(2), i, {"k": 1.5}) for i in range(5)], pt.stack())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    length=st.none() | st.integers(0, 9),
    mode=st.sampled_from(["zero", "reflect", "replicate"]),
    rest=st.lists(st.integers(0, 3), max_size=2),
)
def test_any_lengths(lengths, length, mode, rest):
    samples = [torch.arange(n * int(np.prod(rest)), dtype=torch.int32).reshape(n, *rest) for n in lengths]
    rule = pt.pad(mode=mode, mask=True) if length is None else pt.pad_to(length, mode=mode, mask=True)
    native = penstock.Dataset.concat(*(penstock.rows(np.asarray(sample)[None]) for sample in samples))
    try:
        (expected,) = penstock.DataLoader(native, len(samples), collate=rule.native)
    except penstock.ShapeMismatchError:
        with pytest.raises(penstock.ShapeMismatchError):
            rule(samples)
        return
    batch = rule(samples)
    assert list(batch) == list(expected)
    for name, value in expected.items():
        assert batch[name].shape == value.shape
        assert batch[name].tolist() == value.tolist()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_torchs_processes(method):
    samples = samples_of("float32")
    loader = pt.DataLoader(
        Samples(samples), 4, collate_fn=pt.pad(mask=True), num_workers=2, multiprocessing_context=method
    )
    same(plain(list(loader)), plain(batches(Samples(samples), pt.pad(mask=True))))


def test_in_torchs_own_loader_and_behind_map(tmp_path):
    samples = [torch.randn(n, 2) for n in (3, 1, 2)]
    expected = torch.nn.utils.rnn.pad_sequence([s[:2] for s in samples], batch_first=True)
    (batch,) = td.DataLoader(Samples(samples), 3, collate_fn=pt.pad_to(2))
    assert torch.equal(batch, expected)
    for i, sample in enumerate(samples):
        torch.save(sample, tmp_path / f"{i}.pt")
    mapped = pt.Files(tmp_path).map(lambda sample: sample + 1)
    (batch,) = pt.DataLoader(mapped, 3, collate_fn=pt.pad_to(2), num_workers=2)
    assert torch.equal(batch[0], expected[0] + 1)


def test_named_tuples_and_arrays():
    pair = namedtuple("pair", "x y")
    (batch,) = batches(Samples([pair(np.arange(n), "t") for n in (2, 3)]), pt.pad(lengths=True))
    assert type(batch) is pair
    assert batch.x["values"].tolist() == [[0, 1, 0], [0, 1, 2]]
    assert batch.y == ("t", "t")


def test_they_are_values():
    for rule in (pt.pad(mask=True), pt.pad_to(3, keys=["x"]), pt.ragged(), pt.stack()):
        assert pickle.loads(pickle.dumps(rule)) == rule
        assert copy.deepcopy(rule) == rule
        assert isinstance(rule.native, penstock.Collate)
    assert pt.pad() != pt.pad(1)
    assert repr(pt.pad_to(3)).startswith("Pad(length=3")


def test_bad_input():
    for options in ({"mode": "mirror"}, {"mode": "reflect", "value": 1}):
        with pytest.raises(penstock.InvalidArgumentError):
            pt.pad(**options)
    with pytest.raises(penstock.InvalidArgumentError):
        pt.pad_to(-1)
    rows = [torch.zeros(2, 2), torch.zeros(3, 3)]
    with pytest.raises(penstock.ShapeMismatchError, match=r"sample 1 \(of the batch\)"):
        pt.pad()(rows)
    with pytest.raises(penstock.DTypeMismatchError, match="int64"):
        pt.pad()([torch.zeros(2), torch.zeros(2, dtype=torch.int64)])
    with pytest.raises(penstock.KeyNotFoundError, match="'w'"):
        pt.pad(keys="w")([{"x": torch.zeros(2)}])
    with pytest.raises(penstock.ShapeMismatchError, match="cannot be padded"):
        pt.pad(3, keys="x")([{"x": torch.zeros(2)}])
    with pytest.raises(penstock.ShapeMismatchError, match="needs 2"):
        pt.pad(mode="reflect")([torch.zeros(1), torch.zeros(2)])
    with pytest.raises(RuntimeError, match="equal size"):
        pt.stack()([torch.zeros(1), torch.zeros(2)])
    with pytest.raises(TypeError, match=r"penstock\.torch"):
        pt.DataLoader(Samples(rows), collate_fn=penstock.pad())


@pytest.mark.parametrize("mode", ["zero", "constant", "reflect", "replicate"])
@pytest.mark.parametrize("sizes", [None, (6, 7)])
def test_several_dimensions(tmp_path, mode, sizes):
    torch.manual_seed(0)
    samples = [{"x": torch.randn(2, *shape), "y": i} for i, shape in enumerate([(3, 4), (5, 2), (2, 7)])]
    options = {"mode": mode, "value": 1 if mode == "constant" else 0, "lengths": True, "mask": True, "keys": "x"}
    rule = pt.pad(dims=[1, -1], **options) if sizes is None else pt.pad_to(sizes, **options)
    (batch,) = check(tmp_path, samples, pickle.loads(pickle.dumps(rule)))
    assert batch["x"]["values"].shape == (3, 2, *(sizes or (5, 7)))
    assert batch["x"]["lengths"].tolist() == [[3, 4], [5, 2], [2, 7]]


def test_larger_samples_than_the_sizes_are_named():
    samples = [torch.zeros(2, 3), torch.zeros(4, 3)]
    for dataset in (Samples(samples), penstock.dataset(samples)):
        with pytest.raises(penstock.ShapeMismatchError, match=r"sample 1 .*\(4, 3\).*dimension 0"):
            batches(dataset, pt.pad_to([3, 3]))


class Attributes(dict):
    """A dict whose attributes are its items, as many programs have one."""

    __getattr__ = dict.__getitem__


@pytest.mark.parametrize("options", [{"collate_fn": pt.collate.pad()}, {"device": "cpu"}], ids=["rule", "device"])
def test_dicts_whose_attributes_are_their_items(options):
    samples = [Attributes(x=torch.full((2,), i), y=i) for i in range(4)]
    (batch,) = pt.DataLoader(samples, batch_size=4, **options)
    assert batch["x"].tolist() == [[i, i] for i in range(4)]
    assert batch["y"].tolist() == [0, 1, 2, 3]
