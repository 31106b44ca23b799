"""Datasets side by side: sample i of the zip has sample i of each."""

from __future__ import annotations

from typing import Any

import torch.utils.data as torch_data
from typing_extensions import TypeVar

import penstock
from penstock.torch.datasets._dataset import Dataset
from penstock.torch.datasets._road import contains_penstock, native_of

__all__ = ["Zip"]

_Sample = TypeVar("_Sample", covariant=True, default=Any)


class Zip(Dataset[_Sample]):
    """Sample i is the tuple of sample i of each dataset, or the dict of them by name.

    A function is mapped over the whole: `Zip(a, b).map(function)`.

    Parameters
    ----------
    datasets
        Datasets that are read natively, torch's Subset and the like of them, and tensors and arrays,
        whose rows are the samples.
    named
        The same by name, for samples that are dicts: `Zip(image=files, label=labels)`.

    Raises
    ------
    TypeError
        For datasets that Python code makes.
    """

    def __init__(self, *datasets: Any, **named: Any) -> None:
        parts = [_zippable(part, str(number)) for number, part in enumerate(datasets)]
        super().__init__(penstock.zip(*parts, **{name: _zippable(part, name) for name, part in named.items()}))


def _zippable(part: Any, name: str) -> penstock.Dataset:
    if not isinstance(part, torch_data.Dataset) and not contains_penstock(part):
        return penstock.rows(part)
    native = native_of(part)
    if native is None:
        raise TypeError(
            f"part {name} of the zip, a {type(part).__name__}, is made by Python code; map functions over the zip, or "
            "join such datasets with torch.utils.data.StackDataset"
        )
    return native
