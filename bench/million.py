"""A folder of 1,000,000 small files: time to the first shuffled batch, and the memory that the list of them takes.

The files are 4 GB on disk and take minutes to make: only `script/bench --million` does. Where they are, they are used.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from line import WORKERS, Absent, Call, Floor, Line, Program
from small import TorchFiles, load_npy

FILES = 1_000_000
FOLDERS = 100
BATCH = 32
#: For the line of memory.
BATCHES, MEMORY_WORKERS = 2_000, 4
BYTES_A_FILE = 64


def make(root: Path) -> None:
    import numpy as np

    partial_folder = root / "million.partial"
    for f in range(FOLDERS):
        folder = partial_folder / f"{f:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(FILES // FOLDERS):
            np.save(folder / f"{f:03d}_{i:05d}.npy", np.full(32, i, np.float32))
    partial_folder.rename(root / "million")


def _listed(folder: str) -> list[str]:
    """As os.scandir gives it, sorted."""
    paths: list[str] = []
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                (waiting if entry.is_dir() else paths).append(entry.path)
    return sorted(paths)


def _walked(folder: str) -> list[str]:
    """As torchvision's folder datasets list."""
    paths = []
    for root, _, names in sorted(os.walk(folder, followlinks=True)):
        for name in sorted(names):
            path = os.path.join(root, name)
            if path.lower().endswith(".npy"):
                paths.append(path)
    return paths


def _read_list(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _first_of(loader) -> object:
    return next(iter(loader))


def _pattern(folder: Path) -> str:
    return f"{folder}/**/*.npy"


def _ours(folder: Path, index: Path | None = None) -> Call:
    import penstock

    if index and not index.exists():
        penstock.files(_pattern(folder), index=index)

    def run() -> object:
        files = penstock.files(_pattern(folder), index=index or False)
        return _first_of(penstock.DataLoader(files, batch_size=BATCH, shuffle=True, num_workers=WORKERS))

    return run


def _torch(paths_of, source: Path) -> Call:
    from torch.utils.data import DataLoader

    def run() -> object:
        files = TorchFiles(paths_of(str(source)), load_npy)
        return _first_of(DataLoader(files, batch_size=BATCH, shuffle=True, num_workers=WORKERS))

    return run


def _some_batches(loader) -> object:
    batches = iter(loader)
    for _ in range(BATCHES):
        next(batches)
    return batches


def _ours_memory(folder: Path) -> Call:
    import penstock

    def run() -> object:
        options = {"batch_size": BATCH, "shuffle": True, "num_workers": MEMORY_WORKERS}
        return _some_batches(penstock.DataLoader(penstock.files(_pattern(folder)), **options))

    return run


def _torch_memory(folder: Path) -> Call:
    from torch.utils.data import DataLoader

    def run() -> object:
        files = TorchFiles(_listed(str(folder)), load_npy)
        options = {"batch_size": BATCH, "shuffle": True, "num_workers": MEMORY_WORKERS}
        return _some_batches(DataLoader(files, **options))

    return run


def lines(root: Path) -> list[Line]:
    folder = (root / "million").resolve()
    if not folder.is_dir():
        raise Absent(f"{folder} is missing; script/bench --million makes it (1,000,000 files, 4 GB, some minutes)")
    index, listing = root / "million.index", root / "million.txt"
    if not listing.exists():
        listing.write_text("\n".join(_listed(str(folder))))
    torch = ("torch", "numpy")
    floor = Floor(["tree", str(WORKERS), str(folder)])
    common = {"unit": "ms", "kind": "time", "work": FILES, "fresh": True}
    return [
        Line(
            name="1,000,000 .npy: first shuffled batch from the folder",
            ours=Program(partial(_ours, folder), ("penstock",)),
            peers={
                "os.scandir and torch": Program(partial(_torch, _listed, folder), torch),
                "os.walk and torch": Program(partial(_torch, _walked, folder), torch),
            },
            floor=floor,
            goal_floor=1 / 1.5,
            **common,
        ),
        Line(
            name="1,000,000 .npy: first shuffled batch from a kept index",
            ours=Program(partial(_ours, folder, index), ("penstock",)),
            peers={"list of paths and torch": Program(partial(_torch, _read_list, listing), torch)},
            goal=100,
            **common,
        ),
        Line(
            name="1,000,000 .npy: memory after 2,000 batches, 4 workers",
            unit="MB",
            kind="memory",
            ours=Program(partial(_ours_memory, folder), ("penstock",)),
            peers={"torch DataLoader": Program(partial(_torch_memory, folder), torch)},
            fresh=True,
            goal=round(BYTES_A_FILE * FILES / 2**20),
        ),
    ]
