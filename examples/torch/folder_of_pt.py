"""A folder of .pt files, one sample each, read lazily by several workers."""

from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

import penstock.torch as pt


class Samples(Dataset):
    def __init__(self, folder: Path):
        self.paths = sorted(folder.glob("*.pt"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.load(self.paths[index], weights_only=True)


def before(folder):
    torch.manual_seed(2)
    return list(DataLoader(Samples(folder / "digits"), batch_size=8, shuffle=True, num_workers=2))


def after(folder):
    torch.manual_seed(2)
    return list(pt.DataLoader(pt.Files(folder / "digits"), batch_size=8, shuffle=True, num_workers=2))


if __name__ == "__main__":
    from _show import run

    run(before, after)
