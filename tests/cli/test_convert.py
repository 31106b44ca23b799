"""penstock convert: what it writes is what the file's own library reads there, and nothing is lost without a word."""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import penstock

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
DATA_LIMIT = 64 << 20


def convert(*args: object, code: int = 0, **extra) -> subprocess.CompletedProcess:
    done = subprocess.run([PROGRAM, "convert", *map(str, args)], capture_output=True, text=True, timeout=120, **extra)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def safetensors(path: Path, dtype: str, shape: list[int], payload: bytes, metadata: dict | None = None) -> Path:
    entries = {"w": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(payload)]}}
    header = json.dumps({**entries, **({} if metadata is None else {"__metadata__": metadata})}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + payload)
    return path


def torch_tensors() -> dict:
    torch = pytest.importorskip("torch")
    numbers = torch.arange(-6, 6, dtype=torch.float64).reshape(3, 4) / 7
    dtypes = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
    small = ("float8_e4m3fn", "float8_e5m2", "complex64")
    tensors = {name: numbers.to(getattr(torch, name)) for name in (*dtypes, *small)}
    nothing = torch.zeros(0, 3)
    return {**tensors, "scalar": torch.tensor(3), "empty": nothing, "transposed": numbers.T, "step": numbers[:, ::2]}


def raw(tensor):
    import torch

    return tensor.contiguous().reshape(-1).view(torch.uint8)


def assert_same(found: dict, expected: dict) -> None:
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype, name
        assert found[name].shape == tensor.shape, name
        assert raw(found[name]).equal(raw(tensor)), name


@pytest.mark.parametrize("legacy", [False, True])
def test_torch_to_safetensors_and_back(tmp_path, legacy):
    torch = pytest.importorskip("torch")
    reader = pytest.importorskip("safetensors.torch")
    tensors = {name: tensor.contiguous() for name, tensor in torch_tensors().items()}
    torch.save(tensors, tmp_path / "m.pt", _use_new_zipfile_serialization=not legacy)
    convert(tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert_same(reader.load_file(tmp_path / "m.safetensors"), tensors)
    convert(tmp_path / "m.safetensors", tmp_path / "back.pth")
    back = torch.load(tmp_path / "back.pth")
    assert_same(back, tensors)
    storages = {tensor.untyped_storage().data_ptr() for tensor in back.values() if tensor.numel()}
    assert len(storages) == sum(tensor.numel() > 0 for tensor in back.values())


def test_torch_to_torch_keeps_strides_and_structure(tmp_path):
    torch = pytest.importorskip("torch")
    tensors = torch_tensors()
    torch.save({"model": tensors, "steps": [1, 2.5, "three", None]}, tmp_path / "m.pt")
    convert(tmp_path / "m.pt", tmp_path / "n.pt")
    found = torch.load(tmp_path / "n.pt")
    assert_same(found["model"], tensors)
    assert found["steps"] == [1, 2.5, "three", None]
    assert found["model"]["transposed"].stride() == tensors["transposed"].stride()


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("shift", range(4), ids="shift{}".format)
def test_shared_storages_stay_shared_or_are_refused(tmp_path, legacy, shift):
    """Also where the file, shifted by the length of a key, does not align them."""
    torch = pytest.importorskip("torch")
    whole = torch.arange(10.0)
    shared = {"whole": whole, "part": whole[2:5], "k" * (shift + 1): whole[:1].clone()}
    torch.save(shared, tmp_path / "m.pt", _use_new_zipfile_serialization=not legacy)
    convert(tmp_path / "m.pt", tmp_path / "n.pt")
    found = torch.load(tmp_path / "n.pt")
    found["whole"][3] = -1
    assert found["part"].tolist() == [2, -1, 4]
    told = convert(tmp_path / "m.pt", tmp_path / "n.safetensors", code=1).stderr
    assert "share memory" in told
    assert not (tmp_path / "n.safetensors").exists()


def test_dicts_in_dicts_become_dotted_names(tmp_path):
    torch = pytest.importorskip("torch")
    reader = pytest.importorskip("safetensors.torch")
    torch.save({"encoder": {"weight": torch.ones(2), "norm": {"bias": torch.zeros(1)}}}, tmp_path / "m.pt")
    convert(tmp_path / "m.pt", tmp_path / "m.safetensors")
    assert set(reader.load_file(tmp_path / "m.safetensors")) == {"encoder.weight", "encoder.norm.bias"}
    assert "flat" in convert(tmp_path / "m.pt", tmp_path / "m.npz", code=1).stderr
    clash = {"a": {"b": torch.ones(1)}, "a.b": torch.zeros(1)}
    torch.save(clash, tmp_path / "clash.pt")
    assert "'a.b'" in convert(tmp_path / "clash.pt", tmp_path / "clash.safetensors", code=1).stderr


def test_numpy_to_others(tmp_path):
    torch = pytest.importorskip("torch")
    arrays = {
        "c": np.arange(12).reshape(3, 4),
        "f": np.asfortranarray(np.ones((2, 3), "f4")),
        "big": np.arange(3, dtype=">i4"),
    }
    arrays |= {"scalar": np.float64(2), "empty": np.zeros((0, 2)), "bool": np.array([True, False]), "z": np.array([1j])}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    convert(tmp_path / "a.npz", tmp_path / "a.pt")
    found = torch.load(tmp_path / "a.pt")
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].numpy().dtype == array.dtype.newbyteorder("=")
        assert np.array_equal(found[name].numpy(), array)
    convert(tmp_path / "a.pt", tmp_path / "b.npz")
    convert(tmp_path / "a.pt", tmp_path / "small.npz", "--compress")
    for path in (tmp_path / "b.npz", tmp_path / "small.npz"):
        with np.load(path) as again:
            assert all(np.array_equal(again[name], array) for name, array in arrays.items())
    methods = [
        [info.compress_type for info in zipfile.ZipFile(tmp_path / name).infolist()] for name in ("b.npz", "small.npz")
    ]
    assert methods == [[zipfile.ZIP_STORED] * 7, [zipfile.ZIP_DEFLATED] * 7]


def test_one_bare_array(tmp_path):
    torch = pytest.importorskip("torch")
    np.save(tmp_path / "x.npy", np.arange(4))
    convert(tmp_path / "x.npy", tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt").tolist() == [0, 1, 2, 3]
    convert(tmp_path / "x.pt", tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy").tolist() == [0, 1, 2, 3]
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.ones(2))
    convert(tmp_path / "two.npz", tmp_path / "two.npy", code=1)
    assert not (tmp_path / "two.npy").exists()


def test_metadata_is_kept_or_told(tmp_path):
    reader = pytest.importorskip("safetensors")
    source = safetensors(tmp_path / "a.safetensors", "F32", [1], bytes(4), {"licence": "MIT", "\x1b[2J": "x"})
    assert convert(source, tmp_path / "b.safetensors").stderr == ""
    with reader.safe_open(tmp_path / "b.safetensors", "np") as opened:
        assert opened.metadata() == {"licence": "MIT", "\x1b[2J": "x"}
    done = convert(source, tmp_path / "b.npz", "--json")
    assert json.loads(done.stdout)["metadata_left_out"] == ["\x1b[2J", "licence"]
    assert "licence" in done.stderr
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_empty_metadata_are_not_none(tmp_path):
    reader = pytest.importorskip("safetensors")
    for name, metadata in {"empty": {}, "none": None}.items():
        source = safetensors(tmp_path / f"{name}.safetensors", "F32", [1], bytes(4), metadata)
        assert convert(source, tmp_path / f"{name}2.safetensors").stderr == ""
        with reader.safe_open(tmp_path / f"{name}2.safetensors", "np") as opened:
            assert opened.metadata() == metadata


def test_what_a_pt_says_of_its_container_is_no_metadata(tmp_path):
    torch = pytest.importorskip("torch")
    reader = pytest.importorskip("safetensors")
    torch.save({"w": torch.ones(2)}, tmp_path / "m.pt")
    assert convert(tmp_path / "m.pt", tmp_path / "m.npz").stderr == ""
    torch.save({"w": torch.ones(2)}, tmp_path / "shard.bin")
    index = {"metadata": {"total_size": 8}, "weight_map": {"w": "shard.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    convert(tmp_path / "m.pt", tmp_path / "m.safetensors")
    convert(tmp_path / "pytorch_model.bin.index.json", tmp_path / "i.safetensors")
    for name, metadata in {"m": None, "i": {"total_size": "8"}}.items():
        with reader.safe_open(tmp_path / f"{name}.safetensors", "np") as opened:
            assert opened.metadata() == metadata


def test_an_index_of_shards_becomes_one_file(tmp_path):
    reader = pytest.importorskip("safetensors.numpy")
    reader.save_file({"a": np.arange(3)}, tmp_path / "1.safetensors", {"format": "pt"})
    reader.save_file({"b": np.arange(4), "unlisted": np.arange(2)}, tmp_path / "2.safetensors", {"format": "pt"})
    weights = {"a": "1.safetensors", "b": "2.safetensors"}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 56}, "weight_map": weights}))
    convert(path, tmp_path / "one.safetensors")
    found = reader.load_file(tmp_path / "one.safetensors")
    assert {name: array.tolist() for name, array in found.items()} == {"a": [0, 1, 2], "b": [0, 1, 2, 3]}
    told = convert(path, tmp_path / "2.safetensors", "--force", code=1).stderr
    assert "2.safetensors" in told
    assert "unlisted" in reader.load_file(tmp_path / "2.safetensors")


def test_objects_of_unknown_classes_are_refused_and_not_run(tmp_path):
    path = tmp_path / "x.pt"
    mark = tmp_path / "was_run"
    command = f"touch {mark}".encode()
    with zipfile.ZipFile(path, "w") as archive:
        text = b"X" + struct.pack("<I", len(command)) + command
        archive.writestr("a/data.pkl", b"\x80\x02cos\nsystem\n" + text + b"\x85R.")
        archive.writestr("a/version", "3\n")
    for name in ("y.pt", "y.safetensors", "y.npz", "y.npy"):
        convert(path, tmp_path / name, code=1)
        assert not (tmp_path / name).exists()
    assert not mark.exists()


def test_arrays_of_objects_are_lists_where_the_format_has_them(tmp_path):
    objects = np.array([[1, "two"], [np.arange(3), None]], dtype=object)
    np.savez(tmp_path / "o.npz", o=objects, x=np.ones(1))
    convert(tmp_path / "o.npz", tmp_path / "o.pt")
    found = pytest.importorskip("torch").load(tmp_path / "o.pt")
    assert found["x"].tolist() == [1]
    found["o"][1][0] = found["o"][1][0].tolist()
    assert found["o"] == [[1, "two"], [[0, 1, 2], None]]
    for name in ("p.npz", "p.npy", "p.safetensors"):
        told = convert(tmp_path / "o.npz", tmp_path / name, code=1).stderr
        assert "'o'" in told or name == "p.npy"
        assert not (tmp_path / name).exists()


def test_objects_in_records_are_refused(tmp_path):
    np.savez(tmp_path / "o.npz", o=np.array([(1, "x")], [("a", "i4"), ("b", "O")]), x=np.ones(1))
    for name in ("p.pt", "p.npz", "p.npy", "p.safetensors"):
        told = convert(tmp_path / "o.npz", tmp_path / name, code=1).stderr
        assert "'o'" in told or name == "p.npy"
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("kind", ["stored", "deflated"])
def test_damaged_bytes_are_not_passed_on(tmp_path, kind):
    path = tmp_path / "x.npz"
    (np.savez if kind == "stored" else np.savez_compressed)(path, x=np.arange(1000) ** 2)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") - 40] ^= 0x10
    path.write_bytes(content)
    told = convert(path, tmp_path / "x.pt", code=1).stderr
    assert told.startswith(f"penstock: {path}: ")
    assert sorted(os.listdir(tmp_path)) == ["x.npz"]


def test_damaged_bytes_of_a_mapped_file_are_not_passed_on(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.pt"
    torch.save({"w": torch.full((1000,), 7, dtype=torch.uint8)}, path)
    convert(path, tmp_path / "m.npz")
    content = bytearray(path.read_bytes())
    content[content.index(b"\7" * 1000) + 500] ^= 0x10
    path.write_bytes(content)
    assert "CRC-32" in convert(path, tmp_path / "n.npz", code=1).stderr
    assert sorted(os.listdir(tmp_path)) == ["m.npz", "m.pt"]


def stop_in_the_middle(program: subprocess.Popen, least: int) -> bool:
    """Stops the program when it has written so much of its file, which has no name yet. False: it has ended."""
    while program.poll() is None:
        for fd in Path(f"/proc/{program.pid}/fd").glob("*"):
            try:
                is_output = "/#" in os.readlink(fd) and fd.stat().st_size >= least
            except FileNotFoundError:  # it ends, or has closed it
                continue
            if is_output:
                program.send_signal(signal.SIGSTOP)
                return True
    return False


@pytest.mark.parametrize("extension", ["pt", "npz", "safetensors"])
@pytest.mark.parametrize("source", ["pt", "npz", "safetensors"])
def test_a_file_that_is_cut_meanwhile_is_an_error_of_that_file(tmp_path, source, extension):
    path = tmp_path / f"x.{source}"
    penstock.save({f"t{i}": np.full(1 << 20, i, np.uint8) for i in range(64)}, path)
    command = [PROGRAM, "convert", str(path), str(tmp_path / f"y.{extension}")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        stopped = stop_in_the_middle(program, 1 << 20)
        os.truncate(path, 4096)
        if stopped:
            program.send_signal(signal.SIGCONT)
        told = program.communicate(timeout=60)[1]
    if not stopped:
        pytest.skip("the program was done before it could be stopped")
    assert program.returncode == 1
    assert told.startswith(f"penstock: {path}: the file was cut while it was open")
    assert os.listdir(tmp_path) == [path.name]


def test_cut_and_foreign_files_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(100))
    os.truncate(tmp_path / "x.npy", 300)
    (tmp_path / "y.pt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    for name in ("x.npy", "y.pt", "missing.pt"):
        told = convert(tmp_path / name, tmp_path / "z.safetensors", code=1).stderr
        assert told.startswith(f"penstock: {tmp_path / name}: ")
    assert not (tmp_path / "z.safetensors").exists()


def test_a_file_that_exists_is_kept_unless_forced(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4))
    (tmp_path / "x.pt").write_bytes(b"dear")
    told = convert(tmp_path / "x.npy", tmp_path / "x.pt", code=1).stderr
    assert "--force" in told
    assert (tmp_path / "x.pt").read_bytes() == b"dear"
    (tmp_path / "x.pt").chmod(0o640)
    convert(tmp_path / "x.npy", tmp_path / "x.pt", "--force")
    assert (tmp_path / "x.pt").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "x.pt").read_bytes().startswith(b"PK")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_the_file_itself_is_refused_under_any_name(tmp_path, link):
    np.save(tmp_path / "x.npy", np.arange(4))
    content = (tmp_path / "x.npy").read_bytes()
    link(tmp_path / "x.npy", tmp_path / "y.npy")
    for name in ("x.npy", "y.npy"):
        convert(tmp_path / "x.npy", tmp_path / name, "--force", code=1)
        assert (tmp_path / "x.npy").read_bytes() == content


def test_folders_that_cannot_be_written_to(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4))
    for target in ("missing/x.pt", "x.npy/x.pt", "folder.pt"):
        (tmp_path / "folder.pt").mkdir(exist_ok=True)
        told = convert(tmp_path / "x.npy", tmp_path / target, "--force", code=1).stderr
        assert told.startswith(f"penstock: {tmp_path / target}: ")
    assert sorted(os.listdir(tmp_path)) == ["folder.pt", "x.npy"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4))
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "locked" in convert(tmp_path / "x.npy", tmp_path / "locked" / "x.pt", code=1).stderr


def test_the_format_is_that_of_the_extension_or_named(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4))
    assert "extension" in convert(tmp_path / "x.npy", tmp_path / "x.bin", code=1).stderr
    result = json.loads(convert(tmp_path / "x.npy", tmp_path / "x.bin", "--to", "pt", "--json").stdout)
    size = (tmp_path / "x.bin").stat().st_size
    found = {"path": str(tmp_path / "x.bin"), "format": "pt", "tensors": 1, "bytes": size, "metadata_left_out": []}
    assert result == found
    assert convert(tmp_path / "x.npy", tmp_path / "y.npz").stdout.startswith(f"{tmp_path / 'y.npz'}: npz, 1 tensor, ")
    assert "npz" in convert(tmp_path / "x.npy", tmp_path / "z.pt", "--compress", code=1).stderr


@pytest.mark.parametrize("args", [[], ["x"], ["x", "y", "z"], ["x", "y", "--to", "hdf5"], ["x", "y", "--what"]])
def test_wrong_usage(args):
    assert convert(*args, code=2).stderr.startswith("penstock: ")


@pytest.mark.parametrize("target", ["y.safetensors", "y.pt", "y.npz"])
def test_memory_stays_low_however_large_the_file_is(tmp_path, target):
    size = 256 << 20
    path = safetensors(tmp_path / "x.safetensors", "U8", [0], b"")
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(path, 8 + len(header) + size)

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT, DATA_LIMIT))

    convert(path, tmp_path / target, preexec_fn=limit)
    assert (tmp_path / target).stat().st_size > size
    np.savez_compressed(tmp_path / "z.npz", x=np.zeros(size, "u1"))
    convert(tmp_path / "z.npz", tmp_path / target, "--force", preexec_fn=limit)
    np.savez_compressed(tmp_path / "z.npz", x=np.zeros(size // 8, ">f8"))
    convert(tmp_path / "z.npz", tmp_path / target, "--force", preexec_fn=limit)
    assert (tmp_path / target).stat().st_size > size
    if target != "y.npz":
        return
    np.savez_compressed(tmp_path / "z.npz", x=np.zeros((size // 64, 8), ">f8", order="F"))
    convert(tmp_path / "z.npz", tmp_path / target, "--force", preexec_fn=limit)
    told = convert(tmp_path / "z.npz", tmp_path / "z.safetensors", code=1, preexec_fn=limit).stderr
    assert "memory" in told  # deflated in the one order, wanted in the other


@pytest.mark.parametrize("levels", [25, 60])
def test_shared_parts_stay_shared_or_are_refused_at_once(tmp_path: Path, levels: int):
    torch = pytest.importorskip("torch")
    content = {"t": torch.arange(3)}
    for _ in range(levels):
        content = {"a": content, "b": content}
    torch.save(content, tmp_path / "shared.pt")
    convert(tmp_path / "shared.pt", tmp_path / "again.pt")
    assert (tmp_path / "again.pt").stat().st_size < 20_000
    for name in ("x.safetensors", "x.npz"):
        refused = convert(tmp_path / "shared.pt", tmp_path / name, code=1)
        assert "save as .pt" in refused.stderr
    assert not (tmp_path / "x.safetensors").exists()


def odd_arrays() -> dict[str, np.ndarray]:
    """Of all orders of elements and bytes, and a part of a larger one."""
    draw = np.random.default_rng(3)
    return {
        "c": draw.normal(size=(70, 31)).astype("f4"),
        "f": np.asfortranarray(draw.normal(size=(70, 31))),
        "big": draw.integers(0, 1 << 40, (3, 4, 5)).astype(">i8"),
        "big_f": np.asfortranarray(draw.normal(size=(9, 8, 7)).astype(">f4")),
        "scalar": np.array(2.5, "<f8"),
        "empty": np.zeros((0, 3), "i2"),
        "z": draw.normal(size=(4, 3)).astype(">c8"),
    }


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("target", ["npz", "compressed", "pt", "safetensors", "ckpt"])
def test_arrays_in_any_order(tmp_path, save, target):
    arrays = odd_arrays()
    if target == "safetensors":
        del arrays["z"]
    save(tmp_path / "x.npz", **arrays)
    name = {"compressed": "y.npz", "ckpt": "y/"}.get(target, f"y.{target}")
    convert(tmp_path / "x.npz", f"{tmp_path}/{name}", *(["--compress"] if target == "compressed" else []))
    found = penstock.load(tmp_path / name)
    assert set(found) == set(arrays)
    for key, array in arrays.items():
        assert np.array_equal(found[key].numpy(), array), key
        assert found[key].numpy().dtype == array.dtype.newbyteorder("=")
    if name == "y.npz":
        with np.load(tmp_path / name) as written:
            assert written["f"].flags.f_contiguous
            assert not written["f"].flags.c_contiguous
            assert written["big_f"].flags.f_contiguous
            assert written["c"].flags.c_contiguous
    elif target == "pt":
        assert found["f"].strides == (1, 70)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("descr", ["<f4", ">f4", ">i2"])
def test_one_array(tmp_path, order, descr):
    x = np.asarray(np.random.default_rng(1).integers(-99, 99, (41, 5)), dtype=descr, order=order)
    np.save(tmp_path / "x.npy", x)
    convert(tmp_path / "x.npy", tmp_path / "y.npy")
    convert(tmp_path / "x.npy", tmp_path / "h.npy", "--dtype", "float16")
    y, half = np.load(tmp_path / "y.npy"), np.load(tmp_path / "h.npy")
    assert np.array_equal(x, y)
    assert y.dtype == x.dtype.newbyteorder("=")
    assert y.flags.f_contiguous == (order == "F")
    assert np.array_equal(x, half)
    assert half.dtype == ("f2" if x.dtype.kind == "f" else y.dtype)
    assert half.flags.f_contiguous == (order == "F")


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
@pytest.mark.parametrize("legacy", [False, True])
def test_views_go_on_sharing_their_storage(tmp_path, dtype, legacy):
    """Also where what they share is converted, and of tensors that torch makes with a call of its own."""
    torch = pytest.importorskip("torch")
    base = torch.randn(6, 8)
    state = {
        "embedding": base,
        "head": base.t(),
        "rows": base[2:4, 1:5],
        "again": base,
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "frozen": torch.nn.Parameter(torch.randn(3), requires_grad=False),
        "wide": torch.ones(2).expand(5, 2),
        "none": torch.zeros(0, 4),
        "step": 7,
        "more": [torch.arange(3), (torch.ones(1),)],
    }
    torch.save(state, tmp_path / "m.pt", _use_new_zipfile_serialization=not legacy)
    convert(tmp_path / "m.pt", tmp_path / "n.pt", *(["--dtype", dtype] if dtype else []))
    found = torch.load(tmp_path / "n.pt")
    to = (lambda x: x.to(torch.bfloat16) if x.is_floating_point() else x) if dtype else (lambda x: x)
    for key in ("embedding", "head", "rows", "again", "parameter", "frozen", "wide", "none"):
        assert torch.equal(found[key], to(state[key])), key
        assert found[key].stride() == state[key].stride()
        assert type(found[key]) is type(state[key])
        assert found[key].requires_grad == state[key].requires_grad
    assert found["step"] == 7
    assert found["more"][1][0].item() == 1
    with torch.no_grad():
        found["embedding"][2, 1] = 50
    assert found["head"][1, 2] == found["rows"][0, 0] == found["again"][2, 1] == 50
    penstock.load(tmp_path / "n.pt")


def test_damage_of_a_compressed_array_is_found(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(100_000), b=np.arange(100_000, dtype=">i4"))
    for at in (0.2, 0.45, 0.8):
        content = bytearray((tmp_path / "x.npz").read_bytes())
        content[int(len(content) * at)] ^= 0x10
        (tmp_path / "bad.npz").write_bytes(content)
        for target in ("y.npz", "y.pt", "y.safetensors"):
            assert "bad.npz" in convert(tmp_path / "bad.npz", tmp_path / target, code=1).stderr
            assert not (tmp_path / target).exists()


def hugging_face_shards(folder: Path, rows: int) -> np.ndarray:
    """What torch's HuggingFaceStorageWriter(save_distributed=True) leaves of two ranks: no index, and no file that says
    how large a tensor is."""
    whole = np.arange(rows * 4, dtype="f4").reshape(rows, 4)
    folder.mkdir()
    for rank, part in enumerate(np.array_split(whole, 2)):
        offsets = {"w": {"saved_offsets": [0 if rank == 0 else rows - len(part), 0]}}
        name = f"shard-{rank + 1:05}-model-00001-of-00001.safetensors"
        safetensors(folder / name, "F32", list(part.shape), part.tobytes(), {"DCP_SHARDING_INFO": json.dumps(offsets)})
    return whole


def test_a_folder_of_hugging_face_shards_is_one_checkpoint(tmp_path):
    whole = hugging_face_shards(tmp_path / "hf", 7)
    convert(tmp_path / "hf", tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz") as written:
        assert np.array_equal(written["w"], whole)
    verify = [PROGRAM, "verify", tmp_path / "hf"]
    assert "all good" in subprocess.run(verify, capture_output=True, text=True, check=True).stdout
    (tmp_path / "hf" / "shard-00001-model-00001-of-00001.safetensors").unlink()
    assert "shard-00001-... are missing" in convert(tmp_path / "hf", tmp_path / "p.npz", code=1).stderr
    assert not (tmp_path / "p.npz").exists()
    assert subprocess.run(verify, capture_output=True, text=True, check=False).returncode == 1


def test_a_folder_that_load_reads_by_its_index_is_converted_so(tmp_path):
    """HuggingFaceStorageWriter, with consolidation, leaves the shards of the ranks below the model."""
    folder = tmp_path / "hf"
    folder.mkdir()
    whole = hugging_face_shards(folder / "sharded", 7)
    safetensors(folder / "model-00001-of-00001.safetensors", "F32", [7, 4], whole.tobytes())
    index = {"metadata": {}, "weight_map": {"w": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    convert(folder, tmp_path / "o.npz")
    convert(f"{folder}/", tmp_path / "p.npz")
    for name in ("o.npz", "p.npz"):
        with np.load(tmp_path / name) as written:
            assert np.array_equal(written["w"], whole)


def test_a_folder_whose_names_tell_of_a_missing_part_is_refused(tmp_path):
    for i in (1, 3):
        penstock.save({f"k{i}": np.arange(i)}, tmp_path / f"model-0000{i}-of-00003.safetensors")
    out = tmp_path / "out.safetensors"
    assert "'model-00002-of-00003.safetensors' is missing" in convert(tmp_path, out, code=1).stderr
    assert not out.exists()
    convert(f"{tmp_path}/model-*.safetensors", out)  # what was named is there
    assert sorted(penstock.load(out)) == ["k1", "k3"]
