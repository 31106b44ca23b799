"""Arrays of Python objects, as numpy.load(allow_pickle=True) gives them. Nothing in their pickles is run."""

from __future__ import annotations

import datetime
import io
import os

import numpy as np
import pytest

import penstock
import penstock.numpy as pn
from penstock.numpy import _objects


def made(items, shape=None):
    array = np.empty(len(items), object)
    array[:] = items
    return array if shape is None else array.reshape(shape)


def same(a, b):
    if isinstance(b, np.ndarray):
        assert type(a) is type(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        for x, y in zip(a.flat, b.flat, strict=True):
            same(x, y)
    elif isinstance(b, dict):
        assert list(a) == list(b)
        for key in b:
            same(a[key], b[key])
    elif isinstance(b, (list, tuple)):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert type(a) is type(b)
        assert a == b


class Hostile:
    def __reduce__(self):
        return os.system, ("false",)


ARRAYS = {
    "mixed": made([np.arange(3.0), "word", None, {"k": [1, (2,)]}, 1.5, b"raw", True, 10**30, 2 + 3j]),
    "matrix": made(["a", 1, None, 2.5, [], {}], (2, 3)),
    "fortran": np.asfortranarray(made(["a", 1, None, 2.5, [], {}], (2, 3))),
    "none": np.empty(0, object),
    "hollow": np.empty((2, 0), object),
    "one": np.array({"lr": 0.1, "w": np.ones(2)}, object),
    "array in one": np.array(None, object),
    "objects in objects": made([made([1, None]), made(["x"])]),
    "lists": made([[1, 2], [3]]),
    "scalars": made([np.float32(1.5), np.int64(3), np.str_("t"), np.datetime64("2020-01-02")]),
    "dates": made([datetime.date(2020, 1, 2), datetime.timedelta(1)]),
    "text arrays": made([np.array(["a", "bc"]), np.array([b"x"]), np.zeros(2, ">i4")]),
}
ARRAYS["array in one"][()] = np.arange(2)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_numpys(tmp_path, name):
    array = ARRAYS[name]
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", a=np.arange(3), o=array)
    np.savez_compressed(tmp_path / "y.npz", a=np.arange(3), o=array)
    expected = np.load(tmp_path / "x.npy", allow_pickle=True)
    same(pn.load(tmp_path / "x.npy", allow_pickle=True), expected)
    with open(tmp_path / "x.npy", "rb") as file:
        same(pn.load(file, allow_pickle=True), expected)
    for path in (tmp_path / "x.npz", tmp_path / "y.npz"):
        for given in (path, io.BytesIO(path.read_bytes())):
            with pn.load(given, allow_pickle=True) as npz:
                assert npz.files == ["a", "o"]
                assert npz["a"].tolist() == [0, 1, 2]
                same(npz["o"], expected)
                same(npz["o.npy"], expected)


def test_without_allow_pickle_they_are_refused_as_by_numpy(tmp_path):
    np.save(tmp_path / "x.npy", ARRAYS["mixed"])
    np.savez(tmp_path / "x.npz", a=np.arange(3), o=ARRAYS["mixed"])
    with pytest.raises(ValueError, match="allow_pickle=True"):
        pn.load(tmp_path / "x.npy")
    with pn.load(tmp_path / "x.npz") as npz:
        assert npz["a"].tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="allow_pickle=True"):
            npz["o"]
    with pytest.raises(ValueError, match="memory-mapped"):
        pn.load(tmp_path / "x.npy", mmap_mode="r", allow_pickle=True)


def test_several_arrays_in_one_file():
    def written():
        file = io.BytesIO()
        for array in (made([1, "a"]), np.arange(3), made([None])):
            np.save(file, array)
        file.seek(0)
        return file

    file = written()
    assert pn.load(file, allow_pickle=True).tolist() == [1, "a"]
    assert pn.load(file, allow_pickle=True).tolist() == [0, 1, 2]
    assert pn.load(file, allow_pickle=True).tolist() == [None]
    with pytest.raises(EOFError):
        pn.load(file, allow_pickle=True)


def test_what_only_code_could_make_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", made([Hostile()]))
    np.savez(tmp_path / "x.npz", a=np.arange(3), o=made([Hostile()]))
    for read in (
        lambda: pn.load(tmp_path / "x.npy", allow_pickle=True),
        lambda: pn.load(tmp_path / "x.npz", allow_pickle=True)["o"],
    ):
        with pytest.raises(penstock.UnsafeError, match=r"system.*nothing was run"):
            read()
    assert pn.load(tmp_path / "x.npz", allow_pickle=True)["a"].tolist() == [0, 1, 2]
    np.save(tmp_path / "s.npy", np.zeros(2, [("a", "f4"), ("b", object)]))
    with pytest.raises(penstock.UnsupportedError, match="parts that do not make one"):
        pn.load(tmp_path / "s.npy", allow_pickle=True)


def test_byte_strings_of_python_2(corpus):
    for name in ("py2-objarr.npy", "py3-objarr.npy"):
        path = corpus / "numpy" / name
        same(pn.load(path, allow_pickle=True, encoding="latin1"), np.load(path, allow_pickle=True, encoding="latin1"))


def test_torch_reads_them_too(tmp_path):
    pt = pytest.importorskip("penstock.torch")
    np.save(tmp_path / "x.npy", ARRAYS["matrix"])
    np.savez(tmp_path / "x.npz", a=np.arange(3), o=ARRAYS["mixed"])
    same(pt.load(tmp_path / "x.npy"), ARRAYS["matrix"])
    found = pt.load(tmp_path / "x.npz")
    assert found["a"].tolist() == [0, 1, 2]
    same(found["o"], ARRAYS["mixed"])
    np.savez(tmp_path / "t.npz", o=made(["text alone"]))
    assert pt.load(tmp_path / "t.npz")["o"].tolist() == ["text alone"]


def test_arrays_in_this_machines_byte_order_are_made_without_a_call_of_python_each(tmp_path, monkeypatch):
    calls = []
    for name in ("array_of", "rebuilt"):
        whole = getattr(_objects, name)
        monkeypatch.setattr(_objects, name, lambda *given, whole=whole: calls.append(1) or whole(*given))
    arrays = [np.arange(3) + i for i in range(500)]
    np.save(tmp_path / "x.npy", made([*arrays, np.zeros(2, ">i4")]))
    got = pn.load(tmp_path / "x.npy", allow_pickle=True)
    same(got, np.load(tmp_path / "x.npy", allow_pickle=True))
    assert len(calls) < 10
    got[0][:] = 7
    assert got[0].flags.writeable
    assert got[1].tolist() == [1, 2, 3]
