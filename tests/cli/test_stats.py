"""penstock stats: beside NumPy and torch, over types, layouts and files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
DTYPES = ["?", "u1", "i1", "u2", ">i2", "u4", "i4", "u8", "i8", ">i8", "f2", ">f4", "f4", "f8", ">f8", "c8", "c16"]


def stats(*args: object, code: int = 0, **options: object) -> subprocess.CompletedProcess:
    done = subprocess.run([PROGRAM, "stats", *map(str, args)], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def stats_json(*args: object, code: int = 0):
    return json.loads(stats(*args, "--json", code=code).stdout)


def by_name(listed: dict) -> dict[str, dict]:
    return {tensor["name"]: tensor for tensor in listed["tensors"]}


def array_of(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(3)
    if dtype == "?":
        return random.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        facts = np.iinfo(dtype)
        return random.integers(facts.min, facts.max, shape, dtype=np.dtype(dtype).newbyteorder("=")).astype(dtype)
    array = random.normal(2, 3, shape) + (1j * random.normal(0, 1, shape) if dtype[0] == "c" else 0)
    return array.astype(dtype)


def check(tensor: dict, array: np.ndarray) -> None:
    """One tensor's object beside NumPy's answers."""
    assert tensor["elements"] == array.size
    assert tensor["shape"] == list(array.shape)
    values = np.abs(array.astype("c16")) if array.dtype.kind == "c" else array
    finite = values[np.isfinite(values)]
    assert tensor["finite"] == finite.size
    assert tensor["nan"] == np.isnan(array).sum()
    assert tensor["zeros"] == (array == 0).sum()
    assert sum(tensor["histogram"]["counts"]) == finite.size
    if finite.size == 0:
        assert [tensor[key] for key in ("min", "max", "mean", "std")] == [None] * 4
        return
    if array.dtype.kind in "biu":
        assert (tensor["min"], tensor["max"]) == (int(finite.min()), int(finite.max()))
    else:
        ends = (float(finite.min()), float(finite.max()))
        rounded = 1e-15 if array.dtype.kind == "c" else 0  # two ways to an absolute value
        assert (tensor["min"], tensor["max"]) == pytest.approx(ends, rel=rounded, abs=0)
    wide = finite.astype("g")
    assert tensor["mean"] == pytest.approx(float(wide.mean()), rel=1e-12, abs=1e-12 * float(np.abs(wide).max()))
    assert tensor["std"] == pytest.approx(float(wide.std()), rel=1e-12)


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    out = {f"{dtype} {shape}": array_of(dtype, shape) for dtype in DTYPES for shape in [(700, 3), (7,), (), (0, 4)]}
    out["large"] = np.random.default_rng(1).standard_normal((300, 2000), np.float32) + 100
    out["fortran"] = np.asfortranarray(array_of("f8", (40, 50, 3)))
    out["ill"] = np.array([np.nan, np.inf, -np.inf, 0, 1], "f4")
    out["only nan"] = np.full(600, np.nan)
    out["ends"] = np.array([1.7e308, -1.7e308] * 300)
    return out


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "deflated"])
def test_numbers_are_those_of_numpy(tmp_path, arrays, save):
    save(tmp_path / "a.npz", **arrays, text=np.array(["a"]), day=np.array(["2020-01-01"], "M8[D]"))
    found = by_name(stats_json(tmp_path / "a.npz"))
    assert list(found) == [*arrays, "text", "day"]
    for name, array in arrays.items():
        check(found[name], array)
    assert (found["ill"]["inf"], found["ill"]["negative_inf"]) == (1, 1)
    assert "min" not in found["text"]
    assert "min" not in found["day"]


def test_small_floats_and_views_are_those_of_torch(tmp_path):
    import torch

    wide = torch.randn(1500, generator=torch.Generator().manual_seed(0)) * 4
    dtypes = [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz]
    tensors = {str(dtype): wide.to(dtype) for dtype in dtypes}
    tensors["transposed"] = wide.reshape(30, 50).T
    tensors["every third"] = wide[::3]
    tensors["repeated"] = wide[:1].expand(900)
    tensors["conjugate"] = torch.complex(wide, -wide).conj()
    torch.save({"nested": tensors, "epoch": 7}, tmp_path / "a.pt")
    found = by_name(stats_json(tmp_path / "a.pt"))
    for name, tensor in tensors.items():
        values = tensor.resolve_conj().numpy() if tensor.is_complex() else tensor.double().numpy()
        check(found[f"nested.{name}"], values)


def test_only_ill_tensors_are_listed(tmp_path):
    np.savez(tmp_path / "ill.npz", good=np.ones(3), nan=np.array([1, np.nan]), inf=np.array([1 + 1j * np.inf]))
    np.savez(tmp_path / "good.npz", good=np.ones(3))
    found = by_name(stats_json("--nan", tmp_path / "ill.npz", code=1))
    assert list(found) == ["nan", "inf"]
    assert "good" not in stats("--nan", tmp_path / "ill.npz", code=1).stdout
    assert stats("--nan", tmp_path / "good.npz").stdout == "no NaN and no infinity in 1 tensor\n"


def test_folders_patterns_and_what_cannot_be_read(tmp_path):
    for name in ("b.npy", "a.npy", "deep/c.npy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / name, np.arange(3))
    (tmp_path / "notes.txt").write_text("nothing of ours")
    names = [Path(each["path"]).name for each in stats_json(tmp_path)]
    assert sorted(names) == ["a.npy", "b.npy", "c.npy"]
    assert [Path(each["path"]).name for each in stats_json(f"{tmp_path}/*.npy")] == ["a.npy", "b.npy"]
    (tmp_path / "b.npy").write_bytes(b"no array")
    done = stats(tmp_path, tmp_path / "missing.npy", code=1)
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [
        str(tmp_path / "b.npy"),
        str(tmp_path / "missing.npy"),
    ]
    assert "a.npy:" in done.stdout
    stats(code=2)


def test_bars_are_ascii_without_utf8(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=1000))
    path = tmp_path / "a.npy"
    assert stats(path, env={"LC_ALL": "C"}).stdout.isascii()
    assert "█" in stats(path, env={"LC_ALL": "C.UTF-8"}, encoding="utf-8").stdout


def test_a_tensor_of_a_few_bytes_repeated_without_end_is_refused(tmp_path):
    import torch

    torch.save(torch.zeros(1).expand(1 << 40), tmp_path / "a.pt")
    assert "repeats 4 bytes" in stats(tmp_path / "a.pt", code=1).stderr
