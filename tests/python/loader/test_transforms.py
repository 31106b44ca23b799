"""Transforms give what torch gives for the same steps, on each kind of dataset, with workers and after pickling."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest

import penstock
from penstock._api.transforms import Transforms

torch = pytest.importorskip("torch")

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def tensors(dtype: str, shape=(6, 5, 7, 3)) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return (torch.randn(shape, generator=generator, dtype=torch.float64) * 3).to(kind)
    return torch.randint(0, 2 if kind == torch.bool else 100, shape, generator=generator).to(kind)


def batch_of(dataset, **options) -> torch.Tensor:
    (batch,) = penstock.DataLoader(dataset, batch_size=len(dataset), **options)
    return torch.from_dlpack(batch)


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert torch.equal(*(one.flatten().clone().view(torch.uint8) for one in (a, b)))


def normalized(x: torch.Tensor, dim: int) -> torch.Tensor:
    """torchvision.transforms.functional.normalize, for a batch."""
    shape = [1] * x.ndim
    shape[dim] = 3
    mean, std = (torch.as_tensor(values, dtype=x.dtype).view(shape) for values in (MEAN, STD))
    return x.clone().sub_(mean).div_(std)


class Row(NamedTuple):
    """A transform as a call of it, and what torch gives for it; None where random numbers decide."""

    name: str
    args: tuple
    expected: object


def padded(x):
    return torch.nn.functional.pad(x, (0, 3, 1, 2), value=4)


# Samples are of shape (5, 7, 3) and of float32, but for one_hot of int64. Every transform has a row.
ROWS = [
    Row("cast", ("float64",), lambda x: x.double()),
    Row("cast", ("float64", True), lambda x: x.double()),
    Row("scale", (1 / 255,), lambda x: x * (1 / 255)),
    Row("normalize", (MEAN, STD, -1), lambda x: normalized(x, 3)),
    Row("normalize", (0.5, 0.25), lambda x: x.sub(0.5).div(0.25)),
    Row("clamp", (-0.1, 1.3), lambda x: x.clamp(-0.1, 1.3)),
    Row("permute", ((2, 0, 1),), lambda x: x.permute(0, 3, 1, 2)),
    Row("crop", ((1, 2), (3, 4), (0, 1)), lambda x: x[:, 1:4, 2:6]),
    Row("center_crop", ((2, 4), (0, 1)), lambda x: x[:, 2:4, 2:6]),
    Row("random_crop", ((2, 4), (0, 1)), None),
    Row("flip", ((0, -1),), lambda x: x.flip(1, 3)),
    Row("random_flip", ((0,), 0.5), None),
    Row("pad", ((1, 0), (2, 3), 4), padded),
    Row("one_hot", (100,), lambda x: torch.nn.functional.one_hot(x, 100)),
]
ROW = pytest.mark.parametrize("row", ROWS, ids=[f"{number}_{row.name}" for number, row in enumerate(ROWS)])


def sample_rows(row) -> torch.Tensor:
    return tensors("int64" if row.name == "one_hot" else "float32")


def applied(row, dataset):
    return getattr(dataset, row.name)(*row.args)


def test_every_transform_has_a_row():
    """Datasets, streams and torch's datasets have the methods of one class."""
    names = {name for name in vars(Transforms) if not name.startswith("_")}
    assert {row.name for row in ROWS} == names
    assert all(getattr(penstock.Dataset, name) is getattr(Transforms, name) for name in names)


@ROW
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_values_with_any_number_of_workers(row, workers):
    x = sample_rows(row)
    dataset = applied(row, penstock.rows(x))
    got = [torch.from_dlpack(batch) for batch in penstock.DataLoader(dataset, batch_size=2, num_workers=workers)]
    same(torch.cat(got), batch_of(dataset) if row.expected is None else row.expected(x))


@ROW
def test_single_samples(row):
    x = sample_rows(row)
    dataset = applied(row, penstock.rows(x))
    same(torch.stack([torch.from_dlpack(dataset[i]) for i in range(len(x))]), batch_of(dataset))


@ROW
def test_streams_have_the_transform(row):
    x = sample_rows(row)
    wanted = batch_of(applied(row, penstock.rows(x)))
    streamed = applied(row, penstock.stream(penstock.rows(x)))
    (batch,) = penstock.DataLoader(streamed, batch_size=len(x))
    same(torch.from_dlpack(batch), wanted)


@ROW
def test_datasets_of_torch_have_the_transform(row):
    import penstock.torch

    x = sample_rows(row)
    dataset = applied(row, penstock.torch.Rows(x))
    same(torch.stack([dataset[i] for i in range(len(x))]), batch_of(applied(row, penstock.rows(x))))
    (batch,) = penstock.torch.DataLoader(dataset, batch_size=len(x))
    if row.expected is not None:  # the loader draws its seed from torch's generator
        same(batch, row.expected(x))


@ROW
def test_pickles(row, tmp_path):
    np.save(tmp_path / "x.npy", sample_rows(row).numpy())
    dataset = applied(row, penstock.rows(tmp_path / "x.npy"))
    same(batch_of(pickle.loads(pickle.dumps(dataset))), batch_of(dataset))


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("of", DTYPES)
def test_cast(of, to):
    x = tensors(of)
    if not getattr(torch, to).is_floating_point:
        x = x.abs() if of in FLOATS else x
    same(batch_of(penstock.rows(x).cast(to)), x.to(getattr(torch, to)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic(dtype):
    x = tensors(dtype)
    rows = penstock.rows(x)
    same(batch_of(rows.scale(1 / 255)), x * (1 / 255))
    same(batch_of(rows.normalize(MEAN, STD, dim=-1)), normalized(x, 3))
    same(batch_of(rows.permute((2, 0, 1)).normalize(MEAN, STD)), normalized(x.permute(0, 3, 1, 2), 1))
    same(batch_of(rows.normalize(MEAN, STD, -1).permute((2, 0, 1))), normalized(x, 3).permute(0, 3, 1, 2))
    same(batch_of(rows.clamp(-0.1, 1.3)), x.clamp(-0.1, 1.3))
    same(batch_of(rows.normalize(0.5, 0.25)), x.sub(0.5).div(0.25))


@pytest.mark.parametrize("dtype", [kind for kind in DTYPES if kind not in (*FLOATS, "bool")])
def test_clamp_of_integers(dtype):
    x = tensors(dtype)
    same(batch_of(penstock.rows(x).clamp(10, 50)), x.clamp(10, 50))


@pytest.mark.parametrize("dtype", DTYPES)
def test_moves(dtype):
    x = tensors(dtype)
    rows = penstock.rows(x)
    same(batch_of(rows.permute((1, 2, 0))), x.permute(0, 2, 3, 1))
    same(batch_of(rows.crop((1, 2), (3, 4), (0, 1))), x[:, 1:4, 2:6])
    same(batch_of(rows.crop(1, 2)), x[..., 1:3])
    same(batch_of(rows.flip()), x.flip(-1))
    same(batch_of(rows.flip((0, -1))), x.flip(1, 3))
    same(batch_of(rows.center_crop((2, 4), (0, 1))), x[:, 2:4, 2:6])
    same(batch_of(rows.pad((1, 0), (2, 3), 1)), torch.nn.functional.pad(x, (0, 3, 1, 2), value=1))


@pytest.mark.parametrize(("size", "crop"), [(5, 2), (5, 4), (6, 3), (7, 4), (8, 1), (9, 2), (4, 4), (4, 0)])
def test_center_crop_is_torchvisions(size, crop):
    x = torch.arange(size).reshape(1, size)
    begin = round((size - crop) / 2.0)  # torchvision.transforms.functional.center_crop
    same(batch_of(penstock.rows(x).center_crop(crop)), x[:, begin : begin + crop])


def test_one_hot():
    x = torch.tensor([[0, 2], [1, 1]])
    same(batch_of(penstock.rows(x).one_hot(4)), torch.nn.functional.one_hot(x, 4))
    with pytest.raises(penstock.InvalidArgumentError, match=r"sample 0.*one_hot\(2\) found class 2"):
        batch_of(penstock.rows(x).one_hot(2))


def test_random_chains_agree_with_torch():
    draw = np.random.default_rng(11)
    for _ in range(300):
        shape = tuple(int(n) for n in draw.integers(1, 9, size=draw.integers(1, 5)))
        if draw.random() < 0.3:  # a picture whose channels lie innermost: very short runs, many of them
            shape = (*(int(n) for n in draw.integers(20, 70, size=2)), int(draw.integers(1, 5)))
        x = tensors(str(draw.choice(DTYPES)), (4, *shape))
        rows, wanted = penstock.rows(x), x
        for _ in range(draw.integers(1, 6)):
            rows, wanted = a_step(draw, rows, wanted)
        same(batch_of(rows), wanted)


def a_step(draw, rows, x):
    rank = x.ndim - 1
    kind = draw.choice(["cast", "scale", "normalize", "clamp", "permute", "crop", "flip", "pad"])
    if kind in {"scale", "normalize", "clamp"} and not x.dtype.is_floating_point:
        kind = "cast"
    if kind == "cast":
        return rows.cast("float32"), x.to(torch.float32)
    if kind == "scale":
        return rows.scale(0.37), x * 0.37
    if kind == "clamp":
        return rows.clamp(-1, 0.75), x.clamp(-1, 0.75)
    dim = int(draw.integers(rank))
    size = x.shape[dim + 1]
    if kind == "normalize":
        mean, std = draw.normal(size=size).tolist(), draw.uniform(0.5, 2, size=size).tolist()
        view = [1] * x.ndim
        view[dim + 1] = size
        parts = (torch.as_tensor(values, dtype=x.dtype).view(view) for values in (mean, std))
        return rows.normalize(mean, std, dim), x.sub(next(parts)).div(next(parts))
    if kind == "permute":
        order = [int(n) for n in draw.permutation(rank)]
        return rows.permute(order), x.permute(0, *(n + 1 for n in order))
    if kind == "flip":
        return rows.flip(dim), x.flip(dim + 1)
    if kind == "crop":
        begin = int(draw.integers(size))
        length = int(draw.integers(1, size - begin + 1))
        return rows.crop(begin, length, dim), x.narrow(dim + 1, begin, length)
    before, after = (int(n) for n in draw.integers(0, 3, size=2))
    width = [0] * (2 * rank)
    width[2 * (rank - 1 - dim)], width[2 * (rank - 1 - dim) + 1] = before, after
    return rows.pad(before, after, 1, dim), torch.nn.functional.pad(x, width, value=1)


@pytest.fixture
def folder(tmp_path):
    for number in range(24):
        side = 600 if number % 8 == 0 else 20  # some are over what counts as a small file
        image = np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8)
        np.savez(tmp_path / f"{number:02}.npz", image=image, label=np.int64(number))
    return tmp_path


def expected(folder, number):
    image = torch.from_numpy(np.load(folder / f"{number:02}.npz")["image"])
    middle = (image.shape[0] - 16) // 2
    part = image[middle : middle + 16, middle : middle + 16].permute(2, 0, 1)
    return normalized((part.float() * (1 / 255)).unsqueeze(0), 1)[0]


@pytest.mark.parametrize("workers", [0, 2])
def test_files_of_all_sizes(folder, workers):
    dataset = (
        penstock.files(folder)
        .center_crop((16, 16), (0, 1), keys="image")
        .permute((2, 0, 1), keys=["image"])
        .cast(torch.float32, keys="image")
        .scale(1 / 255, keys="image")
        .normalize(MEAN, STD, keys="image")
    )
    seen = 0
    for batch in penstock.DataLoader(dataset, batch_size=5, num_workers=workers):
        for image, label in zip(torch.from_dlpack(batch["image"]), batch["label"].numpy(), strict=False):
            assert label == seen
            same(image, expected(folder, seen))
            seen += 1
    assert seen == 24
    same(torch.from_dlpack(dataset[8]["image"]), expected(folder, 8))


@pytest.mark.parametrize("mmap", [True, False])
def test_rows_of_a_file(tmp_path, mmap):
    x = tensors("uint8", (300, 40, 3))
    np.save(tmp_path / "x.npy", x.numpy())
    dataset = penstock.rows(tmp_path / "x.npy", mmap=mmap).cast("float32").normalize(MEAN, STD, -1)
    got = torch.cat([torch.from_dlpack(batch) for batch in penstock.DataLoader(dataset, batch_size=32, num_workers=2)])
    same(got, normalized(x.float(), 2))


@pytest.mark.parametrize("order", ["C", "F"])
def test_other_orders_and_byte_orders(tmp_path, order):
    x = np.asarray(np.random.default_rng(3).normal(size=(300, 400)), dtype=">f8", order=order)
    np.save(tmp_path / "0.npy", x)
    np.save(tmp_path / "1.npy", x[:20, :20])
    wanted = torch.from_numpy(np.ascontiguousarray(x.astype("<f8")))
    dataset = penstock.files(tmp_path).crop((3, 4), (10, 12)).cast("float32")
    same(torch.from_dlpack(dataset[0]), wanted[3:13, 4:16].float())
    same(torch.from_dlpack(dataset[1]), wanted[3:13, 4:16].float())
    by_row = penstock.rows(tmp_path / "0.npy").cast("float32").flip()
    same(batch_of(by_row), wanted.float().flip(1))


def test_padding_collation_of_what_is_transformed(tmp_path):
    for number in range(1, 5):
        np.save(tmp_path / f"{number}.npy", np.full((number, 3), number, dtype=np.uint8))
    dataset = penstock.files(tmp_path).cast("float32").scale(0.5)
    (batch,) = penstock.DataLoader(dataset, batch_size=4, collate=penstock.pad(mode="constant", value=-1))
    values = torch.from_dlpack(batch["values"] if isinstance(batch, dict) else batch)
    assert values.dtype == torch.float32
    for number in range(1, 5):
        assert (values[number - 1, :number] == number / 2).all()
        assert (values[number - 1, number:] == -1).all()


@pytest.mark.parametrize("step", [lambda d: d.cast("float32"), lambda d: d.random_crop(50)], ids=["cast", "random"])
def test_a_file_that_is_cut(tmp_path, step):
    import os

    np.save(tmp_path / "x.npy", np.ones((1000, 100), "f8"))
    dataset = step(penstock.rows(tmp_path / "x.npy", mmap=True))
    os.truncate(tmp_path / "x.npy", 4096)
    with pytest.raises(penstock.TruncatedError, match="sample 990"):
        dataset[990]


def test_random_steps_repeat(tmp_path):
    x = torch.arange(32 * 64).reshape(32, 8, 8)
    dataset = penstock.zip(penstock.rows(x).random_crop((4, 4)), penstock.rows(x).random_crop((4, 4)).cast("float64"))

    def epoch(workers, number, first=0):
        loader = penstock.DataLoader(dataset, batch_size=4, num_workers=workers, seed=3, shuffle=True)
        loader.set_epoch(number)
        return [[torch.from_dlpack(part) for part in batch] for batch in loader][first:]

    base = epoch(0, 1)
    for image, mask in base:
        assert torch.equal(image.double(), mask)
    for workers in (1, 2, 4):
        for got, wanted in zip(epoch(workers, 1), base, strict=False):
            assert torch.equal(got[0], wanted[0])
    assert any(not torch.equal(a[0], b[0]) for a, b in zip(epoch(0, 2), base, strict=False))
    loader = penstock.DataLoader(dataset, batch_size=4, num_workers=2, seed=3, shuffle=True)
    loader.set_epoch(1)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    resumed = penstock.DataLoader(dataset, batch_size=4, num_workers=1, shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    for got, wanted in zip(resumed, base[3:], strict=False):
        assert torch.equal(torch.from_dlpack(got[0]), wanted[0])


def test_random_flips_are_flips_of_some():
    x = torch.arange(200 * 3).reshape(200, 3)
    got = batch_of(penstock.rows(x).random_flip(p=0.25))
    flipped = (got == x.flip(1)).all(1)
    assert ((got == x).all(1) ^ flipped).all()
    assert 20 < flipped.sum() < 80
    same(batch_of(penstock.rows(x).random_flip(p=1)), x.flip(1))
    same(batch_of(penstock.rows(x).random_flip(p=0)), x)


def test_crops_come_from_everywhere():
    x = torch.arange(500 * 6).reshape(500, 6) % 6
    begins = batch_of(penstock.rows(x).random_crop(3))[:, 0]
    assert sorted(set(begins.tolist())) == [0, 1, 2, 3]


def test_strict_and_arguments():
    rows = penstock.rows(np.array([[1.0, 300.0]]))
    with pytest.raises(penstock.InvalidArgumentError, match=r"sample 0.*strict cast from float64 to uint8.*300"):
        rows.cast("uint8", strict=True)[0]
    same(batch_of(rows.cast("float16", strict=True)), torch.tensor([[1.0, 300.0]], dtype=torch.float16))
    with pytest.raises(penstock.DTypeMismatchError, match="scale wants"):
        rows.cast("int32").scale(2)[0]
    for call in (
        lambda: rows.scale("x"),
        lambda: rows.scale(None),
        lambda: rows.normalize([], []),
        lambda: rows.normalize(0, 0),
        lambda: rows.clamp(2, 1),
        lambda: rows.crop(-1, 1),
        lambda: rows.random_flip(p=2),
        lambda: rows.one_hot(0),
        lambda: rows.pad(1, (1, 2)),
        lambda: rows.cast("no type"),
        lambda: rows.pad(1, 1, value=2**53 + 1),  # no float64 is
        lambda: rows.clamp(0, 2**63 - 1),
    ):
        with pytest.raises(penstock.Error):
            call()
    with pytest.raises(penstock.InvalidArgumentError, match="fit in 64 bits"):
        rows.pad(1 << 62, 1 << 62)[0]
    with pytest.raises(penstock.InvalidArgumentError, match=r"class 1844\d{16}|class 1\.8446\d+e\+19"):
        penstock.rows(np.array([[2**64 - 1]], dtype="u8")).one_hot(3)[0]
