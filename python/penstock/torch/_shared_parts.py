"""A bound for samples and batches whose parts are shared.

A few containers that hold each other several times have millions of ways to one tensor, and code that walks each way
never ends. Here such values are refused first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.utils import data as torch_data

from penstock._core import _SharedWalk

__all__ = ["bounded", "collated", "require_few_ways"]

_ADVICE = "a batch has a place for each: give samples that hold each part once, or a collate_fn of your own"


def require_few_ways(sample: Any) -> None:
    """LimitError where a sample holds itself, or where so many ways lead to its parts that its
    batch would never be made."""
    if not isinstance(sample, (Mapping, list, tuple)):
        return
    walk = _SharedWalk(_ADVICE)
    waiting = [sample]
    while waiting:
        part = waiting.pop()
        walk.visit(part, len(part))
        items = part.values() if isinstance(part, Mapping) else part
        waiting.extend(item for item in items if isinstance(item, (Mapping, list, tuple)))


def bounded(collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """torch's own ways to make batches, with that bound; any other function unchanged. The result
    pickles."""
    if collate is torch_data.default_collate:
        return collated
    return _converted if collate is torch_data.default_convert else collate


def collated(samples: Any) -> Any:
    """What torch's default_collate makes of the samples, with that bound."""
    if isinstance(samples, (list, tuple)) and samples:
        require_few_ways(samples[0])  # whose nesting that of the batch is
    return torch_data.default_collate(samples)


def _converted(sample: Any) -> Any:
    require_few_ways(sample)
    return torch_data.default_convert(sample)
