"""Strides and `requires_grad` of samples and batches are those that torch's Dataset and DataLoader give for the same
files."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
import torch.utils.data as td
from loader_pairs import files

import penstock
import penstock.torch as pt

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool)
DTYPES = (*DTYPES, torch.complex64)


def filled(shape, dtype, number):
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 + number) % 251).to(dtype).reshape(shape)


def permuted(order):
    """A tensor whose dimension order[0] lies outermost."""

    def make(shape, dtype, number):
        out = filled([shape[d] for d in order], dtype, number)
        return out.permute([order.index(d) for d in range(len(shape))])

    return make


def channels_last(shape, dtype, number):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return filled(shape, dtype, number).contiguous(memory_format=formats[len(shape)])


FORMATS = {
    "rows": filled,
    "channels_last": channels_last,
    "reversed": lambda shape, dtype, number: permuted(list(reversed(range(len(shape)))))(shape, dtype, number),
    "first_inside": lambda shape, dtype, number: permuted([*range(1, len(shape)), 0])(shape, dtype, number),
}
SHAPES = {
    "matrix": (5, 4),
    "image": (3, 4, 5),
    "clip": (2, 3, 4, 5),
    "volume": (2, 3, 4, 5, 2),
    "one_clip": (1, 3, 4, 5),
    "one_channel": (2, 1, 4, 5),
    "pixel": (2, 3, 1, 1),
    "line": (2, 1, 1, 5),
    "point": (2, 1, 1, 1),
    "empty": (2, 0, 4, 5),
    "number": (),
    "large_matrix": (300, 500),
    "large_clip": (3, 16, 50, 60),
}
CASES = [
    (shape, form)
    for shape, form in itertools.product(SHAPES, FORMATS)
    if len(SHAPES[shape]) >= {"channels_last": 4, "first_inside": 2}.get(form, 0)
]


def noticed(value):
    """What a user sees of a tensor, in all containers. Of dimensions with one element no stride is noticed."""
    if isinstance(value, torch.Tensor):
        strides = [step for size, step in zip(value.shape, value.stride(), strict=True) if size != 1]
        strides = strides if value.numel() else []
        grad = type(value.grad_fn).__name__ if value.grad_fn is not None else None
        elements = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return tuple(value.shape), value.dtype, strides, value.requires_grad, value.is_leaf, grad, elements
    if isinstance(value, dict):
        return {key: noticed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [noticed(item) for item in value]
    return value


def unchanged(sample):
    return sample


def pairs(given):
    """The loaders of both modules, with what decides the layout."""
    theirs, ours = given
    for batch_size, workers, mapped in itertools.product((2, None), (0, 2), (False, True)):
        # torch's samples come through worker processes as they are, and its batches in C order.
        mine = pt.DataLoader(ours.map(unchanged) if mapped else ours, batch_size=batch_size, num_workers=workers)
        yield (batch_size, workers, mapped), theirs, mine


def of_torch(dataset, batch_size, workers):
    """What torch gives, without its processes: their batches are stacked into memory in C order."""
    batches = list(td.DataLoader(dataset, batch_size=batch_size))
    return [in_rows(batch) for batch in batches] if workers and batch_size else batches


def in_rows(batch):
    if isinstance(batch, dict):
        return {key: in_rows(item) for key, item in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(in_rows, batch))
    return batch.contiguous() if isinstance(batch, torch.Tensor) else batch


def check(given):
    theirs, ours = given
    for i in range(len(theirs)):
        expected = noticed(theirs[i])
        assert noticed(ours[i]) == expected
        assert noticed(pt.load(ours.paths[i])) == expected
    assert list(map(noticed, ours.__getitems__([1, 0]))) == [noticed(theirs[1]), noticed(theirs[0])]
    for (batch_size, workers, mapped), dataset, loader in pairs(given):
        expected = list(map(noticed, of_torch(dataset, batch_size, workers)))
        assert list(map(noticed, loader)) == expected, (batch_size, workers, mapped)


@pytest.mark.parametrize(("shape", "form"), CASES, ids=str)
def test_files_of_one_layout(tmp_path, shape, form):
    make = FORMATS[form]
    for number, dtype in enumerate((torch.float32, random.Random(shape + form).choice(DTYPES))):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(files(folder, [make(SHAPES[shape], dtype, n) for n in range(5)]))


@pytest.mark.parametrize("seed", range(6))
def test_mixtures_in_containers(tmp_path, seed):
    draw = random.Random(seed)
    shapes = [draw.choice(("matrix", "image", "clip", "volume", "large_clip")) for _ in range(3)]
    dtype = draw.choice(DTYPES)

    def sample(number):
        parts = [
            FORMATS[draw.choice([form for name, form in CASES if name == shape])](SHAPES[shape], dtype, number)
            for shape in shapes
        ]
        return {"a": parts[0], "b": [parts[1], 3], "c": (parts[2], {"d": 1.5})}

    check(files(tmp_path, [sample(number) for number in range(6)]))


def test_a_batch_of_mixed_layouts_lies_in_rows(tmp_path):
    shape = SHAPES["clip"]
    makes = [channels_last, channels_last, channels_last, filled, filled, channels_last, channels_last, channels_last]
    check(files(tmp_path, [make(shape, torch.float32, n) for n, make in enumerate(makes)]))


def test_gaps_and_repeats_are_closed(tmp_path):
    wide = filled((2, 3, 4, 8), torch.float32, 0).contiguous(memory_format=torch.channels_last)
    theirs, ours = files(tmp_path, [wide[..., :5], wide[..., 3:]])
    assert ours[1].is_contiguous()
    assert torch.equal(ours[1], theirs[1])
    expected = next(iter(td.DataLoader(theirs, batch_size=2)))
    assert noticed(next(iter(pt.DataLoader(ours, batch_size=2)))) == noticed(expected)
    _, ours = files(tmp_path, [torch.ones(1, 3).expand(4, 3)])
    assert ours[0].is_contiguous()


def test_what_is_written_to_a_sample_stays_there(tmp_path):
    _, ours = files(tmp_path, [channels_last(SHAPES["clip"], torch.float32, n) for n in range(2)])
    before = ours[0].clone()
    ours[0].zero_()
    assert torch.equal(ours[0], before)


@pytest.mark.parametrize("form", ["rows", "channels_last"])
def test_gradients_are_wanted_of_what_the_file_marks(tmp_path, form):
    marked = [FORMATS[form](SHAPES["clip"], torch.float32, n).requires_grad_(n != 1) for n in range(4)]
    theirs, ours = files(tmp_path, [{"x": tensor, "y": torch.ones(2)} for tensor in marked])
    assert [noticed(ours[i]) for i in range(4)] == [noticed(theirs[i]) for i in range(4)]
    for batch_size, mapped in itertools.product((2, None), (False, True)):
        mine = pt.DataLoader(ours.map(unchanged) if mapped else ours, batch_size=batch_size)
        expected = list(td.DataLoader(theirs, batch_size=batch_size))
        assert list(map(noticed, mine)) == list(map(noticed, expected))
    for batch in pt.DataLoader(ours, batch_size=2, num_workers=2):  # torch raises there
        assert batch["x"].requires_grad
        (batch["x"] * 2).sum().backward()


def test_a_parameter_is_a_plain_leaf(tmp_path):
    _, ours = files(tmp_path, [torch.nn.Parameter(torch.ones(2, 3))])
    assert (type(ours[0]), ours[0].requires_grad, ours[0].is_leaf) == (torch.Tensor, True, True)


def test_rows_of_a_channels_last_array(tmp_path):
    array = filled((6, 2, 3, 4), torch.float32, 0).contiguous(memory_format=torch.channels_last)
    clips = filled((4, 2, 3, 4, 5), torch.float32, 0).permute(0, 1, 4, 2, 3)
    for whole in (array, clips):
        torch.save(whole, tmp_path / "a.pt")
        for ours in (pt.Rows(tmp_path / "a.pt"), pt.Rows(tmp_path / "a.pt", mmap=False), pt.Rows(whole)):
            assert noticed(ours[1]) == noticed(whole[1])
            expected = list(td.DataLoader(td.TensorDataset(whole), batch_size=2))
            assert list(map(noticed, pt.DataLoader(ours, batch_size=2))) == [noticed(batch[0]) for batch in expected]


def test_penstock_itself_gives_c_order(tmp_path):
    theirs, _ = files(tmp_path, [channels_last(SHAPES["clip"], torch.float32, n) for n in range(2)])
    samples = penstock.files(theirs.paths)
    assert samples[0].is_contiguous()
    for collate in (None, penstock.samples(), penstock.ragged()):
        (batch,) = penstock.DataLoader(samples, batch_size=2, collate=collate)
        assert all(t.is_contiguous() for t in ([batch] if collate is None else batch))
