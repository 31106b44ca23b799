"""Shuffled rows of one large array with labels."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import corpus
from line import WORKERS, Call, Floor, Line, Program, drain

BATCH = 256


class TorchRows:
    def __init__(self, images: Path, labels: Path):
        import numpy as np

        self.images, self.labels = np.load(images, mmap_mode="r"), np.load(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int):
        import torch

        return torch.from_numpy(self.images[index].copy()), self.labels[index]


def _ours(images: Path, labels: Path) -> Call:
    import penstock

    both = penstock.zip(penstock.rows(images), penstock.rows(labels))
    return lambda: drain(penstock.DataLoader(both, batch_size=BATCH, shuffle=True, num_workers=WORKERS))


def _torch(images: Path, labels: Path, workers: int) -> Call:
    from torch.utils.data import DataLoader

    data = TorchRows(images, labels)
    return lambda: drain(DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers))


def _tensor_indexing(images: Path, labels: Path) -> Call:
    import numpy as np
    import torch

    x, y = torch.from_numpy(np.load(images)), torch.from_numpy(np.load(labels))

    def run() -> None:
        order = torch.randperm(len(y))
        for first in range(0, len(y), BATCH):
            chosen = order[first : first + BATCH]
            _ = x[chosen], y[chosen]

    return run


def lines(root: Path) -> list[Line]:
    images, labels = corpus.rows(root)

    def line(versus: str, peers: dict[str, Program], goal: float) -> Line:
        return Line(
            name=f"rows of 3 KB with labels, batches of 256, beside {versus}",
            unit="rows/s",
            work=corpus.ROWS,
            ours=Program(partial(_ours, images, labels), ("penstock",)),
            peers=peers,
            floor=Floor(["rows", str(WORKERS), str(images), str(labels)]),
            goal_peer=goal,
            goal_floor=0.8,
        )

    loaders = {
        f"torch DataLoader, {workers} workers": Program(partial(_torch, images, labels, workers), ("torch",))
        for workers in (0, 2)
    }
    indexing = Program(partial(_tensor_indexing, images, labels), ("torch", "numpy"))
    return [line("a loader", loaders, 25), line("indexing in memory", {"tensor indexing": indexing}, 5)]
