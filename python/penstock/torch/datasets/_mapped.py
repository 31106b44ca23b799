"""A dataset whose samples, or batches, go through a function of the program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch.utils.data as torch_data

import penstock
from penstock._asked import attribute
from penstock._batches.functions import not_an_end
from penstock.torch._shared_parts import collated
from penstock.torch.datasets._seeded import Seeded
from penstock.torch.datasets._taken_apart import taken_apart


class Mapped(torch_data.Dataset[Any]):
    """What `Dataset.map` gives. Without a loader, `mapped[i]` calls the function on sample i.

    Parameters
    ----------
    dataset
        What the samples come from.
    function
        What makes other samples of them.
    batched
        Whether it takes whole batches; then `mapped[i]` is a TypeError.
    processes
        Whether a loader calls it in processes.
    seeded
        Whether it takes a torch.Generator too.
    """

    def __init__(
        self,
        dataset: torch_data.Dataset[Any],
        function: Callable[..., Any],
        *,
        batched: bool,
        processes: bool,
        seeded: bool = False,
    ) -> None:
        self.dataset = dataset
        self.function = Seeded(function, _seeded_below(dataset)) if seeded else function
        self.batched = batched
        self.processes = processes

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def map(
        self, function: Callable[..., Any], *, batched: bool = False, seeded: bool = False, processes: bool = False
    ) -> Mapped:
        """As `Dataset.map`, of what this dataset's function makes.

        Parameters
        ----------
        function
            Called with each of these samples.
        batched
            Whether it is called with batches.
        seeded
            Whether it is called with a torch.Generator as well.
        processes
            Whether a loader calls it in processes.

        Returns
        -------
        Mapped
            A dataset.
        """
        if self.batched and not batched:
            raise TypeError("a function of samples cannot follow one of batches; map it before, or as one of batches")
        return Mapped(self, function, batched=batched, seeded=seeded, processes=processes)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples at these indices, for loaders that read a batch at once. Of a function of batches, which is
        called with all of them: what it gives, taken apart again into samples."""
        if type(self).__getitem__ is not Mapped.__getitem__:
            return [self[index] for index in indices]
        at_once = attribute(self.dataset, "__getitems__")
        samples = at_once(indices) if callable(at_once) else [self.dataset[index] for index in indices]
        if not self.batched:
            return [self._called(sample) for sample in samples]
        return taken_apart(self._called(collated(samples)), len(samples)) if samples else []

    def __penstock_dataset__(self) -> penstock.Dataset:
        raise TypeError(
            "a mapped dataset has a function of Python, which no native dataset has; give the dataset that it was "
            "mapped from, and map what is made of that"
        )

    def __getitem__(self, index: int) -> Any:
        try:
            index = operator.index(index)
        except TypeError as error:
            raise TypeError(f"{error}; torch.utils.data.Subset makes a dataset of several samples") from None
        if self.batched:
            raise TypeError(
                f"{self!r} is a function of whole batches, which penstock.torch.DataLoader makes; a sample by itself "
                "has none"
            )
        return self._called(self.dataset[index])

    def _called(self, argument: Any) -> Any:
        try:
            return self.function(argument)
        except StopIteration as error:
            raise not_an_end(error) from error

    def __repr__(self) -> str:
        return f"{self.dataset!r}.map({self.function!r})"


def _seeded_below(dataset: Any) -> int:
    """How many functions with generators samples have passed through."""
    count = 0
    while dataset is not None:
        count += isinstance(getattr(dataset, "function", None), Seeded)
        dataset = getattr(dataset, "dataset", None)
    return count
