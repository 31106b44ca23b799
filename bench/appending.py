"""An `.npy` that is larger than memory wants to hold: 4 GB in pieces of 1 MB, beside NumPy's open_memmap."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from line import Call, Line, Program

PIECES, PIECE = 4096, 1 << 20


def _writer(path: Path, flush: bool) -> Call:
    import numpy as np

    import penstock

    piece = np.arange(PIECE, dtype="u4").astype("u1")[None]

    def run() -> None:
        with penstock.Writer(path, sync=flush) as writer:
            for _ in range(PIECES):
                writer.append(piece)

    return run


def _memmap(path: Path, flush: bool) -> Call:
    import numpy as np

    piece = np.arange(PIECE, dtype="u4").astype("u1")

    def run() -> None:
        mapped = np.lib.format.open_memmap(path, mode="w+", dtype="u1", shape=(PIECES, PIECE))
        for i in range(PIECES):
            mapped[i] = piece
        if flush:
            mapped.flush()

    return run


def lines(root: Path) -> list[Line]:
    out = []
    for flush, of in ((True, "flushed to the disk"), (False, "not flushed")):
        ours = Program(partial(_writer, root / "appended.npy", flush), ("penstock", "numpy"))
        peers = {"open_memmap": Program(partial(_memmap, root / "mapped.npy", flush), ("numpy",))}
        common = {"ours": ours, "peers": peers, "fresh": True, "repeats": 3}
        name = f"append 4 GB in pieces of 1 MB to an .npy, {of}"
        out.append(Line(name=name, unit="GB/s", work=PIECES * PIECE / 1e9, goal_peer=1, **common))
    return out
