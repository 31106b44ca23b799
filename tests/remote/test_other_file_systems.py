"""Files of fsspec and obstore file systems, in place of paths."""

from __future__ import annotations

import io
import pickle
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import client_of
from contents import NAMES, contents, npy_of, numbers, same

import penstock
from penstock import remote

sys.path.append(str(Path(__file__).parents[1] / "python"))
from ctrl_c import answers_ctrl_c

KINDS = ("fsspec memory", "fsspec local", "obstore MemoryStore", "obstore LocalStore")


class Counted:
    """A file system that counts what is asked of it, and may fail."""

    def __init__(self, inner):
        self.inner = inner
        self.asked = []
        self.before = lambda: None
        self.change = lambda parts: parts

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def _ranges(self, starts, ends, call):
        self.asked += zip(starts, ends, strict=True)
        self.before()
        return self.change(call())

    def cat_ranges(self, paths, starts, ends, **more):
        return self._ranges(starts, ends, lambda: self.inner.cat_ranges(paths, starts, ends, **more))

    def get_ranges(self, path, *, starts, ends):
        return self._ranges(starts, ends, lambda: self.inner.get_ranges(path, starts=starts, ends=ends))

    @property
    def bytes(self):
        return sum(end - start for start, end in self.asked)


class Place:
    def __init__(self, kind, folder):
        self.name = kind
        library, store = kind.split()
        module = pytest.importorskip(library)
        self.folder = ""
        if library == "fsspec":
            self.of = remote.from_fsspec
            self.fs = Counted(module.filesystem(store, skip_instance_cache=True))
            self.folder = f"{folder}/"
            self.fs.makedirs(f"{self.folder}dir ä", exist_ok=True)
        else:
            self.of = remote.from_obstore
            stores = pytest.importorskip("obstore.store")
            self.fs = Counted(stores.MemoryStore() if store == "MemoryStore" else stores.LocalStore(folder))

    def put(self, name, content):
        if self.of is remote.from_fsspec:
            self.fs.pipe_file(self.folder + name, content)
        else:
            self.fs.put(name, content)

    def source(self, name, **more):
        return self.of(self.fs, self.folder + name, **more)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.replace(" ", "_"))
def place(request, tmp_path):
    return Place(request.param, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_every_format_loads_as_its_bytes_do(place, name):
    place.put(name, contents()[name])
    same(penstock.load(place.source(name)), penstock.load(contents()[name]))


def test_a_slice_reads_its_own_ranges_alone(place):
    array = numbers(60000, 64)
    place.put("x.npy", npy_of(array))
    with penstock.open(place.source("x.npy")) as archive:
        place.fs.asked.clear()
        rows = archive[""][20000:20128].load()
    assert np.array_equal(np.asarray(rows), array[20000:20128])
    assert place.fs.bytes <= 1.2 * rows.nbytes


def test_rows_and_load_into_take_it(place):
    array = numbers(5000, 64)
    place.put("x.npy", npy_of(array))
    target = np.zeros_like(array)
    penstock.load_into(target, place.source("x.npy"))
    assert np.array_equal(target, array)
    rows = penstock.rows(place.source("x.npy"))
    loader = penstock.DataLoader(rows, batch_size=50, shuffle=True, seed=3, num_workers=2)
    expected = penstock.DataLoader(penstock.rows(array), batch_size=50, shuffle=True, seed=3)
    for batch, other in zip(loader, expected, strict=True):
        assert batch.equal(other)


def test_rows_of_a_file_with_several_tensors_take_a_key(place):
    place.put("x.npz", contents()["large.npz"])
    assert len(penstock.rows(place.source("x.npz"), "half")) == 3000
    with pytest.raises(penstock.InvalidArgumentError, match=r"x\.npz.*holds 3 tensors"):
        penstock.rows(place.source("x.npz"))


@pytest.mark.parametrize("library", ["fsspec", "obstore"])
def test_what_can_be_pickled_makes_sources_that_can(library, tmp_path):
    (tmp_path / "x.npy").write_bytes(contents()["small.npy"])
    if library == "fsspec":
        source = remote.from_fsspec(pytest.importorskip("fsspec").filesystem("file"), f"{tmp_path}/x.npy")
    else:
        source = remote.from_obstore(pytest.importorskip("obstore.store").LocalStore(tmp_path), "x.npy")
    again = pickle.loads(pickle.dumps(penstock.rows(source)))
    assert len(again) == 8
    assert again[3].equal(penstock.load(contents()["small.npy"])[3])


def test_a_file_that_is_not_there(place):
    with pytest.raises(penstock.NotFoundError, match=r"nothing\.npy") as failed:
        place.source("nothing.npy")
    assert failed.value.path is not None
    assert failed.value.path.endswith("nothing.npy")


def test_an_exception_while_reading_names_path_and_byte_and_is_the_cause(place):
    place.put("x.npy", npy_of(numbers(60000, 64)))
    archive = penstock.open(place.source("x.npy"))

    def fail():
        raise ConnectionError("the store is away")

    place.fs.before = fail
    with pytest.raises(penstock.InputOutputError, match="ConnectionError: the store is away") as failed:
        archive.load()
    assert failed.value.path.endswith("x.npy")
    assert failed.value.offset is not None
    assert str(failed.value).count("x.npy") == 1
    causes = []
    error = failed.value
    while error is not None:
        causes.append(type(error))
        error = error.__cause__
    assert ConnectionError in causes


def test_fewer_bytes_than_asked_for_are_an_error(place):
    place.put("x.npy", npy_of(numbers(60000, 64)))
    archive = penstock.open(place.source("x.npy"))
    place.fs.change = lambda parts: [bytes(memoryview(part))[:-1] for part in parts]
    with pytest.raises(penstock.TruncatedError, match="open it again"):
        archive.load()


def test_a_size_that_is_known_is_not_asked_for(place):
    place.put("x.npy", contents()["small.npy"])

    def refuse(*_):
        raise AssertionError("asked")

    place.fs.info = place.fs.head = refuse
    source = place.source("x.npy", size=len(contents()["small.npy"]))
    same(penstock.load(source), penstock.load(contents()["small.npy"]))
    assert source.size == len(contents()["small.npy"])
    assert "x.npy" in repr(source)


@pytest.mark.parametrize("size", [-1, 1 << 63, 2.5, "7", True])
def test_a_size_that_is_none(place, size):
    place.put("x.npy", contents()["small.npy"])
    with pytest.raises(penstock.InvalidArgumentError, match=r"x\.npy.*as its size"):
        place.source("x.npy", size=size)


def test_a_size_of_numpys_is_one(place):
    place.put("x.npy", contents()["small.npy"])
    source = place.source("x.npy", size=np.int64(len(contents()["small.npy"])))
    same(penstock.load(source), penstock.load(contents()["small.npy"]))
    assert type(source.size) is int


@pytest.mark.parametrize("told", [None, 7, "text", [1]])
def test_a_description_that_is_none(place, told):
    place.fs.info = place.fs.head = lambda path: told
    with pytest.raises(penstock.DTypeMismatchError, match=r"x\.npy.*expected a dict with its size"):
        place.source("x.npy")


def test_an_exception_whose_text_cannot_be_had(place):
    class MuteError(Exception):
        def __str__(self):
            raise ZeroDivisionError

    def fail():
        raise MuteError

    place.put("x.npy", contents()["small.npy"])
    place.fs.before = fail
    with pytest.raises(penstock.InputOutputError, match=r"x\.npy.*says MuteError") as failed:
        penstock.load(place.source("x.npy"))
    assert failed.value.offset == 0


def test_more_bytes_than_asked_for_are_an_error(place):
    place.put("x.npy", contents()["small.npy"])
    place.fs.change = lambda parts: [bytes(memoryview(part)) + b"x" for part in parts]
    with pytest.raises(penstock.InputOutputError, match=r"x\.npy.*bytes where \d+ were asked for"):
        penstock.load(place.source("x.npy"))


def test_torchs_objects_of_a_source(place):
    torch = pytest.importorskip("torch")
    import penstock.torch as pt

    state = {"weight": torch.arange(12.0).reshape(3, 4), "step": 3}
    saved = io.BytesIO()
    torch.save(state, saved)
    place.put("x.pt", saved.getvalue())
    found = pt.load(place.source("x.pt"))
    assert found["step"] == 3
    assert torch.equal(found["weight"], state["weight"])
    target = {"weight": torch.zeros(3, 4), "step": 0}
    pt.load_into(target, place.source("x.pt"))
    assert torch.equal(target["weight"], state["weight"])
    assert target["step"] == 3
    with pytest.raises(ValueError, match="must be a file path"):
        pt.load(place.source("x.pt"), mmap=True)
    place.put("cut.pt", saved.getvalue()[:300])
    with pytest.raises(penstock.Error, match=r"cut\.pt"):
        pt.load(place.source("cut.pt"))


@pytest.mark.parametrize(
    "answer",
    [None, [], ["text"], [ValueError("in the list")], [b"", b""], 7],
    ids=["none", "no parts", "text", "exception", "more parts", "number"],
)
def test_an_answer_that_is_no_bytes(place, answer):
    place.put("x.npy", contents()["small.npy"])
    place.fs.change = lambda parts: answer
    with pytest.raises(penstock.DTypeMismatchError, match=r"x\.npy.*expected the bytes of 1 ranges") as failed:
        penstock.load(place.source("x.npy"))
    assert failed.value.offset == 0


def test_bytes_with_gaps_between_them(place):
    content = contents()["small.npy"]
    place.put("x.npy", content)
    place.fs.change = lambda parts: [memoryview(np.repeat(np.frombuffer(part, "u1"), 2))[::2] for part in parts]
    same(penstock.load(place.source("x.npy")), penstock.load(content))


SILENT = """
import time

class Silent:
    calls = 0

    def __init__(self, content):
        self.content = content

    def info(self, path):
        return {"size": len(self.content)}

    def cat_ranges(self, paths, starts, ends, on_error):
        Silent.calls += 1
        if Silent.calls > 1:
            time.sleep(2)
        return [self.content[start:end] for start, end in zip(starts, ends)]
"""


def test_ctrl_c_while_a_file_system_says_nothing(tmp_path):
    (tmp_path / "silent.py").write_text(SILENT)
    (tmp_path / "x.npy").write_bytes(npy_of(numbers(60000, 64)))
    setup = """import silent, penstock.remote
fs = silent.Silent(open("x.npy", "rb").read())
archive = penstock.open(penstock.remote.from_fsspec(fs, "x.npy"))"""
    answers_ctrl_c(tmp_path, setup, "archive.load()")


def test_a_wrong_size_is_an_error(place):
    content = contents()["small.npy"]
    place.put("x.npy", content)
    with pytest.raises(penstock.Error):
        penstock.load(place.source("x.npy", size=len(content) + 1))
    with pytest.raises(penstock.TruncatedError):
        penstock.load(place.source("x.npy", size=len(content) - 1))


def test_empty_and_unknown_files(place):
    for content in (b"", b"no tensors in here"):
        place.put("x.npy", content)
        with pytest.raises(penstock.Error, match=r"x\.npy"):
            penstock.load(place.source("x.npy"))


def test_many_threads_read_one_archive(place):
    array = numbers(4000, 64)
    place.put("x.npy", npy_of(array))
    tensor = penstock.open(place.source("x.npy"))[""]
    wrong = []

    def read(first):
        for row in range(first, 4000, 800):
            if not np.array_equal(np.asarray(tensor[row : row + 3].load()), array[row : row + 3]):
                wrong.append(row)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("make", [remote.from_fsspec, remote.from_obstore])
@pytest.mark.parametrize("store", [None, 3, "s3://bucket", object()], ids=["None", "int", "text", "object"])
def test_what_is_no_file_system(make, store):
    with pytest.raises(penstock.DTypeMismatchError, match="found an object of type"):
        make(store, "x.npy")


def test_a_path_that_is_no_text(place):
    with pytest.raises(penstock.DTypeMismatchError, match="expected a string"):
        place.of(place.fs, 7)


def test_a_folder_is_no_file(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    with pytest.raises(penstock.IsDirectoryError, match="it is a folder"):
        remote.from_fsspec(fsspec.filesystem("file"), str(tmp_path))


def test_a_url_in_one_line(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    (tmp_path / "x.npy").write_bytes(contents()["small.npy"])
    loaded = penstock.load(remote.from_fsspec(*fsspec.url_to_fs(f"file://{tmp_path}/x.npy")))
    same(loaded, penstock.load(contents()["small.npy"]))


@pytest.mark.parametrize("name", ["small.npy", "large.npz"])
def test_a_store_by_obstores_client(seaweed, name):
    store = client_of(seaweed)
    store.put(f"bridge/{name}", contents()[name])
    same(penstock.load(remote.from_obstore(store, f"bridge/{name}")), penstock.load(contents()[name]))
