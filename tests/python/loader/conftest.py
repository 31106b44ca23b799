"""A folder of samples for the loader's tests."""

import numpy as np
import pytest
from loader_data import N


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """images.npy, labels.npy, N dicts as `.pt`, N clips of different length."""
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    np.save(folder / "images.npy", rng.integers(0, 255, (N, 4, 5), dtype="u1"))
    np.save(folder / "labels.npy", np.arange(N))
    (folder / "dicts").mkdir()
    (folder / "clips").mkdir()
    for i in range(N):
        sample = {"x": torch.full((2, 3), float(i)), "y": i, "name": f"s{i}", "pair": (torch.tensor(i), i / 2)}
        torch.save(sample, folder / "dicts" / f"{i:03}.pt")
        np.save(folder / "clips" / f"{i:03}.npy", np.arange(i % 7 + 1, dtype="f4"))
    return folder
