"""Penstock inside Grain, the loader of JAX: a random-access source whose records are NumPy arrays.

    source = penstock.grain.Source(penstock.files("train/*.npz"))
    batches = grain.MapDataset.source(source).shuffle(seed=7).batch(32)

A penstock.Dataset is a source of Grain by itself, too; its records hold penstock.Tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import penstock
from penstock import _whole as _whole  # it tells of a package that is not whole

__all__ = ["Source"]


class Source:
    """Samples of a penstock.Dataset with NumPy arrays in them, for `grain.MapDataset.source` and `grain.DataLoader`.

    Grain reads a batch by one call of `_getitems`. Any number of threads may use a source, and it pickles, so that
    Grain's worker processes get it.

    Parameters
    ----------
    dataset
        The penstock.Dataset, which is also the attribute of that name.
    """

    def __init__(self, dataset: penstock.Dataset) -> None:
        if not isinstance(dataset, penstock.Dataset):
            raise TypeError(f"found an object of type {type(dataset).__name__}, expected a penstock.Dataset")
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return _in_numpy(self.dataset[index])

    def _getitems(self, indices: Sequence[int]) -> list[Any]:
        return [_in_numpy(sample) for sample in self.dataset._getitems(indices)]

    def __repr__(self) -> str:
        """The same text in each process: Grain compares it when it goes on from a checkpoint."""
        first = f" from {self.dataset.describe(0)}" if len(self.dataset) else ""
        return f"penstock.grain.Source({len(self.dataset)} samples{first})"


def _in_numpy(value: Any) -> Any:
    if isinstance(value, penstock.Tensor):
        return value.numpy()
    if isinstance(value, dict):
        return {key: _in_numpy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_in_numpy(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value
