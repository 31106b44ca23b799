"""Training from a bucket: each sample is an object of its own.

    export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...     # or a profile, or the machine's role
    export AWS_ENDPOINT_URL=https://store.example.org          # a store that is not Amazon's
    python train.py 's3://bucket/train/*.pt'

The pattern is listed once. Nothing is copied to a disk: the loader keeps many requests in flight, so that a batch does
not wait for the slowest one, and what it reads goes into the batch's memory. The samples are dicts of `x`, numbers, and
`y`, the class.
"""

from __future__ import annotations

import argparse

import torch

import penstock
import penstock.torch as pt


def train(pattern: str, epochs: int) -> None:
    samples = penstock.files(pattern)
    loader = pt.DataLoader(
        pt.Dataset(samples), batch_size=32, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(7)
    )
    first = pt.load(samples.paths[0])
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(first["x"].numel(), 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        losses = []
        for batch in loader:
            loss = torch.nn.functional.cross_entropy(model(batch["x"].flatten(1)), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {len(samples)} samples, loss {sum(losses) / len(losses):.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", help="the samples: s3://bucket/train/*.pt")
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    train(given.pattern, given.epochs)


if __name__ == "__main__":
    main()
