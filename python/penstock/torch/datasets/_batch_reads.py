"""Batches that are read outside of our own loader, each by one call."""

from __future__ import annotations

import os
from typing import Any

import penstock
from penstock._core import _Feed
from penstock.torch._convert import sample_to_torch

__all__ = ["BatchReads"]


class BatchReads:
    """What reads them, kept from one call to the next: a thread, its memory, and what it knows of files like those
    before. Any number of threads may call it; each finds a feed of its own. It copies and pickles as an empty one.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._idle: list[tuple[penstock.Dataset, bool, _Feed]] = []

    def samples(self, native: penstock.Dataset, indices: list[int]) -> list[Any]:
        """The samples as `native[i]` gives them, in torch tensors."""
        samples: list[Any] = self._read(native, indices, False)
        return samples

    def stacked(self, native: penstock.Dataset, indices: list[int]) -> Any:
        """The samples stacked."""
        return self._read(native, indices, True)

    def _read(self, native: penstock.Dataset, indices: list[int], stacks: bool) -> Any:
        feed = self._taken(native, stacks)
        feed.push(indices)
        value = sample_to_torch(feed.next())
        self._idle.append((native, stacks, feed))  # not after an error or an interrupt, which leave it in some state
        return value

    def _taken(self, native: penstock.Dataset, stacks: bool) -> _Feed:
        if os.getpid() != self._process:  # a fork has none of its threads
            self.__init__()  # type: ignore[misc]
        while self._idle:
            try:
                known, kind, feed = self._idle.pop()
            except IndexError:  # another thread's now
                break
            if known is native and kind == stacks:
                return feed
        collate = penstock.stack() if stacks else penstock.samples()
        return _Feed(native, collate, 0, 1, None, 0.0, "cpu")

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchReads, ()
