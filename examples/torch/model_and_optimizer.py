"""A module and its optimizer go on from a checkpoint, on the device that is there."""

import torch

import penstock.torch as pt

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def make():
    model = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)).to(DEVICE)
    return model, torch.optim.AdamW(model.parameters())


def before(folder):
    model, optimizer = make()
    model.load_state_dict(torch.load(folder / "weights.pt", map_location=DEVICE, weights_only=True))
    optimizer.load_state_dict(torch.load(folder / "optimizer.pt", map_location=DEVICE, weights_only=True))
    return model.state_dict(), optimizer.state_dict()


def after(folder):
    model, optimizer = make()
    pt.load_into(model, folder / "weights.pt")  # into the parameters' own memory
    optimizer.load_state_dict(pt.load(folder / "optimizer.pt", map_location=DEVICE))
    return model.state_dict(), optimizer.state_dict()


if __name__ == "__main__":
    from _show import run

    run(before, after)
