"""Batches by length over a folder of loose files: time to the first batch, and what is padding.

    bench/lengths.py [--files 100000] [--folder FOLDER]

Beside Penstock's `length_buckets` stands what a program writes with torch alone: load every file for its length, sort,
cut into batches, load those. Both make the same batches; the files are in the page cache.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

import penstock

TOKENS = 16_384


def write(folder: Path, count: int) -> None:
    """Sequences of int32 whose lengths are those of sentences and pages: most are short, and some very long."""
    rng = random.Random(0)
    for i in range(count):
        length = min(int(rng.lognormvariate(math.log(200), 0.8)) + 1, TOKENS)
        np.save(folder / f"{i:06}.npy", np.zeros(length, "i4"))


class Loaded(torch.utils.data.Dataset):
    """Samples as torch programs have them."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.load(self.paths[index]))


def batches_of(lengths: list[int]) -> list[list[int]]:
    """Sorted by length, as many in a batch as it has room for, shuffled."""
    out: list[list[int]] = [[]]
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if (len(out[-1]) + 1) * max(lengths[index], 1) > TOKENS:
            out.append([])
        out[-1].append(index)
    random.Random(0).shuffle(out)
    return out


def by_torch(folder: Path) -> tuple[float, list[int]]:
    start = time.perf_counter()
    dataset = Loaded(sorted(folder.iterdir()))
    lengths = [len(dataset[i]) for i in range(len(dataset))]
    collate = lambda samples: pad_sequence(samples, batch_first=True)  # noqa: E731
    next(iter(torch.utils.data.DataLoader(dataset, batch_sampler=batches_of(lengths), collate_fn=collate)))
    return time.perf_counter() - start, lengths


def by_penstock(folder: Path) -> float:
    start = time.perf_counter()
    dataset = penstock.files(folder)
    sampler = penstock.length_buckets(dataset, max_tokens=TOKENS)
    next(iter(penstock.DataLoader(dataset, batch_sampler=sampler, collate=penstock.pad())))
    return time.perf_counter() - start


def padded(batches: list[list[int]], lengths: list[int]) -> float:
    """Elements of padded batches for each element of the samples."""
    return sum(len(batch) * max(lengths[i] for i in batch) for batch in batches) / sum(lengths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the files are made; by default the temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write(folder, options.files)
        rounds = [(by_penstock(folder), by_torch(folder)) for _ in range(3)]
        lengths = rounds[0][1][1]
        ours, theirs = sorted(ours for ours, _ in rounds)[1], sorted(peer for _, (peer, _) in rounds)[1]
        sampler = penstock.length_buckets(lengths, max_tokens=TOKENS)
        size = len(lengths) // len(sampler)
        shuffled = random.Random(0).sample(range(len(lengths)), len(lengths))
        plain = [shuffled[i : i + size] for i in range(0, len(shuffled), size)]
        rows = len(penstock.pack_sequences(penstock.files(folder), TOKENS))
    print(f"{options.files} files: the first batch after {ours:.3f} s, by loading in torch after {theirs:.3f} s")
    print(f"{theirs / ours:.1f} times as soon")
    print(f"elements of batches for each of the samples: {padded(sampler.batches(), lengths):.3f} by length,")
    print(f"{padded(plain, lengths):.3f} shuffled, {rows * TOKENS / sum(lengths):.3f} packed")


if __name__ == "__main__":
    main()
