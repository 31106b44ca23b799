"""Training from tar shards, which may be stopped at any step and goes on exactly.

    python train.py 'train-{000..146}.tar' checkpoint.pt        # until it ends, or somebody stops it
    python train.py 'train-{000..146}.tar' checkpoint.pt        # goes on
    python train.py --write shards                              # writes shards of handwritten digits to try it with

A sample has an image as `npy` and its class as `cls`. The shards are read where they are: by paths, or by URLs
(`s3://bucket/train-{000..146}.tar`). One shuffle goes over all samples of all shards. The checkpoint has the loader's
place beside the model and the optimizer, so a run that was stopped ends with the same weights, bit by bit.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import penstock
import penstock.torch as pt

DIGITS = Path(__file__).resolve().parents[1] / "data" / "digits"
SHARD = 500  # samples


def write_shards(folder: Path) -> None:
    images, labels = pt.load(DIGITS / "images.npy"), pt.load(DIGITS / "labels.npy")
    folder.mkdir(parents=True)
    for number, first in enumerate(range(0, len(images), SHARD)):
        with penstock.Writer(folder / f"train-{number:03}.tar") as writer:
            for i in range(first, min(first + SHARD, len(images))):
                writer.add_sample({"__key__": f"{i:06}", "npy": images[i], "cls": int(labels[i])})


def train(shards: str, checkpoint: Path, epochs: int, steps: int | None) -> None:
    dataset = pt.Shards(shards, keys=["npy", "cls"])
    loader = pt.DataLoader(
        dataset, batch_size=32, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(7)
    )
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    epoch = 0
    if checkpoint.exists():
        state = pt.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        epoch = state["epoch"]
        print(f"goes on in epoch {epoch}", flush=True)

    done = 0
    while epoch < epochs:
        losses = []
        for x, y in map(dict.values, loader):
            loss = torch.nn.functional.cross_entropy(model(x / 16), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            done += 1
            if done == steps:  # in a real program every few minutes, and at a signal
                states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                pt.save({**states, "loader": loader.state_dict(), "epoch": epoch}, checkpoint)
                print(f"stopped in epoch {epoch}, at batch {len(losses)}", flush=True)
                return
        print(f"epoch {epoch}: {len(dataset)} samples, loss {sum(losses) / len(losses):.3f}", flush=True)
        epoch += 1
    pt.save(model.state_dict(), checkpoint.with_suffix(".trained.pt"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shards", nargs="?", help="a path, range, pattern or URL of shards")
    parser.add_argument("checkpoint", nargs="?", type=Path, default=Path("checkpoint.pt"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, help="stop after so many batches, with a checkpoint")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write shards of digits, and do no more")
    given = parser.parse_args()
    if given.write:
        write_shards(given.write)
    elif given.shards:
        train(given.shards, given.checkpoint, given.epochs, given.steps)
    else:
        parser.error("name the shards")


if __name__ == "__main__":
    main()
