"""penstock.numpy against NumPy: the same arrays, files, order of bytes and exceptions."""

from __future__ import annotations

import functools
import gc
import gzip
import io
import os
import pickle
import subprocess
import sys
import warnings
import zipfile

import pytest

np = pytest.importorskip("numpy")

import penstock  # noqa: E402
import penstock.numpy as pn  # noqa: E402

DTYPES = [
    *"? b B h H i I q Q e f d g F D G".split(),
    *">i2 >u4 >i8 >f2 >f4 >f8 >c8 >c16".split(),
    *"S5 S0 U3 >U3 U0 V7 V0 M8 M8[ns] >M8[25us] m8[D] >m8[s] m8".split(),
    [("a", "<i4"), ("b", ">f8", (2, 3))],
    [(("a title", "a"), "<i4"), ("b", [("x", ">i2"), ("y", "S3")])],
    [("é", "i4"), ("M", "M8[ns]")],
    [("padded", "i1"), ("", "V3"), ("b", "f4")],
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    np.dtype({"names": ["a", "b"], "formats": ["u1", "f4"], "offsets": [4, 8], "itemsize": 16}),
    np.dtype(("f4", (2,))),
    [],
]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4)]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def filled(dtype, shape):
    array = np.zeros(shape, dtype)
    kind = array.dtype.base.kind
    if kind in "SU":
        array[...] = np.array(["ab", "c", "é" if kind == "U" else "d"])[np.arange(array.size).reshape(shape) % 3]
    elif kind in "biufcmM":
        array[...] = (np.arange(array.size).reshape(array.shape) % 100).astype(array.dtype)
    elif array.nbytes:
        raw = (np.arange(array.nbytes) % 120).astype(np.uint8)
        array = np.frombuffer(raw.tobytes(), array.dtype).reshape(shape).copy()
    return array


def same(found, expected):
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.dtype.descr == expected.dtype.descr if found.dtype.names is None else True
    assert found.dtype.fields == expected.dtype.fields
    assert found.dtype.byteorder == expected.dtype.byteorder
    assert found.shape == expected.shape
    if expected.nbytes:
        assert found.strides == expected.strides
    assert found.flags.writeable == expected.flags.writeable
    if found.dtype.names is None:
        assert found.tobytes() == expected.tobytes()
    elif found.dtype.names:  # copies do not keep what lies between the fields
        assert (found == expected).all()


def arrays_of(dtype):
    for shape in SHAPES:
        array = filled(dtype, shape)
        yield array
        yield np.asfortranarray(array)


@each_dtype
def test_what_numpy_saves_loads_as_numpy_loads_it(tmp_path, dtype):
    path = tmp_path / "a.npy"
    for array in arrays_of(dtype):
        np.save(path, array, allow_pickle=False)
        same(pn.load(path), np.load(path))
        same(pn.load(io.BytesIO(path.read_bytes())), np.load(path))
        with open(path, "rb") as file:
            same(pn.load(file), np.load(path))


@each_dtype
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_mapped_arrays_are_numpys(tmp_path, dtype, mode):
    path = tmp_path / "a.npy"
    for array in arrays_of(dtype):
        np.save(path, array, allow_pickle=False)
        try:
            expected = np.load(path, mmap_mode=mode)
        except Exception as error:
            with pytest.raises(type(error)):
                pn.load(path, mmap_mode=mode)
            continue
        found = pn.load(path, mmap_mode=mode)
        same(found, expected)
        assert (found.mode, found.offset, found.filename) == (expected.mode, expected.offset, expected.filename)


@each_dtype
def test_saved_files_have_numpys_bytes(tmp_path, dtype):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for array in arrays_of(dtype):
        np.save(theirs, array, allow_pickle=False)
        pn.save(ours, array)
        assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
        stream = io.BytesIO()
        pn.save(stream, array)
        assert stream.getvalue() == (tmp_path / "theirs.npy").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["ours.npy", "theirs.npy"]


@each_dtype
@pytest.mark.parametrize("name", ["savez", "savez_compressed"])
def test_archives_go_both_ways(tmp_path, dtype, name):
    arrays = list(arrays_of(dtype))
    ours, theirs = tmp_path / "ours.npz", tmp_path / "theirs.npz"
    getattr(pn, name)(ours, *arrays, named=arrays[0])
    getattr(np, name)(theirs, *arrays, named=arrays[0])
    for path in (ours, theirs):
        with pn.load(path) as found, np.load(path) as expected:
            assert found.files == expected.files
            for key in expected:
                same(found[key], expected[key])
        with pn.load(io.BytesIO(path.read_bytes())) as found, np.load(theirs) as expected:
            assert sorted(found.files) == sorted(expected.files)
            same(found["named"], expected["named"])


def test_a_map_for_writing_changes_the_file_and_one_for_copying_does_not(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(4.0))
    pn.load(path, mmap_mode="c")[0] = 7
    assert np.load(path)[0] == 0
    mapped = pn.load(path, mmap_mode="r+")
    mapped[0] = 7
    mapped.flush()
    assert np.load(path)[0] == 7


def test_a_stream_holds_array_after_array(tmp_path):
    path = tmp_path / "three"
    with open(path, "wb") as file:
        for array in (np.arange(3), np.ones((2, 2), ">f4"), np.zeros(0)):
            pn.save(file, array)
    with gzip.open(tmp_path / "three.gz", "wb") as file:
        file.write(path.read_bytes())
    zipped = functools.partial(gzip.open, tmp_path / "three.gz")
    for opened in (path.open, lambda _: io.BytesIO(path.read_bytes()), zipped):
        with opened("rb") as file:
            assert pn.load(file).tolist() == [0, 1, 2]
            assert pn.load(file).dtype == ">f4"
            assert np.load(file).shape == (0,)
            with pytest.raises(EOFError):
                pn.load(file)


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "z.npz"
    np.savez(path, a=np.ones(3), b=np.zeros((2, 2), "u1"), c=np.arange(4, dtype="u1"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "hi")
        archive.writestr("odd.npy", "ho")
    return path


def test_an_npz_is_the_mapping_that_numpys_is(npz):
    with pn.load(npz) as found, np.load(npz) as expected:
        assert found.files == expected.files
        assert list(found) == list(expected)
        assert list(found.keys()) == list(expected.keys())
        assert len(found) == len(expected)
        assert [key for key, _ in found.items()] == [key for key, _ in expected.items()]
        assert repr(found) == repr(expected)
        for key in ("a", "a.npy", "b", "c", "odd", "notes.txt"):
            assert key in found
            assert type(found[key]) is type(expected[key])
            assert bytes(found[key]) == bytes(expected[key])
        assert found.f.a.tolist() == expected.f.a.tolist()
        assert dir(found.f) == dir(expected.f)
        assert found.get("zz", 3) == expected.get("zz", 3)
        assert "zz" not in found
        assert 0 not in found
        for key in ("zz", 0):
            with pytest.raises(KeyError, match="is not a file in the archive"):
                found[key]
        with pytest.raises(AttributeError):
            found.f.zz  # noqa: B018 - raises
    assert found.files == expected.files
    with pytest.raises(ValueError, match="closed"):
        found["a"]
    found.close()


def damaged(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0))
    whole = (tmp_path / "a.npy").read_bytes()
    np.savez(tmp_path / "z.npz", a=np.ones(3))
    return {
        "cut": whole[:-3],
        "cut header": whole[:50],
        "version": whole[:6] + b"\x09\x00" + whole[8:],
        "key": whole.replace(b"descr", b"dexcr"),
        "dtype": whole.replace(b"<f8", b"<q9"),
        "code": whole.replace(b"'<f8'", b"exit()"),
        "shape": whole.replace(b"(6,)", b"(-6)"),
        "text": b"hello world",
        "pickle": b"\x80\x04K\x03.",
        "nothing": b"",
        "cut zip": (tmp_path / "z.npz").read_bytes()[:-30],
    }


@pytest.mark.parametrize("kind", "cut|cut header|version|key|dtype|code|shape|text|pickle|nothing|cut zip".split("|"))
def test_damaged_files_raise_what_numpy_raises(tmp_path, kind):
    path = tmp_path / "bad"
    path.write_bytes(damaged(tmp_path)[kind])
    for source in (lambda: path, lambda: io.BytesIO(path.read_bytes())):
        with pytest.raises((ValueError, EOFError, zipfile.BadZipFile)) as expected:
            np.load(source())
        with pytest.raises(expected.type) as found:
            pn.load(source())
        assert isinstance(found.value, penstock.Error)


def objects():
    return np.array([{}], object)


ARGUMENTS = {
    "missing": lambda m, p: m.load(p / "no"),
    "folder": lambda m, p: m.load(p),
    "number": lambda m, p: m.load(3),
    "none": lambda m, p: m.load(None),
    "list": lambda m, p: m.load([1]),
    "mode": lambda m, p: m.load(p / "a.npy", mmap_mode="x"),
    "encoding": lambda m, p: m.load(p / "a.npy", encoding="x"),
    "header size": lambda m, p: m.load(p / "a.npy", max_header_size=10),
    "objects": lambda m, p: m.load(p / "o.npy"),
    "mapped objects": lambda m, p: m.load(p / "o.npy", mmap_mode="r"),
    "objects in npz": lambda m, p: m.load(p / "o.npz")["o"],
    "save objects": lambda m, p: m.save(p / "x", objects(), allow_pickle=False),
    "save ragged": lambda m, p: m.save(p / "x", [[1], [1, 2]]),
    "savez objects": lambda m, p: m.savez(p / "x", a=objects(), allow_pickle=False),
    "clash": lambda m, p: m.savez(p / "x", 1, arr_0=3),
    "no folder": lambda m, p: m.save(p / "no" / "x", 1),
    "no folder, swapped": lambda m, p: m.save(p / "no" / "x", np.ones(2, ">f4")),
    "no folder for npz": lambda m, p: m.savez(p / "no" / "x", 1),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_refusals_are_those_of_numpy(tmp_path, case):
    np.save(tmp_path / "a.npy", np.ones(2))
    np.save(tmp_path / "o.npy", objects(), allow_pickle=True)
    np.savez(tmp_path / "o.npz", o=objects(), a=np.ones(2))
    if case == "savez objects" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        kind = ValueError  # that NumPy takes allow_pickle for an array
    else:
        with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever NumPy raises
            ARGUMENTS[case](np, tmp_path)
        kind = expected.type
    with pytest.raises(kind):
        ARGUMENTS[case](pn, tmp_path)
    assert pn.load(tmp_path / "o.npz")["a"].tolist() == [1, 1]


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_modes_change_nothing_for_a_npz(tmp_path, mode):
    np.savez(tmp_path / "z.npz", a=np.arange(3))
    for module in (np, pn):
        with module.load(tmp_path / "z.npz", mmap_mode=mode) as found:
            assert type(found["a"]) is np.ndarray
            assert found["a"].tolist() == [0, 1, 2]


LIMITED = """
import os, resource, signal, sys, numpy, penstock, penstock.numpy as pn
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
array = numpy.asfortranarray(numpy.ones((300, 300)), dtype=sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    pn.save(sys.argv[1], array)
except penstock.InputOutputError as error:
    print(error.path)
print(os.listdir(os.path.dirname(sys.argv[1])))
"""


@pytest.mark.parametrize("dtype", ["f8", ">f8", "U8"])
def test_a_file_that_grows_too_large_is_an_error_with_its_path(tmp_path, dtype):
    program = [sys.executable, "-c", LIMITED, str(tmp_path / "x.npy"), dtype]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(tmp_path / "x.npy"), "[]"]


def test_what_cannot_be_honoured_is_refused_with_the_reason(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.ones(2))
    np.savez(tmp_path / "z.npz", np.ones(2))
    before = path.read_bytes()
    with path.open("rb") as file, pytest.raises(ValueError, match="path-like"):
        pn.load(file, mmap_mode="r")
    with pytest.raises(ValueError, match=r"empty the file.*r\+"):
        pn.load(path, mmap_mode="w+")
    with pytest.raises(penstock.UnsafeError, match="pickling"):
        pn.save(path, objects())
    with pytest.raises(penstock.UnsafeError, match="'a'"):
        pn.savez(tmp_path / "z.npz", a=objects())
    if hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"):
        text = np.array(["a"], np.dtypes.StringDType())
        for save in (lambda: pn.save(path, text), lambda: pn.savez(tmp_path / "z.npz", text)):
            with pytest.raises(penstock.UnsupportedError, match=r"StringDType.*\.astype\('U80'\)"):
                save()
    assert path.read_bytes() == before
    penstock.save({"a": np.ones(2)}, tmp_path / "x.safetensors")
    with pytest.raises(penstock.UnsupportedError, match=r"penstock\.load"):
        pn.load(tmp_path / "x.safetensors")


def test_names_of_members_are_numpys(tmp_path):
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    for name in ("café", "ÇéÑ░█\xa0", "文"):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as out:
            out.writestr(f"{name}.npy", stream.getvalue())
        marked = (tmp_path / "x.npz").read_bytes()
        unmarked = bytearray(marked)
        for signature, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            unmarked[marked.index(signature) + at + 1] &= 0xF7
        for data in (marked, bytes(unmarked)):
            (tmp_path / "x.npz").write_bytes(data)
            with np.load(tmp_path / "x.npz") as theirs:
                assert list(pn.load(tmp_path / "x.npz")) == list(penstock.load(tmp_path / "x.npz")) == list(theirs)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as out:
        out.writestr("caf?.npy", stream.getvalue())
    (tmp_path / "x.npz").write_bytes((tmp_path / "x.npz").read_bytes().replace(b"caf?", b"caf\x82"))
    assert list(penstock.load(tmp_path / "x.npz")) == list(np.load(tmp_path / "x.npz")) == ["café"]


@pytest.mark.parametrize("descr", ["('<f4', 1)", "('<f4', (1,))", "('<f4', (1, 1))", "('<f4', ())"])
def test_arrays_of_one_element_are_elements(tmp_path, descr):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2, 3)}}".ljust(117) + "\n"
    data = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + np.arange(6, dtype="<f4").tobytes()
    (tmp_path / "x.npy").write_bytes(data)
    same(pn.load(tmp_path / "x.npy"), np.load(tmp_path / "x.npy"))
    assert penstock.load(tmp_path / "x.npy").shape == (2, 3)


def npy(*arrays):
    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, array)
    return stream.getvalue()


def made(descr, shape="(2,)", version=1, length=0):
    """A `.npy` of zeros with that text as its type, and a header of at least that many bytes."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".ljust(length - 1).encode() + b"\n"
    size = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + bytes(64)


@pytest.mark.parametrize("module", [pn, np])
def test_bytes_in_memory_stay_the_programs(module):
    data = npy(np.arange(3), np.arange(4.0)) + b"behind"
    stream = io.BytesIO(data)
    first, second = module.load(stream), module.load(stream)
    assert stream.read() == b"behind"
    first += 1  # in memory of its own
    stream.seek(0)
    same(module.load(stream), np.arange(3))
    stream.truncate(0)
    stream.write(bytes(9))
    same(first, np.arange(3) + 1)
    same(second, np.arange(4.0))
    with pytest.raises(EOFError):
        module.load(stream)


class Reader:
    """What `read` and `seek` alone can say, and no more bytes at a time than `most`; counts what was read."""

    def __init__(self, data, most=1 << 30):
        self.base, self.most, self.count = io.BytesIO(data), most, 0

    def read(self, count):
        part = self.base.read(min(count, self.most))
        self.count += len(part)
        return part

    def seek(self, offset, whence=0):
        return self.base.seek(offset, whence)


@pytest.mark.parametrize("most", [1 << 30, 7])
def test_of_a_stream_no_more_is_read_than_the_array(most):
    arrays = (np.arange(300), np.ones((2, 2), ">f4"), np.zeros(0), np.array(5))
    data = npy(*arrays) + bytes(1000)
    theirs, mine = Reader(data), Reader(data, most)
    for _ in arrays:
        same(pn.load(mine), np.load(theirs))
        assert mine.base.tell() == theirs.base.tell()
    assert mine.count == len(data) - 1000


def test_a_stream_that_never_ends_is_told_apart_by_its_beginning():
    class Endless(Reader):
        def read(self, count):
            self.count += count
            assert self.count < 1 << 20
            return bytes(count)

    with pytest.raises(ValueError, match="no known format"):
        pn.load(Endless(b""))
    with pytest.raises(TypeError, match="'rb'"):
        pn.load(io.StringIO("text"))
    with pytest.raises(EOFError):
        pn.load(io.BytesIO())


@pytest.mark.parametrize("descr", ["'|S0'", "'<U0'", "'|V0'", "[]", "[('', '|V8')]", "[('a', '|S0')]"])
def test_elements_without_bytes_or_fields_keep_their_type(tmp_path, descr):
    path = tmp_path / "x.npy"
    path.write_bytes(made(descr))
    same(pn.load(path), np.load(path))
    same(pn.load(io.BytesIO(path.read_bytes())), np.load(path))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("length", [9998, 9999, 10000, 10001, 70000])
def test_headers_are_as_long_as_numpy_allows(tmp_path, version, length):
    if version == 1 and length == 70000:
        pytest.skip("longer than version 1 can say")
    path = tmp_path / "x.npy"
    path.write_bytes(made("'<f4'", version=version, length=length))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.write(path, "a.npy")
    for most in ({}, {"max_header_size": length - 1}, {"max_header_size": length}):
        for load in (
            lambda m, most=most: m.load(path, **most),
            lambda m, most=most: m.load(path, mmap_mode="r", **most),
            lambda m, most=most: m.load(io.BytesIO(path.read_bytes()), **most),
            lambda m, most=most: m.load(tmp_path / "x.npz", **most)["a"],
        ):
            try:
                expected = load(np)
            except ValueError:
                with pytest.raises(ValueError, match=r"Header info length.*max_header_size"):
                    load(pn)
            else:
                same(load(pn), expected)


@pytest.mark.parametrize(("name", "known"), [("bfloat16", True), ("float8_e5m2", True), ("f12", False)])
def test_types_by_the_names_of_ml_dtypes_are_theirs(tmp_path, name, known):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    (tmp_path / "x.npy").write_bytes(made(f"'{name}'"))
    if known:
        assert pn.load(tmp_path / "x.npy").dtype == getattr(ml_dtypes, name)
    else:
        with pytest.raises(penstock.UnsupportedError, match="NumPy has no type"):
            pn.load(tmp_path / "x.npy")


UNSAYABLE = {
    "overlapping": {"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]},
    "out of order": {"names": ["b", "a"], "formats": ["i4", "i4"], "offsets": [4, 0]},
}
ODD = {
    "no fields": {"names": [], "formats": [], "itemsize": 8},
    "numbers with fields": ("i4", [("low", "u2"), ("high", "u2")]),
    "titles and gaps": {"names": ["a", "b"], "formats": ["i4"] * 2, "offsets": [1, 6], "titles": ["aa", "bb"]},
}


@pytest.mark.parametrize("name", ["save", "savez", "savez_compressed"])
def test_no_field_is_lost_in_saving(tmp_path, name):
    for dtype in UNSAYABLE.values():
        for module in (np, pn):
            with pytest.raises(ValueError, match="overlapping or out-of-order"):
                getattr(module, name)(tmp_path / "x", np.zeros(3, dtype))
    path = tmp_path / ("x.npy" if name == "save" else "x.npz")
    for dtype in ODD.values():
        loaded = []
        for module in (np, pn):
            getattr(module, name)(path, np.zeros(3, dtype))
            loaded.append(np.load(path) if name == "save" else np.load(path)["arr_0"])
        same(loaded[1], loaded[0])
    assert os.listdir(tmp_path) == [path.name]
    if name == "save":
        for module in (np, pn):
            with pytest.raises(NotImplementedError):
                module.save(path, np.ma.array([1, 2], mask=[0, 1]))


@pytest.mark.parametrize("dtype", ["<i4", ">i4", "U0"])
def test_a_file_that_is_saved_over_keeps_its_place(tmp_path, dtype):
    path, link = tmp_path / "x.npy", tmp_path / "link.npy"
    path.touch(mode=0o600)
    link.symlink_to(path)
    pn.save(link, np.zeros(3, dtype))
    assert link.is_symlink()
    assert len(np.load(path)) == 3
    assert path.stat().st_mode & 0o777 == 0o600
    link.unlink()
    link.symlink_to("/dev/null")
    with pytest.raises(penstock.UnsupportedError, match="device"):
        pn.save(link, np.zeros(3, dtype))
    assert sorted(os.listdir(tmp_path)) == ["link.npy", "x.npy"]


def test_an_npz_is_an_instance_of_numpys_and_closed_with_its_last_name(npz):
    gc.collect()
    gc.disable()
    try:
        before = os.listdir("/proc/self/fd")
        found = pn.load(npz)
        assert isinstance(found, np.lib.npyio.NpzFile)
        assert found.zip.namelist() == np.load(npz).zip.namelist()
        assert found["c"].tolist() == [0, 1, 2, 3]
        del found
        assert os.listdir("/proc/self/fd") == before
    finally:
        gc.enable()
    with pn.load(npz) as found:
        archive = found.zip
        assert archive.fp is not None
    assert archive.fp is None
    assert (found.zip, found.f, found.fid) == (None, None, None)


def test_the_zip_of_an_npz_is_found_from_another_folder(npz, tmp_path, monkeypatch):
    monkeypatch.chdir(npz.parent)
    found = pn.load(npz.name)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert found.zip.namelist() == np.load(npz).zip.namelist()


def test_a_wrong_checksum_in_an_npz_is_numpys_error(npz):
    data = npz.read_bytes().replace(np.ones(3).tobytes(), np.full(3, 2.0).tobytes())
    for module in (np, pn):
        with pytest.raises(zipfile.BadZipFile):
            module.load(io.BytesIO(data))["a"]
    with pytest.raises(penstock.ChecksumError):
        pn.load(io.BytesIO(data))["a"]
    for shape in (b"(0, 2)", b"(1, 2)"):
        data = npz.read_bytes().replace(b"(2, 2)", shape)
        for module in (np, pn):
            with pytest.raises(zipfile.BadZipFile):
                module.load(io.BytesIO(data))["b"]


def test_numpy_is_imported_by_this_package_alone():
    code = "import penstock, sys; print('numpy' in sys.modules); import penstock.numpy; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nFalse\n"


KEYS = ["../a", "/group/data", "..", "a\\b", "C:\\x", "a/../b", "", "a//b", "./x", "x.npy", "a\nb", "é/文"]


@pytest.mark.parametrize("compress", [False, True])
def test_keys_are_labels(tmp_path, compress):
    arrays = {key: np.arange(number, dtype="<i4") for number, key in enumerate(KEYS)}
    ours, native, theirs = tmp_path / "ours.npz", tmp_path / "native.npz", tmp_path / "theirs.npz"
    (pn.savez_compressed if compress else pn.savez)(ours, **arrays)
    (np.savez_compressed if compress else np.savez)(theirs, **arrays)
    penstock.save(arrays, native, compress=compress)
    swapped = io.BytesIO()
    pn.savez(swapped, **{key: array.astype(">i4") for key, array in arrays.items()})
    for path in (ours, native, theirs, swapped):
        data = path.read_bytes() if path is not swapped else swapped.getvalue()
        for source in (io.BytesIO(data), *([] if path is swapped else [path])):
            with pn.load(source) as loaded, np.load(io.BytesIO(data)) as expected:
                assert list(loaded) == list(expected) == KEYS
                for key in KEYS:
                    same(loaded[key], expected[key])
    loaded = penstock.load(theirs)
    assert {key: value.tolist() for key, value in loaded.items()} == {key: a.tolist() for key, a in arrays.items()}
    assert penstock.open(theirs)["/group/data"].load().tolist() == [0]


@pytest.mark.parametrize("save", [pn.savez, pn.savez_compressed])
@pytest.mark.parametrize("dtype", ["<i4", ">i4"])
@pytest.mark.parametrize(("key", "said"), [("a\0b", "zero byte"), ("n" * 65535, "65535"), ("\udc80", "UTF-8")])
def test_keys_that_a_zip_archive_cannot_hold_are_refused(tmp_path, save, dtype, key, said):
    for target in (tmp_path / "x.npz", io.BytesIO()):
        with pytest.raises(penstock.InvalidArgumentError, match=said) as caught:
            save(target, **{"good": np.ones(2), key: np.ones(2, dtype)})
        assert caught.value.tensor == key
    assert not list(tmp_path.iterdir())


def test_allow_pickle_permits_and_does_not_ask(tmp_path):
    path, archive = tmp_path / "a.npy", tmp_path / "z.npz"
    np.save(path, np.arange(3))
    np.savez(archive, a=np.arange(3), o=objects())
    same(pn.load(path, allow_pickle=True), np.load(path, allow_pickle=True))
    same(pn.load(path, "r", allow_pickle=True), np.load(path, "r", allow_pickle=True))
    same(pn.load(io.BytesIO(path.read_bytes()), allow_pickle=True), np.arange(3))
    with pn.load(archive, allow_pickle=True) as npz:
        same(npz["a"], np.arange(3))
        assert npz["o"].tolist() == objects().tolist()
    path.write_bytes(pickle.dumps([1]))
    with pytest.raises(penstock.UnknownFormatError, match="pickle"):
        pn.load(path, allow_pickle=True)


def test_allow_pickle_lifts_the_limit_of_headers_as_with_numpy(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(2, [(f"field{i:04}", "<f4") for i in range(1000)]))
    for load in (np.load, pn.load):
        with pytest.raises(ValueError, match="max_header_size"):
            load(tmp_path / "a.npy")
        assert load(tmp_path / "a.npy", allow_pickle=True).shape == (2,)


def python2_npy():
    data = npy(np.arange(3, dtype="<i4"))
    return data.replace(b"(3,), }", b"(3L,),}")


def test_warnings_about_python_2_are_numpys(tmp_path):
    path, archive = tmp_path / "a.npy", tmp_path / "z.npz"
    path.write_bytes(python2_npy())
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("old.npy", python2_npy())
        out.writestr("new.npy", npy(np.arange(3)))
    for source in (lambda: path, lambda: path.open("rb"), lambda: io.BytesIO(path.read_bytes())):
        with pytest.warns(UserWarning, match="Python 2") as ours:
            array = pn.load(source())
        assert ours[0].filename == __file__
        with pytest.warns(UserWarning, match="Python 2") as theirs:
            same(array, np.load(source()))
        assert [str(warning.message) for warning in ours] == [str(warning.message) for warning in theirs]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pn.load(archive) as npz:
            npz["new"]
            with pytest.raises(UserWarning, match="Python 2"):
                npz["old"]


@pytest.mark.parametrize(
    ("dtype", "version"),
    [
        (np.dtype([(f"field{i:05}", "<f4") for i in range(4000)]), "2.0"),
        (np.dtype([("文", "<f4")]), "3.0"),
        (np.dtype([("é", "<f4")]), None),
        (np.dtype([("a", np.dtype("<f4", metadata={"unit": "m"}))]), "metadata"),
        (np.dtype("<f4", metadata={"unit": "m"}), "metadata"),
    ],
)
def test_warnings_about_what_is_written_are_numpys(tmp_path, dtype, version):
    array = np.zeros(2, dtype)
    for ours, theirs, target in (
        (pn.save, np.save, tmp_path / "a.npy"),
        (pn.save, np.save, io.BytesIO()),
        (pn.savez, np.savez, tmp_path / "a.npz"),
    ):
        said = []
        for write in (ours, theirs):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                write(target, array)
            said.append([str(warning.message) for warning in caught])
        assert said[0] == said[1]
        assert bool(said[0]) == (version is not None)
        assert all(version in message for message in said[0])


def test_broken_zip_archives_are_of_zipfiles_kind_too(tmp_path):
    np.savez(tmp_path / "good.npz", a=np.arange(30), b=np.arange(3))
    good = (tmp_path / "good.npz").read_bytes()
    end = good.rindex(b"PK\5\6")
    directory = good.index(b"PK\1\2")
    broken = {
        "cut": good[:-30],
        "several disks": good[: end + 4] + b"\1" + good[end + 5 :],
        "no entry": good[:directory] + b"PK\1\3" + good[directory + 4 :],
        "another local name": good.replace(b"a.npy", b"c.npy", 1),
        "encrypted": good[:6] + b"\1" + good[7 : directory + 8] + b"\1" + good[directory + 9 :],
    }
    for what, data in broken.items():
        (tmp_path / "x.npz").write_bytes(data)
        for source in (tmp_path / "x.npz", io.BytesIO(data)):
            with pytest.raises(zipfile.BadZipFile) as caught:
                pn.load(source)
            assert isinstance(caught.value, penstock.Error), what


class Into(io.BytesIO):
    """Counts how it is read."""

    def __init__(self, data):
        super().__init__(data)
        self.calls = set()

    def read(self, *args):
        self.calls.add("read")
        return super().read(*args)

    def readinto(self, place):
        self.calls.add("readinto")
        return super().readinto(memoryview(place)[:1000])  # less than is asked for


class Inherited(io.BufferedIOBase):
    """Has the method and cannot do it."""

    def __init__(self, data):
        self.inner = io.BytesIO(data)
        self.tell, self.seek = self.inner.tell, self.inner.seek

    def read(self, count=-1):
        return self.inner.read(count)

    def readinto(self, place):
        raise io.UnsupportedOperation("readinto")


def test_files_are_read_into_memory_where_they_can_be(tmp_path):
    arrays = [np.arange(100_000, dtype="<f4"), np.arange(3)]
    np.savez(tmp_path / "z.npz", *arrays)
    for kind in (Into, Inherited):
        stream = kind(npy(*arrays))
        for array in arrays:
            same(pn.load(stream), array)
        with pytest.raises(EOFError, match=r"behind byte \d+.*seek\(0\)"):
            pn.load(stream)
        stream = kind((tmp_path / "z.npz").read_bytes())
        with pn.load(stream) as npz:
            same(npz["arr_0"], arrays[0])
    assert Into(b"").calls == set()
    stream = Into(npy(arrays[0]))
    pn.load(stream)
    assert stream.calls == {"readinto"}


@pytest.mark.parametrize("name", ["save", "savez", "savez_compressed"])
def test_masks_are_never_lost(tmp_path, name):
    masked = np.ma.array([1, 2], mask=[0, 1])
    for place in (tmp_path / "x", io.BytesIO()):
        with pytest.raises(penstock.UnsupportedError, match="mask"):
            getattr(pn, name)(place, masked)
    if name != "save":  # beside an array that NumPy writes
        with pytest.raises(NotImplementedError, match="'a'"):
            getattr(pn, name)(tmp_path / "x", a=masked, b=np.zeros(2, ">i4"))
    assert os.listdir(tmp_path) == []


def test_headers_that_are_just_too_long_are_told_of_urls(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    for path in (tmp_path / "x.npy", f"file://{tmp_path}/x.npy"):
        with pytest.raises(ValueError, match="max_header_size=117"):
            pn.load(path, max_header_size=117)
        assert len(pn.load(path, max_header_size=118)) == 3


def test_zipfile_is_told_to_read_no_url(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    npz = pn.NpzFile(penstock.open(tmp_path / "x.npz"), "http://localhost/x.npz", "x.npz")
    with pytest.raises(penstock.UnsupportedError, match="zipfile"):
        npz.zip  # noqa: B018
