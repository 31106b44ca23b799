"""What becomes of a batch between its workers and the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.torch._convert import batch_to_torch, sample_to_torch
from penstock.torch._reads import Read
from penstock.torch._samples import named
from penstock.torch.datasets import Mapped

__all__ = ["Finish"]


class Finish:
    """Collates what was read, where that was not done natively, and calls the dataset's function, if it has one.

    Any number of threads may use it. `describe`: what the sample of an index is, for errors.
    """

    def __init__(self, collate_fn: Callable[[Any], Any], mapped: Mapped | None, describe: Callable[[int], str]) -> None:
        self._collate_fn = collate_fn
        self._mapped = mapped
        self._describe = describe

    def __call__(self, read: Read, alone: bool) -> Any:
        """`alone`: the batch is a sample by itself."""
        mapped = self._mapped
        if mapped is None:
            return self._collated(read, alone)
        if mapped.batched:
            return self._call(mapped.function, read.indices, self._collated(read, alone))
        pairs = zip(read.indices, read.value, strict=True)
        samples = [self._call(mapped.function, [index], sample_to_torch(sample)) for index, sample in pairs]
        return self._call(self._collate_fn, read.indices, samples[0] if alone else samples)

    def _collated(self, read: Read, alone: bool) -> Any:
        if not read.apart:
            return batch_to_torch(read.value)
        samples = sample_to_torch(read.value)
        return self._call(self._collate_fn, read.indices, samples[0] if alone else samples)

    def _call(self, function: Callable[[Any], Any], indices: list[int], argument: Any) -> Any:
        """Errors of the user's function, of samples or of batches, name what it was called with."""
        try:
            return function(argument)
        except Exception as error:
            if not indices:
                raise
            first = f"sample {indices[0]}: {self._describe(indices[0])}"
            where = first if len(indices) == 1 else f"a batch of {len(indices)} samples that begins with {first}"
            other = named(error, where)
            if other is error:
                raise
            raise other from error
