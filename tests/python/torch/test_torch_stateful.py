"""torchdata's StatefulDataLoader protocol: one program, whichever of the two loaders it is given."""

from __future__ import annotations

import pickle

import pytest
import torch

import penstock.torch as pt

stateful = pytest.importorskip("torchdata.stateful_dataloader")

COUNT = 37


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stateful")
    for i in range(COUNT):
        torch.save({"x": torch.full((3,), i), "y": i}, folder / f"{i:03d}.pt")
    return folder


LOADERS = {"torchdata's": stateful.StatefulDataLoader, "ours": pt.DataLoader}


def loader_of(kind, folder, workers):
    options = {"num_workers": workers, "batch_size": 4, "shuffle": True, "drop_last": True}
    return LOADERS[kind](pt.Files(folder), generator=torch.Generator().manual_seed(8), **options)


def labels(batches):
    return [batch["y"].tolist() for batch in batches]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 5, 9])
@pytest.mark.parametrize("kind", LOADERS)
def test_a_program_that_stops_and_goes_on(folder, kind, taken, workers):
    loader = loader_of(kind, folder, workers)
    batches = iter(loader)
    first = labels(next(batches) for _ in range(taken))
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = labels(batches)
    assert len(first) + len(rest) == COUNT // 4

    again = loader_of(kind, folder, workers)
    again.load_state_dict(state)
    assert labels(again) == rest
    if kind == "ours":
        for _ in range(2):
            assert labels(again) == labels(loader)
    seen = [y for batch in first + rest for y in batch]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_of_before_the_first_epoch(folder, workers):
    loader = loader_of("ours", folder, workers)
    state = loader.state_dict()
    expected = [labels(loader) for _ in range(3)]
    again = loader_of("ours", folder, 2 - workers)
    again.load_state_dict(state)
    assert [labels(again) for _ in range(3)] == expected


def test_states_are_not_each_others(folder):
    theirs = loader_of("torchdata's", folder, 0)
    next(iter(theirs))
    with pytest.raises(ValueError, match="state"):
        loader_of("ours", folder, 0).load_state_dict(theirs.state_dict())
