"""One rank's part of an order that all ranks draw alike: what `DataLoader(ranks=...)` puts in the place of samplers.

Rank r of n takes positions r, r + n, ... of the order, as torch's DistributedSampler does. So the first steps of all
ranks together are a beginning of the order, whatever n is, and another number of ranks can go on where these stopped
(`_position.py`). What is repeated to give all ranks as many comes last, so that its position tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils.data as torch_data

from penstock._asked import attribute, has
from penstock._batches.ranks import Ranks
from penstock._core import _require_share, _require_undealt

# torch's samplers that draw from their generator, or from torch's global one.
DRAWING = (torch_data.RandomSampler, torch_data.SubsetRandomSampler, torch_data.WeightedRandomSampler)


class DealtSampler(torch_data.DistributedSampler[Any]):
    """torch's DistributedSampler, whose epochs follow each other by themselves. One that was broken off begins again.
    `set_epoch` is for programs that count epochs themselves."""

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        self.epoch += 1


# How samplers deal out whose order follows from their seed and epoch alone.
DEALING = (torch_data.DistributedSampler.__iter__, DealtSampler.__iter__)


class DealtOrder(torch_data.Sampler[Any]):
    """Every `ranks.size`-th item of another sampler or batch sampler, from `ranks.rank` on."""

    def __init__(self, order: Any, ranks: Ranks, *, drops: bool) -> None:
        self.order = order
        self.ranks = ranks
        try:
            self.total = len(order)
        except TypeError:
            raise TypeError(f"found a sampler without len() ({type(order).__name__}); dealing out needs it") from None
        self._share = self.total // ranks.size if drops else -(-self.total // ranks.size)

    def __len__(self) -> int:
        return self._share

    def __iter__(self) -> Iterator[Any]:
        rank, size = self.ranks.rank, self.ranks.size
        first, count = [], 0
        for item in self.order:
            if count < size:
                first.append(item)
            if count % size == rank and count // size < self._share:
                yield item
            count += 1
        if count != self.total:
            raise ValueError(f"the sampler gave {count} items, expected {self.total} as its len() says")
        last = (self._share - 1) * size + rank
        if self._share and last >= count:
            yield first[last % count]

    def set_epoch(self, epoch: int) -> None:
        if has(self.order, "set_epoch"):
            self.order.set_epoch(epoch)


@dataclass(frozen=True)
class Dealing:
    """How a loader's order is dealt out. `total`: items of all ranks, which are samples, or whole batches where
    `batch_size` is None; `share`: those of one rank."""

    ranks: Ranks
    remainder: str
    total: int
    share: int
    batch_size: int | None

    @property
    def masks(self) -> bool:
        return self.remainder == "exact"

    def mask(self, number: int) -> Any:
        """Which of the samples of batch `number` are not repeated, where samples are dealt out; of one without batches
        whether it is not."""
        if self.batch_size is None:
            return self.counts(number, 1)[0]
        size = min(self.batch_size, self.share - number * self.batch_size)
        return torch.tensor(self.counts(number, size), dtype=torch.bool)

    def counts(self, number: int, size: int) -> list[bool]:
        """Which of the samples of batch `number`, which has `size` of them, are not repeated ones."""
        each = self.batch_size
        positions = [number] * size if each is None else range(number * each, number * each + size)
        return [position * self.ranks.size + self.ranks.rank < self.total for position in positions]


@dataclass(frozen=True)
class Order:
    """The arguments of a loader that decide its order."""

    batch_size: int | None
    shuffle: bool | None
    sampler: Any
    batch_sampler: Any


def deal(dataset: Any, given: Order, generator: Any, ranks: Ranks, remainder: str) -> tuple[Order, Dealing]:
    """The arguments of one rank. ValueError for orders that the ranks would not draw alike."""
    if isinstance(dataset, torch_data.IterableDataset):
        raise ValueError("an iterable dataset has no order that could be dealt out to ranks; divide it in its __iter__")
    if given.batch_sampler is not None:
        return _deal_batches(given, ranks, remainder)
    sampler, each = given.sampler, given.batch_size
    if isinstance(sampler, torch_data.DistributedSampler):
        _require_same(sampler, ranks, remainder)
        return given, Dealing(ranks, remainder, _samples_of(sampler), len(sampler), each)
    drops = remainder == "drop"
    _require_undealt(_dealt_by(sampler), ranks)
    if sampler is None:
        _require_share(len(dataset), ranks, remainder, False)
        shuffle, seed = bool(given.shuffle), seed_of(generator)
        made = DealtSampler(dataset, ranks.size, ranks.rank, shuffle=shuffle, seed=seed, drop_last=drops)
        return Order(each, None, made, None), Dealing(ranks, remainder, len(dataset), len(made), each)
    _require_drawn_alike(sampler, ranks)
    order = DealtOrder(sampler, ranks, drops=drops)
    _require_share(order.total, ranks, remainder, False)
    return Order(each, given.shuffle, order, None), Dealing(ranks, remainder, order.total, len(order), each)


def _deal_batches(given: Order, ranks: Ranks, remainder: str) -> tuple[Order, Dealing]:
    batches = given.batch_sampler
    inner = attribute(batches, "sampler")
    _require_undealt(max(_dealt_by(batches), _dealt_by(inner)), ranks)
    if isinstance(inner, torch_data.DistributedSampler):
        _require_same(inner, ranks, remainder)
        if remainder == "exact" and type(batches) is not torch_data.BatchSampler:
            raise ValueError("remainder='exact' needs to know the batches; give the loader a batch_size and no sampler")
        each = attribute(batches, "batch_size")
        return given, Dealing(ranks, remainder, _samples_of(inner), len(inner), each)
    if inner is not None:
        _require_drawn_alike(inner, ranks)
    order = DealtOrder(batches, ranks, drops=remainder == "drop")
    _require_share(order.total, ranks, remainder, True)
    whole = Order(given.batch_size, given.shuffle, given.sampler, order)
    return whole, Dealing(ranks, remainder, order.total, len(order), None)


def _dealt_by(sampler: Any) -> int:
    """Among how many ranks: Penstock's own samplers may deal out, too."""
    return int(attribute(sampler, "_replicas", 1))


def _samples_of(sampler: torch_data.DistributedSampler[Any]) -> int:
    return len(sampler.dataset)  # type: ignore[arg-type]


def seed_of(generator: Any) -> int:
    """The seed of the shared order: that of the loader's generator, which all ranks have to seed alike, or 0 as
    torch's DistributedSampler has it."""
    return generator.initial_seed() % (1 << 62) if isinstance(generator, torch.Generator) else 0


def _require_same(sampler: torch_data.DistributedSampler[Any], ranks: Ranks, remainder: str) -> None:
    """The program's own sampler has dealt the order out already. Both have to mean the same."""
    if (sampler.rank, sampler.num_replicas) != (ranks.rank, ranks.size):
        raise ValueError(
            f"the DistributedSampler is for rank {sampler.rank} of {sampler.num_replicas}, but ranks says rank "
            f"{ranks.rank} of {ranks.size} ({ranks.source}); make them agree, or leave one of them out"
        )
    if sampler.drop_last != (remainder == "drop"):
        raise ValueError(
            f"the DistributedSampler has drop_last={sampler.drop_last}, but the loader has remainder={remainder!r}; "
            "make them agree, or leave the sampler out"
        )
    own = type(sampler).__iter__ not in DEALING
    if remainder == "exact" and own:
        raise ValueError(
            f"{type(sampler).__name__} deals out in its own way, and remainder='exact' cannot know what it repeats; "
            "leave the sampler out"
        )


def _require_drawn_alike(sampler: Any, ranks: Ranks) -> None:
    if ranks.size > 1 and isinstance(sampler, DRAWING) and sampler.generator is None:
        raise ValueError(
            f"the order of this {type(sampler).__name__} comes from torch's global generator, which is another one on "
            "each rank; give it generator=torch.Generator().manual_seed(...) with one seed for all"
        )
