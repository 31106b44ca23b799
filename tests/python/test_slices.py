"""Slices of files against NumPy's slices of arrays, over every format that holds arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock

ARRAY = np.arange(6 * 7 * 8, dtype="f4").reshape(6, 7, 8)
SAVERS = {
    "c.npy": lambda path: np.save(path, ARRAY),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(ARRAY)),
    "swapped.npy": lambda path: np.save(path, ARRAY.astype(">f4")),
    "stored.npz": lambda path: np.savez(path, a=ARRAY),
    "deflated.npz": lambda path: np.savez_compressed(path, a=ARRAY),
    "x.safetensors": lambda path: penstock.save({"a": ARRAY}, path),
    "x.pt": lambda path: penstock.save({"a": penstock.tensor(ARRAY)}, path),
}
INDICES = st.one_of(st.integers(-9, 9), st.slices(8).filter(lambda s: s.step is None or s.step > 0), st.just(Ellipsis))


@pytest.fixture(scope="module", params=SAVERS)
def entry(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("slices") / request.param
    SAVERS[request.param](path)
    archive = penstock.open(path)
    return archive[archive.keys()[0]]


def test_whole(entry):
    assert entry.shape == ARRAY.shape
    assert entry.dtype == "float32"
    assert entry.nbytes == ARRAY.nbytes
    assert np.array_equal(entry.load().numpy(), ARRAY)


@settings(deadline=None)
@given(key=st.lists(INDICES, max_size=4).map(tuple), then=st.none() | INDICES)
def test_as_numpy(entry, key, then):
    def sliced(source):
        out = source[key]
        return out if then is None else out[then]

    try:
        expected = sliced(ARRAY)
    except (IndexError, TypeError, AttributeError):
        with pytest.raises(IndexError):
            sliced(entry)
        return
    found = sliced(entry)
    assert found.shape == expected.shape
    assert found.nbytes == expected.nbytes
    loaded = found.load()
    assert loaded.shape == expected.shape
    assert np.array_equal(loaded.numpy(), expected)


def test_fortran_order_stays(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(ARRAY))
    entry = penstock.open(tmp_path / "x.npy")
    entry = entry[entry.keys()[0]]
    assert entry.strides == (1, 6, 42)
    assert entry.load().strides == (1, 6, 42)
    assert entry[::2].load().is_contiguous()


def test_mapped_slices_are_views(tmp_path):
    np.save(tmp_path / "x.npy", ARRAY)
    archive = penstock.open(tmp_path / "x.npy")
    view = archive[archive.keys()[0]][1::2, :, 3].load(mmap=True)
    assert view.read_only
    assert view.strides == (112, 8)
    assert np.array_equal(view.numpy(), ARRAY[1::2, :, 3])


@pytest.mark.parametrize(("key", "error"), [(6, IndexError), (-7, IndexError), ((0, 0, 0, 0), IndexError)])
def test_bad_indices(entry, key, error):
    with pytest.raises(error):
        entry[key]


def test_negative_steps_say_so(entry):
    with pytest.raises(ValueError, match="step"):
        entry[::-1]


def test_slices_of_a_file_larger_than_what_is_read(tmp_path):
    """A sparse file of 64 GiB: only reading no more than asked for is feasible."""
    header = np.lib.format.header_data_from_array_1_0(np.empty((0, 1024), "f4")) | {"shape": (1 << 24, 1024)}
    path = tmp_path / "sparse.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        file.seek(start + 4096 * 12_345_678)
        file.write(np.arange(1024, dtype="f4").tobytes())
        file.truncate(start + (1 << 36))
    archive = penstock.open(path)
    entry = archive[archive.keys()[0]]
    assert entry.nbytes == 1 << 36
    assert np.array_equal(entry[12_345_678].load().numpy(), np.arange(1024, dtype="f4"))
    assert entry[12_345_677:12_345_680, 1000:].load().numpy().sum() == np.arange(1000, 1024).sum()
    assert entry[:: 1 << 20, 5].load().tolist() == [0] * 16
