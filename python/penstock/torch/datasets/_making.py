"""How Python makes a sample of what was read for it: functions of the sample's index and of what was read.

`_road.py` composes them while it takes a dataset apart, and `penstock.torch.loader` calls them behind the reading.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.data import Subset

from penstock._asked import attribute, has

Make = Callable[[int, Any], Any]


@dataclass(frozen=True)
class Made:
    """A function of the samples that another way makes."""

    inner: Make | None
    function: Callable[[Any], Any]

    def __call__(self, index: int, sample: Any) -> Any:
        return self.function(sample if self.inner is None else self.inner(index, sample))


@dataclass(frozen=True)
class Chosen:
    """The samples of a subset."""

    indices: Sequence[int]
    inner: Make

    def __call__(self, index: int, sample: Any) -> Any:
        return self.inner(self.indices[index], sample)


@dataclass(frozen=True)
class Branches:
    """The samples of datasets that stand one behind the other, each with a way of its own."""

    ends: list[int]
    makes: list[Make | None]

    def __call__(self, index: int, sample: Any) -> Any:
        part = bisect_right(self.ends, index)
        make = self.makes[part]
        return sample if make is None else make(index - self.ends[part - 1] if part else index, sample)


@dataclass(frozen=True)
class Items:
    """Tuples of samples."""

    makes: list[Make | None]

    def __call__(self, index: int, sample: Any) -> Any:
        pairs = zip(self.makes, sample, strict=True)
        return tuple(part if make is None else make(index, part) for make, part in pairs)


@dataclass(frozen=True)
class Fields:
    """Dicts of samples."""

    makes: dict[str, Make | None]

    def __call__(self, index: int, sample: Any) -> Any:
        return {name: sample[name] if make is None else make(index, sample[name]) for name, make in self.makes.items()}


@dataclass(frozen=True)
class LookedUp:
    """Samples of plain data."""

    data: Any

    def __call__(self, index: int, sample: Any) -> Any:
        return self.data[index]


def batches_of(make: Make | None) -> Callable[[list[int]], Any] | None:
    """What the program's own data gives the samples of a batch by, where it has a way for that (`__getitems__`), as
    torch's loader takes them."""
    if not isinstance(make, LookedUp):
        return None
    data = make.data
    while type(data) is Subset:  # which has it for what it is a part of
        data = data.dataset
    return attribute(make.data, "__getitems__") if has(data, "__getitems__") else None


def looked_up(make: Make | None) -> Iterator[Any]:
    """The program's own data in which samples are looked up."""
    if isinstance(make, LookedUp):
        yield make.data
    elif isinstance(make, (Made, Chosen)):
        yield from looked_up(make.inner)
    elif isinstance(make, (Branches, Items)):
        for each in make.makes:
            yield from looked_up(each)
    elif isinstance(make, Fields):
        for each in make.makes.values():
            yield from looked_up(each)


@dataclass(frozen=True)
class Both:
    """One function after the other, of batches; the first may be their collation."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, batch: Any) -> Any:
        return self.second(self.first(batch))
