"""One case through torch's loader and through ours, over the same content."""

from __future__ import annotations

import numpy as np
import torch
import torch.utils.data as td
from loader_folder import same

import penstock.torch as pt

COUNT = 11


class Loaded(td.Dataset):
    """Each file a sample, as a user of torch writes it."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.load(self.paths[index], weights_only=False)


def files(folder, samples):
    """The same files as torch's users read them and as ours."""
    paths = [folder / f"{i:03d}.pt" for i in range(len(samples))]
    for path, sample in zip(paths, samples, strict=True):
        torch.save(sample, path)
    return Loaded(paths), pt.Files(paths)


def rows(folder, count=COUNT):
    """The numbers from 0, each a sample."""
    np.save(folder / "rows.npy", np.arange(count))
    return torch.arange(count), pt.Rows(folder / "rows.npy")


def outcome(case):
    """What a case gives, or the error that it ends with."""
    try:
        return "gave", case()
    except Exception as error:
        return "raised", error


def alike(case, datasets, their_options=(), **options):
    """`case(loader)` gives the same for both, or raises errors of one kind; what ours gave, or its error.

    `options` are of both loaders; `their_options` go over them for torch's, to spare it processes where they change
    nothing.
    """
    theirs = outcome(lambda: case(td.DataLoader(datasets[0], **{**options, **dict(their_options)})))
    ours = outcome(lambda: case(pt.DataLoader(datasets[1], **options)))
    assert ours[0] == theirs[0], (ours, theirs)
    if ours[0] == "raised":
        assert isinstance(ours[1], type(theirs[1])), (ours, theirs)
    else:
        same(ours[1], theirs[1])
    return ours[1]
