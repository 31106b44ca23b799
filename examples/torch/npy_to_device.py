"""An array in an .npy, as a tensor on the device that is there."""

import numpy as np
import torch

import penstock.torch as pt

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def before(folder):
    return torch.from_numpy(np.load(folder / "images.npy")).to(DEVICE)


def after(folder):
    return pt.load(folder / "images.npy", map_location=DEVICE)


if __name__ == "__main__":
    from _show import run

    run(before, after)
