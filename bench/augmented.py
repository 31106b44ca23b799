"""Functions in Python that take some time for each sample: in worker processes, and as peers call them.

The time is spent by Python alone, which holds its lock: a loop of so many microseconds, and then a flip by NumPy.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter_ns

import corpus
import numpy as np
import small
from line import PEER_PYTHON, WORKERS, Call, Line, Program, drain

BATCH = 64
SAMPLES = 20_000


class Augment:
    """A function of so many microseconds. It pickles."""

    def __init__(self, microseconds: int) -> None:
        self.nanoseconds = microseconds * 1000

    def __call__(self, sample):
        end = perf_counter_ns() + self.nanoseconds
        while perf_counter_ns() < end:
            pass
        return sample.flip(1) if hasattr(sample, "flip") else np.asarray(sample)[:, ::-1]


def same(sample):
    return sample


class Augmented(small.TorchFiles):
    """The same as the guides to PyTorch write it."""

    def __init__(self, folder: Path, augment: Callable):
        super().__init__(sorted(folder.iterdir()), small.load_npy)
        self.augment = augment

    def __getitem__(self, index: int):
        return self.augment(super().__getitem__(index))


class Arrays:
    """The same for a loader of arrays."""

    def __init__(self, folder: Path, augment: Callable):
        self.paths = sorted(folder.iterdir())
        self.augment = augment

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        return self.augment(np.load(self.paths[index]))


class Rows:
    def __init__(self, values):
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int):
        return self.values[index]


def _ours(folder: Path, augment: Callable, workers: str) -> Call:
    import penstock.torch as pt

    data = pt.Files(folder).map(augment)
    loader = pt.DataLoader(data, BATCH, shuffle=True, num_workers=WORKERS, workers=workers)
    return lambda: drain(loader)


def _torch(make: Callable, workers: int) -> Call:
    from torch.utils.data import DataLoader

    loader = DataLoader(make(), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    return lambda: drain(loader)


def _spdl(folder: Path, augment: Callable) -> Call:
    from torch.utils.data import default_collate

    make = lambda chosen: default_collate([augment(small.load_npy(path)) for path in chosen])  # noqa: E731
    return small.spdl_epochs(sorted(folder.iterdir()), BATCH, make)


def _grain(make: Callable, workers: int) -> Call:
    import grain

    # Its processes end with each epoch.
    data = grain.MapDataset.source(make()).shuffle(seed=0).batch(BATCH).to_iter_dataset()
    batches = data.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)) if workers else data
    return lambda: drain(batches)


def _grain_peers(make: Callable, workers: tuple[int, ...] = (0, WORKERS)) -> dict[str, Program]:
    programs = {count: Program(partial(_grain, make, count), (), PEER_PYTHON) for count in workers}
    return {f"Grain, {count} workers": program for count, program in programs.items()}


def _torch_peers(make: Callable, workers: tuple[int, ...] = (0, 1, WORKERS)) -> dict[str, Program]:
    programs = {count: Program(partial(_torch, make, count), ("torch",)) for count in workers}
    return {f"torch DataLoader, {count} workers": program for count, program in programs.items()}


def augmented_line(root: Path, microseconds: int, goal: float) -> Line:
    folder, augment = corpus.picture_files(root), Augment(microseconds)
    return Line(
        name=f"10,000 .npy of 150 KB, a function in Python of {microseconds} us each, batches of 64",
        unit="files/s",
        work=corpus.SMALL_FILES,
        ours=Program(partial(_ours, folder, augment, "processes"), ("torch", "penstock.torch")),
        peers={
            "Penstock, functions in threads": Program(
                partial(_ours, folder, augment, "threads"), ("torch", "penstock.torch")
            ),
            **_torch_peers(partial(Augmented, folder, augment)),
            "SPDL, 2 threads": Program(partial(_spdl, folder, augment), ("torch",), PEER_PYTHON),
            **_grain_peers(partial(Arrays, folder, augment)),
        },
        goal_peer=goal,
        notes=[f"{WORKERS} processors and no reading: {WORKERS * 1_000_000 // microseconds:,} files/s"],
    )


def _values():
    import torch

    return torch.zeros(SAMPLES, 4096)


def _our_rows() -> Call:
    import penstock.torch as pt

    loader = pt.DataLoader(pt.Rows(_values()).map(same), BATCH, num_workers=WORKERS, workers="processes")
    return lambda: drain(loader)


def identity_line() -> Line:
    return Line(
        name="rows of 16 KB in memory, an identity function: the way through a process",
        unit="samples/s",
        work=SAMPLES,
        ours=Program(_our_rows, ("torch", "penstock.torch")),
        peers={
            **_torch_peers(lambda: Rows(_values()), (1, WORKERS)),
            **_grain_peers(lambda: Rows(_values().numpy()), (WORKERS,)),
        },
        goal_peer=5,
        goal=100_000,
    )


def _folder_to_folder(folder: Path, out: Path, augment: Callable) -> Call:
    import penstock

    return lambda: penstock.map_files(augment, folder, out, num_workers=WORKERS)


def _make_one(path: Path, out: Path, augment: Callable) -> None:
    np.save(out / path.name, augment(np.load(path)))


def _pool(folder: Path, out: Path, augment: Callable) -> Call:
    from multiprocessing import Pool

    def run() -> None:
        out.mkdir()
        with Pool(WORKERS) as pool:
            pool.map(partial(_make_one, out=out, augment=augment), sorted(folder.iterdir()), chunksize=64)

    return run


def folder_line(root: Path, microseconds: int) -> Line:
    folder, out, augment = corpus.small_npy(root), root / "mapped", Augment(microseconds)
    most = WORKERS * 1_000_000 // microseconds
    return Line(
        name=f"10,000 .npy of 16 KB to as many new ones, a function in Python of {microseconds:,} us each",
        unit="files/s",
        work=corpus.SMALL_FILES,
        ours=Program(partial(_folder_to_folder, folder, out, augment), ("penstock", "numpy")),
        peers={"multiprocessing.Pool": Program(partial(_pool, folder, out, augment), ("numpy",))},
        goal=0.9 * most,
        prepare=partial(shutil.rmtree, out, ignore_errors=True),
        notes=[f"{WORKERS} processors and no reading: {most:,} files/s"],
    )


def lines(root: Path) -> list[Line]:
    return [
        augmented_line(root, 200, 1.5),
        augmented_line(root, 20, 4),
        identity_line(),
        folder_line(root, 1000),
    ]
