"""Datasets: what a sample holds, and datasets of datasets."""

import gc
import pickle
import weakref
from pathlib import Path

import numpy as np
import pytest
from loader_data import N

import penstock

torch = pytest.importorskip("torch")
import penstock.torch as penstock_torch  # noqa: E402


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
    joined = labels.concat(labels)
    assert len(joined) == 2 * N
    assert joined[N + 1].item() == 1
    for indices in ([3, 1, 3], np.array([3, 1, 3]), (3, 1, 3)):
        chosen = penstock.subset(labels, indices)
        assert [chosen[i].item() for i in range(len(chosen))] == [3, 1, 3]
    with pytest.raises(penstock.ShapeMismatchError, match=f"{N}"):
        penstock.zip(labels, joined)
    with pytest.raises(IndexError):
        penstock.subset(labels, [N])


def test_rows_of_any_sequence_have_an_array():
    for source in (range(6), [0, 1, 2, 3, 4, 5], memoryview(bytes(range(6))), np.arange(6)):
        rows = penstock.rows(source)
        assert (rows.shape, rows.ndim, rows.chunks) == ((6,), 1, (6,))
        assert rows[[4, 1],].tolist() == [4, 1]
    with pytest.raises(AttributeError, match="text"):
        assert penstock.rows(("a", "b")).shape


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


@pytest.fixture
def tree(tmp_path):
    for name in ("a/1", "a/old/2", "b/1", "b/tmp1/3", "lost+found/9"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / f"{name}.npy", np.array([int(name[-1])]))
    return tmp_path


def samples_of(dataset):
    return [int(dataset[i][0]) for i in range(len(dataset))]


@pytest.mark.parametrize("files", [penstock.files, penstock_torch.Files], ids=["penstock", "penstock.torch"])
@pytest.mark.parametrize("index", [False, True])
def test_what_a_listing_leaves_out(tree, files, index):
    def left(exclude, pattern="**/*.npy"):
        options = {"index": tree / "index"} if index else {}
        twice = [files(f"{tree}/{pattern}", exclude=exclude, **options) for _ in range(2)]
        assert samples_of(twice[0]) == samples_of(twice[1])
        return samples_of(twice[0])

    assert left(None) == [1, 2, 1, 3, 9]
    assert left(()) == [1, 2, 1, 3, 9]
    assert left("lost+found") == [1, 2, 1, 3]
    assert left(["lost+found", "tmp*"]) == [1, 2, 1]
    assert left(("a/old", "b")) == [1, 9]
    assert left({"1.npy"}) == [2, 3, 9]
    assert samples_of(files(f"{tree}/**/*.npy", exclude=iter(["a", "b"]))) == [9]
    assert left(tree / "a") == [1, 3, 9]
    assert left([tree / "a", b"lost+found"]) == [1, 3]
    assert left("a", "a/*.npy") == [1]  # the pattern names it
    with pytest.raises(penstock.NotFoundError):
        left("*")
    for nothing in ("", "/", "./"):
        with pytest.raises(ValueError, match="exclude"):
            left(nothing)
    for wrong in (3, [3], [None]):
        with pytest.raises(TypeError):
            left(wrong)
    with pytest.raises(ValueError, match="exclude"):
        files([tree / "a/1.npy"], exclude="a")


def test_what_was_left_out_stays_so(tree):
    dataset = penstock.files(f"{tree}/**/*.npy", exclude=["lost+found", "old"])
    np.save(tree / "a/old/4.npy", np.array([4]))
    for copied in (
        pickle.loads(pickle.dumps(dataset)),
        penstock.files(f"{tree}/**/*.npy", exclude=["lost+found", "old"]),
    ):
        assert samples_of(copied) == [1, 1, 3]
    folders = penstock_torch.Files(f"{tree}/*/**/*.npy", exclude=["lost+found", "old"])
    assert folders.classes == ["a", "b"]
    assert [str(path.relative_to(tree)) for path in map(Path, folders.paths)] == ["a/1.npy", "b/1.npy", "b/tmp1/3.npy"]
    assert penstock.pack(dataset, tree / "shards")["samples"] == 3


@pytest.mark.parametrize("given", [5, 2.5, None, object(), "a", b"a", {}], ids=lambda given: type(given).__name__)
def test_what_is_no_list_of_samples(given):
    with pytest.raises(penstock.DTypeMismatchError, match=rf"type {type(given).__name__} .*a size and a function"):
        penstock.dataset(given)


@pytest.mark.parametrize("mmap", [True, False])
def test_values_in_memory_are_not_mapped(mmap):
    for source in (np.zeros((2, 3)), [1, 2], ["a", "b"], penstock.zeros(2)):
        with pytest.raises(penstock.InvalidArgumentError, match=f"mmap={mmap}"):
            penstock.rows(source, mmap=mmap)


def test_a_name_joins_one_dataset(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    files = penstock.files(tmp_path)
    with pytest.raises(penstock.InvalidArgumentError, match="'a'"):
        penstock.join({"a": files, "b": files}, a=files)
