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


WIDE = filled((2, 3, 4, 8), torch.float32, 0).contiguous(memory_format=torch.channels_last)
LARGE = filled((64, 60, 50), torch.float32, 0)
GAPS = {
    "channels_last": (WIDE[..., :5], WIDE[..., 3:]),
    "columns": (torch.arange(32.0).reshape(4, 8)[:, :5], torch.arange(32.0).reshape(4, 8)[:, 3:]),
    "every_second": (torch.arange(40)[::2], torch.arange(40)[1::2]),
    "repeated": (torch.arange(3).expand(4, 3), torch.arange(4)[:, None].expand(4, 3)),
    "repeated_images": (torch.ones(1, 1, 5).expand(3, 4, 5), torch.ones(3, 1, 1).expand(3, 4, 5)),
    "windows": (torch.arange(9).unfold(0, 3, 2), torch.arange(12).as_strided((4, 3), (2, 1))),
    "windows_as_large_as_all": (torch.arange(120_000).as_strided((40_000, 3), (2, 1)),) * 2,
    "large": (LARGE[:, :40], LARGE[:, 20:]),
    "large_repeated": (LARGE[:1].expand(64, 60, 50), LARGE[1:2].expand(64, 60, 50)),
    "large_across": (LARGE.permute(2, 0, 1)[:, :40], LARGE.permute(2, 0, 1)[:, 24:]),
}


@pytest.mark.parametrize("case", GAPS)
def test_gaps_and_repeats_stay(tmp_path, case):
    check(files(tmp_path, GAPS[case]))


MOSTLY_GAPS = {
    "column": filled((64, 1000), torch.float32, 0)[:, 3:4],
    "inside": filled((20, 10, 100), torch.float32, 0).permute(2, 0, 1)[:, ::10],
    "large": filled((400, 5000), torch.float32, 0).t()[::4],
    "channels_last": filled((2, 3, 8, 9), torch.float32, 0).contiguous(memory_format=torch.channels_last)[..., ::4],
}


@pytest.mark.parametrize("case", MOSTLY_GAPS)
def test_large_gaps_are_closed_as_by_a_copy(tmp_path, case):
    whole = MOSTLY_GAPS[case]
    theirs, ours = files(tmp_path, [whole, whole])
    assert noticed(ours[1]) == noticed(theirs[1].clone())
    (alone, _) = pt.DataLoader(ours, batch_size=None)
    assert noticed(alone) == noticed(theirs[0].clone())
    batches = [next(iter(module.DataLoader(data, batch_size=2))) for module, data in ((td, theirs), (pt, ours))]
    assert noticed(batches[1]) == noticed(batches[0])


@pytest.mark.parametrize("shape", ["one_clip", "one_channel", "pixel", "line", "point", "clip", "volume", "image"])
@pytest.mark.parametrize("form", ["rows", "channels_last", "reversed"])
def test_sizes_of_one_have_the_strides_that_torch_gives_them(tmp_path, shape, form):
    if form == "channels_last" and len(SHAPES[shape]) < 4:
        return
    theirs, ours = files(tmp_path, [FORMATS[form](SHAPES[shape], torch.float32, n) for n in range(4)])
    assert [ours[i].stride() for i in range(4)] == [theirs[i].stride() for i in range(4)]
    for batch_size in (1, 3, None):
        given = [[t.stride() for t in module.DataLoader(d, batch_size)] for module, d in ((td, theirs), (pt, ours))]
        assert given[1] == given[0], batch_size


MEAN, STD = [1.0, 2.0, 3.0], [2.0, 3.0, 5.0]


def channels(values):
    return torch.tensor(values)[:, None, None]


TRANSFORMS = {
    "cast": (lambda d: d.cast(torch.float64), lambda t: t.to(torch.float64)),
    "scale": (lambda d: d.scale(0.5), lambda t: t * 0.5),
    "normalize": (lambda d: d.normalize(MEAN, STD), lambda t: (t - channels(MEAN)) / channels(STD)),
    "normalize_inside": (
        lambda d: d.normalize(MEAN, STD, dim=1),
        lambda t: (t - channels(MEAN)) / channels(STD),
    ),
    "clamp": (lambda d: d.clamp(3, 100), lambda t: t.clamp(3, 100)),
    "permute": (lambda d: d.permute((1, 0, 2, 3)).scale(2), lambda t: t.permute(1, 0, 2, 3) * 2),
    "crop": (lambda d: d.crop((1, 2), (2, 3)).scale(2), lambda t: t[..., 1:3, 2:5] * 2),
    "flip": (lambda d: d.flip((-1,)), lambda t: torch.flip(t, [-1])),
    "pad": (lambda d: d.pad((1, 2), (0, 1)), lambda t: torch.nn.functional.pad(t, (2, 1, 1, 0))),
    "chain": (
        lambda d: d.cast(torch.float64).crop((0, 1), (3, 4)).flip((-2,)).pad((1, 1), (1, 1)).scale(3),
        lambda t: torch.nn.functional.pad(torch.flip(t.double()[..., 0:3, 1:5], [-2]), (1, 1, 1, 1)) * 3,
    ),
}
TRANSFORMED = {
    "rows": filled((2, 3, 4, 5), torch.float32, 1),
    "channels_last": channels_last((2, 3, 4, 5), torch.float32, 2),
    "one_channels_last": channels_last((1, 3, 4, 5), torch.float32, 2),
    "reversed": permuted([3, 2, 1, 0])((2, 3, 4, 5), torch.float32, 3),
    "gaps": WIDE[..., :5],
    "mostly_gaps": filled((2, 3, 8, 15), torch.float32, 0).contiguous(memory_format=torch.channels_last)[..., ::2, ::3],
    "repeated": filled((3, 1, 5), torch.float32, 0).expand(2, 3, 4, 5),
    "large": channels_last((4, 3, 90, 100), torch.float32, 4),
    "large_gaps": channels_last((4, 3, 90, 200), torch.float32, 4)[..., 50:150],
}


class Made(td.Dataset):
    def __init__(self, dataset, function):
        self.dataset, self.function = dataset, function

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.function(self.dataset[index])


@pytest.mark.parametrize("form", TRANSFORMED)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_keep_an_order_as_torchs_functions_do(tmp_path, name, form):
    native, function = TRANSFORMS[name]
    stored = TRANSFORMED[form][0] if name == "normalize" else TRANSFORMED[form]
    theirs, ours = files(tmp_path, [stored, stored + 1 if form != "repeated" else stored])
    theirs, made = Made(theirs, function), native(ours)
    assert [noticed(made[i]) for i in range(2)] == [noticed(theirs[i]) for i in range(2)]
    for batch_size, workers, mapped in itertools.product((2, None), (0, 2), (False, True)):
        expected = list(map(noticed, of_torch(theirs, batch_size, workers)))
        loader = pt.DataLoader(made.map(unchanged) if mapped else made, batch_size, num_workers=workers)
        assert list(map(noticed, loader)) == expected, (batch_size, workers, mapped)


def test_a_mixture_of_orders_is_transformed(tmp_path):
    clips = [make((2, 3, 4, 5), torch.float32, n) for n, make in enumerate((channels_last, filled, channels_last))]
    theirs, ours = files(tmp_path, clips)
    theirs, made = Made(theirs, lambda t: t * 2), ours.scale(2)
    for batch_size, workers in itertools.product((1, 2, 3), (0, 2)):
        expected = list(map(noticed, of_torch(theirs, batch_size, workers)))
        assert list(map(noticed, pt.DataLoader(made, batch_size, num_workers=workers))) == expected


@pytest.mark.parametrize("form", ["rows", "channels_last", "reversed"])
def test_dtype_keeps_an_order(tmp_path, form):
    theirs, _ = files(tmp_path, [FORMATS[form](SHAPES["clip"], torch.float32, n) for n in range(2)])
    ours = pt.Files(theirs.paths, dtype=torch.bfloat16)
    assert [noticed(ours[i]) for i in range(2)] == [noticed(theirs[i].to(torch.bfloat16)) for i in range(2)]
    expected = next(iter(td.DataLoader(Made(theirs, lambda t: t.to(torch.bfloat16)), 2)))
    assert noticed(next(iter(pt.DataLoader(ours, 2)))) == noticed(expected)
    assert penstock.files(theirs.paths, dtype="bfloat16")[0].is_contiguous()


def test_what_is_floating_requires_gradients_behind_transforms(tmp_path):
    marked = filled((2, 3), torch.float32, 0).requires_grad_()
    _, ours = files(tmp_path, [marked, marked])
    for made in (ours.cast(torch.float64), ours.scale(2), ours.crop((0, 0), (1, 2)), ours.pad((1,), (1,))):
        assert made[0].requires_grad
        assert next(iter(pt.DataLoader(made, 2))).requires_grad
    for made in (ours.cast(torch.int32), ours.cast(torch.int32).cast(torch.float32)):
        assert not made[0].requires_grad
        assert not next(iter(pt.DataLoader(made, 2))).requires_grad


@pytest.mark.parametrize("form", TRANSFORMED)
def test_samples_of_a_stream_lie_as_its_source_gives_them(form):
    given = [TRANSFORMED[form].clone() if form == "mostly_gaps" else TRANSFORMED[form]] * 3
    stream = penstock.stream(lambda: iter(given))
    for ours, theirs in ((stream, given), (stream.scale(2), [tensor * 2 for tensor in given])):
        assert list(map(noticed, pt.Stream(ours))) == list(map(noticed, theirs))
        for batch_size in (None, 3):
            expected = list(map(noticed, td.DataLoader(theirs, batch_size)))
            assert list(map(noticed, pt.DataLoader(pt.Stream(ours), batch_size))) == expected


@pytest.mark.parametrize("form", TRANSFORMED)
@pytest.mark.parametrize("kind", ["files", "shuffled", "mapped"])
def test_samples_of_a_stream_of_a_dataset_lie_as_they_are_stored(tmp_path, kind, form):
    stored = TRANSFORMED[form].clone() if form == "mostly_gaps" else TRANSFORMED[form]
    theirs, ours = files(tmp_path, [stored] * 3)
    stream = penstock.stream(ours.native)
    stream = {"files": stream, "shuffled": stream.shuffle(2), "mapped": stream.map(unchanged)}[kind]
    assert list(map(noticed, pt.Stream(stream))) == [noticed(theirs[0])] * 3
    for batch_size in (None, 3):
        expected = list(map(noticed, td.DataLoader(theirs, batch_size)))
        assert list(map(noticed, pt.DataLoader(pt.Stream(stream), batch_size))) == expected
    assert all(sample.is_contiguous() for sample in stream)


@pytest.mark.parametrize("form", [form for form in TRANSFORMED if form != "mostly_gaps"])
def test_samples_that_are_asked_for_together_lie_as_each_by_itself(tmp_path, form):
    rows = filled(TRANSFORMED[form].shape, torch.float32, 7)
    theirs, ours = files(tmp_path, [rows, rows, TRANSFORMED[form], rows])
    for indices in ([0, 1], [1, 2, 3], [0, 3], [2, 0]):
        assert list(map(noticed, ours.__getitems__(indices))) == [noticed(theirs[i]) for i in indices]


def test_gradients_are_wanted_of_one_sample_among_others(tmp_path):
    theirs, ours = files(tmp_path, [torch.ones(3), torch.ones(3), torch.ones(3).requires_grad_()])
    assert [sample.requires_grad for sample in ours.__getitems__([0, 1])] == [False, False]
    assert list(map(noticed, ours.__getitems__([0, 2, 1]))) == [noticed(theirs[i]) for i in (0, 2, 1)]


SIZES_OF_ONE = [(1, 28, 28), (5, 1), (1, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 1, 1, 1), (1,), (3, 1, 4)]


@pytest.mark.parametrize("shape", SIZES_OF_ONE, ids=str)
@pytest.mark.parametrize("form", ["rows", "channels_last"])
def test_tensors_in_memory_keep_the_strides_of_their_sizes_of_one(shape, form):
    if form == "channels_last" and len(shape) != 4:
        return
    given = [FORMATS[form](shape, torch.float32, n) for n in range(3)]
    for ours in (pt.Dataset(penstock.dataset(given)), pt.Dataset(penstock.dataset(given)).map(unchanged)):
        assert [ours[i].stride() for i in range(3)] == [tensor.stride() for tensor in given]
        for batch_size in (1, 3, None):
            both = [[t.stride() for t in m.DataLoader(d, batch_size)] for m, d in ((td, given), (pt, ours))]
            assert both[1] == both[0], batch_size
    streamed = list(pt.Stream(penstock.stream(lambda: iter(given))))
    assert [tensor.stride() for tensor in streamed] == [tensor.stride() for tensor in given]


def strides_of(sample):
    return sample, list(sample.stride())


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_functions_are_given_samples_as_they_are_stored(tmp_path, workers):
    stored = [TRANSFORMED[form] for form in ("rows", "channels_last", "reversed", "gaps", "large")]
    theirs, ours = files(tmp_path, [*stored, torch.ones(1, 3).expand(4, 3)])
    mapped = ours.map(strides_of, processes=workers == "processes")
    given = td.DataLoader(Made(theirs, strides_of), None)
    loader = pt.DataLoader(mapped, None, num_workers=2, workers=workers)
    assert list(map(noticed, loader)) == list(map(noticed, given))


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
