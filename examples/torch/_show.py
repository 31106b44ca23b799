"""What the programs of this folder share when they are run by hand: files to read, and a look at what came.

    python examples/torch/images_and_labels.py [FOLDER]

Without a folder one is made for the run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import penstock

DIGITS = Path(__file__).resolve().parents[1] / "data" / "digits"


def make_files(folder: Path) -> None:
    """images.npy, labels.npy, digits/*.pt, clips/*.pt, weights.pt, optimizer.pt and model.pt."""
    torch.manual_seed(1)
    for name in ("images.npy", "labels.npy"):
        penstock.save(penstock.load(DIGITS / name), folder / name)
    for name in ("digits", "clips"):
        (folder / name).mkdir()
    for i in range(20):
        torch.save({"x": torch.randn(8, 8), "y": i % 10}, folder / "digits" / f"{i:02}.pt")
        torch.save(torch.randn(900 + 20 * i, 2), folder / "clips" / f"{i:02}.pt")
    model = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 64)).sum().backward()
    optimizer.step()
    torch.save(model.state_dict(), folder / "weights.pt")
    torch.save(optimizer.state_dict(), folder / "optimizer.pt")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, folder / "model.pt")


def shape_of(value: Any) -> str:
    """ "60 batches, the first of (32, 8, 8) and (32,)" and the like."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, dict):
        return f"a dict of {', '.join(map(str, value))}"
    if isinstance(value, tuple):
        return ", and ".join(map(shape_of, value))
    if isinstance(value, list) and value:
        first = shape_of(tuple(value[0])) if isinstance(value[0], list) else shape_of(value[0])
        return f"{len(value)} items, the first {first}"
    return repr(value)


def run(before: Callable[[Path], Any], after: Callable[[Path], Any]) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made)
        if len(sys.argv) == 1:
            make_files(folder)
        for name, program in (("torch", before), ("penstock.torch", after)):
            started = time.perf_counter()
            value = program(folder)
            print(f"{name:14} {1e3 * (time.perf_counter() - started):8.1f} ms: {shape_of(value)}")
