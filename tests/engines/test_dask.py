"""`dask.array.from_array` over rows and entries: lazy, and equal to NumPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import penstock

da = pytest.importorskip("dask.array")
tokenize = pytest.importorskip("dask.base").tokenize

SHAPES = {"line": (1000,), "plain": (60, 8), "deep": (20, 6, 5), "none": (0, 4), "one": (1, 1)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    for name, shape in SHAPES.items():
        array = np.random.default_rng(1).normal(size=shape).astype(">f4" if name == "deep" else "f8")
        np.save(folder / f"{name}.npy", array)
        penstock.save({"a": {"w": penstock.asarray(array.astype("f4"))}}, folder / f"{name}.pt")
    return folder


def sources(files, name):
    return {
        "rows": penstock.rows(files / f"{name}.npy"),
        "rows of an entry": penstock.rows(penstock.open(files / f"{name}.pt")["a.w"]),
        "entry": penstock.open(files / f"{name}.npy")[""],
        "rows in memory": penstock.rows(np.load(files / f"{name}.npy").astype("f4")),
    }


@pytest.mark.parametrize("kind", ["rows", "rows of an entry", "entry", "rows in memory"])
@pytest.mark.parametrize("name", SHAPES)
def test_it_is_the_array_of_numpy(files, name, kind):
    source, expected = sources(files, name)[kind], np.load(files / f"{name}.npy")
    assert (source.shape, source.ndim) == (expected.shape, expected.ndim)
    assert np.dtype(source.dtype) == expected.dtype.newbyteorder("=") or kind in ("rows of an entry", "rows in memory")
    for chunks in ("auto", 7, -1):
        array = da.from_array(source, chunks=chunks)
        assert (array.shape, array.dtype) == (expected.shape, np.dtype(source.dtype))
        np.testing.assert_array_equal(array.compute(scheduler="threads"), expected.astype(source.dtype))
    got = da.from_array(source, chunks=5).sum(axis=0).compute(scheduler="threads")
    np.testing.assert_allclose(got, expected.sum(axis=0), rtol=1e-4, atol=1e-4)


def test_results_of_another_type(tmp_path):
    array = np.arange(200, dtype=np.uint8).reshape(20, 10)
    np.save(tmp_path / "bytes.npy", array)
    lazy = da.from_array(penstock.rows(tmp_path / "bytes.npy"), chunks=6)
    assert lazy.mean(axis=0).compute(scheduler="sync").tolist() == array.mean(axis=0).tolist()
    assert lazy.astype("f4").std().compute(scheduler="sync") == pytest.approx(array.std())


PARTS = [
    np.s_[3:17], np.s_[::-1], np.s_[15:2:-3, 1:4], np.s_[[1, 3, 3, -1]], np.s_[:, [0, 2]], np.s_[-1], np.s_[2, :, 1],
    np.s_[..., 0], np.s_[np.arange(20) % 3 == 0], np.s_[5:5], np.s_[np.int64(4), 1:, ::2], np.s_[:, [], :],
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PARTS)))
def test_parts_are_those_of_numpy(files, number):
    rows, expected = penstock.rows(files / "deep.npy"), np.load(files / "deep.npy").astype("f4")
    part = PARTS[number]
    np.testing.assert_array_equal(da.from_array(rows, chunks=7)[part].compute(scheduler="sync"), expected[part])
    key = part if isinstance(part, tuple) else (part,)
    np.testing.assert_array_equal(rows[key], expected[part])


def test_only_what_is_asked_for_is_read(files, tmp_path):
    with open(tmp_path / "sparse.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 30, 128)})
        file.truncate(file.tell() + (1 << 40))
    array = da.from_array(penstock.rows(tmp_path / "sparse.npy"))
    assert array.chunksize[1] == 128, "chunks are of whole rows"
    assert array[1 << 29, 3:5].compute(scheduler="sync").tolist() == [0, 0]


def test_processes(files):
    array = da.from_array(penstock.rows(files / "plain.npy"), chunks=20)
    got = (array + 1).compute(scheduler="processes", num_workers=2)
    np.testing.assert_array_equal(got, np.load(files / "plain.npy") + 1)


def test_tokens_follow_the_file(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0))
    one = [tokenize(penstock.rows(tmp_path / "x.npy")), tokenize(penstock.open(tmp_path / "x.npy")[""])]
    again = pickle.loads(pickle.dumps(penstock.rows(tmp_path / "x.npy")))
    assert tokenize(again) == one[0]
    assert tokenize(penstock.open(tmp_path / "x.npy")[""][1:]) != one[1]
    np.save(tmp_path / "x.npy", np.arange(7.0))
    assert tokenize(penstock.rows(tmp_path / "x.npy")) != one[0]
    assert tokenize(penstock.open(tmp_path / "x.npy")[""]) != one[1]


def test_what_is_no_array_says_so(files, tmp_path):
    for dataset in (penstock.files(files / "line.npy"), penstock.rows(["a", "b"]), penstock.rows([1, 2]).scale(2.0)):
        with pytest.raises(AttributeError):
            dataset.shape  # noqa: B018
    rows = penstock.rows(files / "deep.npy")
    for key in ((0, 0, 0, 0), (None,), (..., ...), ([99],), ([0.5],), (np.ones(3, bool),)):
        with pytest.raises(IndexError):
            rows[key]
    np.save(tmp_path / "x.npy", np.ones((10_000, 2)))  # larger than what is read whole when it is opened
    array = da.from_array(penstock.rows(tmp_path / "x.npy"), chunks=5000)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-40])
    with pytest.raises(penstock.Error, match=r"x\.npy"):
        array.compute(scheduler="sync")


def test_files_of_other_file_systems():
    fsspec = pytest.importorskip("fsspec")
    from penstock.remote import from_fsspec

    system = fsspec.filesystem("memory")
    with system.open("/dask.npy", "wb") as file:
        np.save(file, np.arange(24.0).reshape(6, 4))
    source = from_fsspec(system, "/dask.npy")
    for array in (penstock.rows(source), penstock.open(source)[""]):
        assert da.from_array(array, chunks=2)[1:].sum().compute(scheduler="sync") == 276 - 6
