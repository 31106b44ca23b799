"""Files in the page cache to a simulated device whose copies cost nothing: what that takes of the host."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import corpus
from line import WORKERS, Absent, Call, Floor, Line, Program

SIMULATOR = Path("build/release/tests/simulator/libpenstock_simulated_cuda.so")
LARGE_GB = 4
TENSORS = 16
#: The ring of 64, and 2 for each of 16 threads that read what is not cached, as holes are not.
MOST_MB = 104


def _ours(path: Path) -> Call:
    os.environ["PENSTOCK_LIBCUDA"] = str(SIMULATOR.resolve())
    os.environ["PENSTOCK_SIM_COPIES"] = "0"
    import penstock

    return lambda: penstock.load(path, device="cuda:0")


def _large(path: Path) -> Path:
    """Tensors of holes."""
    if path.exists():
        return path
    nbytes = LARGE_GB * 10**9 // TENSORS
    entries = {
        f"layer.{i}.weight": {"dtype": "F32", "shape": [nbytes // 4], "data_offsets": [i * nbytes, (i + 1) * nbytes]}
        for i in range(TENSORS)
    }
    head = json.dumps(entries).encode()
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(8 + len(head) + TENSORS * nbytes)
    return path


def _rate_line(path: Path) -> Line:
    read = [str(WORKERS), str(path)]
    return Line(
        name=f"state dict of 2.2 GB, {path.suffix}, to a simulated device",
        unit="GB/s",
        work=path.stat().st_size / 1e9,
        ours=Program(partial(_ours, path), ("penstock",)),
        peers={},
        floor=(
            Floor(["read", *read], "bytes_per_second", 1e9),
            Floor(["read-again", *read], "bytes_per_second", 1e9),
        ),
        goal_floor=0.9,
    )


def lines(root: Path) -> list[Line]:
    if not SIMULATOR.exists():
        raise Absent(f"{SIMULATOR} is missing; script/bench builds it")
    pt, st = corpus.state(root)
    return [
        _rate_line(pt),
        _rate_line(st),
        Line(
            name=f"memory of a load of {LARGE_GB} GB to a simulated device",
            unit="MB",
            kind="memory",
            ours=Program(partial(_ours, _large(root / "large.safetensors")), ("penstock",)),
            peers={},
            fresh=True,
            goal=MOST_MB,
        ),
    ]
