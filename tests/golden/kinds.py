"""Loaders of each kind whose states releases promise to read, over the files that `write_files` makes.

Run in the folder of those files: states name the datasets by their paths, which here are short. A kind of a release
stays as it is, because states of that release belong to it; a new kind gets a name of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import penstock as ps
import penstock.torch as pt

ROWS = 24


def write_files(folder: Path) -> None:
    """What kinds read: an array, files of unlike lengths, packed samples of each form, tar shards with their index."""
    ps.save(ps.arange(ROWS), folder / "numbers.npy")
    (folder / "clips").mkdir()
    for number in range(12):
        ps.save(ps.full((1 + number % 4,), number), folder / f"clips/{number:02}.npy")
    (folder / "packed").mkdir()
    for name, samples in FORMS.items():
        ps.pack(ps.dataset(samples), folder / "packed" / name, shard_bytes=32)
    ps.pack(ps.dataset(TAR_SAMPLES), folder / "shards", shard_bytes=8192, format="tar")
    len(ps.shards(str(folder / "shards/*.tar"), index=str(folder / "shards.index")))
    len(ps.files(str(folder / "clips/*.npy"), index=str(folder / "clips.index")))


# Samples of each form that packed shards have (docs/formats/packed.md): one tensor, of one shape or of several;
# numbers; and dicts, lists and tuples, one in another.
FORMS: dict[str, list[Any]] = {
    "tensors": [ps.full((3,), number) for number in range(5)],
    "lengths": [ps.full((1 + number % 3, 2), number) for number in range(5)],
    "numbers": [{"whole": number, "part": number / 4, "yes": number % 2 == 0} for number in range(5)],
    "nested": [
        {"x": ps.full((2,), number), "more": [ps.full((1 + number % 2,), number), (number, {"y": ps.full((), number)})]}
        for number in range(5)
    ],
    "halves": [{"a.b": ps.full((2,), number, dtype="bfloat16")} for number in range(3)],
}
TAR_SAMPLES = [
    {"__key__": f"{number:03}", "x.npy": ps.full((2,), number), "cls": number, "txt": "é" * number}
    for number in range(7)
]


def rows() -> ps.Dataset:
    return ps.rows("numbers.npy")


def numbers() -> Iterator[int]:
    yield from range(ROWS)


class Squares(torch.utils.data.Dataset):
    """Code of a program's own, which torch's way reads."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index * index)


OURS: dict[str, Callable[[], Any]] = {
    "rows in order": lambda: ps.DataLoader(rows(), batch_size=4),
    "rows shuffled": lambda: ps.DataLoader(rows(), batch_size=4, shuffle=True, seed=3),
    "rows shuffled, short batch dropped": lambda: ps.DataLoader(
        rows(), batch_size=5, shuffle=True, seed=3, drop_last=True
    ),
    "subset": lambda: ps.DataLoader(rows(), batch_size=3, sampler=ps.SubsetSampler(range(0, 24, 2), shuffle=True)),
    "weighted": lambda: ps.DataLoader(rows(), batch_size=4, sampler=ps.WeightedSampler([1, 2, 3] * 8, 24), seed=5),
    "with replacement": lambda: ps.DataLoader(rows(), batch_size=4, sampler=ps.RandomSampler(ROWS, replacement=True)),
    "batches by length": lambda: ps.DataLoader(
        ps.files("clips/*.npy"),
        batch_sampler=ps.length_buckets(ps.files("clips/*.npy"), [2, 4], batch_size=2),
        collate=ps.pad(),
    ),
    "batch sampler": lambda: ps.DataLoader(rows(), batch_sampler=ps.BatchSampler(ps.RandomSampler(ROWS), 4)),
    "rank 1 of 2": lambda: ps.DataLoader(rows(), batch_size=3, shuffle=True, ranks=(1, 2)),
    "distributed sampler": lambda: ps.DataLoader(rows(), batch_size=3, sampler=ps.DistributedSampler(ROWS, 2, 0)),
    "files": lambda: ps.DataLoader(ps.files("clips/*.npy"), batch_size=3, shuffle=True, collate=ps.pad()),
    "packed": lambda: ps.DataLoader(ps.packed("packed/tensors"), batch_size=2, shuffle=True),
    "tar shards": lambda: ps.DataLoader(ps.shards("shards/*.tar", keys="x.npy"), batch_size=2, shuffle=True),
    "stream": lambda: ps.DataLoader(ps.stream(numbers), batch_size=4),
    "stream shuffled": lambda: ps.DataLoader(ps.stream(numbers).shuffle(8, seed=2), batch_size=4),
    "stream of tar shards": lambda: ps.DataLoader(ps.stream(ps.shards("shards/*.tar", keys="x.npy")), batch_size=2),
}

TORCHS: dict[str, Callable[[], Any]] = {
    "torch rows in order": lambda: pt.DataLoader(pt.Rows("numbers.npy"), batch_size=4),
    "torch rows shuffled": lambda: pt.DataLoader(pt.Rows("numbers.npy"), batch_size=4, shuffle=True, num_workers=2),
    "torch generator": lambda: pt.DataLoader(
        pt.Rows("numbers.npy"), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(9)
    ),
    "torch distributed": lambda: pt.DataLoader(
        pt.Rows("numbers.npy"),
        batch_size=3,
        sampler=torch.utils.data.DistributedSampler(range(ROWS), num_replicas=2, rank=1, seed=4),
    ),
    "torch batch sampler": lambda: pt.DataLoader(
        pt.Rows("numbers.npy"),
        batch_sampler=torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(ROWS)), 4, False),
    ),
    "torch rank 0 of 2": lambda: pt.DataLoader(pt.Rows("numbers.npy"), batch_size=3, shuffle=True, ranks=(0, 2)),
    "torch files": lambda: pt.DataLoader(pt.Files("clips/*.npy"), batch_size=3, shuffle=True, collate_fn=ps.pad()),
    "torch shards": lambda: pt.DataLoader(pt.Shards("shards/*.tar", keys="x.npy"), batch_size=2),
    "torch stream": lambda: pt.DataLoader(pt.Stream(range(ROWS)), batch_size=4),
    "torch own dataset": lambda: pt.DataLoader(Squares(), batch_size=4, shuffle=True),
}

KINDS = OURS | TORCHS


def plain(value: Any) -> Any:
    """A sample or batch as lists, texts and numbers, which JSON keeps."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def rest_of(loader: Any) -> list[Any]:
    return [plain(batch) for batch in loader]


def state_and_rest(kind: str) -> dict[str, Any]:
    """Where the loader stands behind its first two batches, and the batches that follow."""
    torch.manual_seed(7)
    loader = KINDS[kind]()
    batches = iter(loader)
    list(itertools.islice(batches, 2))
    return {"state": loader.state_dict(), "rest": [plain(batch) for batch in batches]}
