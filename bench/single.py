"""One file of 1 KB, again and again from Python."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import corpus
from line import Call, Floor, Line, Program

LOADS = 5_000


def _repeated(load: Call) -> Call:
    def run() -> None:
        for _ in range(LOADS):
            load()

    return run


def _ours(path: Path) -> Call:
    import penstock

    return _repeated(lambda: penstock.load(path))


def _np_load(path: Path) -> Call:
    import numpy as np

    return _repeated(lambda: np.load(path))


def _torch_load(path: Path) -> Call:
    import torch

    return _repeated(lambda: torch.load(path))


def lines(root: Path) -> list[Line]:
    npy, pt = corpus.single(root, LOADS)
    of_torch = {"torch.load of a .pt": Program(partial(_torch_load, pt), ("torch",))}
    peers = {npy: {"np.load": Program(partial(_np_load, npy), ("numpy",)), **of_torch}, pt: of_torch}
    return [
        Line(
            name=f"one {path.suffix} of 1 KB",
            unit="files/s",
            work=LOADS,
            ours=Program(partial(_ours, path), ("penstock",)),
            peers=theirs,
            floor=Floor(["files", str(corpus.listing_of(path)), "1"]),
            goal_peer=5,
            goal_floor=0.3,
        )
        for path, theirs in peers.items()
    ]
