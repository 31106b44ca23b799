"""Training that may lose a process and go on with another number of them.

    torchrun --standalone --nproc-per-node 4 train.py checkpoints    # until it ends, or somebody kills it
    torchrun --standalone --nproc-per-node 2 train.py checkpoints    # goes on, with half of the processes

All processes together take GLOBAL_BATCH samples in a step. So a step sees the same samples with any number of
processes, and each checkpoint can be continued by any number that divides it. The checkpoint also counts how often each
sample was seen. At the end of an epoch that has to be once, also where processes were killed in between.

The model is small and its gradients are averaged by hand, because this is about the data. A real program has its model
in DistributedDataParallel, and an optimizer whose state goes into the checkpoint too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.distributed as dist

import penstock
import penstock.torch as pt

SAMPLES = 997  # which no number of processes divides
GLOBAL_BATCH = 24


def dataset() -> penstock.Dataset:
    x = penstock.rand(SAMPLES, 8, generator=penstock.Generator(1))
    return penstock.zip(x=penstock.rows(x), index=penstock.rows(list(range(SAMPLES))))


def train(folder: Path, epochs: int) -> None:
    ranks = penstock.ranks()
    if GLOBAL_BATCH % ranks.size:
        raise SystemExit(f"{ranks.size} processes do not divide a step of {GLOBAL_BATCH} samples")
    loader = pt.DataLoader(
        dataset(), batch_size=GLOBAL_BATCH // ranks.size, shuffle=True, num_workers=1, ranks=ranks, remainder="exact"
    )
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    seen, epoch = torch.zeros(SAMPLES, dtype=torch.int64), 0

    checkpoint = folder / "checkpoint.pt"
    if checkpoint.exists():
        state = pt.load(checkpoint)
        model.load_state_dict(state["model"])
        loader.load_state_dict(state["loader"])
        seen, epoch = state["seen"], state["epoch"]
        if ranks.rank == 0:
            print(f"goes on in epoch {epoch}, {int(seen.sum())} samples in, with {ranks}", flush=True)

    while epoch < epochs:
        for batch, valid in loader:
            # Samples that are repeated to give all processes as many have a weight of 0.
            weight = valid / GLOBAL_BATCH
            loss = ((model(batch["x"]).squeeze(1) - batch["x"].sum(1)) ** 2 * weight).sum()
            slopes = torch.autograd.grad(loss, [*model.parameters()])
            for parameter, slope in zip(model.parameters(), slopes, strict=True):
                dist.all_reduce(slope)
                parameter.data -= 0.1 * slope
            now = torch.bincount(batch["index"][valid], minlength=SAMPLES)
            dist.all_reduce(now)
            seen += now
            if ranks.rank == 0:
                print(f"epoch {epoch}, {int(seen.sum())} samples: loss {loss.item():.4f}", flush=True)
                # Whole or not at all, so that a process may be killed here too. One loader's state is that of all.
                parts = {"model": model.state_dict(), "loader": loader.state_dict(), "seen": seen, "epoch": epoch}
                pt.save(parts, checkpoint)
        assert bool((seen == 1).all()), "a sample was lost, or came twice"
        if ranks.rank == 0:
            print(f"epoch {epoch}: each of {SAMPLES} samples once", flush=True)
        seen.zero_()
        epoch += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    dist.init_process_group("gloo")
    train(given.folder, given.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
