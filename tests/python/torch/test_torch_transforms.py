"""Native transforms of datasets for torch, the loader's dtype, and iterable datasets of torch's own."""

import contextlib
import pickle
import warnings

import pytest
import torch
import torch.utils.data as torch_data

import penstock
import penstock.torch as pt


class Split(torch_data.IterableDataset):
    """As torch's documentation has it: each worker takes its part."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        info = torch_data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, self.size, step):
            yield torch.tensor([number, step]), f"clip {number}"


def batches(loader):
    return [
        {key: value.tolist() if isinstance(value, torch.Tensor) else value for key, value in batch.items()}
        if isinstance(batch, dict)
        else [part.tolist() if isinstance(part, torch.Tensor) else part for part in batch]
        for batch in loader
    ]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{"batch_size": 4}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_torchs_iterable_datasets_give_what_torchs_loader_gives(workers, options):
    expected = batches(torch_data.DataLoader(Split(10), num_workers=workers, **options))
    assert batches(pt.DataLoader(Split(10), num_workers=workers, **options)) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (lambda d: d.cast(torch.float32).scale(0.5).normalize(1.0, 2.0), lambda x: (x.float() * 0.5 - 1.0) / 2.0),
        (lambda d: d.permute([2, 0, 1]).crop([0, 1], [2, 2]), lambda x: x.permute(0, 3, 1, 2)[:, :, 0:2, 1:3]),
        (lambda d: d.flip(0).clamp(2, 9), lambda x: x.flip(1).clamp(2, 9)),
        (lambda d: d.pad([0], [1], value=7), lambda x: torch.nn.functional.pad(x, (0, 1), value=7)),
    ],
    ids=["arithmetic", "moves", "flip", "pad"],
)
def test_datasets_of_torch_have_the_native_transforms(tmp_path, steps, expected):
    images = torch.arange(4 * 3 * 4 * 2, dtype=torch.uint8).reshape(4, 3, 4, 2)
    for number, image in enumerate(images):
        torch.save(image, tmp_path / f"{number}.pt")
    for dataset in (pt.Rows(images), pt.Files(tmp_path)):
        changed = steps(dataset)
        assert type(changed) is type(dataset)
        (batch,) = pt.DataLoader(changed, batch_size=4, num_workers=1)
        assert torch.equal(batch, expected(images))
        assert torch.equal(changed[1], expected(images)[1])
        (same,) = torch_data.DataLoader(changed, batch_size=4)
        assert torch.equal(batch, same)
        assert torch.equal(dataset[0], images[0])


def test_a_loaders_dtype_is_that_of_its_batches():
    images = torch.tensor([[1, 1e5], [2, 3]])
    (batch,) = pt.DataLoader(pt.Rows(images), batch_size=2, dtype=torch.float16)
    assert torch.equal(batch, images.half())
    with pytest.raises(ValueError, match="100000"):
        list(pt.DataLoader(pt.Rows(images), batch_size=2, dtype=torch.float16, strict=True))
    with pytest.raises(ValueError, match="strict"):
        pt.DataLoader(pt.Rows(images), strict=True)
    with pytest.raises(TypeError, match="dtype="):
        pt.DataLoader(pt.Rows(images).map(abs), dtype=torch.float32)


def test_random_steps_follow_the_loaders_seed():
    images = torch.arange(64, dtype=torch.uint8).reshape(1, 8, 8).expand(16, 8, 8).contiguous()
    crops = pt.Rows(images).random_crop([4, 4])
    loader = pt.DataLoader(crops, batch_size=16, generator=torch.Generator().manual_seed(3))
    first, second = (next(iter(loader)) for _ in range(2))
    assert first.shape == (16, 4, 4)
    assert not torch.equal(first, second)
    again = pt.DataLoader(crops, batch_size=16, generator=torch.Generator().manual_seed(3))
    assert torch.equal(next(iter(again)), first)


class Wrapping(torch_data.Dataset):
    """As programs wrap a dataset."""

    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return self.inner[index]


@pytest.mark.parametrize("workers", ["threads", "processes"])
@pytest.mark.parametrize("draws", [False, True])
def test_it_is_said_where_python_code_reads_random_steps(workers, draws):
    rows = pt.Rows(torch.arange(64).reshape(4, 16))
    dataset = Wrapping(rows.random_crop(2, dims=0) if draws else rows)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pt.DataLoader(dataset, num_workers=1, workers=workers)
    assert draws == any("in each epoch" in str(warning.message) for warning in told)


def test_samples_without_a_native_form_have_no_random_steps(tmp_path):
    """Made one by one, they would be the same in every epoch."""
    for i in range(4):
        torch.save(torch.eye(3).to_sparse(), tmp_path / f"{i}.pt")
    rows = pt.Rows(torch.arange(64).reshape(4, 16))
    for each, error in ((rows, None), (rows.random_crop(2, dims=0), penstock.UnsupportedError)):
        loader = pt.DataLoader(torch_data.StackDataset(each, pt.Files(tmp_path)), 4, collate_fn=list)
        with pytest.raises(error) if error else contextlib.nullcontext():
            assert len(next(iter(loader))) == 4


def test_a_class_with_samples_of_its_own_is_not_transformed():
    class Own(pt.Rows):
        def __getitem__(self, index):
            return super().__getitem__(index) + 1

    with pytest.raises(TypeError, match="samples of its own"):
        Own(torch.zeros(2, 2)).cast(torch.float64)
    with pytest.raises(TypeError, match="samples of its own"):
        pt.DataLoader(Own(torch.zeros(2, 2)), dtype=torch.float64)


def test_transformed_datasets_pickle_and_are_named():
    dataset = pt.Rows(torch.ones(3, 4)).scale(2.0)
    assert torch.equal(pickle.loads(pickle.dumps(dataset))[2], torch.full((4,), 2.0))
    assert "random_crop" in dir(dataset)
    assert pt.Rows.normalize.__doc__ == penstock.Dataset.normalize.__doc__
