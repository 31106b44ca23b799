"""A state dict of 2.2 GB into fresh memory, and mapped."""

from __future__ import annotations

from pathlib import Path

import corpus
import loads
from line import WORKERS, Floor, Line, Program

#: Measured in new processes, and once more in processes that load again and again: there malloc hands out memory that
#: the process has used before, which has neither to be faulted in nor to be zeroed.
FRESH = {True: "fresh process", False: "again in one process"}


def _line(name: str, path: Path, fresh: bool, peers: dict[str, Program]) -> Line:
    return Line(
        name=f"state dict of 2.2 GB, {name}, {FRESH[fresh]}",
        unit="GB/s",
        work=path.stat().st_size / 1e9,
        ours=loads.ours(path),
        peers=peers,
        floor=Floor(["read", str(WORKERS), str(path)], "bytes_per_second", 1e9),
        fresh=fresh,
        floor_first=True,
        goal_peer=1,
        goal_floor=0.95,
    )


def _mapped_line(name: str, path: Path, peers: dict[str, Program]) -> Line:
    return Line(
        name=f"state dict of 2.2 GB, {name}, mapped",
        unit="ms",
        kind="time",
        ours=loads.ours(path, mmap=True),
        peers=peers,
        fresh=True,
        goal=5,
    )


def lines(root: Path) -> list[Line]:
    pt, st = corpus.state(root)
    return [
        *(_line(".pt", pt, fresh, loads.peers_of_pt(pt)) for fresh in FRESH),
        *(_line(".safetensors", st, fresh, loads.peers_of_safetensors(st)) for fresh in FRESH),
        _mapped_line(".pt", pt, {"torch.load": loads.torch_load(pt, mmap=True)}),
        _mapped_line(".safetensors", st, {"load_file": loads.load_file(st)}),
    ]
