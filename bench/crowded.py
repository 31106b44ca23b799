"""Shuffled rows of an array that is larger than the memory its process may use."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from line import WORKERS, Absent, Call, Line, Program, drain, shuffled

ROWS = 150_000
ROW_BYTES = 4096  # 614 MB in all
LIMIT = 200 << 20
TAKEN = 20_000  # rows of one run
BATCH = 256
GROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


def _group() -> Path:
    """A control group of LIMIT bytes; made where it is missing, and empty when the last process of it has ended."""
    for root, limit in GROUPS:
        group = root / "penstock-bench"
        try:
            group.mkdir(exist_ok=True)
            (group / limit).write_text(str(LIMIT))
        except OSError:
            continue
        return group
    raise Absent("no control group with a memory limit can be made here; run it as root")


def _enter() -> None:
    (_group() / "cgroup.procs").write_text(str(os.getpid()))


def _drop(path: Path) -> None:
    """What lies in the page cache already is another group's and costs this one nothing."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def _array(root: Path) -> Path:
    path = root / "crowded.npy"
    if not path.exists():
        import numpy as np

        np.save(path, np.random.default_rng(1).integers(0, 255, (ROWS, ROW_BYTES), np.uint8))
    return path


def _ours(path: Path) -> Call:
    import penstock

    _enter()
    some = penstock.subset(penstock.rows(path), shuffled(ROWS)[:TAKEN])
    return lambda: drain(penstock.DataLoader(some, batch_size=BATCH, num_workers=WORKERS))


def _pread(path: Path) -> Call:
    _enter()
    file = os.open(path, os.O_RDONLY)
    wanted = shuffled(ROWS)[:TAKEN]

    def read(rows: list[int]) -> None:
        memory = bytearray(ROW_BYTES)
        for row in rows:
            os.preadv(file, [memory], 128 + row * ROW_BYTES)

    def run() -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            drain(pool.map(read, (wanted[i::WORKERS] for i in range(WORKERS))))

    return run


def lines(root: Path) -> list[Line]:
    path = _array(root)
    _group()
    return [
        Line(
            name="rows of 4 KB of a file three times the control group's memory, shuffled",
            unit="rows/s",
            work=TAKEN,
            ours=Program(partial(_ours, path), ("penstock",)),
            peers={f"pread, {WORKERS} threads": Program(partial(_pread, path))},
            goal_peer=0.8,
            prepare=partial(_drop, path),
        )
    ]
