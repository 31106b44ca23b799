"""Files that the tests of penstock.torch read."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT

import penstock.torch as pt


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    random = torch.Generator().manual_seed(1)
    for i in range(COUNT):
        x = torch.randn(3, 4, generator=random)
        pair = (torch.tensor(i, dtype=torch.int16), [torch.full((2,), i * 0.5, dtype=torch.float64)])
        sample = {"x": x, "y": i, "z": i / 4, "even": i % 2 == 0, "name": f"n{i}", "pair": pair}
        torch.save(sample, folder / f"{i:03d}.pt")
    return folder


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    random = torch.Generator().manual_seed(2)
    x, y = torch.randn(COUNT, 3, generator=random), torch.arange(COUNT)
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "y.npy", y.numpy())
    return td.TensorDataset(x, y), pt.Rows(folder / "x.npy", folder / "y.npy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"
