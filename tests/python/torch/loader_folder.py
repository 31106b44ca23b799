"""A folder of samples through torch's loader and through ours."""

from __future__ import annotations

import torch
import torch.utils.data as td

import penstock.torch as pt

COUNT = 53


class Files(td.Dataset):
    """The dataset that a user of torch writes."""

    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return torch.load(self.folder / f"{range(COUNT)[index]:03d}.pt")


def same(a, b):
    """Equal in structure, types, dtypes and every bit."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


def both(folder, make, *, epochs=2, seed=7):
    """The batches of each loader and torch's random state behind them; `make(loader class, dataset)`."""
    out = []
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        torch.manual_seed(seed)
        loader = make(loader_class, dataset)
        batches = [batch for _ in range(epochs) for batch in loader]
        out.append((batches, torch.get_rng_state(), loader))
    return out


def compare(folder, make, **options):
    (theirs, their_state, their_loader), (ours, our_state, our_loader) = both(folder, make, **options)
    assert our_loader.native is not None
    assert len(ours) == len(theirs) > 0
    same(ours, theirs)
    assert torch.equal(their_state, our_state)
    if hasattr(their_loader.sampler, "__len__"):
        assert len(their_loader) == len(our_loader)


def summed(samples):
    return {
        "n": len(samples),
        "x": torch.stack([s["x"] for s in samples]).sum(0),
        "names": [s["name"] for s in samples],
    }
