"""Arrays in files without a header, compared with what NumPy's memmap, fromfile and tofile do."""

import errno
import os
import pickle

import numpy as np
import pytest

import penstock

DTYPES = ["uint8", "int8", "uint16", "<u2", ">u2", "int32", ">i4", "<i8", ">i8", "float16", ">f4", "float64", ">f8"]
DTYPES += ["bool", "complex64", ">c16", "S3", "<U2", ">U2", "M8[ns]", "V5"]


def elements(dtype, count=240):
    """Random bytes of that type; bools are 0 or 1."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.random.default_rng(1).integers(0, 2, count).astype(bool)
    if dtype.kind == "U":
        return np.array(["ab", "c"] * (count // 2), dtype)
    return np.frombuffer(np.random.default_rng(1).bytes(count * dtype.itemsize), dtype)


def same(tensor, array):
    native = np.asarray(array).astype(array.dtype.newbyteorder("="))
    assert tensor.numpy().dtype == native.dtype
    assert tensor.shape == native.shape
    assert tensor.numpy().tobytes() == native.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0, 1, 1024])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_memmap_opens(tmp_path, dtype, offset, order):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(offset) + elements(dtype).tobytes())
    theirs = np.memmap(path, dtype, "r", offset, (6, 40), order)
    spelled = [dtype, np.dtype(dtype)]
    for each in spelled:
        ours = penstock.raw(path, each, (6, 40), offset, order)
        same(ours.load(), theirs)
        same(ours[2:5, ::3].load(), theirs[2:5, ::3])
        assert penstock.raw(path, each, (-1, 40), offset, order).shape == (6, 40)
    same(penstock.load(path, dtype=dtype, shape=(6, 40), offset=offset, order=order), theirs)
    rows = penstock.rows(path, dtype=dtype, shape=(6, -1), offset=offset, order=order)
    assert len(rows) == 6
    same(rows[4], theirs[4])
    with penstock.DataLoader(rows, batch_size=6) as loader:
        same(next(iter(loader)), theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_fromfile_reads(tmp_path, dtype):
    path = tmp_path / "x.bin"
    elements(dtype).tofile(path)
    same(penstock.raw(path, dtype).load(), np.fromfile(path, dtype))
    same(penstock.load(path, dtype=dtype, shape=-1), np.fromfile(path, dtype))


def test_structures(tmp_path):
    dtype = np.dtype([("a", "<i4"), ("b", ">f4", (2,)), ("c", "S1")], align=True)
    path = tmp_path / "x.bin"
    data = np.frombuffer(np.random.default_rng(2).bytes(10 * dtype.itemsize), dtype)
    data.tofile(path)
    for each in (dtype, dtype.descr):
        loaded = penstock.raw(path, each).load().numpy()
        assert loaded.dtype.itemsize == dtype.itemsize
        assert loaded.tobytes() == data.tobytes()
    assert np.array_equal(penstock.raw(path, dtype)[3].load().numpy()["b"], data[3]["b"])


def test_types_of_others(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    path = tmp_path / "x.bin"
    np.arange(8, dtype=np.uint16).tofile(path)
    for dtype in ("bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), penstock.DType("bfloat16")):
        same(penstock.raw(path, dtype).load(), np.fromfile(path, ml_dtypes.bfloat16))
    same(penstock.raw(path, "float8_e4m3fn").load(), np.fromfile(path, ml_dtypes.float8_e4m3fn))


def test_bytes_and_open_files(tmp_path):
    data = np.arange(10, dtype=np.uint16)
    same(penstock.raw(b"\0" + data.tobytes(), "uint16", offset=1).load(), data)
    path = tmp_path / "x.bin"
    data.tofile(path)
    with path.open("rb") as file:
        file.seek(4)
        same(penstock.load(file, dtype="uint16", shape=-1), data[2:])


def test_bytes_are_paths_where_they_are_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = np.arange(100, 110, dtype=np.uint8)
    data.tofile("x.bin")
    same(penstock.load(b"x.bin", dtype="uint8", shape=-1), data)
    same(penstock.load_async(b"x.bin", dtype="uint8", shape=-1).result(), data)
    same(penstock.rows(b"x.bin", dtype="uint8", shape=-1)[:], data)
    same(penstock.load(b"\0" + data.tobytes(), dtype="uint8", shape=-1, offset=1), data)
    with pytest.raises(FileNotFoundError):
        penstock.load(b"y.bin", dtype="uint8", shape=-1)


def test_what_is_left_over_is_said(tmp_path):
    path = tmp_path / "train.bin"
    path.write_bytes(bytes(6001))
    with pytest.raises(
        penstock.ShapeMismatchError, match="1 byte is left over: the 6001 bytes from byte 0 on"
    ) as raised:
        penstock.raw(path, "uint16")
    assert raised.value.path == str(path)
    with pytest.raises(penstock.ShapeMismatchError, match="1905 bytes are left over"):
        penstock.rows(path, dtype="uint16", shape=(-1, 1024))
    assert penstock.raw(path, "uint16", 3000).shape == (3000,)
    with pytest.raises(penstock.TruncatedError, match="takes 6002 bytes, but the file has 6001"):
        penstock.raw(path, "uint16", 3001)


@pytest.mark.parametrize(
    ("layout", "error"),
    [
        ({"dtype": None}, penstock.InvalidArgumentError),
        ({"dtype": "object"}, penstock.InvalidArgumentError),
        ({"dtype": "words"}, penstock.InvalidArgumentError),
        ({"dtype": [("a", object)]}, penstock.UnsafeError),
        ({"dtype": "S0"}, penstock.InvalidArgumentError),
        ({"dtype": "u2", "shape": (-1, -1)}, penstock.InvalidArgumentError),
        ({"dtype": "u2", "shape": -2}, penstock.InvalidArgumentError),
        ({"dtype": "u2", "shape": (1 << 40, 1 << 40)}, penstock.InvalidArgumentError),
        ({"dtype": "u2", "shape": (-1, 0)}, penstock.InvalidArgumentError),
        ({"dtype": "u2", "shape": "3"}, penstock.Error),
        ({"dtype": "u2", "offset": -1}, penstock.InvalidArgumentError),
        ({"dtype": "u2", "offset": 1 << 70}, penstock.InvalidArgumentError),
        ({"dtype": "u2", "offset": 101}, penstock.TruncatedError),
        ({"dtype": "u2", "order": "A"}, penstock.InvalidArgumentError),
    ],
)
def test_layouts_that_cannot_be(tmp_path, layout, error):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(100))
    with pytest.raises(error):
        penstock.raw(path, **layout)


def test_nothing_is_nothing(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"")
    assert penstock.raw(path, "u2").load().shape == (0,)
    assert len(penstock.rows(path, dtype="u2", shape=(-1, 4))) == 0


def test_a_fifo_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(penstock.UnsupportedError):
        penstock.raw(tmp_path / "pipe", "u2")
    with pytest.raises(FileNotFoundError) as raised:
        penstock.rows(tmp_path / "absent", dtype="u2", shape=-1)
    assert raised.value.errno == errno.ENOENT


def test_a_dtype_alone_is_what_values_become(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(4, dtype=np.float64))
    assert penstock.load(path, dtype="float32").dtype == "float32"
    assert penstock.rows(path, dtype="float32")[1].dtype == "float32"
    (tmp_path / "x.bin").write_bytes(bytes(100))
    with pytest.raises(penstock.UnknownFormatError, match=r"by penstock.raw\(path, dtype\) or numpy.memmap|zero bytes"):
        penstock.load(tmp_path / "x.bin", dtype="uint16")


@pytest.mark.parametrize("call", [penstock.load, penstock.rows])
def test_a_file_with_a_header_is_no_such_file(tmp_path, call):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(40, dtype=np.uint16))
    for layout in ({"shape": -1}, {"offset": 0}, {"order": "C"}, {"shape": 4, "offset": 64}):
        with pytest.raises(penstock.InvalidArgumentError, match=r"format npy.*penstock\.raw"):
            call(path, dtype="uint16", **layout)
    found = call(path, dtype="uint16", offset=128)
    assert len(found) == 40
    assert penstock.raw(path, "uint16").shape == (104,)


def test_tokens_that_are_called_npy_have_no_header(tmp_path):
    path = tmp_path / "part-0-00000.npy"
    tokens = np.random.default_rng(3).integers(0, 50257, 4096).astype(np.uint16)
    tokens.tofile(path)
    with pytest.raises(penstock.UnknownFormatError, match=r"penstock\.raw"):
        penstock.load(path)
    same(penstock.raw(path, "uint16").load(), tokens)
    same(penstock.rows(path, dtype="uint16", shape=(-1, 512))[3], tokens.reshape(-1, 512)[3])


def test_a_compressed_file_is_no_such_file(tmp_path):
    gzip = pytest.importorskip("gzip")
    path = tmp_path / "train.bin.gz"
    path.write_bytes(gzip.compress(bytes(1000)) + bytes(1))
    with pytest.raises(penstock.InvalidArgumentError, match="a gzip file: decompress it first"):
        penstock.rows(path, dtype="uint8", shape=-1)


def test_what_does_not_go_together(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(100))
    with pytest.raises(penstock.InvalidArgumentError, match="dtype"):
        penstock.rows(path, shape=-1)
    with pytest.raises(penstock.InvalidArgumentError, match="key="):
        penstock.rows(path, "x", dtype="u2", shape=-1)
    with pytest.raises(penstock.InvalidArgumentError, match="strict"):
        penstock.load(path, dtype="u2", shape=-1, strict=True)
    with pytest.raises(penstock.InvalidArgumentError, match="beside a path"):
        penstock.rows(np.arange(4), shape=(2, 2))


def test_it_pickles(tmp_path):
    path = tmp_path / "x.bin"
    tokens = np.arange(1000, dtype=">u2")
    tokens.tofile(path)
    entry = pickle.loads(pickle.dumps(penstock.raw(path, np.dtype(">u2"), (-1, 10))[5:50, 3]))
    same(entry.load(), tokens.reshape(-1, 10)[5:50, 3])
    rows = penstock.rows(path, dtype=">u2", shape=(-1, 10)).cast("int64")
    assert pickle.loads(pickle.dumps(rows))[7].tolist() == tokens.reshape(-1, 10)[7].tolist()
    with pytest.raises(penstock.UnsupportedError):
        pickle.dumps(penstock.raw(b"\0\0", "u2"))


def test_larger_than_memory(tmp_path):
    """Neither opening nor a row reads more than it needs."""
    path = tmp_path / "x.bin"
    with path.open("wb") as file:
        file.truncate(1 << 42)
        file.seek((1 << 42) - 4)
        file.write(b"\1\0\2\0")
    rows = penstock.rows(path, dtype="uint16", shape=(-1, 1024))
    assert len(rows) == 1 << 31
    assert rows[-1][-2:].tolist() == [1, 2]
    mapped = penstock.rows(np.memmap(path, "uint16", "r", shape=(1 << 31, 1024)))
    assert mapped[-1][-2:].tolist() == [1, 2]


# --- numpy.memmap ---


@pytest.fixture
def tokens(tmp_path):
    np.arange(6000, dtype=np.uint16).tofile(tmp_path / "x.bin")
    return tmp_path / "x.bin"


VIEWS = {
    "whole": lambda a: a,
    "behind": lambda a: a[3:],
    "middle": lambda a: a[2:5],
    "row": lambda a: a[4],
    "flat": lambda a: a.reshape(-1),
    "other type": lambda a: a.view("i4"),
    "big-endian": lambda a: a.view(">u2"),
    "turned": lambda a: a.T,
    "every second": lambda a: a[::2],
    "columns": lambda a: a[:, 3:7],
    "backwards": lambda a: a[::-1],
}
IN_FILE = {"whole", "behind", "middle", "row", "flat", "other type", "big-endian", "turned"}


@pytest.mark.parametrize("offset", [0, 2, 4096, 5000])
@pytest.mark.parametrize("view", VIEWS)
def test_a_memmap_is_read_where_it_lies(tokens, view, offset):
    array = VIEWS[view](np.memmap(tokens, "uint16", "r", offset=offset, shape=(6, 20)))
    rows = penstock.rows(array)
    with penstock.DataLoader(rows, batch_size=len(array)) as loader:
        same(next(iter(loader)), array)
    is_small = b"x.bin" in pickle.dumps(rows)
    assert is_small == (view in IN_FILE)
    again = pickle.loads(pickle.dumps(rows))
    same(again[1], array[1])


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_a_memmap_that_is_written_to_is_memory(tokens, mode):
    array = np.memmap(tokens, "uint16", mode, shape=(60, 100))
    rows = penstock.rows(array)
    array[7, :3] = 9
    assert rows[7][:4].tolist() == [9, 9, 9, 703]
    array[7, :3] = 11
    assert rows[7][:4].tolist() == [11, 11, 11, 703]
    in_file = np.fromfile(tokens, "uint16")[700:703].tolist()
    assert in_file == ([11, 11, 11] if mode == "r+" else [700, 701, 702])
    assert pickle.loads(pickle.dumps(rows))[7][:3].tolist() == [11, 11, 11]


def test_a_memmap_of_a_file_that_was_replaced_is_memory(tokens):
    array = np.memmap(tokens, "uint16", "r")
    np.zeros(6000, np.uint16).tofile(tokens.with_name("new.bin"))
    os.replace(tokens.with_name("new.bin"), tokens)
    assert penstock.rows(array)[5].item() == 5
    array = np.memmap(tokens, "uint16", "r")
    tokens.unlink()
    assert penstock.rows(array)[5].item() == 0


def test_a_memmap_of_an_npy(tmp_path):
    path = tmp_path / "x.npy"
    data = np.arange(60.0).reshape(6, 10)
    np.save(path, data)
    rows = penstock.rows(np.load(path, mmap_mode="r"))
    assert b"x.npy" in pickle.dumps(rows)
    same(rows[2], data[2])


def test_a_memmap_that_is_written_to_by_others_is_an_error(tokens):
    rows = penstock.rows(np.memmap(tokens, "uint16", "r", shape=(60, 100)), mmap=False)
    with tokens.open("r+b") as file:
        file.write(b"\xff")
    os.utime(tokens, ns=(1, 1))
    with pytest.raises(penstock.ChangedError):
        next(iter(penstock.DataLoader(rows, batch_size=4)))


def test_a_memmap_is_written(tokens, tmp_path):
    array = np.memmap(tokens, "uint16", "r", shape=(60, 100))
    with penstock.Writer(tmp_path / "out.npy") as writer:
        writer.append(array[:20])
        writer.append(array[20:])
    assert np.array_equal(np.load(tmp_path / "out.npy"), array)
    penstock.save({"x": array}, tmp_path / "out.safetensors")
    same(penstock.load(tmp_path / "out.safetensors")["x"], array)
