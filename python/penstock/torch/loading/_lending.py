"""Weights as parts of mapped files, for a loop that copies each of them and lets it go, as engines do.

The loop's own copy out of the page cache is then the only one. What the loop keeps gets memory of its own a few tensors
later, at the same addresses, and if it keeps much the next ones are read. Until then they must not be cut, which ends
the process as with every mapping; that a file was written to is an error.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator

import torch

import penstock
from penstock._core import _lend, _Lent, _require_unchanged
from penstock.torch._arrays import Arrays
from penstock.torch.loading._weights_once import Pairs

# Variables of the loop, and of generators between it and here, still name the tensors before the one that is asked for.
_MOST_OUT = 4


class Lending:
    """What is lent of the units of one iterator."""

    def __init__(self, wanted: bool) -> None:
        self.last = ""  # the name of the last tensor, which the loop's variable keeps for good
        self._lends = wanted
        self._coming: dict[str, tuple[penstock.Archive, _Lent, int]] = {}
        self._out: deque[tuple[penstock.Archive, _Lent, int]] = deque()
        self._kept = self._dropped = 0  # bytes

    def pairs(self, archive: penstock.Archive, number: int, name: str, arrays: Arrays) -> Pairs | None:
        """An entry's tensor, lent; None where it is better read."""
        lent = _lend(archive, number) if self._lends and name != self.last else None
        if lent is None:
            return None
        tensor, handle = lent
        self._coming[name] = archive, handle, tensor.nbytes
        return [(name, arrays.whole(tensor, name))]

    def watched(
        self, pairs: Generator[tuple[str, torch.Tensor], None, None]
    ) -> Generator[tuple[str, torch.Tensor], None, None]:
        """The same pairs, of which those that are kept get memory of their own."""
        pair = None
        try:
            with contextlib.closing(pairs):
                for pair in pairs:
                    self._settle(_MOST_OUT - 1)
                    if pair[0] in self._coming:
                        self._out.append(self._coming.pop(pair[0]))
                    yield pair
        finally:
            pair = None
            self._settle(0)

    def _settle(self, most: int) -> None:
        while len(self._out) > most:
            archive, handle, nbytes = self._out.popleft()
            if handle.settle():
                self._kept += nbytes
                self._lends = self._lends and self._kept * 8 <= self._dropped
            else:
                self._dropped += nbytes
            _require_unchanged(archive)
