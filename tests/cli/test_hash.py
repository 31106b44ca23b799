"""penstock hash: equal content has an equal hash in every format, by the definition of docs/design/content_hash.md."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")


def hash_json(*args: object, code: int = 0):
    done = subprocess.run([PROGRAM, "hash", "--json", *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


class Hash128(ctypes.Structure):
    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))


@pytest.fixture(scope="module")
def xxh3():
    """XXH3 of the library itself, as 16 bytes."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_128bits.restype = Hash128
    library.XXH3_128bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)

    def of(data: bytes) -> bytes:
        found = library.XXH3_128bits(data, len(data))
        return struct.pack(">QQ", found.high, found.low)

    return of


def tensor_hash(xxh3, dtype: str, array: np.ndarray) -> bytes:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    content = little.tobytes()
    step = 262144 // array.dtype.itemsize * array.dtype.itemsize
    pieces = b"".join(xxh3(content[at : at + step]) for at in range(0, len(content), step))
    return xxh3(f"{dtype} {','.join(map(str, array.shape))}\n".encode() + pieces)


def content_hash(xxh3, hashes: dict[str, bytes]) -> str:
    return xxh3(b"".join(sorted(xxh3(name.encode()) + value for name, value in hashes.items()))).hex()


ARRAYS = {
    "a.w": np.arange(200_000, dtype="f4").reshape(4, -1),
    "b": np.arange(7),
    "flag": np.array([True, False]),
    "none": np.zeros((0, 3), "f8"),
    "scalar": np.array(2.5, "c16"),
}
DTYPES = {"f4": "float32", "i8": "int64", "b1": "bool", "f8": "float64", "c16": "complex128"}


def test_the_hash_is_that_of_its_definition(tmp_path, xxh3):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    found = hash_json(tmp_path / "a.npz")
    wanted = {name: tensor_hash(xxh3, DTYPES[array.dtype.str[1:]], array) for name, array in ARRAYS.items()}
    assert {each["name"]: each["hash"] for each in found["tensors"]} == {k: v.hex() for k, v in wanted.items()}
    assert found["hash"] == content_hash(xxh3, wanted)


def test_format_layout_and_order_do_not_matter(tmp_path, xxh3):
    import torch

    arrays = dict(reversed(ARRAYS.items()))
    swapped = {name: np.asarray(array, array.dtype.newbyteorder(">"), order="F") for name, array in arrays.items()}
    np.savez(tmp_path / "a.npz", **ARRAYS)
    np.savez_compressed(tmp_path / "b.npz", **swapped)
    np.savez(tmp_path / "c.npz", **swapped)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    weight = tensors.pop("a.w")
    torch.save({**tensors, "a": {"w": weight.T.contiguous().T}}, tmp_path / "d.pt")
    torch.save({**tensors, "a": {"w": weight}, "epoch": 7, "lr": 0.5}, tmp_path / "e.pt")
    files = hash_json(*(tmp_path / name for name in ("a.npz", "b.npz", "c.npz", "d.pt", "e.pt")))
    assert len({file["hash"] for file in files[:4]}) == 1
    wanted = {name: tensor_hash(xxh3, DTYPES[array.dtype.str[1:]], array) for name, array in ARRAYS.items()}
    wanted |= {"epoch": xxh3(b"int:7"), "lr": xxh3(b"float:3fe0000000000000")}
    assert files[4]["hash"] == content_hash(xxh3, wanted)


def test_a_bare_tensor_has_no_name(tmp_path):
    import torch

    np.save(tmp_path / "a.npy", np.arange(5))
    torch.save(torch.arange(5), tmp_path / "a.pt")
    one, other = hash_json(tmp_path)
    assert one["hash"] == other["hash"]


def test_what_differs_has_another_hash(tmp_path):
    base = np.arange(6.0)
    variants = [base, base.reshape(2, 3), base.astype("f4"), base + 1, np.append(base, 6), -base, base[:0]]
    np.savez(tmp_path / "a.npz", **{str(i): array for i, array in enumerate(variants)})
    assert len({each["hash"] for each in hash_json(tmp_path / "a.npz")["tensors"]}) == len(variants)
    for name in ("x", "y"):
        np.savez(tmp_path / f"{name}.npz", **{name: base})
    assert hash_json(tmp_path / "x.npz")["hash"] != hash_json(tmp_path / "y.npz")["hash"]


def test_what_lies_in_sets_is_hashed(tmp_path):
    import torch

    for name, second in (("a", 2), ("b", 3)):
        torch.save({"part": {(1, second), ("x",)}}, tmp_path / f"{name}.pt")
    torch.save({"part": {("x",), (1, 2)}}, tmp_path / "c.pt")
    a, b, c = (each["hash"] for each in hash_json(*(tmp_path / f"{name}.pt" for name in "abc")))
    assert a == c != b


def test_elements_without_bytes_have_a_hash(tmp_path, xxh3):
    header = f"{{'descr': '|S0', 'fortran_order': False, 'shape': ({2**62},), }}\n".encode()
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    (tensor,) = hash_json(tmp_path / "a.npy")["tensors"]
    assert tensor["hash"] == xxh3(f"bytes {2**62}\n".encode()).hex()


def test_duplicates_are_grouped(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3), y=np.ones(3), empty=np.ones(0))
    np.savez_compressed(tmp_path / "b.npz", empty=np.ones(0), y=np.ones(3), x=np.ones(3))
    np.savez(tmp_path / "c.npz", x=np.zeros(3))
    found = hash_json("--duplicates", tmp_path)
    assert [[Path(path).name for path in group["paths"]] for group in found["files"]] == [["a.npz", "b.npz"]]
    (group,) = found["tensors"]
    assert group["bytes"] == 24
    assert [(Path(each["path"]).name, each["name"]) for each in group["tensors"]] == [
        ("a.npz", "x"),
        ("a.npz", "y"),
        ("b.npz", "y"),
        ("b.npz", "x"),
    ]
    (tmp_path / "bad.npz").touch()
    with_bad = hash_json("--duplicates", tmp_path, tmp_path / "none.npy", code=1)
    assert [Path(each["path"]).name for each in with_bad["bad"]] == ["bad.npz", "none.npy"]
    assert all(each["error"] for each in with_bad.pop("bad"))
    assert found.pop("bad") == []
    assert with_bad == found


def test_names_choose_what_is_hashed(tmp_path):
    """The hash is that of a file with nothing else in it, and nothing else is read."""
    arrays = {"a.w": np.arange(6.0), "a.b": np.ones(3), "c": np.zeros(50_000)}
    np.savez(tmp_path / "all.npz", **arrays)
    np.savez(tmp_path / "some.npz", **{name: arrays[name] for name in ("a.b", "a.w")})
    some = hash_json(tmp_path / "some.npz")
    content = bytearray((tmp_path / "all.npz").read_bytes())
    content[content.rindex(bytes(40_000)) + 9] ^= 1  # what is not named, whose checksum does not hold
    (tmp_path / "all.npz").write_bytes(content)
    hash_json(tmp_path / "all.npz", code=1)
    for words in (["a"], ["a.*"], ["a.w", "a.b"], ["--only", "a"]):
        chosen = hash_json(tmp_path / "all.npz", *words)
        assert chosen["hash"] == some["hash"]
        assert sorted(each["name"] for each in chosen["tensors"]) == ["a.b", "a.w"]
    (each,) = hash_json(tmp_path / "some.npz", "a.w")["tensors"]
    assert each in some["tensors"]
    assert len(hash_json("--duplicates", tmp_path, "a")["tensors"]) == 2


def test_values_and_other_files_are_left_out_where_names_choose(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(3), "epoch": 7}, tmp_path / "1.pt")
    torch.save({"w": torch.ones(3), "epoch": 8}, tmp_path / "2.pt")
    torch.save({"v": torch.ones(3)}, tmp_path / "3.pt")
    assert len({file["hash"] for file in hash_json(tmp_path)}) == 3
    one, two, three = hash_json(tmp_path, "w")
    assert one["hash"] == two["hash"]
    assert three["tensors"] == []
    done = subprocess.run([PROGRAM, "hash", tmp_path, "w"], capture_output=True, text=True, check=True)
    assert "3.pt" not in done.stdout
    (group,) = hash_json("--duplicates", tmp_path, "w")["files"]
    assert [Path(path).name for path in group["paths"]] == ["1.pt", "2.pt"]
    done = subprocess.run([PROGRAM, "hash", tmp_path, "x"], capture_output=True, text=True)
    assert (done.returncode, "no name matches 'x'" in done.stderr) == (1, True)


def test_lines_are_those_of_checksum_tools(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    found = hash_json(tmp_path / "a.npz")

    def out(*args: object) -> str:
        return subprocess.run([PROGRAM, "hash", *args], capture_output=True, text=True, check=True).stdout

    first = f"{found['hash']}  {tmp_path / 'a.npz'}\n"
    assert out(tmp_path / "a.npz", "--content") == first
    assert out(tmp_path / "a.npz") == first + f"  {found['tensors'][0]['hash']}  x  float64 (3,)\n"
