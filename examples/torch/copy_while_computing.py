"""The next batch is copied to the GPU while the last one is computed with; without a GPU batches stay on the CPU."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import penstock.torch as pt

CUDA = torch.cuda.is_available()


def work(batches):
    return [batch.float().mean() for batch in batches]


def before(folder):
    data = TensorDataset(torch.from_numpy(np.load(folder / "images.npy")))
    if not CUDA:
        return work(batch for (batch,) in DataLoader(data, batch_size=64))
    side = torch.cuda.Stream()

    def ahead():
        waiting = None
        for (batch,) in DataLoader(data, batch_size=64, pin_memory=True):
            with torch.cuda.stream(side):
                moved = batch.to("cuda", non_blocking=True)
            if waiting is not None:
                yield waiting
            torch.cuda.current_stream().wait_stream(side)
            moved.record_stream(torch.cuda.current_stream())
            waiting = moved
        yield waiting

    return work(ahead())


def after(folder):
    images = pt.Rows(folder / "images.npy")
    device = "cuda" if CUDA else "cpu"
    return work(pt.DataLoader(images, batch_size=64, num_workers=2, pin_memory=CUDA, device=device))


if __name__ == "__main__":
    from _show import run

    run(before, after)
