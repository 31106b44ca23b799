"""What batches hold, and what a loader says of itself."""

import gc
import json
import pickle
import time

import numpy as np
import pytest
from loader_data import N, pairs

import penstock

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_as_torch(folder, workers, drop_last):
    loader = penstock.DataLoader(pairs(folder), batch_size=8, num_workers=workers, drop_last=drop_last)
    images, labels = torch.from_numpy(np.load(folder / "images.npy")), torch.from_numpy(np.load(folder / "labels.npy"))
    peer = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(images, labels), batch_size=8, drop_last=drop_last
    )
    assert len(loader) == len(peer)
    count = 0
    for (x, y), (tx, ty) in zip(loader, peer, strict=True):
        count += 1
        assert torch.equal(torch.from_dlpack(x), tx)
        assert torch.equal(torch.from_dlpack(y), ty)
    assert count == len(peer)


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_shuffled_order_is_torchs(folder, seed):
    labels = penstock.rows(folder / "labels.npy")
    loader = penstock.DataLoader(labels, batch_size=8, shuffle=True, seed=seed)
    for epoch in range(3):
        generator = torch.Generator()
        generator.manual_seed(seed + epoch)
        expected = torch.randperm(N, generator=generator).tolist()
        assert [i for batch in loader for i in batch.tolist()] == expected


def test_structure_of_dicts(folder):
    batch = next(iter(penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=4)))
    assert list(batch) == ["x", "y", "name", "pair"]
    assert batch["x"].shape == (4, 2, 3)
    assert batch["y"].dtype == "int64"
    assert batch["y"].tolist() == [0, 1, 2, 3]
    assert batch["name"] == ["s0", "s1", "s2", "s3"]
    assert isinstance(batch["pair"], tuple)
    assert batch["pair"][0].tolist() == [0, 1, 2, 3]
    assert batch["pair"][1].dtype == "float64"
    assert batch["pair"][1].tolist() == [0, 0.5, 1, 1.5]


def test_padding(folder):
    clips = penstock.files(folder / "clips")
    batch = next(iter(penstock.DataLoader(clips, batch_size=4, collate=penstock.pad())))
    assert batch.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]
    cut = next(iter(penstock.DataLoader(clips, batch_size=4, collate=penstock.pad_to(2, mode="constant", value=-1))))
    assert cut.tolist() == [[0, -1], [0, 1], [0, 1], [0, 1]]
    full = next(iter(penstock.DataLoader(clips, batch_size=3, collate=penstock.pad(lengths=True, mask=True))))
    assert full["lengths"].tolist() == [1, 2, 3]
    assert full["mask"].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert full["values"].shape == (3, 3)
    edge = next(iter(penstock.DataLoader(clips, batch_size=3, collate=penstock.pad(mode="replicate"))))
    assert edge.tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 2]]


def test_ragged(folder):
    batch = next(iter(penstock.DataLoader(penstock.files(folder / "clips"), batch_size=3, collate=penstock.ragged())))
    assert [t.tolist() for t in batch] == [[0], [0, 1], [0, 1, 2]]


def test_batches_outlive_their_loader(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=8, num_workers=2)
    x, y = next(iter(loader))
    array = x.numpy()
    expected = np.load(folder / "images.npy")[:8]
    del loader, x
    gc.collect()
    assert (array == expected).all()
    assert y.tolist() == list(range(8))


def test_padding_values_are_exact_or_refused(folder):
    for value in (2**53 + 1, 2**64 - 1, -(2**63) - 1):
        with pytest.raises(penstock.InvalidArgumentError, match="a float64 holds"):
            penstock.pad(mode="constant", value=value)
    penstock.pad(mode="constant", value=2**60)
    with pytest.raises(TypeError):
        penstock.pad(mode="constant", value="1")


def test_stats(folder):
    loader = penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=5, num_workers=2)
    list(loader)
    stats = loader.stats()
    assert stats["samples"] == N
    assert stats["batches"] == len(loader)
    assert stats["files_opened"] == N
    assert stats["payload_bytes"] > 0
    assert all(value >= 0 for value in stats.values() if not isinstance(value, str))
    assert stats["workers_because"] == "2 workers, as asked"
    assert str(stats).endswith(stats["limit"])
    assert json.loads(json.dumps(stats)) == pickle.loads(pickle.dumps(stats)) == stats


def test_stats_name_the_caller_that_works_longer_than_the_loader(folder):
    loader = penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=5, num_workers=1)
    assert loader.stats()["bottleneck"] == "nothing"
    for _ in loader:
        time.sleep(0.1)
    stats = loader.stats()
    assert stats["bottleneck"] == "caller", stats
    assert stats["limit"].startswith("the caller is the limit: it takes "), stats


def test_attributes(folder):
    dataset = pairs(folder)
    loader = penstock.DataLoader(dataset, 5, num_workers=3, seed=9)
    assert (loader.batch_size, loader.num_workers, loader.seed, len(loader.dataset)) == (5, 3, 9, N)
