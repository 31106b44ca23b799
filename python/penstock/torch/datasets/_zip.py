"""Datasets side by side: sample i of the zip has sample i of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch.utils.data as torch_data
from typing_extensions import TypeVar

import penstock
from penstock._core import join, zip
from penstock.torch.datasets._dataset import Dataset
from penstock.torch.datasets._road import contains_penstock, native_of

_Sample = TypeVar("_Sample", covariant=True, default=Any)


class Zip(Dataset[_Sample]):
    """Sample i is the tuple of sample i of each dataset, or the dict of them by name.

    A function is mapped over the whole: `Zip(a, b).map(function)`. Where files are paired by their
    places and their names do not pair so, a penstock.PairWarning says it.

    Parameters
    ----------
    datasets
        Datasets that are read natively, torch's Subset and the like of them, and tensors and arrays,
        whose rows are the samples.
    by
        Pair files by name, in the order of the first dataset, as `penstock.join`: "stem", "name",
        "path", a compiled regular expression or a function of a path. None pairs samples by place.
    missing
        What happens to files without a partner, beside `by`: "error" raises a ValueError that names
        the first of them, "drop" leaves them out.
    named
        The same by name, for samples that are dicts: `Zip(image=files, label=labels)`.

    Raises
    ------
    TypeError
        For datasets that Python code makes.
    """

    def __init__(
        self,
        *datasets: Any,
        by: str | re.Pattern[str] | Callable[[str], str] | None = None,
        missing: str = "error",
        **named: Any,
    ) -> None:
        parts = [_zippable(part, str(number)) for number, part in enumerate(datasets)]
        by_name = {name: _zippable(part, name) for name, part in named.items()}
        if by is None:
            if missing != "error":
                raise ValueError(f"found missing={missing!r} for pairs by place, expected by= beside it")
            super().__init__(zip(parts, by_name, True))
        else:
            super().__init__(join(parts, by_name, by, missing))


class Choice(Dataset[_Sample]):
    """Sample i is sample i of one of several datasets of equal size, drawn for each epoch.

    What is drawn depends on the loader's seed, the epoch and i alone, as `penstock.choice` says.

    Parameters
    ----------
    datasets
        Datasets of equal size, as `Zip` takes them.
    weights
        A number of 0 or more for each; probabilities are to each other as these. None: all are equal.
    """

    def __init__(self, *datasets: Any, weights: Iterable[float] | None = None) -> None:
        parts = [_zippable(part, str(number)) for number, part in enumerate(datasets)]
        super().__init__(penstock.choice(parts, weights))


def _zippable(part: Any, name: str) -> penstock.Dataset:
    if not isinstance(part, torch_data.Dataset) and not contains_penstock(part):
        return penstock.rows(part)
    native = native_of(part)
    if native is None:
        raise TypeError(
            f"part {name}, a {type(part).__name__}, is made by Python code; map functions over the whole, or "
            "join such datasets with torch.utils.data.StackDataset"
        )
    return native
