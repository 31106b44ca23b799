"""What is measured: each line reads the same files with Penstock, with its peers and with a bare C loop (the floor)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import corpus
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import penstock

WORKERS = 2
torch.set_num_threads(WORKERS)


@dataclass
class Line:
    """`work` samples are processed by each call; `peers` are tried in turn and the best one counts."""

    name: str
    unit: str
    work: float
    penstock: Callable[[], object]
    peers: dict[str, Callable[[], object]]
    floor: list[str]
    #: The key of the floor program's answer that is in this line's unit, and what one unit is.
    floor_key: str = "samples_per_second"
    scale: float = 1.0
    goal_peer: float = 1.0
    goal_floor: float = 0.0
    notes: list[str] = field(default_factory=list)


class TorchFiles(Dataset):
    """One file a sample, as the guides to PyTorch write it."""

    def __init__(self, paths: list[Path], read: Callable[[Path], object]):
        self.paths, self.read = paths, read

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        return self.read(self.paths[index])


class TorchRows(Dataset):
    def __init__(self, images: Path, labels: Path):
        self.images, self.labels = np.load(images, mmap_mode="r"), np.load(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int):
        return torch.from_numpy(self.images[index].copy()), self.labels[index]


def _load_pt(path: Path):
    return torch.load(path, weights_only=True)


def _load_npy(path: Path):
    return torch.from_numpy(np.load(path))


def _pad_collate(batch: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(batch, batch_first=True)


def _drain(loader: Iterable) -> None:
    for _ in loader:
        pass


def _file_line(
    root: Path, name: str, folder: Path, goals: tuple[float, float], read, torch_collate=None, **ours
) -> Line:
    paths = sorted(folder.iterdir())
    listing = root / f"{folder.name}.txt"
    order = torch.randperm(len(paths), generator=torch.Generator().manual_seed(1)).tolist()
    listing.write_text("".join(f"{paths[i]}\n" for i in order))

    def peer(workers: int) -> Callable[[], object]:
        data = TorchFiles(paths, read)
        options = {"batch_size": 32, "shuffle": True, "num_workers": workers, "collate_fn": torch_collate}
        return lambda: _drain(DataLoader(data, **options))

    dataset = penstock.files(str(folder))
    options = {"batch_size": 32, "shuffle": True, "num_workers": WORKERS}
    return Line(
        name=name,
        unit="files/s",
        work=len(paths),
        penstock=lambda: _drain(penstock.DataLoader(dataset, **options, **ours)),
        peers={f"torch DataLoader, {w} workers": peer(w) for w in (0, 1, 2)},
        floor=["files", str(listing), str(WORKERS)],
        goal_peer=goals[0],
        goal_floor=goals[1],
    )


def _rows_line(root: Path) -> Line:
    images, labels = corpus.rows(root)
    both = penstock.zip(penstock.rows(images), penstock.rows(labels))
    options = {"batch_size": 256, "shuffle": True}
    in_memory = TensorDataset(torch.from_numpy(np.load(images)), torch.from_numpy(np.load(labels)))

    def tensor_indexing() -> None:
        x, y = in_memory.tensors
        order = torch.randperm(len(y))
        for first in range(0, len(y), 256):
            chosen = order[first : first + 256]
            _ = x[chosen], y[chosen]

    def peer(workers: int) -> Callable[[], object]:
        return lambda: _drain(DataLoader(TorchRows(images, labels), num_workers=workers, **options))

    return Line(
        name="rows of 3 KB with labels, batches of 256",
        unit="rows/s",
        work=len(in_memory),
        penstock=lambda: _drain(penstock.DataLoader(both, num_workers=WORKERS, **options)),
        peers={
            "torch DataLoader, 0 workers": peer(0),
            "torch DataLoader, 2 workers": peer(2),
            "tensor indexing": tensor_indexing,
        },
        floor=["rows", str(WORKERS), str(images), str(labels)],
        goal_peer=10,
        goal_floor=0.5,
        notes=["the goal of 10x is against torch's DataLoader over a mapped array"],
    )


def _state_lines(root: Path) -> list[Line]:
    from safetensors.torch import load_file

    pt, st = corpus.state(root)
    size = pt.stat().st_size / 1e9
    common = {"unit": "GB/s", "floor_key": "bytes_per_second", "scale": 1e9, "goal_peer": 1, "work": size}
    mapped = {
        "torch.load, mapped and cloned": lambda: {
            k: v.clone() for k, v in torch.load(pt, weights_only=True, mmap=True).items()
        }
    }
    return [
        Line(
            name="state dict of 2.2 GB, .pt",
            penstock=lambda: penstock.load(pt),
            peers={"torch.load": lambda: torch.load(pt, weights_only=True), **mapped},
            floor=["read", str(WORKERS), str(pt)],
            **common,
        ),
        Line(
            name="state dict of 2.2 GB, .safetensors",
            penstock=lambda: penstock.load(st),
            peers={
                "load_file and cloned": lambda: {k: v.clone() for k, v in load_file(st).items()},
            },
            floor=["read", str(WORKERS), str(st)],
            **common,
        ),
    ]


def all_lines(root: Path) -> list[Line]:
    small = [
        ("10,000 .pt of 16 KB", corpus.small_pt, _load_pt, {}, None),
        ("10,000 .pt, dict of tensor and scalar", corpus.small_dict, _load_pt, {}, None),
        (
            "10,000 .pt of 100 to 400 rows, padded",
            corpus.small_ragged,
            _load_pt,
            {"collate": penstock.pad()},
            _pad_collate,
        ),
        ("10,000 .npy of 16 KB", corpus.small_npy, _load_npy, {}, None),
    ]
    lines = [
        _file_line(root, name, make(root), (10, 0.4), read, torch_collate, **ours)
        for name, make, read, ours, torch_collate in small
    ]
    return [*lines, _rows_line(root), *_state_lines(root)]


def rate(line: Line, call: Callable[[], object]) -> float:
    """Units a second of one call."""
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    del result
    return line.work / seconds
