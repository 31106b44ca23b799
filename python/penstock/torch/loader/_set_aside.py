"""Which samples are bad, where Python reads or makes them, and what is read instead.

C++ judges what it reads by the same rules (data/sample/blame.cpp), and tells here what is no sample's fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import penstock
from penstock._core import _is_of_surroundings, _outage, _why_set_aside
from penstock.torch.loader._located import as_raised


class Samples:
    """The samples of a loader's dataset as the dataset itself gives them, with the names that C++ has for them."""

    def __init__(self, dataset: Any, native: penstock.Dataset) -> None:
        self._dataset = dataset
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, index: int | list[int]) -> Any:
        return self._dataset[index]

    def describe(self, index: int) -> str:
        return self._native.describe(index)

    def why(self, index: int, error: BaseException) -> str:
        """What is told of an error of that sample's functions."""
        return _why_set_aside(error, self._native, index)


class SetAside:
    """Samples that could not be read, and why. A loader tries each of them once in its life."""

    def __init__(self) -> None:
        self._reasons: dict[int, tuple[str, str]] = {}
        self._in_a_row: list[int] = []  # the latest, since one could be read
        self._refused: list[int] = []  # the latest, since functions made a batch

    def listed(self) -> list[tuple[int, str, str]]:
        return [(index, *reason) for index, reason in sorted(self._reasons.items())]

    def add(self, index: int, what: str, why: str) -> None:
        self._reasons[index] = (what, why)

    def become(self, samples: Iterable[tuple[int, str, str]]) -> None:
        """What a feed has set aside, which knew these too."""
        self._reasons = {index: (what, why) for index, what, why in samples}

    def any_of(self, indices: Iterable[int]) -> bool:
        return bool(self._reasons) and any(index in self._reasons for index in indices)

    def refuse(self, samples: Samples, index: int, error: Exception) -> None:
        """Sets a sample aside whose function raised; raises where too many did so behind each other, as `try_each`."""
        self._reasons[index] = (samples.describe(index), samples.why(index, as_raised(error)))
        self._refused.append(index)
        self._require_no_outage(error, self._refused)

    def some_were_made(self) -> None:
        self._refused.clear()

    def try_each(self, samples: Samples, indices: Iterable[int]) -> bool:
        """Reads each sample by itself. True where one of them could not be read.

        Raises where none of these could, and too many before them: that is an outage, and none of them is set aside.
        """
        found = False
        last = None
        for index in indices:
            if index in self._reasons:
                found = True
                continue
            try:
                samples[index]
            except Exception as error:  # whatever a function behind the samples raises
                if _is_of_surroundings(error):
                    raise
                self._reasons[index] = (samples.describe(index), str(error))
                self._in_a_row.append(index)
                found, last = True, error
            else:
                self._in_a_row.clear()
        if last is not None:
            self._require_no_outage(last, self._in_a_row)
        return found

    def _require_no_outage(self, last: Exception, in_a_row: list[int]) -> None:
        outage = _outage(last, len(in_a_row))
        if outage is not None:
            for index in in_a_row:
                self._reasons.pop(index, None)
            in_a_row.clear()
            raise outage from None

    def without(self, indices: Iterable[int]) -> list[int]:
        return [index for index in indices if index not in self._reasons]

    def replaced(self, samples: Samples, indices: Iterable[int]) -> list[int]:
        """The indices with the next readable sample in the place of each bad one; empty where there
        is no readable sample."""
        out = []
        for wanted in indices:
            index = wanted
            while self.try_each(samples, (index,)):
                index = (index + 1) % len(samples)
                if index == wanted:
                    return []
            out.append(index)
        return out
