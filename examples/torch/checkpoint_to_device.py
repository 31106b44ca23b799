"""A checkpoint to the device of one's choice, whatever it was saved from."""

import torch

import penstock.torch as pt

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def before(folder):
    return torch.load(folder / "model.pt", map_location=DEVICE, weights_only=True)


def after(folder):
    return pt.load(folder / "model.pt", map_location=DEVICE)


if __name__ == "__main__":
    from _show import run

    run(before, after)
