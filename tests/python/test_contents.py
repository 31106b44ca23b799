"""`penstock.load` and `penstock.open` of bytes in memory and of open files."""

import array
import gzip
import io
import mmap
import os
import random
import tempfile
import zipfile

import numpy as np
import pytest

import penstock

A = np.arange(12, dtype="f4").reshape(3, 4)
WRITERS = {"npy": A, "npz": {"a": A}, "safetensors": {"a": A}, "pt": {"a": A, "n": [1, "x"]}}


@pytest.fixture(params=WRITERS)
def path(request, tmp_path):
    path = tmp_path / f"x.{request.param}"
    penstock.save(WRITERS[request.param], path)
    return path


def same(found, expected):
    assert type(found) is type(expected)
    if isinstance(found, penstock.Tensor):
        assert found.equal(expected)
    elif isinstance(found, dict):
        assert list(found) == list(expected)
        for key in found:
            same(found[key], expected[key])
    else:
        assert found == expected


KINDS = {
    "bytes": lambda raw: raw,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "strided memoryview": lambda raw: memoryview(bytes(b for byte in raw for b in (byte, 0)))[::2],
    "array": lambda raw: array.array("B", raw),
    "numpy": lambda raw: np.frombuffer(raw, "u1"),
    "BytesIO": io.BytesIO,
    "BufferedReader": lambda raw: io.BufferedReader(io.BytesIO(raw)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_content_in_memory_loads_as_its_file(path, kind):
    raw = path.read_bytes()
    same(penstock.load(KINDS[kind](raw)), penstock.load(path))
    with penstock.open(KINDS[kind](raw)) as archive:
        same(archive.load(), penstock.load(path))


def test_open_files_load_as_their_paths(path, tmp_path):
    expected = penstock.load(path)
    with open(path, "rb") as file:
        same(penstock.load(file), expected)
        assert file.tell() == path.stat().st_size
    with open(path, "rb", buffering=0) as file:
        same(penstock.load(file), expected)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        same(penstock.load(mapped), expected)
    with tempfile.NamedTemporaryFile() as file:
        file.write(path.read_bytes())
        file.seek(0)
        same(penstock.load(file), expected)
    with tempfile.TemporaryFile() as file:
        file.write(b"before" + path.read_bytes())
        file.seek(6)
        same(penstock.load(file), expected)
    (tmp_path / "x.gz").write_bytes(gzip.compress(path.read_bytes()))
    with gzip.open(tmp_path / "x.gz") as file:
        same(penstock.load(file), expected)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.write(path, "inside")
    with zipfile.ZipFile(tmp_path / "x.zip") as archive, archive.open("inside") as file:
        same(penstock.load(file), expected)


def test_a_pipe_is_read_forward(path):
    reader, writer = os.pipe()
    with open(writer, "wb") as file:
        file.write(path.read_bytes())
    with open(reader, "rb") as file:
        same(penstock.load(file), penstock.load(path))


@pytest.mark.parametrize("make", [io.BytesIO, lambda raw: io.BufferedReader(io.BytesIO(raw))])
def test_arrays_behind_one_another_are_read_one_by_one(make):
    raw = io.BytesIO()
    np.save(raw, A)
    np.save(raw, A + 1)
    file = make(raw.getvalue())
    assert penstock.load(file).tolist() == A.tolist()
    assert penstock.load(file).tolist() == (A + 1).tolist()
    with pytest.raises(penstock.Error, match=r"seek\(0\)"):
        penstock.load(file)


@pytest.mark.parametrize("make", [io.BytesIO, lambda raw: io.BufferedReader(io.BytesIO(raw))])
def test_an_array_of_objects_ends_where_its_pickle_does(make, tmp_path):
    raw = io.BytesIO()
    objects = np.array([1, "a", None, 2.5], object)
    np.save(raw, objects, allow_pickle=True)
    (tmp_path / "x.npy").write_bytes(raw.getvalue())
    np.save(raw, A)
    file = make(raw.getvalue())
    same(penstock.load(file), penstock.load(tmp_path / "x.npy"))
    assert penstock.load(file).tolist() == A.tolist()
    with pytest.raises(penstock.Error, match="a frame of"):
        penstock.load(make((tmp_path / "x.npy").read_bytes()[:-3]))


def test_old_checkpoints_behind_one_another_are_read_one_by_one(tmp_path):
    torch = pytest.importorskip("torch")
    with open(tmp_path / "x.pt", "wb") as file:
        for number in range(2):
            torch.save(torch.tensor([number]), file, _use_new_zipfile_serialization=False)
    with open(tmp_path / "x.pt", "rb") as file:
        assert [penstock.load(file).tolist() for _ in range(2)] == [[0], [1]]


def test_what_was_loaded_has_memory_of_its_own():
    raw = io.BytesIO()
    np.save(raw, A)
    content = bytearray(raw.getvalue())
    loaded = penstock.load(content)
    content[-4:] = b"\0\0\0\0"
    content.clear()  # nobody holds it
    assert loaded.tolist() == A.tolist()


def test_an_archive_keeps_the_bytes_alive():
    raw = io.BytesIO()
    np.savez(raw, a=A)
    entry = penstock.open(bytearray(raw.getvalue()))["a"]
    assert entry[1:].load().tolist() == A[1:].tolist()
    content = bytearray(raw.getvalue())
    archive = penstock.open(content)
    with pytest.raises(BufferError):
        content.clear()
    archive.close()
    content.clear()


def test_bytes_without_zeros_are_a_path(tmp_path):
    np.save(tmp_path / "x.npy", A)
    assert penstock.load(os.fsencode(tmp_path / "x.npy")).tolist() == A.tolist()
    with pytest.raises(FileNotFoundError):
        penstock.load(b"no such file")


class Gives:
    def __init__(self, value):
        self.value = value

    def read(self, count=-1):
        return self.value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (io.StringIO("text"), "open\\(path, 'rb'\\)"),
        (Gives("text"), "open\\(path, 'rb'\\)"),
        (Gives(None), "nothing to read yet"),
        (Gives(5), "type int"),
        (3.5, "type float, expected a path \\("),
        (None, "type NoneType, expected a path \\("),
        (np.ones(3), "penstock.asarray"),
        (penstock.ones(3), "penstock.asarray"),
    ],
)
def test_what_is_no_content_is_refused_by_its_kind(given, message):
    for function in (penstock.load, penstock.open):
        with pytest.raises(penstock.Error, match=message):
            function(given)


@pytest.mark.parametrize(
    "raw", [bytes(5000), b"\0" * 3, random.Random(1).randbytes(4999) + b"\0", b"PK\3\4" + bytes(3000)]
)
def test_messages_about_bytes_do_not_hold_them(raw):
    for given in (raw, bytearray(raw), io.BytesIO(raw)):
        with pytest.raises(penstock.Error) as error:
            penstock.load(given)
        assert len(str(error.value)) < 400
        assert str(error.value).isprintable()
