"""One file of each format, small and larger ones, as bytes; and what is equal."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import penstock

SIZES = {"small": 8, "large": 3000}
INDEX = "model.safetensors.index.json"


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype="f4")


def npy_of(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _nested(rows: int) -> dict:
    return {"model": {"w": numbers(rows, 64), "b": numbers(64, seed=1)}, "steps": [1, 2.5, "three", None], "epoch": 7}


def _write(folder: Path) -> None:
    """Small files are read whole when they are opened; of larger ones the front, the end and the payload are ranges."""
    for size, rows in SIZES.items():
        flat = {"w": numbers(rows, 64), "half": numbers(rows, 2, seed=2).astype("f2"), "none": np.zeros((0, 3), "i8")}
        penstock.save(flat["w"], folder / f"{size}.npy", sync=False)
        penstock.save(flat, folder / f"{size}.npz", sync=False)
        penstock.save(flat, folder / f"{size} deflated.npz", compress=True, sync=False)
        penstock.save(flat, folder / f"{size}.safetensors", sync=False)
        penstock.save(_nested(rows), folder / f"{size}.pt", sync=False)
    names = {}
    for number in range(2):
        part = {f"layer{number}.w": numbers(500, 64, seed=number), f"layer{number}.b": numbers(64, seed=number)}
        shard = f"model-{number + 1:05}-of-00002.safetensors"
        penstock.save(part, folder / shard, sync=False)
        names |= dict.fromkeys(part, shard)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": names}))


@cache
def contents() -> dict[str, bytes]:
    """Files by name. One name has what URLs and signatures have to quote."""
    with TemporaryDirectory() as folder:
        _write(Path(folder))
        out = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    out["dir ä/x=1,y+2:(3)%41&é.npy"] = out["small.npy"]
    return out


NAMES = (
    *(
        f"{size}{kind}"
        for size in ("small", "large")
        for kind in (".npy", ".npz", " deflated.npz", ".safetensors", ".pt")
    ),
    "dir ä/x=1,y+2:(3)%41&é.npy",
)


def same(found, expected) -> None:
    """Asserts that two loaded values are equal in types, names, order, dtypes, shapes and bytes."""
    assert type(found) is type(expected)
    if isinstance(found, penstock.Tensor):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    elif isinstance(found, dict):
        assert list(found) == list(expected)
        for key in found:
            same(found[key], expected[key])
    elif isinstance(found, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        assert found == expected
