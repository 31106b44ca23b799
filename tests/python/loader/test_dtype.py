"""dtype= and strict= of rows, files and the loader, beside NumPy's astype."""

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


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "int64", "complex64", "bool"])
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
    copied = pickle.loads(pickle.dumps(penstock.DataLoader(penstock.files(mixed), batch_size=4, dtype="i2")))
    assert np.asarray(next(iter(copied))).dtype == np.int16


def test_strict_raises_where_a_value_does_not_fit():
    array = np.array([[1, 2], [3, 300]])
    loose = penstock.rows(array, dtype="uint8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(np.asarray(loose[1]), array[1].astype("u1"))
    strict = penstock.DataLoader(penstock.rows(array), dtype="uint8", strict=True)
    it = iter(strict)
    assert next(it).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match=r"sample 1.*300"):
        next(it)
    for make in (
        lambda: penstock.rows(array, strict=True),
        lambda: penstock.DataLoader(penstock.rows(array), strict=True),
        lambda: penstock.rows(array, dtype="float33"),
    ):
        with pytest.raises((ValueError, TypeError)):
            make()
