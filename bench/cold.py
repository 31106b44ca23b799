"""Large files that are not in the page cache, each taken out of it before every measurement.

On a virtual machine the host may hold them all the same, so that a "disk" is as fast as the host's memory allows, and
its speed changes from run to run: the floor is read in turn with the others, in several ways of which the best counts.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import cache
import corpus
import loads
from line import Floor, Line, Program

#: What disks like best: past the page cache or through it, and requests at a time.
WAYS = [("direct", 2), ("direct", 4), ("direct", 8), ("direct", 16), ("cached", 2)]
#: Disks are slow, and each repeat reads the file once for every program and way.
REPEATS = 5


def _floors(path: Path) -> tuple[Floor, ...]:
    return tuple(Floor(["cold", how, str(threads), str(path)], "bytes_per_second", 1e9) for how, threads in WAYS)


def _line(name: str, path: Path, peers: dict[str, Program]) -> Line:
    return Line(
        name=f"{name}, cold cache",
        unit="GB/s",
        work=path.stat().st_size / 1e9,
        ours=loads.ours(path),
        peers=peers,
        floor=_floors(path),
        fresh=True,
        repeats=REPEATS,
        goal_peer=3,
        goal_floor=0.95,
        prepare=partial(cache.drop, path),
    )


def lines(root: Path) -> list[Line]:
    pt, st = corpus.state(root)
    images, _ = corpus.rows(root)
    return [
        _line("state dict of 2.2 GB, .pt", pt, loads.peers_of_pt(pt)),
        _line("state dict of 2.2 GB, .safetensors", st, loads.peers_of_safetensors(st)),
        _line(".npy of 614 MB", images, {"np.load": loads.numpy_load(images)}),
    ]
