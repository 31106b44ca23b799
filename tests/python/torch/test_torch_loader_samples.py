"""Samples that native batches have no form for: the loader gives what torch's gives of the same files."""

from __future__ import annotations

import collections
import pickle
import warnings

import pytest
import torch
import torch.utils.data as torch_data
from load_pairs import same

import penstock
import penstock.torch as pt

VALUES = {
    "quantized": torch.quantize_per_tensor(torch.arange(4.0), 0.5, 2, torch.qint8),
    "meta": torch.empty(3, device="meta"),
    "sparse": torch.eye(3).to_sparse(),
    "nested": {"deep": [torch.eye(2).to_sparse_csr()]},
    "set": {1, 2},
    "device": torch.device("cpu"),
    "dtype": torch.float16,
    "large": 2**80,
    "tuple_key": {(1, 2): torch.ones(2)},
    "parameter": {"p": torch.nn.Parameter(torch.ones(2)), "s": {3}},
    "ordered": {"o": collections.OrderedDict(a=1), "s": {3}},
}
STACKED = ("quantized", "meta", "tuple_key")


class Loaded(torch_data.Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.load(self.paths[index], weights_only=True)


def as_they_are(samples):
    return samples


@pytest.fixture
def files(tmp_path):
    def write(value, count=7):
        paths = [tmp_path / f"{i}.pt" for i in range(count)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, path in enumerate(paths):
                torch.save({"value": value, "number": i, "plain": torch.full((2,), i)}, path)
        return paths

    return write


def batches(module, dataset, **options):
    return list(module.DataLoader(dataset, generator=torch.Generator().manual_seed(3), **options))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", VALUES)
def test_functions_get_them(files, name, workers):
    paths = files(VALUES[name])
    options = {"batch_size": 3, "shuffle": True, "collate_fn": as_they_are}
    expected = batches(torch_data, Loaded(paths), **options)
    same(batches(pt, pt.Files(paths), num_workers=workers, **options), expected)
    same(pt.Files(paths)[1], Loaded(paths)[1])


@pytest.mark.parametrize("name", STACKED)
@pytest.mark.parametrize("workers", [0, 2])
def test_they_are_stacked_where_torch_stacks_them(files, name, workers):
    paths = files(VALUES[name])
    same(
        batches(pt, pt.Files(paths), batch_size=3, num_workers=workers),
        batches(torch_data, Loaded(paths), batch_size=3),
    )


@pytest.mark.parametrize("name", sorted(VALUES.keys() - {*STACKED, "parameter", "ordered", "nested"}))
def test_errors_of_stacking_name_the_file(files, name):
    paths = files(VALUES[name])
    with pytest.raises(penstock.UnsupportedError, match=r"0\.pt"):
        batches(pt, pt.Files(paths), batch_size=3)


def test_single_samples_subsets_and_functions(files):
    paths = files({1})
    whole, theirs = pt.Files(paths), Loaded(paths)
    same(batches(pt, whole, batch_size=None), batches(torch_data, theirs, batch_size=None))
    parts = [5, 2, 0]
    options = {"batch_size": 2, "collate_fn": as_they_are}
    ours = batches(pt, torch_data.Subset(whole, parts), **options)
    same(ours, batches(torch_data, torch_data.Subset(theirs, parts), **options))
    both = batches(pt, torch_data.ConcatDataset([whole, whole]), **options)
    same(both, batches(torch_data, torch_data.ConcatDataset([theirs, theirs]), **options))
    mapped = whole.map(lambda sample: len(sample["value"]) + sample["number"])
    for workers in (0, 2):
        same(batches(pt, mapped, batch_size=7, num_workers=workers), [torch.arange(1, 8)])


def test_keys_choose_of_them_too(files):
    paths = files({1, 2})
    dataset = pt.Files(paths, keys=["value", "number"])
    assert dataset[3] == {"value": {1, 2}, "number": 3}
    assert pickle.loads(pickle.dumps(dataset))[3] == dataset[3]
    assert batches(pt, pt.Files(paths, keys="plain"), batch_size=7)[0].keys() == {"plain"}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("broken", [0, 4])
def test_files_that_cannot_be_read_are_left_out(files, workers, broken):
    paths = files(VALUES["sparse"])
    paths[broken].write_bytes(b"nothing")
    loader = pt.DataLoader(pt.Files(paths), batch_size=2, num_workers=workers, on_error="skip", collate_fn=as_they_are)
    numbers = [sample["number"] for batch in loader for sample in batch]
    assert numbers == [number for number in range(7) if number != broken]
    assert [index for index, _, _ in loader.set_aside] == [broken]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("broken", [0, 4])
@pytest.mark.parametrize("on_error", ["replace", "mask"])
def test_others_stand_for_files_that_cannot_be_read(files, workers, broken, on_error):
    paths = files(VALUES["sparse"])
    paths[broken].write_bytes(b"nothing")
    loader = pt.DataLoader(pt.Files(paths), 2, num_workers=workers, on_error=on_error, collate_fn=as_they_are)
    batches = [batch if on_error == "mask" else (batch, None) for batch in loader]
    numbers = [sample["number"] for batch, _ in batches for sample in batch]
    assert numbers == [broken + 1 if number == broken else number for number in range(7)]
    if on_error == "mask":
        valid = torch.cat([valid for _, valid in batches])
        assert (~valid).nonzero().flatten().tolist() == [broken]


def test_plain_files_before_them_and_a_resume_among_them(files, tmp_path):
    paths = files(torch.ones(2))
    torch.save({"value": {1}, "number": 4, "plain": torch.full((2,), 4)}, paths[4])
    options = {"batch_size": 2, "num_workers": 1, "collate_fn": as_they_are}
    loader = pt.DataLoader(pt.Files(paths), **options)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    again = pt.DataLoader(pt.Files(paths), **options)
    again.load_state_dict(loader.state_dict())
    assert [sample["number"] for batch in again for sample in batch] == [6]


def test_classes_of_nobody_are_still_refused(tmp_path):
    torch.save({"x": torch.ones(2), "mine": torch.nn.Linear(2, 2)}, tmp_path / "a.pt")
    with pytest.raises(penstock.UnsupportedError, match="Linear"):
        batches(pt, pt.Files(tmp_path), batch_size=1, collate_fn=as_they_are)
