"""What a line of the benchmark is: the same work by Penstock, by its peers and by a bare C loop (the floor).

Modules that give lines (`MODULES` in run.py) have `lines(root) -> list[Line]`. It makes the files where they are
missing and must be cheap where they are there: each program runs in a process of its own, which finds itself by it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

WORKERS = 2
OURS = "Penstock"
#: Interpreters: that of the project, that of the peers that it does not need (script/requirements-peers.txt), and one
#: with torchvision, which takes 5 GB with the torch that it wants, so that nothing here installs it.
OWN_PYTHON = Path(".venv/bin/python")
PEER_PYTHON = Path("build/peers/bin/python")
VISION_PYTHON = Path("build/vision/bin/python")
HOW_TO_GET = {
    OWN_PYTHON: "run script/bootstrap --bench",
    PEER_PYTHON: "run script/bootstrap --bench",
    VISION_PYTHON: "python3 -m venv build/vision; build/vision/bin/pip install torch torchvision numpy",
}

Call = Callable[[], object]


class Absent(Exception):  # noqa: N818 - a state of the machine
    """What lines() or a line's prepare() raises where it cannot be measured; the message says why and what to do."""


@dataclass(frozen=True)
class Program:
    """`make` prepares and returns what is timed. `imports` come before, and their memory does not count."""

    make: Callable[[], Call]
    imports: tuple[str, ...] = ()
    python: Path = OWN_PYTHON


@dataclass(frozen=True)
class Floor:
    """Arguments of bench_floor, and how many of the line's units are in one of its samples (or bytes)."""

    arguments: Sequence[str]
    key: Literal["samples_per_second", "bytes_per_second"] = "samples_per_second"
    scale: float = 1.0

    @property
    def name(self) -> str:
        """The arguments but for paths."""
        return " ".join(argument for argument in self.arguments if "/" not in argument)


@dataclass(frozen=True)
class Line:
    """One figure. What a program gives is `work` units a second for "rate", milliseconds for "time" and the MB that
    its process tree holds at the peak beyond what its imports take for "memory"."""

    name: str
    unit: str
    ours: Program
    peers: dict[str, Program]
    #: Several are ways to do the same; the one with the best median counts.
    floor: Floor | tuple[Floor, ...] | None = None
    work: float = 1.0
    kind: Literal["rate", "time", "memory"] = "rate"
    #: Every measurement in a process of its own; otherwise one process of each program repeats the work, and the first
    #: time, which warms it up, does not count.
    fresh: bool = False
    #: No more than these; each is a turn of everything.
    repeats: int | None = None
    #: How many times as good as the best peer, as the floor, and in the line's own unit.
    goal_peer: float | None = None
    goal_floor: float | None = None
    goal: float | None = None
    #: Called before each measurement, outside the measured process.
    prepare: Callable[[], None] | None = None
    #: The floor runs once, uncounted, before each measurement, its own too: what it frees a moment before is the memory
    #: that each gets. On a virtual machine that reports free pages to its host, memory costs ten times as much to touch
    #: some seconds after it was freed, and whoever comes behind a slow program would always pay that.
    floor_first: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def programs(self) -> dict[str, Program]:
        return {OURS: self.ours, **self.peers}

    @property
    def less_is_better(self) -> bool:
        return self.kind != "rate"

    @property
    def floors(self) -> tuple[Floor, ...]:
        if self.floor is None:
            return ()
        return self.floor if isinstance(self.floor, tuple) else (self.floor,)

    def value(self, seconds: float, peak_mb: float) -> float:
        if self.kind == "memory":
            return peak_mb
        return seconds * 1e3 if self.kind == "time" else self.work / seconds

    def best(self, medians: dict[str, float]) -> str:
        """Whose is the best."""
        pick = min if self.less_is_better else max
        return pick(medians, key=lambda name: medians[name])

    def ratio(self, mine: float, other: float) -> float:
        """How many times as good."""
        return other / mine if self.less_is_better else mine / other


def drain(batches: Iterable[object]) -> None:
    for _ in batches:
        pass


def shuffled(count: int) -> list[int]:
    order = list(range(count))
    random.Random(1).shuffle(order)
    return order


def write_listing(root: Path, folder: Path) -> str:
    """A file beside the folder with the paths in it in a shuffled order, for the floor."""
    listing = root / f"{folder.name}.txt"
    if not listing.exists():
        paths = sorted(folder.iterdir())
        listing.write_text("".join(f"{paths[i]}\n" for i in shuffled(len(paths))))
    return str(listing)
