"""Epochs of Penstock's samplers in `penstock.torch.DataLoader`.

Their order follows from an epoch, which `penstock.DataLoader` tells them. torch's loader tells a sampler nothing, so
that each epoch would have the order of the first one. Here epochs follow each other, as those of `DealtSampler` do.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import penstock
from penstock._asked import attribute

_OURS = (penstock.Sampler, penstock.BatchSampler)


def epoch_of(sampler: Any) -> int | None:
    """The epoch that the sampler stands at, or None where it knows none."""
    own = attribute(sampler, "epoch")
    if own is None and isinstance(sampler, _OURS):
        return sampler._epoch
    try:
        return operator.index(own)
    except TypeError:  # what a program has by that name: a method, a number that processes share
        return None


def with_epochs(indices: Any, sampler: Any) -> Any:
    """What gives the indices of an epoch, where `sampler` decides their order."""
    return _Epochs(indices, sampler) if isinstance(sampler, _OURS) else indices


class _Epochs:
    """An index sampler whose end leads to the next epoch. An epoch that is broken off begins again."""

    def __init__(self, indices: Any, sampler: Any) -> None:
        self.sampler = sampler
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[Any]:
        return _Epoch(iter(self._indices), self.sampler)


class _Epoch:
    """No generator, which a signal's handler would end."""

    def __init__(self, indices: Iterator[Any], sampler: Any) -> None:
        self._indices = indices
        self._sampler = sampler
        self._next: int | None = (epoch_of(sampler) or 0) + 1

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._indices)
        except StopIteration:
            if self._next is not None:
                self._sampler.set_epoch(self._next)
                self._next = None
            raise
