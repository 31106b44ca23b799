"""penstock.save: what PyTorch, NumPy and safetensors read back."""

import collections
import os
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

import penstock

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

import penstock.torch  # noqa: E402

ARRAYS = [
    np.arange(6, dtype="f4").reshape(2, 3),
    np.array(5, "i2"),
    np.zeros((0, 3)),
    np.array(["text", "é"]),
    np.array([b"a", b"bc"]),
    np.array(["2020-01-01"], "M8[D]"),
    np.array([(1, 2.5)], [("a", "<i4"), ("b", ">f8")]),
    np.array([[1, 2]], ">i8"),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(10)[::-2],
    np.array([1 + 2j]),
    np.array([True, False]),
    np.zeros(3, []),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_to_npy(tmp_path, array):
    path = tmp_path / "x.npy"
    penstock.save(array, path)
    back = np.load(path)
    assert back.shape == array.shape
    assert back.dtype == (array.dtype.newbyteorder("=") if array.dtype.names is None else array.dtype)
    assert back.tolist() == array.tolist()


@pytest.mark.parametrize("extension", ["npy", "npz", "pt", "safetensors"])
def test_sync_changes_no_byte(tmp_path, extension):
    content = torch.arange(6.0) if extension == "npy" else {"x": torch.arange(6.0)}
    path = tmp_path / f"x.{extension}"
    penstock.save(content, path)
    before = path.read_bytes()
    penstock.save(content, path, sync=False)
    assert path.read_bytes() == before


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace counts the calls")
@pytest.mark.parametrize(
    ("call", "sync"),
    [
        ("penstock.save([1, 2], path)", True),
        ("penstock.save([1, 2], path, sync=False)", False),
        ("penstock.torch.save([1, 2], path)", False),
        ("penstock.torch.save([1, 2], path, sync=True)", True),
        ("penstock.torch.save([1, 2], path, _use_new_zipfile_serialization=False)", False),
        ("penstock.torch.save([1, 2], path, _use_new_zipfile_serialization=False, sync=True)", True),
    ],
)
@pytest.mark.slow
def test_sync_waits_for_the_disk(tmp_path, call, sync):
    """The file and its folder are flushed, or neither is."""
    path, calls = tmp_path / "x.pt", tmp_path / "calls"
    program = f"import penstock, penstock.torch; path = {str(path)!r}; {call}"
    trace = ["strace", "-f", "--seccomp-bpf", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", calls]
    done = subprocess.run([*trace, sys.executable, "-c", program], capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("strace is not allowed here")
    assert done.returncode == 0, done.stderr
    assert calls.read_text().count("sync(") == (2 if sync else 0)
    assert penstock.torch.load(path) == [1, 2]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace counts the calls")
@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("save(path, np.ones(3))", 0),
        ("save(path, np.ones(3), sync=True)", 2),
        ("save(path, np.ones(3, '>f4'), sync=True)", 2),
        ("save(path, np.ones(3, '>f4'))", 0),
        ("savez(path, x=np.ones(3))", 0),
        ("save_file({'x': np.ones(3)}, path)", 0),
    ],
)
def test_what_stands_for_numpys_functions_flushes_where_it_is_asked_to(tmp_path, call, count):
    calls = tmp_path / "calls"
    program = f"import numpy as np; from penstock.numpy import *; path = {str(tmp_path / 'x')!r}; {call}"
    trace = ["strace", "-f", "--seccomp-bpf", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", calls]
    done = subprocess.run([*trace, sys.executable, "-c", program], capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("strace is not allowed here")
    assert done.returncode == 0, done.stderr
    assert calls.read_text().count("sync(") == count


@pytest.mark.parametrize("compress", [False, True])
def test_dict_to_npz(tmp_path, compress):
    path = tmp_path / "x.npz"
    content = {f"k{i}": array for i, array in enumerate(ARRAYS)}
    penstock.save(content, path, compress=compress)
    back = np.load(path)
    assert list(back) == list(content)
    for key, array in content.items():
        assert back[key].tolist() == array.tolist()


def test_nested_to_pt(tmp_path):
    path = tmp_path / "x.pt"
    content = {
        "t": torch.arange(6).reshape(2, 3),
        "list": [1, 2.5, "text", None, True, 1 + 2j, b"bytes"],
        "tuple": (torch.ones(2, dtype=torch.bfloat16), {"deep": []}),
        5: {"set": {1, 2}},
        "big": 2**200,
        "long": -(7**700),
        "size": torch.Size([2, 3]),
        "dtype": torch.float16,
        "ordered": collections.OrderedDict(b=1, a=2),
    }
    penstock.save(content, path)
    back = torch.load(path, weights_only=True)
    assert list(back) == list(content)
    assert torch.equal(back["t"], content["t"])
    assert torch.equal(back["tuple"][0], content["tuple"][0])
    for key in ("list", 5, "big", "long", "size", "dtype", "ordered"):
        assert back[key] == content[key]
        assert type(back[key]) is type(content[key])


def test_state_dict_round_trip(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    penstock.save(module.state_dict(), tmp_path / "x.pt")
    back = torch.load(tmp_path / "x.pt", weights_only=True)
    assert back._metadata == module.state_dict()._metadata
    module.load_state_dict(back)
    penstock.save(penstock.load(tmp_path / "x.pt"), tmp_path / "y.pt")
    again = torch.load(tmp_path / "y.pt", weights_only=True)
    assert list(again) == list(back)
    assert all(torch.equal(again[k], back[k]) for k in back)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "complex64", "uint16", "bool", "float64"])
def test_torch_tensors_of_each_dtype(tmp_path, name):
    source = torch.arange(4).to(getattr(torch, name))
    for suffix in ("pt", "safetensors"):
        path = tmp_path / f"x.{suffix}"
        penstock.save({"w": source}, path)
        back = torch.load(path) if suffix == "pt" else safetensors_torch.load_file(path)
        assert torch.equal(back["w"], source)


def test_requires_grad(tmp_path):
    penstock.save({"w": torch.nn.Parameter(torch.ones(2)), "v": torch.ones(2)}, tmp_path / "x.pt")
    back = torch.load(tmp_path / "x.pt", weights_only=False)
    assert back["w"].requires_grad
    assert not back["v"].requires_grad


def test_shared_memory_stays_shared_in_pt(tmp_path):
    base = torch.arange(12)
    array = np.arange(12)
    part = [1]
    content = {"base": base, "view": base[3:6], "same": base, "n": array, "nview": array[::3], "x": part, "y": part}
    penstock.save(content, tmp_path / "x.pt")
    back = torch.load(tmp_path / "x.pt", weights_only=True)
    back["base"][4] = 99
    assert back["view"].tolist() == [3, 99, 5]
    assert back["same"] is back["base"]
    back["n"][3] = 77
    assert back["nview"].tolist() == [0, 77, 6, 9]
    assert back["x"] is back["y"]


def test_views_are_saved_alone(tmp_path):
    penstock.save(torch.arange(1_000_000)[10:12], tmp_path / "x.pt")
    assert (tmp_path / "x.pt").stat().st_size < 10_000
    assert torch.load(tmp_path / "x.pt").tolist() == [10, 11]


def test_cycles(tmp_path):
    content = {"list": []}
    content["list"].append(content)
    penstock.save(content, tmp_path / "x.pt")
    back = torch.load(tmp_path / "x.pt", weights_only=True)
    assert back["list"][0] is back


def test_depth(tmp_path):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(penstock.Error, match=r"x\.pt"):
        penstock.save(deep, tmp_path / "x.pt")


def test_metadata(tmp_path):
    path = tmp_path / "x.safetensors"
    penstock.save({"w": torch.ones(2)}, path, metadata={"note": "hello"})
    with pytest.importorskip("safetensors").safe_open(path, "pt") as f:
        assert f.metadata() == {"note": "hello"}
    with pytest.raises(penstock.DTypeMismatchError):
        penstock.save({"w": torch.ones(2)}, path, metadata={"note": 3})
    with pytest.raises(penstock.UnsupportedError):
        penstock.save({"w": torch.ones(2)}, tmp_path / "x.pt", metadata={"note": "hello"})


def test_format_by_name(tmp_path):
    penstock.save({"w": [1, 2]}, tmp_path / "odd.ckpt", format="pt")
    assert torch.load(tmp_path / "odd.ckpt") == {"w": [1, 2]}


def test_what_a_format_cannot_hold(tmp_path):
    with pytest.raises(penstock.UnsupportedError, match=r"x\.npy"):
        penstock.save({"a": torch.ones(2)}, tmp_path / "x.npy")
    with pytest.raises(penstock.UnsupportedError, match=r"x\.safetensors"):
        penstock.save({"a": "text"}, tmp_path / "x.safetensors")
    with pytest.raises(penstock.UnsupportedError):
        penstock.save({"a": torch.ones(2)}, tmp_path / "x.pt", compress=True)
    assert list(tmp_path.iterdir()) == []


NUMPYS_ALONE = {
    "text": np.array(["a", "bcd"]),
    "bytes": np.array([b"ab"]),
    "structures": np.zeros(2, [("a", "i4"), ("b", "f8", (2,))]),
    "raw": np.zeros(2, "V5"),
    "dates": np.zeros(2, "M8[s]"),
    "long double": np.zeros(2, "g"),
}


@pytest.mark.parametrize("target", ["x.pt", "x.safetensors", "checkpoint/", "writer.pt", "writer.safetensors"])
@pytest.mark.parametrize("name", NUMPYS_ALONE)
def test_the_advice_for_types_of_numpy_alone_works(tmp_path, name, target):
    def write(array):
        if not target.startswith("writer"):
            return penstock.save({"x": array}, f"{tmp_path}/{target}")
        with penstock.Writer(tmp_path / target) as writer:
            return writer.add("x", array)

    with pytest.raises(penstock.UnsupportedError, match=r"or save as \.npy or \.npz \(tensor 'x'\)$"):
        write(NUMPYS_ALONE[name])
    penstock.save({"x": NUMPYS_ALONE[name]}, tmp_path / "x.npz")
    assert np.load(tmp_path / "x.npz")["x"].tobytes() == NUMPYS_ALONE[name].tobytes()


UNGIVEN = {
    "sparse": lambda: torch.eye(2).to_sparse(),
    "meta": lambda: torch.empty(2, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    "bits": lambda: torch.zeros(4, dtype=torch.uint8).view(torch.bits8),
}


@pytest.mark.parametrize("name", UNGIVEN)
@pytest.mark.parametrize("extension", ["npy", "pt", "safetensors"])
def test_arrays_that_do_not_hand_over_their_elements(tmp_path, name, extension):
    value = UNGIVEN[name]() if extension == "npy" else {"a": UNGIVEN[name]()}
    reason = "on meta that has no memory" if name == "meta" else "does not hand over.*make it a plain"
    with pytest.raises(penstock.UnsupportedError, match=rf"x\.{extension}.*{reason}"):
        penstock.save(value, tmp_path / f"x.{extension}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extension", ["npy", "pt", "safetensors"])
def test_lazy_views_are_saved_as_they_read(tmp_path, extension):
    path = tmp_path / f"x.{extension}"
    conjugate = torch.tensor([1 + 2j]).conj()
    for value in (conjugate, conjugate.imag, conjugate.imag.requires_grad_()):
        assert value.is_conj() or value.is_neg()
        penstock.save(value if extension == "npy" else {"a": value}, path)
        back = penstock.load(path) if extension == "npy" else penstock.load(path)["a"]
        assert back.tolist() == value.tolist()
        assert penstock.asarray(value).tolist() == value.tolist()
        with pytest.raises((BufferError, penstock.Error)):
            penstock.from_dlpack(value)


@pytest.mark.parametrize("target", ["x.pt", "checkpoint/"])
@pytest.mark.parametrize(
    ("power", "reason"),
    [
        (2100, "the integer takes 263 bytes, where torch reads up to 255"),
        (9000, "the integer has 2710 digits, where torch reads up to 255 bytes"),
    ],
)
def test_the_place_of_a_value_is_not_called_a_tensor(tmp_path, target, power, reason):
    with pytest.raises(penstock.UnsupportedError, match=rf"(at|in) 'a\.n': {reason}") as caught:
        penstock.save({"a": {"n": 2**power}}, f"{tmp_path}/{target}")
    assert caught.value.tensor is None
    assert "tensor" not in str(caught.value)


@pytest.mark.parametrize("extension", ["npy", "npz", "pt", "safetensors"])
def test_no_mask_is_lost(tmp_path, extension):
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    value = masked if extension == "npy" else {"a": masked}
    with pytest.raises(penstock.UnsupportedError, match=r"mask would be lost.*filled\(\)"):
        penstock.save(value, tmp_path / f"x.{extension}")
    with pytest.raises(penstock.UnsupportedError, match=r"filled\(\)"):
        penstock.asarray(masked)
    assert penstock.asarray(masked.filled(7)).tolist() == [7, 2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"), reason="NumPy is older than 2")
@pytest.mark.parametrize("extension", ["npy", "npz", "pt", "safetensors"])
def test_text_without_a_width_is_called_so(tmp_path, extension):
    text = np.array(["a", "bcd"], np.dtypes.StringDType())
    wrap = (lambda array: array) if extension == "npy" else lambda array: {"a": array}
    with pytest.raises(penstock.UnsupportedError, match=r"StringDType.*\.astype\('U80'\)"):
        penstock.save(wrap(text), tmp_path / f"x.{extension}")
    assert list(tmp_path.iterdir()) == []
    if extension in ("npy", "npz"):
        penstock.save(wrap(text.astype("U80")), tmp_path / f"x.{extension}")
        found = np.load(tmp_path / f"x.{extension}")
        assert (found if extension == "npy" else found["a"]).tolist() == ["a", "bcd"]


@pytest.mark.parametrize("sync", [True, False])
def test_files_appear_whole_or_not_at_all(tmp_path, sync):
    path = tmp_path / "x.pt"
    penstock.save({"old": 1}, path, sync=sync)
    path.chmod(0o640)
    with pytest.raises(TypeError):
        penstock.save({"new": object()}, path, sync=sync)
    assert penstock.load(path) == {"old": 1}
    penstock.save({"new": 2}, path, sync=sync)
    assert penstock.load(path) == {"new": 2}
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert os.listdir(tmp_path) == ["x.pt"]


def test_numpy_scalars(tmp_path):
    path = tmp_path / "x.pt"
    penstock.save({"f": np.float64(2.5), "i": np.int32(7), "b": np.bool_(True)}, path)
    back = penstock.load(path)
    assert back["f"] == 2.5
    assert back["i"].dtype == "int32"
    assert back["i"].item() == 7
    assert back["b"].item() is True


def test_penstock_objects(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(10))
    entry = penstock.open(tmp_path / "a.npz")["w"]
    penstock.save(
        {"entry": entry[2:5], "tensor": penstock.tensor([1.5]), "dtype": penstock.DType("int8")}, tmp_path / "x.pt"
    )
    back = torch.load(tmp_path / "x.pt")
    assert back["entry"].tolist() == [2, 3, 4]
    assert back["tensor"].tolist() == [1.5]
    assert back["dtype"] is torch.int8


def test_objects_that_speak_only_array(tmp_path):
    class Lazy:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    penstock.save(Lazy(), tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == [0, 1, 2]


def test_mappings_and_buffers(tmp_path):
    import array
    import types

    content = types.MappingProxyType({"a": array.array("d", [1, 2]), "b": memoryview(b"xy")})
    penstock.save(content, tmp_path / "x.npz")
    back = np.load(tmp_path / "x.npz")
    assert back["a"].tolist() == [1, 2]
    assert back["b"].tolist() == [120, 121]


def test_read_only_arrays(tmp_path):
    array = np.arange(4)
    array.flags.writeable = False
    penstock.save({"a": array, "b": array[1:]}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["b"].tolist() == [1, 2, 3]


def test_integers_that_no_format_holds(tmp_path):
    for value in (2**3000, 10**5000):
        with pytest.raises(penstock.Error, match=r"x\.pt.*integer"):
            penstock.save([value], tmp_path / "x.pt")
