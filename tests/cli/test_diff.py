"""penstock diff: beside NumPy's isclose, over types, layouts, formats and folders."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
DTYPES = ["?", "u1", "i1", "u2", ">i2", "u4", "i4", "u8", "i8", "f2", "f4", ">f4", "f8", "c8", "c16"]


def diff(*args: object, code: int, **options: object) -> subprocess.CompletedProcess:
    command = [PROGRAM, "diff", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def diff_json(*args: object, code: int, **options: object) -> dict:
    return json.loads(diff(*args, "--json", code=code, **options).stdout)


def by_name(result: dict) -> dict[str, dict]:
    return {place["name"]: place for place in result["differences"]}


def safetensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> Path:
    names = {"f4": "F32", "f2": "F16", "i8": "I64"}
    entries: dict = {"__metadata__": metadata} if metadata else {}
    payload = b""
    for name, array in tensors.items():
        end = len(payload) + array.nbytes
        dtype = names[array.dtype.str[1:]]
        entries[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(payload), end]}
        payload += array.tobytes()
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + payload)
    return path


def random_pair(dtype: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that are equal in most elements."""
    random = np.random.default_rng(5)
    kind = np.dtype(dtype).kind
    if kind == "b":
        a = random.integers(0, 2, shape).astype(bool)
    elif kind in "iu":
        facts = np.iinfo(dtype)
        a = random.integers(facts.min, facts.max, shape, dtype=np.dtype(dtype).newbyteorder("="))
    else:
        a = random.normal(0, 3, shape) + (1j * random.normal(0, 1, shape) if kind == "c" else 0)
    a = a.astype(dtype)
    b = a.copy()
    flat = b.reshape(-1)
    for at in range(5, flat.size, 131):
        flat[at] = ~flat[at] if kind in "biu" else flat[at] * dtype_one(dtype)
    if kind in "fc" and flat.size > 900:
        flat[7], flat[300], flat[900] = np.nan, np.inf, 0
        a.reshape(-1)[7] = np.nan
    return a, b


def dtype_one(dtype: str) -> np.number:
    return np.dtype(dtype).type(1.25)


def expected(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> dict:
    """What the place of this pair says, by NumPy in long double."""
    wide = "G" if a.dtype.kind == "c" else "g"
    x, y = a.astype(wide), b.astype(wide)
    close = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
    finite = np.isfinite(x) & np.isfinite(y)
    absolute = np.abs(x - y)[finite]
    nonzero = np.abs(y[finite]) != 0
    relative = absolute[nonzero] / np.abs(y[finite])[nonzero]
    return {
        "different": int((~close).sum()),
        "first": [int(i) for i in np.argwhere(~close)[0]] if (~close).any() else None,
        "max_absolute": float(absolute.max()),
        "max_relative": float(relative.max()),
        "not_finite": int((~close & ~finite).sum()),
    }


@pytest.mark.parametrize(("rtol", "atol"), [(0, 0), (0.1, 0.3)])
def test_numbers_are_those_of_numpy(tmp_path, rtol, atol):
    pairs = {f"{dtype} {shape}": random_pair(dtype, shape) for dtype in DTYPES for shape in [(700, 3), (6,)]}
    pairs["fortran"] = tuple(np.asfortranarray(each) for each in random_pair("f8", (40, 50, 3)))
    a, b = random_pair("f4", (300, 400))
    pairs["mixed order"] = (a, np.asfortranarray(b))
    np.savez(tmp_path / "a.npz", **{name: pair[0] for name, pair in pairs.items()})
    np.savez_compressed(tmp_path / "b.npz", **{name: pair[1] for name, pair in reversed(pairs.items())})
    result = diff_json(tmp_path / "a.npz", tmp_path / "b.npz", "--rtol", rtol, "--atol", atol, code=1)
    found = by_name(result)
    assert result["equal_tensors"] + len(found) == len(pairs)
    for name, (of_a, of_b) in pairs.items():
        wanted = expected(of_a, of_b, rtol, atol)
        assert (name in found) == (wanted["different"] > 0), name
        if name not in found:
            continue
        for key in ("different", "first", "not_finite"):
            assert found[name][key] == wanted[key], (name, key)
        for key in ("max_absolute", "max_relative"):
            assert found[name][key] == pytest.approx(wanted[key], rel=1e-6), (name, key)


def test_equal_content_is_equal_in_every_format(tmp_path):
    import torch

    weight = np.arange(6, dtype="f4").reshape(2, 3)
    arrays = {"layer.w": weight, "layer.empty": np.zeros((0, 2), "f4"), "scalar": np.float32(3).reshape(())}
    np.savez(tmp_path / "a.npz", **dict(reversed(arrays.items())))
    np.savez_compressed(tmp_path / "b.npz", **{**arrays, "layer.w": np.asfortranarray(weight.astype(">f4"))})
    safetensors(tmp_path / "c.safetensors", arrays, {"format": "np"})
    nested = {name: torch.from_numpy(arrays[f"layer.{name}"]) for name in ("w", "empty")}
    nested["w"] = torch.from_numpy(weight.T.copy()).T
    torch.save({"scalar": torch.tensor(3.0), "layer": nested}, tmp_path / "d.pt")
    for one, other in [("a.npz", "b.npz"), ("b.npz", "c.safetensors"), ("c.safetensors", "d.pt")]:
        assert "3 tensors are equal" in diff(tmp_path / one, tmp_path / other, code=0).stdout
    np.save(tmp_path / "bare.npy", weight)
    torch.save(torch.from_numpy(weight), tmp_path / "bare.pt")
    np.savez(tmp_path / "one.npz", anything=weight)
    for other in ("bare.pt", "one.npz"):
        diff(tmp_path / "bare.npy", tmp_path / other, code=0)


def test_every_kind_of_difference_has_a_word(tmp_path):
    import torch

    first = {
        "gone": torch.ones(2),
        "shape": torch.ones(2, 3),
        "dtype": torch.ones(2),
        "values": torch.tensor([1.0, 2.0]),
        "same": torch.ones(2),
        "epoch": 7,
        "lr": 0.1,
        "name": "a\x1b[31m",
        "list": [1, {"x": None}],
        "nan": float("nan"),
        "kind": 1,
    }
    second = {
        "shape": torch.ones(3, 2),
        "dtype": torch.ones(2, dtype=torch.float16),
        "values": torch.tensor([1.0, 2.5]),
        "same": torch.ones(2),
        "epoch": 8,
        "lr": 0.1,
        "name": "b",
        "list": (1, {"x": True}),
        "nan": float("nan"),
        "kind": 1.0,
        "new": [],
    }
    torch.save(first, tmp_path / "a.pt")
    torch.save(second, tmp_path / "b.pt")
    result = diff_json(tmp_path / "a.pt", tmp_path / "b.pt", code=1)
    assert {name: place["difference"] for name, place in by_name(result).items()} == {
        "gone": "only_in_a",
        "shape": "shape",
        "dtype": "dtype",
        "values": "values",
        "epoch": "value",
        "name": "value",
        "list.1.x": "value",
        "kind": "value",
        "new": "only_in_b",
    }
    assert by_name(result)["dtype"]["different"] == 0
    assert by_name(result)["values"]["first_b"] == "2.5"
    told = diff(tmp_path / "a.pt", tmp_path / "b.pt", code=1).stdout
    assert "\x1b" not in told
    assert "only in A: gone  float32 (2,)" in told
    assert "1 of 2 elements differ, the first at [1]: 2 in A, 2.5 in B" in told
    loose = by_name(diff_json(tmp_path / "a.pt", tmp_path / "b.pt", "--any-dtype", "--atol", "2", code=1))
    assert sorted(loose) == ["gone", "list.1.x", "name", "new", "shape"]
    assert diff("--quiet", tmp_path / "a.pt", tmp_path / "b.pt", code=1).stdout == ""


def test_numbers_beside_tensors_are_compared_exactly(tmp_path):
    torch = pytest.importorskip("torch")
    for name, value in (("int", 2**53 + 1), ("even", 2**53), ("float", 2.0**53)):
        torch.save({"n": value}, tmp_path / f"{name}.pt")
    diff(tmp_path / "int.pt", tmp_path / "float.pt", "--any-dtype", code=1)
    diff(tmp_path / "even.pt", tmp_path / "float.pt", "--any-dtype", code=0)
    diff(tmp_path / "even.pt", tmp_path / "int.pt", code=1)
    diff(tmp_path / "int.pt", tmp_path / "float.pt", "--any-dtype", "--atol", "1", code=0)


def test_nan_equals_nan_unless_it_shall_not(tmp_path):
    np.save(tmp_path / "a.npy", np.array([np.nan, 1]))
    diff(tmp_path / "a.npy", tmp_path / "a.npy", code=0)
    assert diff_json(tmp_path / "a.npy", tmp_path / "a.npy", "--nan-differs", code=1)["differences"][0]["first"] == [0]


def test_text_dates_records_and_objects(tmp_path):
    a = {
        "text": np.array(["ab", "cd"]),
        "raw": np.array([b"ab", b"cd"]),
        "day": np.array(["2020-01-01", "NaT"], "M8[D]"),
        "records": np.zeros(3, [("x", "<i4"), ("y", "<f8")]),
        "objects": np.array([1, "two"], dtype=object),
    }
    b = {name: array.copy() for name, array in a.items()}
    np.savez(tmp_path / "a.npz", **a)
    np.savez(tmp_path / "same.npz", **b)
    diff(tmp_path / "a.npz", tmp_path / "same.npz", code=0)
    b["text"][1], b["raw"][0], b["day"][1], b["records"][2], b["objects"][0] = "cx", b"zz", "2020-01-02", (1, 2), 3
    np.savez(tmp_path / "b.npz", **b)
    found = by_name(diff_json(tmp_path / "a.npz", tmp_path / "b.npz", code=1))
    assert {name: place.get("first") for name, place in found.items()} == {
        "text": [1],
        "raw": [0],
        "day": [1],
        "records": [2],
        "objects.0": None,
    }
    assert found["objects.0"]["difference"] == "value"
    assert (found["objects.0"]["a"], found["objects.0"]["b"]) == ({"value": "1"}, {"value": "3"})
    assert (found["text"]["first_a"], found["text"]["first_b"]) == ("cd", "cx")


def test_folders_are_paired_by_path_and_by_name_without_extension(tmp_path):
    for side in "ab":
        (tmp_path / side / "deep").mkdir(parents=True)
        np.save(tmp_path / side / "deep" / "x.npy", np.arange(3))
    np.savez(tmp_path / "a" / "model.npz", w=np.ones(2, "f4"))
    safetensors(tmp_path / "b" / "model.safetensors", {"w": np.ones(2, "f4")})
    result = diff_json(tmp_path / "a", tmp_path / "b", code=0)
    assert [(Path(pair["a"]).name, Path(pair["b"]).name) for pair in result["files"]] == [
        ("x.npy", "x.npy"),
        ("model.npz", "model.safetensors"),
    ]
    np.save(tmp_path / "a" / "more.npy", np.arange(3))
    assert diff_json(tmp_path / "a", tmp_path / "b", code=1)["only_in_a"] == ["more.npy"]
    assert "file only in A: more.npy" in diff(tmp_path / "a", tmp_path / "b", code=1).stdout
    (tmp_path / "b" / "deep" / "x.npy").write_bytes(b"no array")
    done = diff(tmp_path / "a", tmp_path / "b", code=2)
    assert "x.npy" in done.stderr
    assert "model" in done.stdout


def test_a_sharded_model_is_one_content(tmp_path):
    tensors = {f"w{i}": np.full((3, 4), i, "f4") for i in range(4)}
    whole = safetensors(tmp_path / "whole.safetensors", tensors)
    folder = tmp_path / "sharded"
    folder.mkdir()
    weight_map = {}
    for shard in range(2):
        name = f"model-{shard + 1:05}-of-00002.safetensors"
        part = {key: tensors[key] for key in list(tensors)[2 * shard : 2 * shard + 2]}
        safetensors(folder / name, part)
        weight_map |= dict.fromkeys(part, name)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    assert "4 tensors are equal" in diff(index, whole, code=0).stdout
    assert "4 tensors are equal" in diff(folder, whole, code=0).stdout
    diff(folder, folder, code=0)


def test_trouble_is_2(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.save(tmp_path / "b.npy", np.arange(4))
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for other in ("missing.npy", "empty", "folder"):
        assert diff(tmp_path / "a.npy", tmp_path / other, code=2).stderr.startswith("penstock: ")
    for wrong in (["--rtol", "nan"], ["--rtol", "-1"], ["--atol", "x"], []):
        diff(tmp_path / "a.npy", *wrong, *([tmp_path / "b.npy"] if wrong else []), code=2)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([PROGRAM, "diff", tmp_path / "a.npy", tmp_path / "b.npy"], stdout=full, check=False)
    assert done.returncode == 2


def test_damage_is_no_difference(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(5000))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[1000] ^= 1
    (tmp_path / "b.npz").write_bytes(content)
    assert "CRC" in diff(tmp_path / "a.npz", tmp_path / "b.npz", code=2).stderr


@pytest.mark.parametrize("compressed", [False, True])
def test_damage_is_no_difference_where_nothing_is_compared(tmp_path, compressed):
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "a.npz", x=np.arange(1000.0), y=np.ones(3))
    raw = bytearray((tmp_path / "a.npz").read_bytes())
    for at in (14, raw.find(b"PK\1\2") + 16):  # the checksum of x, in both places that have it
        raw[at] ^= 1
    (tmp_path / "damaged.npz").write_bytes(raw)
    for name, arrays in {
        "shape": {"x": np.ones(5), "y": np.ones(3)},
        "type": {"x": np.full(1000, "x"), "y": np.ones(3)},
        "only": {"y": np.ones(3)},
    }.items():
        save(tmp_path / f"{name}.npz", **arrays)
        assert diff(tmp_path / "a.npz", tmp_path / f"{name}.npz", code=1)
        for pair in (("damaged", name), (name, "damaged")):
            told = diff(*(tmp_path / f"{one}.npz" for one in pair), code=2)
            assert "damaged.npz" in told.stderr


def test_little_memory_whatever_the_size(tmp_path):
    for name in "ab":
        with (tmp_path / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": False, "shape": (150_000_000,)}
            )
            file.truncate(file.tell() + 600_000_000)
    limit = 256 << 20

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    diff(tmp_path / "a.npy", tmp_path / "b.npy", code=0, preexec_fn=limited)


PARTS = {
    "tuples in sets": ({(1, 2)}, {(1, 3)}),
    "frozensets in sets": ({frozenset({1})}, {frozenset({2})}),
    "objects in sets": ({Fraction(1, 2)}, {Fraction(1, 3)}),
    "tuples in keys": ({((1, 2), 3): 0}, {((1, 9), 3): 0}),
    "frozensets as keys": ({frozenset({1}): 0}, {frozenset({2}): 0}),
    "objects as keys": ({Fraction(1, 2): 0}, {Fraction(1, 3): 0}),
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_what_lies_in_sets_and_keys_counts(tmp_path, parts):
    import torch

    for name, part in zip("ab", parts, strict=True):
        torch.save({"part": part}, tmp_path / f"{name}.pt")
    torch.save({"part": parts[0]}, tmp_path / "c.pt")
    diff(tmp_path / "a.pt", tmp_path / "b.pt", code=1)
    diff(tmp_path / "a.pt", tmp_path / "c.pt", code=0)


def test_attributes_of_tensors_count(tmp_path):
    import torch

    for name, note in (("a", 1), ("b", 2)):
        tensor = torch.ones(2)
        tensor.note = note
        torch.save({"w": tensor}, tmp_path / f"{name}.pt")
    assert "w.state.note" in diff(tmp_path / "a.pt", tmp_path / "b.pt", code=1).stdout


def test_elements_without_bytes_are_not_counted_one_by_one(tmp_path):
    header = f"{{'descr': '|S0', 'fortran_order': False, 'shape': ({2**62},), }}\n".encode()
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    diff(tmp_path / "a.npy", tmp_path / "a.npy", code=0)
