"""Tensors of different length, padded with zeros or cut to 1024."""

import torch
from torch.utils.data import DataLoader, Dataset

import penstock.torch as pt

LENGTH = 1024


class Clips(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.pt"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.load(self.paths[index], weights_only=True)


def pad(samples):
    out = samples[0].new_zeros(len(samples), LENGTH, *samples[0].shape[1:])
    for row, sample in zip(out, samples, strict=True):
        row[: len(sample)] = sample[:LENGTH]
    return out


def before(folder):
    return list(DataLoader(Clips(folder / "clips"), batch_size=8, collate_fn=pad))


def after(folder):
    return list(pt.DataLoader(pt.Files(folder / "clips"), batch_size=8, collate_fn=pt.pad_to(LENGTH)))


if __name__ == "__main__":
    from _show import run

    run(before, after)
