"""dtype= and strict= of rows, files and the loader, beside NumPy's astype and torch's Module.to(dtype)."""

import pickle
import warnings

import numpy as np
import pytest

import penstock

NUMBERS = np.array([[0, 1.5, -2.75], [3e4, -7, 250.99]])


@pytest.fixture
def mixed(tmp_path):
    for i, dtype in enumerate(["u1", "i2", "f4", ">f8"]):
        np.save(tmp_path / f"{i}.npy", np.array([1, 2, 3 + i], dtype))
    return tmp_path


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_values_are_those_of_astype(tmp_path, dtype):
    np.save(tmp_path / "a.npy", NUMBERS)
    expected = NUMBERS.astype(dtype)
    (batch,) = penstock.DataLoader(penstock.rows(tmp_path / "a.npy", dtype=dtype), batch_size=2)
    assert np.asarray(batch).dtype == expected.dtype
    assert np.asarray(batch).tobytes() == expected.tobytes()
    (batch,) = penstock.DataLoader(penstock.rows(tmp_path / "a.npy"), batch_size=2, dtype=dtype)
    assert np.asarray(batch).tobytes() == expected.tobytes()
    sample = penstock.files([tmp_path / "a.npy"], dtype=np.dtype(dtype))[0]
    assert np.asarray(sample).tobytes() == expected.tobytes()


def test_files_of_mixed_types(mixed):
    arrays = [np.load(path) for path in sorted(mixed.iterdir())]
    with pytest.raises(penstock.DTypeMismatchError):
        next(iter(penstock.DataLoader(penstock.files(mixed), batch_size=4)))
    for loader in (
        penstock.DataLoader(penstock.files(mixed, dtype="promote"), batch_size=4),
        penstock.DataLoader(penstock.files(mixed), batch_size=4, dtype="promote"),
        penstock.DataLoader(pickle.loads(pickle.dumps(penstock.files(mixed, dtype="promote"))), batch_size=4),
    ):
        (batch,) = loader
        assert np.array_equal(np.asarray(batch), np.stack(arrays))
        assert np.asarray(batch).dtype == np.float64
    copied = pickle.loads(pickle.dumps(penstock.DataLoader(penstock.files(mixed), batch_size=1, dtype="f2")))
    assert [np.asarray(batch).dtype for batch in copied] == ["u1", "i2", "f2", "f2"]


def test_strict_raises_where_a_value_does_not_fit():
    array = np.array([[1, 2], [3, 1e300]])
    loose = penstock.rows(array, dtype="float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(np.asarray(loose[1]), array[1].astype("f4"))
    strict = penstock.DataLoader(penstock.rows(array), dtype="float32", strict=True)
    it = iter(strict)
    assert next(it).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match=r"sample 1.*1e\+300"):
        next(it)
    for make in (
        lambda: penstock.rows(array, strict=True),
        lambda: penstock.DataLoader(penstock.rows(array), strict=True),
        lambda: penstock.rows(array, dtype="float33"),
    ):
        with pytest.raises((ValueError, TypeError)):
            make()


KINDS = {
    "ids": np.array([257, 70001], "i8"),
    "small": np.array([255, 3], "u1"),
    "mask": np.array([True, False]),
    "x": np.array([1.5, -3e4], "f4"),
    "wide": np.array([1e5, 2.0], ">f8"),
    "z": np.array([1 + 2j, 3], "c8"),
}


def made(tmp_path, way, dtype):
    """A sample, and a batch of two, that this way of loading gives for files with KINDS."""
    for i in range(2):
        np.savez(tmp_path / f"{i}.npz", **KINDS)
    named = penstock.zip(**{name: penstock.rows(np.stack([array] * 2)) for name, array in KINDS.items()})
    stream = penstock.stream([dict(KINDS)] * 2)
    return {
        "load": lambda: penstock.load(tmp_path / "0.npz", dtype=dtype),
        "open": lambda: penstock.open(tmp_path / "0.npz").load(dtype=dtype),
        "files": lambda: penstock.files(tmp_path, dtype=dtype)[0],
        "loader": lambda: next(iter(penstock.DataLoader(penstock.files(tmp_path), 1, dtype=dtype))),
        "workers": lambda: next(iter(penstock.DataLoader(penstock.files(tmp_path), 1, num_workers=2, dtype=dtype))),
        "pickled": lambda: pickle.loads(pickle.dumps(penstock.files(tmp_path, dtype=dtype)))[1],
        "zip": lambda: next(iter(penstock.DataLoader(named, 1, dtype=dtype))),
        "rows": lambda: {k: penstock.rows(tmp_path / "0.npz", k, dtype=dtype)[0] for k in KINDS},
        "dataset": lambda: next(iter(penstock.DataLoader(penstock.dataset([dict(KINDS)]), 1, dtype=dtype))),
        "stream": lambda: next(iter(penstock.DataLoader(stream, 1, dtype=dtype))),
    }[way]()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64"])
@pytest.mark.parametrize(
    "way", ["load", "open", "files", "loader", "workers", "pickled", "zip", "rows", "dataset", "stream"]
)
def test_every_way_converts_what_a_module_would(tmp_path, way, dtype):
    sample = made(tmp_path, way, dtype)
    for name, array in KINDS.items():
        stays = array.dtype.kind in "iub"
        assert sample[name].dtype == (array.dtype.name if stays else dtype), name
        if stays:
            found = np.asarray(sample[name]).ravel()
            assert found.tolist() == array.tolist()[: found.size]


@pytest.mark.parametrize("way", ["load", "open", "files", "loader", "zip", "rows", "dataset", "stream"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_no_way_converts_to_integers_without_a_name(tmp_path, way, dtype):
    with pytest.raises(ValueError, match=r"floating-point and complex"):
        made(tmp_path, way, dtype)


def test_keys_name_what_else_is_converted(tmp_path):
    np.savez(tmp_path / "a.npz", **KINDS)
    sample = penstock.files(tmp_path, ["ids", "x"], dtype="float64")[0]
    assert {name: str(tensor.dtype.name) for name, tensor in sample.items()} == {"ids": "float64", "x": "float64"}
    assert np.asarray(sample["ids"]).tolist() == [257, 70001]
    assert penstock.files(tmp_path, "small", dtype="int64")[0]["small"].dtype == "int64"
    cast = penstock.files(tmp_path).cast("float64", keys="ids")[0]
    assert cast["ids"].dtype == "float64"
    assert cast["small"].dtype == "uint8"
