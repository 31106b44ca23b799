"""Weights in bfloat16 from a checkpoint in float32."""

import torch

import penstock.torch as pt


def make():
    return torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)).to(torch.bfloat16)


def before(folder):
    model = make()
    state = torch.load(folder / "weights.pt", weights_only=True)
    model.load_state_dict({name: value.to(torch.bfloat16) for name, value in state.items()})
    return model.state_dict()


def after(folder):
    model = make()
    pt.load_into(model, folder / "weights.pt")  # converted on the way
    return model.state_dict()


if __name__ == "__main__":
    from _show import run

    run(before, after)
