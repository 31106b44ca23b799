"""Windows of a long array of tokens and the same shifted by one, shuffled, as language models take them: rates, and
what a shuffled order takes in memory."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path

import corpus
from line import WORKERS, Call, Floor, Line, Program, drain

LENGTH = 1024
BATCH = 64
BATCHES = 3_000  # of the shuffled order; an epoch has 15,258
SAMPLES = BATCH * BATCHES


def _ours(tokens: Path) -> Call:
    import penstock

    data = penstock.rows(tokens).windows(LENGTH, shift=1).cast("int64")
    loader = penstock.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=WORKERS)
    return lambda: drain(islice(loader, BATCHES))


def _ours_joined(tokens: Path, lengths: Path) -> Call:
    import numpy as np

    import penstock

    documents = penstock.rows(tokens).slices(lengths=np.load(lengths))
    data = documents.windows(LENGTH, shift=1, join="shuffled").cast("int64")
    loader = penstock.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=WORKERS)
    return lambda: drain(islice(loader, BATCHES))


def _our_order(tokens: Path) -> Call:
    import penstock

    data = penstock.rows(tokens).windows(LENGTH, shift=1)
    return lambda: list(islice(penstock.RandomSampler(data, compact=True), BATCH))


def _megatrons_indices(*indices: Path) -> Call:
    import numpy as np

    return lambda: [np.load(path) for path in indices]


def _get_batch(tokens: Path) -> Call:
    """nanoGPT's get_batch, of places that are drawn with replacement."""
    import numpy as np
    import torch

    def get_batch() -> tuple:
        data = np.load(tokens, mmap_mode="r")  # anew for each batch, as nanoGPT does against a leak
        ix = torch.randint(len(data) - LENGTH, (BATCH,))
        x = torch.stack([torch.from_numpy((data[i : i + LENGTH]).astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + LENGTH]).astype(np.int64)) for i in ix])
        return x, y

    return lambda: drain(get_batch() for _ in range(BATCHES))


class Windows:
    """A Dataset of torch over np.memmap."""

    def __init__(self, tokens: Path):
        import numpy as np

        self.data = np.load(tokens, mmap_mode="r")

    def __len__(self) -> int:
        return (len(self.data) - 1) // LENGTH

    def __getitem__(self, index: int):
        import numpy as np
        import torch

        first = index * LENGTH
        window = torch.from_numpy(self.data[first : first + LENGTH + 1].astype(np.int64))
        return window[:-1], window[1:]


def megatron_indices(root: Path) -> tuple[Path, Path, Path]:
    """Megatron's three indices, by its description: the order of documents, the document and the token with which each
    sample begins in it, and the order of samples. Made once and kept, as there."""
    paths = tuple(root / f"megatron_{name}.npy" for name in ("documents", "samples", "shuffled"))
    if not paths[-1].exists():
        import numpy as np

        lengths, rng = np.load(corpus.documents(root)), np.random.RandomState(1)
        documents = np.arange(len(lengths), dtype=np.int32)
        rng.shuffle(documents)
        ends = np.cumsum(lengths[documents])
        begins = np.arange((int(ends[-1]) - 1) // LENGTH + 1, dtype=np.int64) * LENGTH
        at = np.searchsorted(ends, begins, side="right")
        offsets = begins - (ends - lengths[documents])[at]
        shuffled = np.arange(len(begins) - 1, dtype=np.uint32)
        rng.shuffle(shuffled)
        for path, array in zip(
            paths, (documents, np.stack([at, offsets], axis=1).astype(np.int32), shuffled), strict=True
        ):
            np.save(path, array)
    return paths


class MegatronOrder:
    """Megatron's samples, each put together of parts of documents."""

    def __init__(self, tokens: Path, lengths: Path, *indices: Path):
        import numpy as np

        self.data, self.lengths = np.load(tokens, mmap_mode="r"), np.load(lengths)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.documents, self.samples, self.shuffled = (np.load(path) for path in indices)

    def __len__(self) -> int:
        return len(self.shuffled)

    def __getitem__(self, index: int):
        import numpy as np
        import torch

        sample = self.shuffled[index]
        (first, begin), (last, end) = self.samples[sample], self.samples[sample + 1]
        parts = []
        for place in range(first, last + 1):
            document = self.documents[place]
            start = self.starts[document]
            stop = start + (end + 1 if place == last else self.lengths[document])
            parts.append(self.data[start + (begin if place == first else 0) : stop])
        text = torch.from_numpy(np.concatenate(parts).astype(np.int64))
        return text[:-1], text[1:]


def _loader(make: type, files: tuple[Path, ...], workers: int) -> Call:
    from torch.utils.data import DataLoader

    loader = DataLoader(make(*files), batch_size=BATCH, shuffle=make is Windows, num_workers=workers)
    return lambda: drain(islice(loader, BATCHES))


def _peers(tokens: Path, lengths: Path, indices: tuple[Path, ...]) -> dict[str, Program]:
    imports = ("torch", "numpy")
    memmaps = {
        f"torch Dataset over np.memmap, {workers} workers": Program(
            partial(_loader, Windows, (tokens,), workers), imports
        )
        for workers in (0, WORKERS)
    }
    order = Program(partial(_loader, MegatronOrder, (tokens, lengths, *indices), WORKERS), imports)
    return {
        "nanoGPT's get_batch": Program(partial(_get_batch, tokens), imports),
        **memmaps,
        f"Megatron's order, {WORKERS} workers": order,
    }


def lines(root: Path) -> list[Line]:
    tokens, lengths, indices = corpus.tokens(root), corpus.documents(root), megatron_indices(root)
    peers = _peers(tokens, lengths, indices)
    floor = Floor(["windows", str(WORKERS), str(tokens), str(LENGTH), str(SAMPLES)])
    return [
        Line(
            name="windows of 1,025 tokens out of 10^9, x and y int64, batches of 64",
            unit="windows/s",
            work=SAMPLES,
            ours=Program(partial(_ours, tokens), ("penstock",)),
            peers=peers,
            floor=floor,
            goal_peer=5,
            goal_floor=0.8,
        ),
        Line(
            name="the same of a million documents, joined in a shuffled order",
            unit="windows/s",
            work=SAMPLES,
            ours=Program(partial(_ours_joined, tokens, lengths), ("penstock", "numpy")),
            peers=peers,
            floor=floor,
            goal_peer=5,
        ),
        Line(
            name="memory of a shuffled order of these windows",
            unit="MB",
            kind="memory",
            fresh=True,
            ours=Program(partial(_our_order, tokens), ("penstock",)),
            peers={"Megatron's three indices": Program(partial(_megatrons_indices, *indices), ("numpy",))},
            goal_peer=10,
        ),
    ]
