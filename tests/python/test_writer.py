"""penstock.Writer: what NumPy, PyTorch and safetensors read of it."""

import errno
import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import penstock

ROWS = [
    np.arange(12, dtype="f4").reshape(4, 3),
    np.arange(4, dtype="i8"),
    np.zeros((3, 0, 2), "f2"),
    np.zeros((0, 5), "u1"),
    np.array([[1, 2], [3, 4]], ">i8"),
    np.asfortranarray(np.arange(60, dtype="c16").reshape(5, 3, 4)),
    np.arange(40.0).reshape(4, 10)[::-1, ::3],
    np.array(["a", "text", "é"]),
    np.array(["2020-01-01", "NaT"], "M8[D]"),
    np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f8")]),
    np.array([True, False, True]),
]


def name_of(array):
    return f"{array.dtype.str}{array.shape}"


def names(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("rows", ROWS, ids=name_of)
def test_numpy_reads_what_was_appended(tmp_path, rows):
    path = tmp_path / "x.npy"
    with penstock.Writer(path, sync=False) as writer:
        writer.append(rows)
        for i in range(len(rows)):
            writer.append_row(rows[i, ...])
        writer.append(rows[:0])
        assert writer.rows == 2 * len(rows)
        assert names(tmp_path) == []
    expected = np.concatenate([rows, rows])
    back = np.load(path)
    assert back.shape == expected.shape
    assert back.dtype == expected.dtype.newbyteorder("=")
    assert back.tolist() == expected.tolist()
    with penstock.Writer(path, resume=True, sync=False) as writer:
        writer.append(rows)
    assert np.load(path).tolist() == np.concatenate([expected, rows]).tolist()


@pytest.mark.parametrize("descr", [">f4", ">i2", ">c8", "<f8"])
def test_a_file_of_numpys_is_resumed_as_it_is(tmp_path, descr):
    path = tmp_path / "x.npy"
    array = np.arange(6).reshape(2, 3).astype(descr)
    np.save(path, array)
    with penstock.Writer(path, resume=True) as writer:
        assert writer.rows == 2
        writer.append(array.astype(array.dtype.newbyteorder("=")))
    back = np.load(path)
    assert back.dtype == array.dtype
    assert (back == np.concatenate([array, array])).all()


@pytest.mark.parametrize("extension", ["npz", "safetensors", "pt"])
@pytest.mark.parametrize("compress", [False, True])
def test_peers_read_what_was_added(tmp_path, extension, compress):
    if compress and extension != "npz":
        pytest.skip("only .npz is deflated")
    path = str(tmp_path / f"x.{extension}")
    arrays = {
        "odd": np.arange(3, dtype="u1"),
        "w": np.arange(6, dtype="f4").reshape(2, 3),
        "scalar": np.array(5, "i8"),
        "none": np.zeros((0, 3), "f8"),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "swapped": np.arange(5, dtype=">f4"),
        "large": np.arange(700_000.0),
        "é": np.array([True]),
        "in pieces": np.arange(12, dtype="i4").reshape(4, 3),
    }
    with penstock.Writer(path, compress=compress, sync=False) as writer:
        for name, array in arrays.items():
            if name != "in pieces":
                writer.add(name, array)
        writer.begin("in pieces", "int32", (4, 3))
        writer.append(arrays["in pieces"][:3])
        writer.append_row(arrays["in pieces"][3])
    if extension == "npz":
        back = dict(np.load(path))
    elif extension == "safetensors":
        back = pytest.importorskip("safetensors.numpy").load_file(path)
    else:
        loaded = pytest.importorskip("torch").load(path, weights_only=True)
        back = {name: tensor.numpy() for name, tensor in loaded.items()}
    assert sorted(back) == sorted(arrays)
    for name, array in arrays.items():
        assert back[name].shape == array.shape, name
        assert back[name].dtype == array.dtype.newbyteorder("="), name
        assert (back[name] == array).all(), name


@pytest.mark.parametrize("extension", ["safetensors", "pt"])
def test_torch_tensors(tmp_path, extension):
    torch = pytest.importorskip("torch")
    path = str(tmp_path / f"x.{extension}")
    tensors = {
        "mask": torch.tensor([True, False, True]),
        "bfloat16": torch.arange(5, dtype=torch.bfloat16),
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
        "turned": torch.arange(6).reshape(2, 3).T,
        "float8": torch.ones(8).to(torch.float8_e5m2),
        "half": torch.ones(3, dtype=torch.float16),
    }
    with penstock.Writer(path, sync=False) as writer:
        for name, tensor in tensors.items():
            writer.add(name, tensor)
    if extension == "pt":
        back = torch.load(path, weights_only=True)
    else:
        back = pytest.importorskip("safetensors.torch").load_file(path)
    assert {name: tensor.dtype for name, tensor in back.items()} == {n: t.dtype for n, t in tensors.items()}
    for name, tensor in tensors.items():
        assert torch.equal(back[name].float(), tensor.detach().float()), name


def test_torch_rows_of_bfloat16(tmp_path):
    torch = pytest.importorskip("torch")
    rows = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    with penstock.Writer(tmp_path / "x.pt", sync=False) as writer:
        writer.begin("x", rows.dtype, (4, 3))
        writer.append(rows)
        writer.append(rows)
    assert torch.equal(torch.load(tmp_path / "x.pt")["x"], torch.cat([rows, rows]))


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.safetensors", "x.pt"])
@pytest.mark.parametrize("there", [False, True])
def test_an_exception_leaves_nothing(tmp_path, name, there):
    path = tmp_path / name
    if there:
        path.write_bytes(b"before")

    def write(writer):
        if name == "x.npy":
            writer.append(np.ones((1000, 1000)))
        else:
            writer.add("a", np.ones((1000, 1000)))

    def interrupted():
        with penstock.Writer(path) as writer:
            write(writer)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    writer = penstock.Writer(path)
    write(writer)
    del writer
    gc.collect()
    with penstock.Writer(path) as writer:
        write(writer)
        writer.discard()
    assert names(tmp_path) == ([name] if there else [])
    assert not there or path.read_bytes() == b"before"


def test_errors_say_what_to_do(tmp_path):
    path = tmp_path / "x.npy"
    with penstock.Writer(path, sync=False) as writer:
        for scalar in (np.array(1.0), np.float32(2)):
            with pytest.raises((penstock.ShapeMismatchError, penstock.DTypeMismatchError)):
                writer.append(scalar)
        for wrong in (3.0, [1, 2], "text", None):
            with pytest.raises(penstock.DTypeMismatchError, match="takes an array"):
                writer.append(wrong)
        writer.append(np.ones((2, 3), "f4"))
        with pytest.raises(penstock.DTypeMismatchError, match="expected float32") as caught:
            writer.append(np.ones((2, 3)))
        assert caught.value.path == str(path)
        with pytest.raises(penstock.ShapeMismatchError, match=r"expected \(n, 3\): append_row"):
            writer.append(np.ones(3, "f4"))
        with pytest.raises(penstock.UnsupportedError):
            writer.add("a", np.ones(3))
        with pytest.raises(penstock.UnsafeError):
            writer.append(np.array([[None] * 3]))
    with pytest.raises(penstock.InvalidArgumentError, match="closed"):
        writer.append(np.ones((2, 3), "f4"))
    with pytest.raises(penstock.InvalidArgumentError, match="no rows"), penstock.Writer(path) as writer:
        pass
    assert np.load(path).shape == (2, 3)
    with penstock.Writer(path, dtype="int16", row_shape=(2,)) as writer:
        writer.finish()
    assert np.load(path).shape == (0, 2)
    with pytest.raises(TypeError):
        penstock.Writer(3)
    with penstock.Writer(tmp_path / "x.npz") as writer:
        writer.add("a", np.ones(3))
        with pytest.raises(penstock.InvalidArgumentError, match="already") as caught:
            writer.add("a", np.ones(3))
        assert caught.value.tensor == "a"
        with pytest.raises(TypeError):
            writer.add(3, np.ones(3))
    writer = penstock.Writer(tmp_path / "y.npz")
    writer.begin("a", "f4", (3, 1))
    writer.append(np.ones((2, 1), "f4"))
    with pytest.raises(penstock.ShapeMismatchError, match="2 of the 3 rows"):
        writer.finish()
    with pytest.raises(penstock.ShapeMismatchError), writer:
        pass
    assert not writer.is_open
    assert names(tmp_path) == ["x.npy", "x.npz"]


PROGRAM = """
import os, resource, signal, sys
import numpy, penstock
path, full = sys.argv[1], sys.argv[2] == "full"
if full:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
def put(writer, number):
    block = numpy.ones((1000, 100))
    writer.append(block) if path.endswith(".npy") else writer.add(str(number), block)
try:
    with penstock.Writer(path, resume=path.endswith("old.npy")) as writer:
        for number in range(20):
            put(writer, number)
        if not full:
            os.kill(os.getpid(), signal.SIGKILL)
except penstock.Error as error:
    print(error.errno, writer.is_open)
"""


@pytest.mark.parametrize("how", ["full", "killed"])
@pytest.mark.parametrize("name", ["new.npy", "old.npy", "x.npz", "x.safetensors", "x.pt"])
def test_a_full_disk_and_a_kill_leave_what_was_there(tmp_path, name, how):
    path = tmp_path / name
    before = np.arange(300.0).reshape(3, 100)
    if name == "old.npy":
        np.save(path, before)
    done = subprocess.run([sys.executable, "-c", PROGRAM, path, how], capture_output=True, text=True, check=False)
    if how == "full":
        assert done.stdout == f"{errno.EFBIG} False\n", done.stderr
    else:
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert names(tmp_path) == ([name] if name == "old.npy" else [])
    if name == "old.npy":
        assert (np.load(path) == before).all()
        with penstock.Writer(path, resume=True) as writer:
            writer.append(before)
        assert (np.load(path) == np.concatenate([before, before])).all()


def test_a_child_keeps_no_file_that_was_appended_to(tmp_path):
    """It has the descriptor too, on which the lock is."""
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1, 3)))
    with penstock.Writer(path, resume=True, sync=False) as writer:
        writer.append(np.ones((1, 3)))
        child = os.fork()
        if child == 0:
            signal.pause()
    try:
        with penstock.Writer(path, resume=True, sync=False) as writer:
            writer.append(np.ones((1, 3)))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert np.load(path).tolist() == [[0] * 3, [1] * 3, [1] * 3]


def test_threads_share_a_writer(tmp_path):
    path = tmp_path / "x.npy"
    with penstock.Writer(path, sync=False) as writer:

        def work(number):
            for _ in range(200):
                writer.append(np.full((3, 50), number))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    back = np.load(path)
    assert back.shape == (2400, 50)
    assert (back == back[:, :1]).all()
    assert np.bincount(back[:, 0]).tolist() == [600] * 4


@pytest.mark.parametrize("extension", ["npy", "npz", "safetensors"])
def test_memory_stays_small(tmp_path, extension):
    """200 MB in pieces of 1 MB."""
    program = f"""
import resource
import numpy, penstock
block = numpy.ones((1, 1 << 20), "u1")
with penstock.Writer({str(tmp_path / "warm.")!r} + {extension!r}, sync=False) as writer:
    if {extension!r} == "npy":
        writer.append(block)
    else:
        writer.add("a", block)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with penstock.Writer({str(tmp_path / "x.")!r} + {extension!r}, sync=False) as writer:
    if {extension!r} != "npy":
        writer.begin("x", "uint8", (200, 1 << 20))
    for _ in range(200):
        writer.append(block)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 16 * 1024
