"""`load(shared=True)`, `sharing`: memory that several processes map."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

import penstock
import penstock.sharing

STATE = {
    "large": np.arange(600_000, dtype=np.float32).reshape(600, 1000),
    "few": np.arange(3, dtype=np.int16),
    "empty": np.zeros((0, 4), np.int8),
}

READER = """
import sys, numpy, penstock.sharing
state = penstock.sharing.attach(sys.argv[1])
state = state["model"] if "model" in state else state
assert numpy.asarray(state["large"]).sum() == numpy.arange(600_000, dtype=numpy.float32).sum(dtype=numpy.float32)
assert state["empty"].shape == (0, 4)
numpy.asarray(state["few"])[:] = 9
print(sorted(state))
"""


@pytest.fixture(params=["m.npz", "z.npz", "m.safetensors", "m.pt"])
def path(request, tmp_path):
    out = tmp_path / request.param
    penstock.save(STATE, out, compress=request.param == "z.npz")
    return out


def shared_blocks():
    gc.collect()
    with open("/proc/self/maps") as lines:
        return sum("memfd:penstock" in line for line in lines)


def descriptors():
    found = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return [os.readlink(name) for name in found if os.path.lexists(name)].count("/memfd:penstock (deleted)")


def test_the_values_are_those_of_a_load(path):
    report = {}
    loaded = penstock.load(path, shared=True, report=report)
    assert list(loaded) == list(STATE)
    for name, value in STATE.items():
        assert np.array_equal(np.asarray(loaded[name]), value)
        assert loaded[name].dtype.name == value.dtype.name
    assert report["payload_bytes"] >= sum(value.nbytes for value in STATE.values())
    assert shared_blocks() == 1
    with penstock.open(path) as archive:
        assert np.array_equal(np.asarray(archive.load(shared=True)["large"]), STATE["large"])
    assert np.array_equal(np.asarray(penstock.load(path, shared=True, key="few")), STATE["few"])


def test_another_process_sees_the_same_memory_and_nothing_is_left(path):
    loaded = penstock.load(path, shared=True)
    name = penstock.sharing.share({"model": loaded, "step": 3, "names": ("a", None, 2.5, True)})
    done = subprocess.run([sys.executable, "-c", READER, name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['empty', 'few', 'large']\n"
    assert np.asarray(loaded["few"]).tolist() == [9, 9, 9]
    here = penstock.sharing.attach(name)
    assert here["names"] == ("a", None, 2.5, True)
    assert here["step"] == 3
    del here, loaded
    assert (shared_blocks(), descriptors()) == (0, 0)
    with pytest.raises(penstock.NotFoundError, match="let go of"):
        penstock.sharing.attach(name)


def test_a_part_keeps_the_block(path):
    few = penstock.load(path, shared=True)["few"]
    assert shared_blocks() == 1
    assert penstock.sharing.attach(penstock.sharing.share(few)).tolist() == [0, 1, 2]
    assert np.asarray(penstock.sharing.attach(penstock.sharing.share([few[1:]]))[0]).tolist() == [1, 2]


def test_the_file_never_becomes_shorter(path):
    loaded = penstock.load(path, shared=True)
    descriptor = penstock.sharing.share(loaded).partition(":")[0]
    with open(descriptor, "r+b") as file, pytest.raises(OSError, match="not permitted"):
        os.ftruncate(file.fileno(), 10)


def test_storages_that_lie_in_the_pickle_and_other_byte_orders(tmp_path):
    np.save(tmp_path / "big.npy", np.arange(5, dtype=">i4"))
    assert penstock.load(tmp_path / "big.npy", shared=True).tolist() == [0, 1, 2, 3, 4]
    np.save(tmp_path / "f.npy", np.asfortranarray(np.arange(6).reshape(2, 3)))
    assert penstock.load(tmp_path / "f.npy", shared=True).tolist() == [[0, 1, 2], [3, 4, 5]]
    np.save(tmp_path / "none.npy", np.zeros((0, 2)))
    assert penstock.load(tmp_path / "none.npy", shared=True).shape == (0, 2)


@pytest.mark.parametrize("others", [{"device": "cuda"}, {"mmap": True}, {"gds": True}])
def test_what_cannot_be_shared_is_refused(path, others):
    with pytest.raises(penstock.UnsupportedError, match=f"leave out one of shared and {next(iter(others))}"):
        penstock.load(path, shared=True, **others)


@pytest.mark.parametrize("ranks", ["auto", (0, 2)])
def test_ranks_are_those_of_torch(path, ranks):
    words = r"use penstock\.torch\.load\(ranks=\).*penstock\.sharing\.share"
    with pytest.raises(penstock.UnsupportedError, match=words):
        penstock.load(path, ranks=ranks)


@pytest.mark.parametrize("format", ["npz", "safetensors", "pt"])
@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_tensors_become_another_type_on_their_way_into_shared_memory(tmp_path, format, dtype):
    wide = np.arange(600_000, dtype=np.float32).reshape(600, 1000)
    content = {
        "wide": wide,
        "again": wide,
        "few": np.arange(3, dtype=np.int16),
        "one": np.float64(1.5),
        "none": np.zeros((0, 2), dtype=np.float32),
        "no numbers": np.zeros((0, 2), dtype=np.int8),
    }
    path = tmp_path / f"model.{format}"
    penstock.save({name: penstock.tensor(value) for name, value in content.items()}, path)
    expected = penstock.load(path, dtype=dtype)
    for load in (penstock.load, lambda given, **how: penstock.open(given).load(**how)):
        loaded = load(path, dtype=dtype, shared=True)
        assert list(loaded) == list(expected)
        for name, value in expected.items():
            assert loaded[name].dtype == value.dtype, name
            assert loaded[name].equal(value), name
        attached = penstock.sharing.attach(penstock.sharing.share(loaded))
        assert attached["wide"].equal(expected["wide"])
    part = penstock.load(path, key="wide", dtype=dtype, shared=True)
    assert part.equal(expected["wide"])


@pytest.mark.parametrize("how", [{}, {"dtype": "float64"}], ids=["as it is", "converted"])
def test_equal_views_stay_one_and_the_load_is_done_as_asked(tmp_path, how):
    wide = penstock.arange(0, 600_000, dtype="float32").reshape(600, 1000)
    penstock.save({"a": wide, "b": wide, "turned": wide.permute(1, 0)}, tmp_path / "m.pt")
    report = {}
    loaded = penstock.load(tmp_path / "m.pt", shared=True, threads=2, direct=False, report=report, **how)
    assert report["payload_bytes"] >= wide.nbytes
    assert shared_blocks() == 1
    np.asarray(loaded["a"])[0, 0] = -1
    assert loaded["b"][0, 0].item() == -1
    assert loaded["turned"].strides == (1, 1000)
    attached = penstock.sharing.attach(penstock.sharing.share(loaded))
    assert attached["turned"].equal(loaded["turned"])


def test_a_file_without_a_header_is_taken(tmp_path):
    np.arange(6, dtype=np.float32).tofile(tmp_path / "bare")
    bare = penstock.load(tmp_path / "bare", dtype="float32", shape=(2, 3), shared=True)
    assert penstock.sharing.attach(penstock.sharing.share([bare]))[0].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("name", ["shared", "pinned"])
def test_flags_are_flags(path, name):
    for load in (penstock.load, lambda given, **how: penstock.open(given).load(**how)):
        with pytest.raises(penstock.DTypeMismatchError, match=f"{name}='yes', expected True or False"):
            load(path, **{name: "yes"})
        assert list(load(path, **{name: np.False_})) == list(STATE)


def test_progress_is_told_of_a_shared_load(path):
    seen = []
    penstock.load(path, shared=True, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0


def test_a_value_that_does_not_fit_is_an_error_where_that_is_asked_for(tmp_path):
    path = tmp_path / "x.safetensors"
    penstock.save({"x": np.array([1e300])}, path)
    assert penstock.load(path, dtype="float32", shared=True)["x"].tolist() == [float("inf")]
    with pytest.raises(penstock.InvalidArgumentError, match="a strict cast from float64 to float32"):
        penstock.load(path, dtype="float32", strict=True, shared=True)


def test_share_takes_shared_memory_of_one_load_alone(path):
    loaded, other = penstock.load(path, shared=True), penstock.load(path, shared=True)
    with pytest.raises(penstock.InvalidArgumentError, match="of this process alone"):
        penstock.sharing.share({"a": penstock.zeros(4)})
    with pytest.raises(penstock.InvalidArgumentError, match="of several loads"):
        penstock.sharing.share([loaded["few"], other["few"]])
    with pytest.raises(penstock.InvalidArgumentError, match="of type object"):
        penstock.sharing.share([loaded["few"], object()])
    with pytest.raises(penstock.InvalidArgumentError, match="no tensor with elements"):
        penstock.sharing.share({"a": 3})
    endless = [loaded["few"]]
    endless.append(endless)
    with pytest.raises(penstock.InvalidArgumentError, match="holds itself"):
        penstock.sharing.share(endless)


def test_what_requires_gradients_does_so_where_it_is_attached(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"p": torch.nn.Parameter(torch.ones(2)), "b": torch.ones(2), "n": torch.ones(0, 3)}, tmp_path / "m.pt")
    loaded = penstock.load(tmp_path / "m.pt", shared=True)
    attached = penstock.sharing.attach(penstock.sharing.share(loaded))
    assert {name: tensor.requires_grad for name, tensor in attached.items()} == {"p": True, "b": False, "n": False}
    assert attached["n"].shape == (0, 3)


def test_lazy_conjugates_are_refused_as_what_they_are(tmp_path):
    torch = pytest.importorskip("torch")
    pt = pytest.importorskip("penstock.torch")
    torch.save({"c": torch.ones(2, dtype=torch.complex64)}, tmp_path / "m.pt")
    loaded = pt.load(tmp_path / "m.pt", shared=True)
    for lazy in (loaded["c"].conj(), loaded["c"].conj().imag):
        with pytest.raises(penstock.InvalidArgumentError, match="lazy conjugate or negative"):
            penstock.sharing.share([loaded["c"], lazy])


def test_attach_takes_names_alone(tmp_path):
    with pytest.raises(penstock.InvalidArgumentError, match="expected the name"):
        penstock.sharing.attach("/etc/passwd")
    with open(tmp_path / "file", "w+b") as file, pytest.raises(penstock.UnsupportedError, match="has named"):
        penstock.sharing.attach(f"/proc/{os.getpid()}/fd/{file.fileno()}:1:0:2")


# Has the kernel refuse memfd_create (319 on x86-64) to this process, as a container's profile does.
FORBIDDEN = """
import ctypes, struct, sys, penstock
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 319), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
try:
    penstock.load(sys.argv[1], shared=True)
except penstock.UnsupportedError as error:
    print(error)
print(penstock.load(sys.argv[1])["few"].tolist())
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the system call is x86-64's")
def test_a_container_without_memfd_is_one_error(tmp_path):
    penstock.save(STATE, tmp_path / "m.npz")
    arguments = [sys.executable, "-c", FORBIDDEN, tmp_path / "m.npz"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the system gives no memory that processes share (memfd_create: Operation not permi")
    assert done.stdout.endswith("[0, 1, 2]\n")


LIMITED = """
import resource, sys, penstock
limit = int(sys.argv[2])
kind = getattr(resource, sys.argv[3])
resource.setrlimit(kind, (limit, limit))
try:
    print(penstock.load(sys.argv[1], shared=True)["few"].tolist())
except penstock.OutOfMemoryError as error:
    print("no memory:", error)
"""


@pytest.mark.parametrize(
    ("kind", "limit", "said"), [("RLIMIT_MEMLOCK", 1 << 16, "[0, 1, 2]"), ("RLIMIT_FSIZE", 1 << 20, "no memory")]
)
def test_limits(path, kind, limit, said):
    arguments = [sys.executable, "-c", LIMITED, path, str(limit), kind]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith(said), done
