"""examples/torch: each program of a PyTorch user, before and after; both give the same."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
import torch
from load_pairs import same

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples" / "torch").glob("*.py"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    torch.manual_seed(1)
    for name in ("images.npy", "labels.npy"):
        shutil.copy(ROOT / "examples" / "data" / "digits" / name, folder)
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
    return folder


def plain(value):
    """Storages aside: a padded batch of ours lies in the block of its loader."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_before_and_after_give_the_same(path, folder):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    same(plain(example.after(folder)), plain(example.before(folder)))
