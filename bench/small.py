"""Folders of 10,000 small files, shuffled, in batches of 32."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import corpus
from line import PEER_PYTHON, WORKERS, Call, Floor, Line, Program, drain, shuffled, write_listing

BATCH = 32


class TorchFiles:
    """One file a sample, as the guides to PyTorch write it; a map-style dataset needs no base class."""

    def __init__(self, paths: list[Path], read: Callable[[Path], object]):
        self.paths, self.read = paths, read

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        return self.read(self.paths[index])


def load_pt(path: Path):
    import torch

    return torch.load(path, weights_only=True)


def load_npy(path: Path):
    import numpy as np
    import torch

    return torch.from_numpy(np.load(path))


def pad_collate(batch: list):
    import torch

    return torch.nn.utils.rnn.pad_sequence(batch, batch_first=True)


def _ours(folder: Path, padded: bool) -> Call:
    import penstock

    dataset = penstock.files(folder)
    collate = penstock.pad() if padded else None
    options = {"batch_size": BATCH, "shuffle": True, "num_workers": WORKERS, "collate": collate}
    return lambda: drain(penstock.DataLoader(dataset, **options))


def _torch(folder: Path, read: Callable, workers: int, collate: Callable | None) -> Call:
    from torch.utils.data import DataLoader

    data = TorchFiles(sorted(folder.iterdir()), read)
    options = {"batch_size": BATCH, "shuffle": True, "num_workers": workers, "collate_fn": collate}
    return lambda: drain(DataLoader(data, **options))


def spdl_epochs(items: list, batch: int, batch_of: Callable[[list], object]) -> Call:
    """Shuffled epochs of SPDL, whose threads make batches of lists of items."""
    from spdl.pipeline import PipelineBuilder

    # A stage that reads whole batches is several times as fast here as one that reads files, with a queue behind it.
    def run() -> None:
        pipeline = (
            PipelineBuilder()
            .add_source(items[i] for i in shuffled(len(items)))
            .aggregate(batch)
            .pipe(batch_of, concurrency=WORKERS)
            .add_sink(2 * WORKERS)
            .build(num_threads=WORKERS)
        )
        with pipeline.auto_stop():
            drain(pipeline)

    return run


def _spdl(folder: Path, read: Callable, collate: Callable | None) -> Call:
    from torch.utils.data import default_collate

    make = collate or default_collate
    return spdl_epochs(sorted(folder.iterdir()), BATCH, lambda chosen: make([read(path) for path in chosen]))


def file_line(root: Path, name: str, folder: Path, goals: tuple[float, float], read: Callable, padded: bool) -> Line:
    collate = pad_collate if padded else None
    peers = {
        f"torch DataLoader, {workers} workers": Program(partial(_torch, folder, read, workers, collate), ("torch",))
        for workers in (0, 1, 2)
    }
    peers["SPDL, 2 threads"] = Program(partial(_spdl, folder, read, collate), ("torch",), PEER_PYTHON)
    return Line(
        name=name,
        unit="files/s",
        work=corpus.SMALL_FILES,
        ours=Program(partial(_ours, folder, padded), ("penstock",)),
        peers=peers,
        floor=Floor(["files", write_listing(root, folder), str(WORKERS)]),
        goal_peer=goals[0],
        goal_floor=goals[1],
    )


def _torch_files(folder: Path, by_torch: bool) -> Call:
    import torch.utils.data as torch_data

    import penstock.torch as pt

    dataset, kind = pt.Files(folder), torch_data.DataLoader if by_torch else pt.DataLoader
    return lambda: drain(kind(dataset, batch_size=BATCH, shuffle=True))


def driven_line(folder: Path) -> Line:
    """What is left when others make torch's own loader of ours, as accelerate and transformers do."""
    imports = ("torch", "penstock.torch")
    return Line(
        name="10,000 .pt of 16 KB, pt.Files in torch's own loader",
        unit="files/s",
        work=corpus.SMALL_FILES,
        ours=Program(partial(_torch_files, folder, True), imports),
        peers={"penstock.torch.DataLoader": Program(partial(_torch_files, folder, False), imports)},
        goal_peer=0.5,
    )


def lines(root: Path) -> list[Line]:
    return [
        file_line(root, "10,000 .pt of 16 KB", corpus.small_pt(root), (30, 0.7), load_pt, False),
        file_line(root, "10,000 .pt, dict of tensor and scalar", corpus.small_dict(root), (30, 0.6), load_pt, False),
        file_line(root, "10,000 .pt of 100 to 400 rows, padded", corpus.small_ragged(root), (25, 0.6), load_pt, True),
        file_line(root, "10,000 .npy of 16 KB", corpus.small_npy(root), (15, 0.7), load_npy, False),
        driven_line(corpus.small_pt(root)),
    ]
