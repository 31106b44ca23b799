"""Shared parts in what penstock.torch saves, loads, fills and makes batches of."""

import numpy as np
import pytest
import torch
from nestings import LEVELS, NESTINGS, in_dicts, in_lists

import penstock
import penstock.torch as pt


def _leaf(content):
    while isinstance(content, (dict, list, tuple)):
        first, *rest = content.values() if isinstance(content, dict) else content
        assert all(other is first for other in rest)
        content = first
    return content


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("nest", NESTINGS)
@pytest.mark.parametrize("save", [pt.save, torch.save])
def test_files_keep_what_is_shared(tmp_path, nest, levels, save):
    save(nest(torch.arange(3), levels), tmp_path / "shared.pt")
    assert (tmp_path / "shared.pt").stat().st_size < 20_000
    for back in (pt.load(tmp_path / "shared.pt"), torch.load(tmp_path / "shared.pt")):
        assert _leaf(back).tolist() == [0, 1, 2]


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_cannot_be_saved_is_found_at_once(tmp_path, protocol):
    with pytest.raises(penstock.DTypeMismatchError, match=r"at \['x'\]"):
        pt.save({"d": in_dicts({}, 60), "x": object()}, tmp_path / "x.pt", pickle_protocol=protocol)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("nest", NESTINGS)
def test_load_into_fills_shared_targets(tmp_path, nest, levels):
    torch.save(nest(torch.arange(3), levels), tmp_path / "shared.pt")
    place = torch.zeros(3, dtype=torch.int64)
    assert pt.load_into(nest(place, levels), tmp_path / "shared.pt") == ([], [])
    assert place.tolist() == [0, 1, 2]


@pytest.mark.parametrize("levels", LEVELS)
def test_load_into_tells_what_is_missing_and_unexpected(tmp_path, levels):
    torch.save({"t": torch.arange(3)}, tmp_path / "plain.pt")
    keys = pt.load_into(in_dicts({"t": torch.zeros(3)}, levels), tmp_path / "plain.pt", strict=False)
    assert keys.unexpected_keys == ["t"]
    torch.save(in_dicts({"t": torch.arange(3)}, levels), tmp_path / "shared.pt")
    keys = pt.load_into({"t": torch.zeros(3)}, tmp_path / "shared.pt", strict=False)
    assert keys.missing_keys == ["t"]


class _Samples(torch.utils.data.Dataset):
    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.sample


def _rows_with(sample):
    return pt.Rows(np.ones((4, 2), "float32")).map(lambda row: sample)


RULES = [None, pt.stack(), pt.ragged(), pt.pad()]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("nest", NESTINGS)
@pytest.mark.parametrize("rule", RULES, ids=["default", "stack", "ragged", "pad"])
def test_batches_have_a_bound(nest, levels, rule):
    sample = nest(torch.ones(2), levels)
    for dataset in (_rows_with(sample), _Samples(sample)):
        with pytest.raises(penstock.LimitError, match=r"so often.*collate_fn of your own"):
            next(iter(pt.DataLoader(dataset, batch_size=2, collate_fn=rule)))


@pytest.mark.parametrize("rule", RULES, ids=["default", "stack", "ragged", "pad"])
def test_batches_of_samples_that_hold_themselves_are_refused(rule):
    sample = {"t": torch.ones(2)}
    sample["own"] = [sample]
    for dataset in (_rows_with(sample), _Samples(sample)):
        with pytest.raises(penstock.LimitError):
            next(iter(pt.DataLoader(dataset, batch_size=2, collate_fn=rule)))


def test_samples_without_batches_have_the_bound():
    for dataset in (_rows_with(in_lists(1.5, 60)), _Samples(in_lists(1.5, 60))):
        with pytest.raises(penstock.LimitError):
            next(iter(pt.DataLoader(dataset, batch_size=None)))


def test_worker_processes_have_the_bound():
    loader = pt.DataLoader(_Samples(in_dicts({"t": 1.0}, 60)), batch_size=2, num_workers=1)
    with pytest.raises(penstock.LimitError):
        next(iter(loader))


@pytest.mark.parametrize("rule", RULES, ids=["default", "stack", "ragged", "pad"])
def test_parts_that_a_few_ways_lead_to_are_stacked(rule):
    pair = (torch.ones(2), 3)
    for dataset in (_rows_with({"x": [pair] * 3}), _Samples({"x": [pair] * 3})):
        batch = next(iter(pt.DataLoader(dataset, batch_size=2, collate_fn=rule)))
        assert len(batch["x"]) == 3
        assert batch["x"][2][1].tolist() == [3, 3]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("nest", NESTINGS)
def test_batches_of_a_functions_own_keep_what_is_shared(nest, levels):
    sample = nest(torch.ones(2), levels)
    for dataset in (_rows_with(sample), _Samples(sample)):
        loader = pt.DataLoader(dataset, batch_size=2, collate_fn=lambda samples: samples, device="cpu")
        assert _leaf(next(iter(loader))[0]).tolist() == [1, 1]


def test_a_batch_that_holds_itself_is_not_moved():
    batch = [torch.ones(2)]
    batch.append(batch)
    loader = pt.DataLoader(_Samples(1), batch_size=2, collate_fn=lambda samples: batch, device="cpu")
    with pytest.raises(penstock.LimitError, match="holds itself"):
        next(iter(loader))


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("nest", NESTINGS)
def test_samples_that_only_the_dataset_makes_keep_what_is_shared(tmp_path, nest, levels):
    torch.save({"s": torch.eye(3).to_sparse(), "d": nest(torch.ones(2), levels)}, tmp_path / "shared.pt")
    files = pt.Files([tmp_path / "shared.pt"] * 2)
    samples = next(iter(pt.DataLoader(files, batch_size=2, collate_fn=lambda samples: samples)))
    assert _leaf(samples[1]["d"]).tolist() == [1, 1]
    with pytest.raises(penstock.Error, match="select what you need with keys"):
        next(iter(pt.DataLoader(files, batch_size=2)))
