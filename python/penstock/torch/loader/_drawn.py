"""A checksum of what a sampler has drawn.

A loader that goes on runs its sampler again. The order of torch's SequentialSampler and RandomSampler follows from the
number of samples and from generators whose states the position keeps. Other samplers may give another order: those of a
program draw from NumPy or `random`, and torch's are told indices, weights or a seed.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import torch.utils.data as torch_data

import penstock
from penstock._asked import attribute
from penstock.torch.loader._dealing import DealtOrder
from penstock.torch.loader._settings import Settings


class Drawn:
    """Of the items that an index sampler gave, how many they were and their checksum."""

    def __init__(self, rank: int | None) -> None:
        self._rank = rank
        self.state = (0, 0)

    @staticmethod
    def of(settings: Settings, items: Iterable[Any] = ()) -> Drawn:
        """Of the samplers of a loader, which gave `items` so far. Nothing is summed where the position tells the order
        already."""
        out = Drawn(None if _is_told(settings) else _rank(settings))
        for item in items:
            out.add(item)
        return out

    def add(self, item: Any) -> None:
        self.state = self.behind(item)

    def behind(self, item: Any) -> tuple[int, int]:
        """The state that `add` would make of this one."""
        count, crc = self.state
        return self.state if self._rank is None else (count + 1, zlib.crc32(_bytes_of(item), crc))

    def text(self) -> str | None:
        """What a position keeps of it."""
        return None if self._rank is None else f"{self._rank}:{self.state[0]}:{self.state[1]:08x}"


def require_same(kept: str | None, items: Sequence[Any], settings: Settings) -> None:
    """ValueError where `items`, which the sampler gives now, are not those of the text that a position keeps. What
    another rank drew cannot be compared."""
    if kept is None:
        return
    count = int(kept.split(":")[1])
    now = Drawn.of(settings, items[:count]).text()
    if now is None or len(items) < count or kept.split(":")[0] != now.split(":")[0] or kept == now:
        return
    raise ValueError(
        f"the sampler gives other indices for the first {count} batches of the epoch than it gave before the state was "
        "taken, so that going on would lose samples and repeat others: it was made of other indices, weights or seed, "
        "or draws from what the state does not keep, such as NumPy's or random's generators; make it as it was, seed "
        "these as they were when the epoch began, have it draw from torch's or from a generator of its own, or give it "
        "state_dict and load_state_dict"
    )


def _is_told(settings: Settings) -> bool:
    """Whether all samplers are of classes whose order a position tells without a checksum."""
    if isinstance(settings.dataset, torch_data.IterableDataset):
        return True
    samplers = [settings.index_sampler]
    while samplers[-1] is not None and len(samplers) < 8:
        below = samplers[-1]
        samplers.append(below.order if isinstance(below, DealtOrder) else attribute(below, "sampler"))
    return all(one is None or _tells(one, settings) for one in samplers)


def _tells(sampler: Any, settings: Settings) -> bool:
    """Whether what such a sampler gives follows from what a position keeps. Not kept is how large its batches are,
    where the loader does not know, and of how many samples it draws, where they are not the dataset's."""
    kind = type(sampler)
    if kind is torch_data.BatchSampler:
        return settings.batch_size is not None
    if kind is torch_data.RandomSampler:
        return sampler.data_source is settings.dataset
    return kind is torch_data.SequentialSampler or kind.__module__.startswith("penstock.")


def _rank(settings: Settings) -> int:
    """Samplers may know the rank."""
    if settings.dealing is not None:
        return settings.dealing.ranks.rank
    if isinstance(settings.sampler, torch_data.DistributedSampler):
        return settings.sampler.rank
    try:
        return penstock.ranks().rank
    except penstock.Error:  # launchers that contradict each other
        return 0


def _bytes_of(item: Any) -> bytes:
    if getattr(item, "ndim", 0) == 1:  # an array, whose text leaves the middle out
        item = item.tolist()
    try:
        return array("q", item if isinstance(item, (list, tuple)) else [item]).tobytes()
    except (TypeError, ValueError, OverflowError):
        return repr(item).encode()
