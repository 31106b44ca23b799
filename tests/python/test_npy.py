"""`.npy` and `.npz` against NumPy: what it writes is read, what is written it reads, byte for byte where possible."""

import io
import itertools
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import penstock

NUMERIC = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
OTHERS = ["S5", "S0", "U7", "U0", "V3", "M8[ns]", "M8[25us]", "M8", "m8[D]"]
STRUCTURES = [
    np.dtype([("a", "<f4"), ("b", ">i2")]),
    np.dtype([("a", "u1"), ("b", "<f8")], align=True),
    np.dtype([("a", "<f4", (2, 3)), ("b", [("x", ">U2"), ("y", "M8[s]", (2,))])]),
    np.dtype([(("a title", "a"), "<f4"), ("it's", "S3"), ("caf\u00e9", "?")]),
    np.dtype([("\u03c0", "<f4")]),
    np.dtype({"names": ["a", "b"], "formats": ["<i4", "<i4"], "offsets": [4, 12], "itemsize": 24}),
    np.dtype([(f"a field with a rather long name, number {i}", "<f4") for i in range(1500)]),
]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4), (1, 2, 1, 2, 1, 2, 2)]


def example(dtype, shape):
    """Elements that differ from each other; any bits where they all mean something."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.names is not None:
        return fill(np.zeros(count, dtype)).reshape(shape)
    if dtype.kind == "U":
        return np.array([chr(945 + i % 24) * (i % 8) for i in range(count)], dtype).reshape(shape)
    if dtype.kind == "b":
        return (np.arange(count) % 3 == 0).reshape(shape)
    if dtype.itemsize == 0 or count == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(np.random.default_rng(count).bytes(count * dtype.itemsize), dtype).reshape(shape)


def fill(array):
    for name in array.dtype.names:
        field = array[name]
        if field.dtype.names is not None:
            fill(field.reshape(-1))
        else:
            field[...] = example(field.dtype.newbyteorder("="), field.shape)
    return array


def native(array):
    """As Penstock loads it: simple types in native order, structures as they are."""
    return array if array.dtype.names is not None else array.astype(array.dtype.newbyteorder("="))


def same(loaded, array):
    array = native(array)
    back = loaded.numpy()
    assert loaded.shape == array.shape
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()


def header(text, version=1):
    data = text.encode("utf-8" if version == 3 else "latin1")
    return b"\x93NUMPY" + bytes([version, 0]) + len(data).to_bytes(2 if version == 1 else 4, "little") + data


@pytest.mark.parametrize("dtype", NUMERIC + OTHERS)
@pytest.mark.parametrize("swap", ["<", ">"])
def test_reads_numpys_files(tmp_path, dtype, swap):
    for number, (shape, order) in enumerate(itertools.product(SHAPES, "CF")):
        array = np.asarray(example(dtype, shape), np.dtype(dtype).newbyteorder(swap), order=order)
        path = tmp_path / f"{number}.npy"
        np.save(path, array)
        same(penstock.load(path), array)
        entry = penstock.open(path)[""]
        assert entry.shape == shape


@pytest.mark.parametrize("dtype", STRUCTURES, ids=range(len(STRUCTURES)))
@pytest.mark.filterwarnings("ignore:Stored array in format")
def test_reads_structures(tmp_path, dtype):
    for shape in [(), (0,), (5,), (2, 3)]:
        array = example(dtype, shape)
        np.save(tmp_path / "x.npy", array)
        loaded = penstock.load(tmp_path / "x.npy")
        assert loaded.shape == shape
        assert loaded.dtype.itemsize == dtype.itemsize
        assert loaded.tobytes() == array.tobytes()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_reads_every_version(tmp_path, version):
    array = example("f4", (3, 4))
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)
    same(penstock.load(tmp_path / "x.npy"), array)


@pytest.mark.parametrize("dtype", ["S0", "U0"])
def test_text_without_width_keeps_it(tmp_path, dtype):
    array = np.ndarray((2, 3), dtype)
    penstock.save(array, tmp_path / "x.npy")
    loaded = penstock.load(tmp_path / "x.npy").numpy()
    assert (loaded.dtype, loaded.dtype.itemsize, loaded.shape) == (array.dtype, 0, (2, 3))
    assert loaded.tolist() == array.tolist()


def test_long_double_is_raw_bytes(tmp_path):
    array = np.arange(5, dtype=np.longdouble)
    np.save(tmp_path / "x.npy", array)
    loaded = penstock.load(tmp_path / "x.npy")
    assert loaded.dtype.itemsize == array.itemsize
    assert loaded.tobytes() == array.tobytes()
    with pytest.raises(penstock.DTypeMismatchError, match=r"long double.*penstock\.numpy\.load"):
        loaded.numpy()
    assert loaded.view_bytes().numpy().view(array.dtype)[..., 0].tolist() == array.tolist()


@given(
    array=npst.arrays(
        st.sampled_from([np.dtype(d).newbyteorder(o) for d in [*NUMERIC, "S3", "M8[us]"] for o in "<>"]),
        npst.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
        elements=None,
    ),
    fortran=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_any_array_there_and_back(tmp_path_factory, array, fortran):
    path = tmp_path_factory.getbasetemp() / "any.npy"
    np.save(path, np.asfortranarray(array) if fortran and array.ndim else array)
    loaded = penstock.load(path)
    same(loaded, array)
    penstock.save(loaded, path)
    assert np.load(path).tobytes() == native(array).tobytes()


@pytest.mark.parametrize("dtype", NUMERIC + OTHERS + STRUCTURES, ids=str)
@pytest.mark.filterwarnings("ignore:Stored array in format")
def test_writes_numpys_bytes(tmp_path, dtype):
    for shape, order in itertools.product(SHAPES, "CF"):
        array = np.asarray(example(dtype, shape), order=order)
        np.save(tmp_path / "a.npy", array)
        penstock.save(penstock.load(tmp_path / "a.npy"), tmp_path / "b.npy")
        assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "a.npy").read_bytes(), (shape, order)


def test_writes_small_floats_for_ml_dtypes(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ["bfloat16", "float8_e4m3fn", "float8_e5m2"]:
        array = np.array([0, 1, -1.5, 0.25], getattr(ml_dtypes, name))
        penstock.save(penstock.tensor(array), tmp_path / "x.npy")
        assert (np.load(tmp_path / "x.npy").view(array.dtype) == array).all()


HEADERS = {
    "any order": "{'shape': (2,), 'descr': '<f4', 'fortran_order': True}",
    "no spaces": "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
    "double quotes": '{"descr": "<f4", "fortran_order": False, "shape": (2,)}\n',
    "python 2": "{'descr': u'<f4', 'fortran_order': False, 'shape': (2L,), }",
    "escapes": r"{'\x64escr': '\u003cf4', 'fortran_order': False, 'shape': (2,)}",
    "native order": "{'descr': '=f4', 'fortran_order': False, 'shape': (2,)}",
    "no order": "{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}",
    "structure": "{'descr': [('a', '<i2'), ('', '|V2')], 'fortran_order': False, 'shape': (2,)}",
    "no dict": "[]",
    "empty": "",
    "missing key": "{'descr': '<f4', 'fortran_order': False}",
    "further key": "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
    "list for a shape": "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
    "number for a shape": "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
    "real dimension": "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
    "number for a flag": "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
    "unknown type": "{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}",
    "no type": "{'descr': None, 'fortran_order': False, 'shape': (2,)}",
    "two fields of one name": "{'descr': [('a', '<i2'), ('a', '<i2')], 'fortran_order': False, 'shape': (2,)}",
    "a title like its name": "{'descr': [(('a', 'a'), '<i2')], 'fortran_order': False, 'shape': (2,)}",
    "a field like a title": "{'descr': [(('t', 'a'), '<i2'), ('t', '<i2')], 'fortran_order': False, 'shape': (2,)}",
    "unit that is none": "{'descr': '<M8[xs]', 'fortran_order': False, 'shape': (1,)}",
    "call": "{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (2,)}",
    "text behind": "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.filterwarnings("ignore:Reading `.npy`")
def test_judges_headers_as_numpy_does(tmp_path, name):
    path = tmp_path / "x.npy"
    path.write_bytes(header(HEADERS[name]) + bytes(range(8)))
    try:
        array = np.load(path)
    except Exception:  # numpy raises whatever the literal led it into
        with pytest.raises(penstock.Error, match=r"x\.npy"):
            penstock.load(path)
    else:
        loaded = penstock.load(path)
        assert loaded.shape == array.shape
        assert loaded.dtype.itemsize == array.dtype.itemsize
        assert loaded.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "shape", ["(-2,)", "(True,)", "(4294967296, 4294967296)", "(4611686018427387904, 4)", "(0x2,)", "(1_0,)", "(+2,)"]
)
def test_is_stricter_about_shapes_than_numpy(tmp_path, shape):
    path = tmp_path / "x.npy"
    path.write_bytes(header(f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}") + bytes(16))
    with pytest.raises(penstock.Error, match=r"x\.npy"):
        penstock.load(path)


def test_several_arrays_in_one_file(tmp_path):
    with open(tmp_path / "x.npy", "wb") as file:
        np.save(file, np.arange(3))
        np.save(file, np.arange(5))
    assert penstock.load(tmp_path / "x.npy").tolist() == [0, 1, 2]


def test_objects_are_values(tmp_path, corpus):
    np.save(tmp_path / "x.npy", np.array([1, None, "word", {"k": np.arange(3)}], object))
    found = penstock.load(tmp_path / "x.npy")
    assert found[:3] == [1, None, "word"]
    assert found[3]["k"].tolist() == [0, 1, 2]
    np.save(tmp_path / "d.npy", {"a": [1]})
    assert penstock.load(tmp_path / "d.npy") == {"a": [1]}
    np.save(tmp_path / "m.npy", np.array([[1, None], ["a", 2.5]], object, order="F"))
    assert penstock.load(tmp_path / "m.npy") == [[1, None], ["a", 2.5]]
    np.save(tmp_path / "s.npy", np.zeros(2, [("a", "f4"), ("b", object)]))
    assert penstock.load(tmp_path / "s.npy").type_name == "numpy.ndarray"  # an array of structures is an inert object
    for path in sorted((corpus / "numpy").glob("*.npy")):
        assert penstock.load(path)
    np.savez(
        tmp_path / "x.npz", bad=np.array([1, None], object), good=np.arange(3), deep=np.array([np.ones(2), 1], object)
    )
    archive = penstock.open(tmp_path / "x.npz")
    assert list(archive.keys()) == ["good", "deep.0"]
    assert archive["good"].load().tolist() == [0, 1, 2]
    loaded = archive.load()
    assert list(loaded) == ["bad", "good", "deep"]
    assert loaded["bad"] == [1, None]
    assert loaded["deep"][0].tolist() == [1, 1]


def test_objects_that_cannot_be_read_leave_the_others_readable(tmp_path):
    np.savez(tmp_path / "x.npz", bad=np.array([1, None], object), good=np.arange(3))
    members = {}
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["bad.npy"] = members["bad.npy"][:-3]
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    opened = penstock.open(tmp_path / "x.npz")
    assert list(opened.keys()) == ["bad", "good"]
    assert opened["good"].load().tolist() == [0, 1, 2]
    with pytest.raises(penstock.UnsafeError, match="bad"):
        opened["bad"].load()
    with pytest.raises(penstock.UnsafeError, match=r"x\.npz"):
        penstock.load(tmp_path / "x.npz")


def test_every_truncation_is_an_error(tmp_path):
    for name, save in [("x.npy", lambda p: np.save(p, np.arange(9))), ("x.npz", lambda p: np.savez(p, a=np.arange(9)))]:
        path = tmp_path / name
        save(path)
        data = path.read_bytes()
        for length in range(len(data)):
            path.write_bytes(data[:length])
            with pytest.raises(penstock.Error):
                penstock.load(path)


class Pipe(io.RawIOBase):
    """Somewhere to write to that cannot seek."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def arrays():
    return {
        "floats": example("f4", (30, 40)),
        "swapped": example("i4", (3, 4)).astype(">i4"),
        "fortran": np.asfortranarray(example("f8", (3, 4))),
        "scalar": np.array(3),
        "empty": np.zeros((0, 3)),
        "text": example("U7", (5,)),
        "with.dot/and slash": np.arange(3),
        "caf\u00e9": np.arange(4),
        "ends.npy": np.arange(5),
    }


def check_npz(path, expected):
    loaded = penstock.load(path)
    assert list(loaded) == list(expected)
    for key, array in expected.items():
        same(loaded[key], array)
    archive = penstock.open(path)
    for key, array in expected.items():
        same(archive[key].load(), array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_reads_numpys_archives(tmp_path, save):
    path = tmp_path / "x.npz"
    save(path, **arrays())
    check_npz(path, arrays())
    with open(path, "wb") as file:
        save(Pipe(file), **arrays())
    check_npz(path, arrays())
    save(path)
    assert penstock.load(path) == {}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_reads_what_zipfile_writes(tmp_path, compression):
    path = tmp_path / "x.npz"
    data = io.BytesIO()
    np.save(data, np.arange(100))
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.comment = b"an archive may have a comment"
        archive.writestr("folder/", b"")
        archive.writestr("folder/a.npy", data.getvalue())
        info = zipfile.ZipInfo("b", (2020, 1, 2, 3, 4, 5))
        info.comment, info.external_attr = b"a member too", 0o644 << 16
        archive.writestr(info, data.getvalue(), compression)
        with archive.open("c.npy", "w", force_zip64=True) as member:
            member.write(data.getvalue())
        archive.writestr("note.txt", b"hello")
    with zipfile.ZipFile(path, "a", compression) as archive:
        archive.writestr("later.npy", data.getvalue())
    loaded = penstock.load(path)
    assert list(loaded) == ["folder/a", "b", "c", "note.txt", "later"]
    for key in ["folder/a", "b", "c", "later"]:
        same(loaded[key], np.arange(100))
    assert loaded["note.txt"].tobytes() == b"hello"


def test_both_spellings_of_a_key(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(3))
    archive = penstock.open(tmp_path / "x.npz")
    assert archive["a"].load().tolist() == archive["a.npy"].load().tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicates_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    for names in [("a.npy", "a.npy"), ("a.npy", "a")]:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"data")
        with pytest.raises(penstock.CorruptError, match=r"x\.npz"):
            penstock.open(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_wrong_checksums_are_found(tmp_path, compression):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", compression) as archive:
        data = io.BytesIO()
        np.save(data, np.arange(1000))
        archive.writestr("a.npy", data.getvalue())
    raw = bytearray(path.read_bytes())
    crc = zipfile.ZipFile(path).infolist()[0].CRC.to_bytes(4, "little")
    assert raw.count(crc) == 2
    path.write_bytes(raw.replace(crc, (1).to_bytes(4, "little")))
    with pytest.raises(penstock.ChecksumError, match=r"a\.npy"):
        penstock.load(path)


@pytest.mark.parametrize("compress", [False, True])
def test_numpy_reads_written_archives(tmp_path, compress):
    path = tmp_path / "x.npz"
    np.savez(tmp_path / "source.npz", **arrays())
    penstock.save(penstock.load(tmp_path / "source.npz"), path, compress=compress)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        kinds = {info.compress_type for info in archive.infolist()}
        assert kinds == {zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED}
    with np.load(path) as loaded:
        assert list(loaded) == list(arrays())
        for key, array in arrays().items():
            assert loaded[key].dtype == native(array).dtype
            assert loaded[key].tobytes() == native(array).tobytes()
    check_npz(path, {key: native(array) for key, array in arrays().items()})


def test_what_npz_cannot_hold(tmp_path):
    tensor = penstock.tensor(np.arange(3))
    for value in [{"a": {"b": tensor}}, {"a": 1}, [tensor], {1: tensor}]:
        with pytest.raises(penstock.UnsupportedError, match=r"x\.npz"):
            penstock.save(value, tmp_path / "x.npz")
    with pytest.raises(penstock.InvalidArgumentError, match=r"x\.npz"):
        penstock.save({"a\0b": tensor}, tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


def test_fields_of_types_that_numpy_has_not(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(
        header("{'descr': [('a', 'bfloat16'), ('b', '<i2')], 'fortran_order': False, 'shape': (2,)}") + bytes(8)
    )
    assert penstock.load(path).numpy().dtype == np.dtype([("a", "V2"), ("b", "<i2")])
