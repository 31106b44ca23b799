"""Each kind of bad input: the exception's type, and a sentence that names the file, what was found and what to do."""

import copy
import errno
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import penstock
from penstock import _core

BUILTINS = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)


@pytest.fixture
def npy(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(12.0).reshape(3, 4))
    return path


def fails(kind, builtin, call, *words):
    """The call raises `kind`, which is also `builtin`, with a sentence that holds every word."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, builtin)
    assert isinstance(error, penstock.Error)
    for word in words:
        assert str(word) in str(error), f"{word!r} not in {error}"
    assert "\n" not in str(error)
    return error


def test_each_code_has_its_class():
    # Other modules of the package add classes of their own.
    subclasses = penstock.Error.__subclasses__()
    classes = {cls.code: cls for cls in subclasses if cls.__module__ == penstock.Error.__module__}
    table = _core._error_codes()
    assert len(table) == len(classes)
    for code, builtin in table:
        assert issubclass(classes[code], BUILTINS[builtin]), code
        assert getattr(penstock, classes[code].__name__) is classes[code]


def test_missing_file(tmp_path):
    path = tmp_path / "nope.npy"
    for call in (penstock.load, penstock.open, penstock.rows, penstock.files):
        error = fails(penstock.NotFoundError, FileNotFoundError, lambda call=call: call(path), path)
    assert error.code == "not_found"
    assert error.errno == errno.ENOENT
    assert error.filename == str(path) == error.path
    assert error.message
    assert error.offset is None
    assert error.tensor is None


TOLD_BY_THE_SYSTEM = ["EROFS", "EPERM", "ETXTBSY", "ENOSPC", "EDQUOT", "EFBIG", "EMFILE", "ENFILE", "EIO", "ELOOP"]


@pytest.mark.parametrize("name", TOLD_BY_THE_SYSTEM)
@pytest.mark.parametrize("kind", [penstock.InputOutputError, penstock.PermissionDeniedError, penstock.NotFoundError])
def test_numbers_of_the_systems_errors(name, kind):
    """A code of ours stands for several of them; the number says which, and no text does."""
    number = getattr(errno, name)
    error = kind("x.npy: cannot write the file", path="x.npy", errno=number, http_status=503)
    for same in (error, pickle.loads(pickle.dumps(error)), copy.copy(error), penstock.errors._within(error, "y", "t")):
        assert (same.errno, same.filename, same.http_status) == (number, "x.npy", 503)
    quoting = kind(f"x.npy: cannot write the file: {os.strerror(number)}; free some", path="x.npy")
    assert quoting.errno == kind("cannot write the file").errno
    assert quoting.http_status is None


def test_numbers_without_a_text_of_the_system():
    assert penstock.InputOutputError("cut off").errno is None
    assert penstock.PermissionDeniedError("not allowed").errno == errno.EACCES
    assert penstock.TimedOutError("late").errno == errno.ETIMEDOUT


def test_numbers_of_errors_that_happen(tmp_path):
    (tmp_path / "circle.npy").symlink_to("circle.npy")
    np.save(tmp_path / "there.npy", np.ones(3))
    for call, number in [
        (lambda: penstock.load(tmp_path / ("n" * 300)), errno.ENAMETOOLONG),
        (lambda: penstock.load(tmp_path / "circle.npy"), errno.ELOOP),
        (lambda: penstock.load(tmp_path), errno.EISDIR),
        (lambda: penstock.load(tmp_path / "there.npy" / "x"), errno.ENOTDIR),
    ]:
        with pytest.raises(OSError, match=str(tmp_path)) as caught:
            call()
        assert isinstance(caught.value, penstock.Error)
        assert caught.value.errno == number


LIMITED = """
import resource, sys
import numpy, penstock
{call}  # with all that is read on the way
hard = resource.getrlimit(resource.{limit})[1]
resource.setrlimit(resource.{limit}, ({value}, hard))
try:
    {call}
except penstock.Error as error:
    sys.stdout.write(f"{{type(error).__name__}} {{error.errno}}")
"""


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.pt", "y.safetensors"])
def test_the_number_of_a_file_that_grew_too_large(tmp_path, name):
    call = f"penstock.save({{'a': numpy.ones(9999)}}{'' if name != 'y.npy' else '[chr(97)]'}, {str(tmp_path / name)!r})"
    program = LIMITED.format(call=call, limit="RLIMIT_FSIZE", value=4096)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"InputOutputError {errno.EFBIG}"


def test_the_number_of_too_many_open_files(tmp_path):
    np.save(tmp_path / "there.npy", np.ones(3))
    call = f"penstock.load({str(tmp_path / 'there.npy')!r})"
    program = LIMITED.format(call=call, limit="RLIMIT_NOFILE", value=3)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1] == str(errno.EMFILE)


def test_folder_in_place_of_a_file(tmp_path):
    fails(penstock.IsDirectoryError, IsADirectoryError, lambda: penstock.load(tmp_path), tmp_path)
    fails(penstock.IsDirectoryError, IsADirectoryError, lambda: penstock.open(tmp_path), tmp_path)


@pytest.mark.parametrize("path", ["a\0b.npy", b"a\0b.npy", "\ud800.npy"])
def test_paths_that_no_file_can_have(path):
    tensor = penstock.tensor([1])
    calls = [penstock.rows, penstock.files, lambda path: penstock.save(tensor, path)]
    if isinstance(path, str):  # bytes with a zero in them are taken for a file's content
        calls += [penstock.load, penstock.open]
    for call in calls:
        fails(penstock.InvalidArgumentError, ValueError, lambda call=call: call(path), repr(path), "not a path")


def test_names_that_are_no_utf8(tmp_path):
    """A lone surrogate is a text that no encoding has."""
    name = "\ud800"
    path = tmp_path / "x.npz"
    penstock.save({"a": penstock.tensor([1])}, path)
    rows = penstock.rows(penstock.tensor([[1.0]]))
    for call in (
        lambda: penstock.Writer(tmp_path / "y.npz").add(name, penstock.tensor([1])),
        lambda: penstock.files(path, keys=[name])[0],
        lambda: penstock.open(path)[name],
        lambda: penstock.DType(name),
        lambda: rows.cast(name),
        lambda: rows.cast("float64", keys=[name])[0],
        lambda: penstock.save({"a": penstock.tensor([1])}, tmp_path / "z.safetensors", metadata={"a": name}),
    ):
        with pytest.raises(penstock.Error):
            call()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(npy):
    npy.chmod(0)
    fails(penstock.PermissionDeniedError, PermissionError, lambda: penstock.load(npy), npy)


def test_save_into_a_missing_folder(tmp_path):
    path = tmp_path / "no" / "x.npy"
    fails(penstock.NotFoundError, FileNotFoundError, lambda: penstock.save(penstock.tensor([1]), path), path)


def test_empty_pattern(tmp_path):
    pattern = tmp_path / "*.pt"
    fails(penstock.NotFoundError, FileNotFoundError, lambda: penstock.files(pattern), pattern)


def test_truncated_file(npy):
    npy.write_bytes(npy.read_bytes()[:-8])
    fails(penstock.TruncatedError, ValueError, lambda: penstock.load(npy), npy)


def test_foreign_file(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    error = fails(penstock.UnknownFormatError, ValueError, lambda: penstock.load(path), path, ".npy")
    assert error.offset == 0


def test_object_array_that_takes_objects_from_outside_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([{}, None], dtype=object), allow_pickle=True)
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"\n") + 1] + b"\x80\x02\x82\x01.")
    fails(penstock.UnsafeError, ValueError, lambda: penstock.load(path), path)
    fails(penstock.UnsafeError, ValueError, lambda: penstock.save(np.array([{}]), tmp_path / "y.npy"), "y.npy")


def test_wrong_key(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, weight=np.ones(3), bias=np.ones(2))
    archive = penstock.open(path)
    error = fails(penstock.KeyNotFoundError, KeyError, lambda: archive["wieght"], path, "wieght", "weight")
    assert not str(error).startswith("'")
    assert str(error) == error.args[0]


def test_bad_index_of_a_tensor():
    t = penstock.tensor([[1, 2, 3], [4, 5, 6]])
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: t[2])
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: t[0, -4])
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: t[0, 0, 0], "(2, 3)")
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: t[[0, 1]], "list", "numpy()")
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: t[True], "bool")
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: t[..., ...])
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: t[1 << 70])
    fails(penstock.InvalidArgumentError, ValueError, lambda: t[::-1], "-1")
    with pytest.raises(ValueError, match="zero"):
        t[::0]


def test_bad_slice_of_an_entry(npy):
    entry = penstock.open(npy)[penstock.open(npy).keys()[0]]
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: entry[3])
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: entry[None])
    fails(penstock.IndexOutOfRangeError, IndexError, lambda: entry[np.array([0])])
    fails(penstock.InvalidArgumentError, ValueError, lambda: entry[::-1])


def test_bad_dtype_or_device(npy):
    t = penstock.tensor([1.0])
    fails(penstock.InvalidArgumentError, ValueError, lambda: t.to("float33"), "float33", "float16", "cpu")
    fails(penstock.InvalidArgumentError, ValueError, lambda: penstock.DType("nope"), "nope")
    fails(penstock.InvalidArgumentError, ValueError, lambda: penstock.load(npy, device="tpu"), "tpu")
    fails(penstock.NoDeviceError, RuntimeError, lambda: penstock.load(npy, device="cuda:77"), "cuda:77")


def test_bad_types_of_arguments(npy):
    with pytest.raises(TypeError, match="PathLike"):
        penstock.load(3)
    with pytest.raises(TypeError, match="found path=None, expected a text, bytes or a path"):
        penstock.save(penstock.tensor([1]), None)
    fails(penstock.DTypeMismatchError, TypeError, lambda: penstock.rows(3), "int")
    fails(penstock.DTypeMismatchError, TypeError, lambda: penstock.zip(3), "int", "rows()")
    fails(penstock.DTypeMismatchError, TypeError, lambda: penstock.DataLoader([1, 2]), "list", "rows()")


def test_unsaveable_objects_are_named(tmp_path):
    path = tmp_path / "x.pt"
    obj = {"a": [1, 2, {"b": test_unsaveable_objects_are_named}]}
    fails(penstock.DTypeMismatchError, TypeError, lambda: penstock.save(obj, path), path, "['a'][2]['b']", "function")
    assert list(tmp_path.iterdir()) == []


def test_unknown_extension(tmp_path):
    fails(
        penstock.InvalidArgumentError,
        ValueError,
        lambda: penstock.save(penstock.tensor([1]), tmp_path / "x.foo"),
        "x.foo",
    )


def test_shapes_that_do_not_stack(tmp_path):
    for i in range(4):
        np.save(tmp_path / f"{i}.npy", np.zeros(3 if i != 2 else 5))
    loader = penstock.DataLoader(penstock.files(tmp_path), batch_size=4)
    fails(penstock.ShapeMismatchError, ValueError, lambda: next(iter(loader)), "2.npy", "(5,)", "(3,)", "pad")


def test_dtypes_that_do_not_stack(tmp_path):
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.zeros(3, "f4" if i else "f8"))
    loader = penstock.DataLoader(penstock.files(tmp_path), batch_size=2)
    fails(penstock.DTypeMismatchError, TypeError, lambda: next(iter(loader)), "1.npy", "float32", "float64")


def test_batch_larger_than_memory():
    base = penstock.tensor([0.0])
    huge = np.broadcast_to(base.numpy(), (2, 1 << 46))
    loader = penstock.DataLoader(penstock.rows(huge), batch_size=2)
    fails(penstock.OutOfMemoryError, MemoryError, lambda: next(iter(loader)))


def test_tensor_larger_than_memory(tmp_path):
    # A sparse file: its bytes are really there, memory for them is not.
    path = tmp_path / "x.npy"
    np.lib.format.write_array_header_1_0(path.open("wb"), {"descr": "<f8", "fortran_order": False, "shape": (1 << 43,)})
    try:
        os.truncate(path, 128 + (1 << 46))
    except OSError:
        pytest.skip("this file system has no files of 64 TiB")
    fails(penstock.OutOfMemoryError, MemoryError, lambda: penstock.load(path))


def test_nesting_that_is_uneven():
    fails(penstock.ShapeMismatchError, ValueError, lambda: penstock.tensor([[1, 2], [3]]))
    fails(penstock.ShapeMismatchError, ValueError, lambda: penstock.tensor([1, [2]]))
    cycle = []
    cycle.append(cycle)
    fails(penstock.LimitError, ValueError, lambda: penstock.tensor(cycle))


def test_pad_modes():
    fails(penstock.InvalidArgumentError, ValueError, lambda: penstock.pad(mode="edge"), "edge", "replicate")
    fails(penstock.InvalidArgumentError, ValueError, lambda: penstock.pad(mode="zero", value=3))
    fails(penstock.InvalidArgumentError, ValueError, lambda: penstock.pad_to(-1))


def test_errors_survive_pickling_and_copying(tmp_path):
    with pytest.raises(penstock.NotFoundError) as caught:
        penstock.load(tmp_path / "nope.pt")
    for error in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert type(error) is penstock.NotFoundError
        assert str(error) == str(caught.value)
        assert (error.code, error.path, error.errno) == (caught.value.code, caught.value.path, caught.value.errno)


def test_paths_of_any_bytes(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe.npy"
    with pytest.raises(penstock.NotFoundError) as caught:
        penstock.load(path)
    assert os.fsencode(caught.value.path) == path
    penstock.save(penstock.tensor([1, 2]), path)
    assert penstock.load(path).tolist() == [1, 2]


def _message(call):
    with pytest.raises((penstock.Error, IndexError, ValueError)) as caught:
        call()
    return str(caught.value)


def test_one_of_a_thing_is_called_so(tmp_path):
    one = np.ones((1, 2), "float32")
    rows = penstock.rows(one)
    assert "which has 1 sample" in _message(lambda: rows[5]).split(";")[0]
    assert "has 1 sample and number 0 has 2" in _message(lambda: penstock.zip(penstock.rows(np.ones((2, 2))), rows))
    assert repr(rows) == "penstock.Dataset(1 sample)"
    assert "1 element cannot take" in _message(lambda: penstock.ones((1,)).reshape((2,)))
    assert "found 1 index for a tensor of shape ()" in _message(lambda: penstock.tensor(1.0)[0])
    assert "number 1 has 2 samples" in _message(lambda: penstock.zip(rows, penstock.rows(np.ones((2, 2)))))
