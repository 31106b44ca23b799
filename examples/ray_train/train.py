"""Training in Ray Train that may lose a worker, and go on with another number of them.

    python train.py run --workers 2                    # until it ends; Ray starts workers that die again
    python train.py run --workers 2 --lose-a-worker 3  # a worker ends itself at step 3, to see what happens then
    python train.py run --workers 1 --epochs 3         # goes on from the last checkpoint, with one worker

All workers together take GLOBAL_BATCH samples in a step, so a step sees the same samples with any number of workers.
The checkpoint also counts how often each sample was seen. At the end of an epoch that has to be once, also where
workers died in between.

The model is small and its gradients are averaged by hand, because this is about the data.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from pathlib import Path

import ray.train
import torch
import torch.distributed as dist
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

import penstock
import penstock.ray
import penstock.torch as pt

SAMPLES = 101  # which no number of workers divides
GLOBAL_BATCH = 24


def dataset() -> pt.Dataset:
    x = penstock.rand(SAMPLES, 8, generator=penstock.Generator(1))
    return pt.Dataset(penstock.zip(x=penstock.rows(x), index=penstock.rows(list(range(SAMPLES)))))


def train(config: dict) -> None:
    context = ray.train.get_context()
    workers = context.get_world_size()
    loader = penstock.ray.loader(
        dataset(), GLOBAL_BATCH // workers, shuffle=True, num_workers=1, remainder="exact"
    )  # goes on where Ray's checkpoint stands
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    seen, epoch, step = torch.zeros(SAMPLES, dtype=torch.int64), 0, 0
    if (checkpoint := ray.train.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            state = pt.load(f"{folder}/state.pt")
        model.load_state_dict(state["model"])
        seen, epoch, step = state["seen"], state["epoch"], state["step"]

    while epoch < config["epochs"]:
        for batch, valid in loader:
            # Samples that are repeated to give all workers as many have a weight of 0.
            weight = valid / GLOBAL_BATCH
            loss = ((model(batch["x"]).squeeze(1) - batch["x"].sum(1)) ** 2 * weight).sum()
            slopes = torch.autograd.grad(loss, [*model.parameters()])
            for parameter, slope in zip(model.parameters(), slopes, strict=True):
                dist.all_reduce(slope)
                parameter.data -= 0.1 * slope
            now = torch.bincount(batch["index"][valid], minlength=SAMPLES)
            dist.all_reduce(now)
            seen += now
            step += 1
            if (
                step == config["lose"]
                and checkpoint is None
                and ray.train.get_context().get_world_rank() == workers - 1
            ):
                os.kill(os.getpid(), signal.SIGKILL)
            report(model, loader, seen, epoch, step)
        assert bool((seen == 1).all()), "a sample was lost, or came twice"
        seen.zero_()
        epoch += 1


def report(model: torch.nn.Module, loader: pt.DataLoader, seen: torch.Tensor, epoch: int, step: int) -> None:
    """All workers report; the first one has the checkpoint, and one loader's position is that of all."""
    told = {"epoch": epoch, "step": step, "seen": int(seen.sum()), "most": int(seen.max())}
    if ray.train.get_context().get_world_rank() != 0:
        ray.train.report(told)
        return
    with tempfile.TemporaryDirectory() as folder:
        pt.save({"model": model.state_dict(), "seen": seen, "epoch": epoch, "step": step}, f"{folder}/state.pt")
        penstock.ray.save_position(loader, folder)
        ray.train.report(told, checkpoint=Checkpoint.from_directory(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lose-a-worker", type=int, metavar="STEP", default=0)
    given = parser.parse_args()
    if GLOBAL_BATCH % given.workers:
        raise SystemExit(f"{given.workers} workers do not divide a step of {GLOBAL_BATCH} samples")
    result = TorchTrainer(
        train,
        train_loop_config={"epochs": given.epochs, "lose": given.lose_a_worker},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(num_workers=given.workers),
        run_config=RunConfig(
            name="run", storage_path=str(given.folder.resolve()), failure_config=FailureConfig(max_failures=1)
        ),
    ).fit()
    told = result.metrics
    print(f"epoch {told['epoch']}, step {told['step']}: {told['seen']} samples seen, each {told['most']} time")


if __name__ == "__main__":
    main()
