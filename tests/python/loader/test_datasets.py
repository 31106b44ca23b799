"""Datasets: what a sample holds, and datasets of datasets."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from loader_data import N

import penstock

torch = pytest.importorskip("torch")


def test_rows(folder):
    images = np.load(folder / "images.npy")
    for source in (folder / "images.npy", images, penstock.load(folder / "images.npy"), torch.from_numpy(images)):
        dataset = penstock.rows(source)
        assert len(dataset) == N
        assert dataset[3].tolist() == images[3].tolist()
        assert dataset[-1].tolist() == images[-1].tolist()
    assert "images.npy" in penstock.rows(folder / "images.npy").describe(3)
    with pytest.raises(IndexError):
        penstock.rows(images)[N]
    with pytest.raises(penstock.ShapeMismatchError):
        penstock.rows(np.array(3))


def test_rows_of_one_of_several(folder, tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(3), b=np.arange(6).reshape(3, 2))
    assert penstock.rows(tmp_path / "x.npz", "b")[1].tolist() == [2, 3]
    assert penstock.rows(penstock.open(tmp_path / "x.npz")["a"])[2].item() == 2
    with pytest.raises(KeyError):
        penstock.rows(tmp_path / "x.npz", "c")
    with pytest.raises(ValueError, match="key"):
        penstock.rows(np.arange(3), "b")


def test_rows_of_an_array_share_its_memory():
    array = np.zeros((3, 2))
    dataset = penstock.rows(array)
    array[1] = 7
    assert dataset[1].tolist() == [7, 7]
    ref = weakref.ref(array)
    del array
    gc.collect()
    assert ref() is not None
    del dataset
    gc.collect()
    assert ref() is None


def test_an_index_of_files_is_kept(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pattern = str(folder / "*" / "*")
    expected = [penstock.files(pattern).describe(i) for i in range(len(penstock.files(pattern)))]
    kept = tmp_path / "own.index"
    for index in (False, True, True, kept, str(kept)):
        dataset = penstock.files(pattern, index=index)
        assert [dataset.describe(i) for i in range(len(dataset))] == expected
    assert kept.is_file()
    assert [path.parent.name for path in (tmp_path / "cache").rglob("files-*.index")] == ["penstock"]
    assert len(pickle.loads(pickle.dumps(dataset))) == len(expected)
    with pytest.raises(penstock.InvalidArgumentError, match="index"):
        penstock.files(expected, index=True)
    with pytest.raises(TypeError):
        penstock.files(pattern, index=3)


def test_files(folder):
    for pattern in (folder / "dicts", f"{folder}/dicts/*.pt", sorted((folder / "dicts").iterdir())):
        dataset = penstock.files(pattern)
        assert len(dataset) == N
        sample = dataset[5]
        assert sample["x"].tolist() == [[5.0] * 3] * 2
        assert (sample["y"], sample["name"]) == (5, "s5")
        assert "005.pt" in dataset.describe(5)
    assert list(penstock.files(folder / "dicts", keys=["y", "x"])[2]) == ["y", "x"]
    assert list(penstock.files(folder / "dicts", keys="y")[2]) == ["y"]


def test_combinations(folder):
    images, labels = penstock.rows(folder / "images.npy"), penstock.rows(folder / "labels.npy")
    both = penstock.zip(images, labels)
    assert isinstance(both[4], tuple)
    assert both[4][1].item() == 4
    joined = penstock.concat(labels, labels)
    assert len(joined) == 2 * N
    assert joined[N + 1].item() == 1
    for indices in ([3, 1, 3], np.array([3, 1, 3]), (3, 1, 3)):
        chosen = penstock.subset(labels, indices)
        assert [chosen[i].item() for i in range(len(chosen))] == [3, 1, 3]
    with pytest.raises(penstock.ShapeMismatchError, match=f"{N}"):
        penstock.zip(labels, joined)
    with pytest.raises(IndexError):
        penstock.subset(labels, [N])


def test_slices_are_batches(folder):
    both = penstock.zip(penstock.rows(folder / "images.npy"), penstock.rows(folder / "labels.npy"))
    for part in (slice(1, 3), slice(None, None, -1), slice(-2, None), slice(0, 10**9, 7)):
        images, labels = both[part]
        assert labels.tolist() == list(range(N))[part]
        assert images.numpy().tolist() == np.load(folder / "images.npy")[part].tolist()
    samples = penstock.files(folder / "dicts")[2:4]
    assert (samples["y"].tolist(), samples["name"]) == ([2, 3], ["s2", "s3"])
    with pytest.raises(ValueError, match="no samples"):
        both[3:3]
    with pytest.raises(TypeError):
        both[1.5]
