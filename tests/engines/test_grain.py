"""Penstock's datasets as sources of Grain, with its own classes and worker processes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import penstock

grain = pytest.importorskip("grain")

from penstock.grain import Source  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    np.save(folder / "rows.npy", np.arange(48.0).reshape(12, 4))
    for i in range(12):
        np.savez(folder / f"{i:02d}.npz", x=np.full((2, 3), i), y=np.int64(i))
    return folder


def datasets(folder):
    return {
        "rows": penstock.rows(folder / "rows.npy"),
        "files": penstock.files(str(folder / "*.npz")),
        "zip": penstock.zip(penstock.rows(folder / "rows.npy"), penstock.rows(list(range(12)))),
    }


def leaves(value):
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (tuple, list)) else [value]


def assert_same(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        for a, b in zip(leaves(one), leaves(other), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("kind", ["rows", "files", "zip"])
def test_both_are_sources_with_batched_reads(folder, kind):
    from grain._src.python.dataset.base import SupportsBatchedReadRandomAccessDataSource

    dataset = datasets(folder)[kind]
    samples = [dataset[i] for i in range(12)]
    for source in (dataset, Source(dataset)):
        assert isinstance(source, SupportsBatchedReadRandomAccessDataSource)
        assert_same(source._getitems([3, 0, 3, 11]), [samples[i] for i in (3, 0, 3, 11)])
        assert source._getitems([]) == []
        assert "12 samples" in repr(source)
        again = pickle.loads(pickle.dumps(source))
        assert repr(again) == repr(source)
        assert_same([again[5]], [samples[5]])
        shuffled = grain.MapDataset.source(source).shuffle(seed=1)
        chosen = [source[i] for i in grain.MapDataset.range(12).shuffle(seed=1)]
        assert_same(list(shuffled), chosen)
        assert_same(list(shuffled.to_iter_dataset()), chosen)
    assert all(isinstance(leaf, (np.ndarray, int)) for leaf in leaves(Source(dataset)[0]))
    with pytest.raises(penstock.IndexOutOfRangeError):
        dataset._getitems([12])


def loader(folder, kind, workers):
    dataset = datasets(folder)[kind]
    return grain.DataLoader(
        data_source=Source(dataset),
        sampler=grain.samplers.IndexSampler(12, shuffle=True, num_epochs=2, seed=3),
        operations=[grain.transforms.Batch(4)],
        worker_count=workers,
    )


def test_workers_and_a_checkpoint_of_the_iterator(folder):
    expected = list(loader(folder, "files", 0))
    assert len(expected) == 6
    iterator = iter(loader(folder, "files", 2))
    begun = [next(iterator) for _ in range(2)]
    state = iterator.get_state()
    rest = list(iterator)
    seen = sorted(value for batch in [*begun, *rest] for value in batch["y"].tolist())
    assert seen == sorted([*range(12)] * 2)
    again = iter(loader(folder, "files", 2))
    again.set_state(state)
    assert_same(list(again), rest)
    other = iter(loader(folder, "rows", 2))
    with pytest.raises(ValueError, match="source"):
        other.set_state(state)


def test_a_damaged_file_is_named(tmp_path):
    for i in range(4):
        np.save(tmp_path / f"{i}.npy", np.ones(5))
    source = Source(penstock.files(tmp_path))
    (tmp_path / "2.npy").write_bytes((tmp_path / "2.npy").read_bytes()[:-8])
    with pytest.raises(penstock.TruncatedError, match=r"2\.npy"):
        list(grain.MapDataset.source(source).batch(2))
    with pytest.raises(TypeError, match=r"expected a penstock\.Dataset"):
        Source([1, 2])
