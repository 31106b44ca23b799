"""Whole batches that other loaders than ours ask a dataset for, each read by one call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import penstock
from penstock._core import _Feed, _samples_in_order, _stack_in_order, _stack_of_rows
from penstock.torch._convert import sample_to_torch

_Rule = Callable[[], penstock.Collate]


class BatchReads:
    """Keeps what reads batches from one call to the next: a thread, its memory, and what it learned
    of the layout of files. Any number of threads may call it; each gets a feed of its own. A copy
    or pickle of it begins empty."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._idle: list[tuple[penstock.Dataset, _Rule, _Feed]] = []

    def samples(self, native: penstock.Dataset, indices: list[int]) -> list[Any]:
        """The samples as `native[i]` gives them, in torch tensors."""
        samples: list[Any] = self._read(native, indices, _samples_in_order)
        return samples

    def stacked(self, native: penstock.Dataset, indices: list[int]) -> Any:
        """The samples stacked."""
        return self._read(native, indices, _stack_in_order)

    def of_rows(self, native: penstock.Dataset, indices: list[int]) -> Any:
        """The samples stacked, where what is taken out of the stack lies as the sample does: in C order, without
        gradients. UnsupportedError where one does not."""
        return self._read(native, indices, _stack_of_rows)

    def _read(self, native: penstock.Dataset, indices: list[int], rule: _Rule) -> Any:
        feed = self._taken(native, rule)
        feed.push(indices)
        read: list[Any] = []
        feed.next(read)
        value = sample_to_torch(read[0])
        self._idle.append((native, rule, feed))  # not after an error or an interrupt, which leave it in some state
        return value

    def _taken(self, native: penstock.Dataset, rule: _Rule) -> _Feed:
        if os.getpid() != self._process:  # a fork has none of its threads
            self.__init__()  # type: ignore[misc]
        while self._idle:
            try:
                known, read_by, feed = self._idle.pop()
            except IndexError:  # another thread's now
                break
            if known is native and read_by is rule:
                return feed
        return _Feed(native, rule(), 0, 1, None, 0.0, "cpu", 0, "raise")

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchReads, ()
