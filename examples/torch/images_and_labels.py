"""Batches of images and labels from two large arrays."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import penstock.torch as pt


def before(folder):
    images = torch.from_numpy(np.load(folder / "images.npy"))
    labels = torch.from_numpy(np.load(folder / "labels.npy"))
    generator = torch.Generator().manual_seed(1)
    return list(DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True, generator=generator))


def after(folder):
    pairs = pt.Rows(folder / "images.npy", folder / "labels.npy")  # mapped, not read
    generator = torch.Generator().manual_seed(1)
    return list(pt.DataLoader(pairs, batch_size=32, shuffle=True, generator=generator))


if __name__ == "__main__":
    from _show import run

    run(before, after)
