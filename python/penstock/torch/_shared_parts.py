"""What samples are refused before torch's own code makes a batch of them.

A few containers that hold each other several times have millions of ways to one tensor, and code that walks each way
never ends. And torch reads past the end of a storage that was freed or shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter, ge
from typing import Any

import torch
from torch.utils import data as torch_data

import penstock
from penstock._core import _SharedWalk, _storage_fault

_ADVICE = "a batch has a place for each: give samples that hold each part once, or a collate_fn of your own"


# What holds nothing. Most samples hold only such parts, which one look tells.
_FLAT = {torch.Tensor, bool, int, float, complex, str, bytes, type(None)}


def require_few_ways(sample: Any) -> None:
    """LimitError where a sample holds itself, or where so many ways lead to its parts that its
    batch would never be made."""
    if type(sample) in _FLAT or not isinstance(sample, (Mapping, list, tuple)):
        return
    if _FLAT.issuperset(map(type, sample.values() if isinstance(sample, Mapping) else sample)):
        return
    walk = _SharedWalk(_ADVICE)
    waiting = [sample]
    while waiting:
        part = waiting.pop()
        walk.visit(part, len(part))
        items = part.values() if isinstance(part, Mapping) else part
        waiting.extend(item for item in items if isinstance(item, (Mapping, list, tuple)))


def bounded(collate: Callable[[Any], Any], *, storages: bool = True) -> Callable[[Any], Any]:
    """torch's own ways to make batches, which refuse such samples first; any other function unchanged.
    The result pickles.

    Without `storages` the memory of tensors is trusted, as torch's own loader trusts it: to look at each tensor of each
    sample takes longer than a third of a small batch.
    """
    if collate is torch_data.default_collate:
        return collated if storages else _collated_in_few_ways
    return _converted if collate is torch_data.default_convert else collate


def collated(samples: Any) -> Any:
    """What torch's default_collate makes of the samples, if it can be made."""
    if isinstance(samples, (list, tuple)) and samples:
        require_few_ways(samples[0])
        if not _are_whole(samples):
            for number, sample in enumerate(samples):
                require_storages(sample, number, None)
    return torch_data.default_collate(samples)


def _collated_in_few_ways(samples: Any) -> Any:
    return collated_by(torch_data.default_collate, samples)


def collated_by(collate: Callable[[Any], Any], samples: Any) -> Any:
    """What a way of torch's makes of the samples, which it walks through."""
    if isinstance(samples, (list, tuple)) and samples:
        require_few_ways(samples[0])  # whose nesting that of the batch is
    return collate(samples)


def require_storages(part: Any, number: int, key: Any) -> None:
    """UnsupportedError where the memory of a tensor is not there, in the sample of that number: torch would read past a
    storage that was freed or shortened."""
    if isinstance(part, torch.Tensor):
        fault = _storage_fault(part) if _may_be_short(part) else None
        if fault is not None:
            place = f"sample {number} of the batch" + ("" if key is None else f", at [{key!r}]")
            raise penstock.UnsupportedError(f"{place}: {fault}", fault)
    elif isinstance(part, Mapping):
        for name, item in part.items():
            require_storages(item, number, name)
    elif isinstance(part, (list, tuple)):
        for item in part:
            require_storages(item, number, key)


def _are_whole(samples: Sequence[Any]) -> bool:
    """Whether each tensor of flat samples is all of a storage, or its beginning, as most are. For each tensor only what
    torch has in C is called, because a function of ours would take longer than many functions of samples."""
    kinds = set(map(type, samples))
    if kinds <= {tuple, list}:
        samples = list(chain.from_iterable(samples))
    elif kinds == {dict}:
        samples = list(chain.from_iterable(map(dict.values, samples)))
    kinds = set(map(type, samples))
    if not kinds <= _FLAT:
        return False
    tensors = samples if len(kinds) == 1 else [part for part in samples if type(part) is torch.Tensor]
    if torch.Tensor not in kinds:
        return True
    try:
        if any(map(torch.Tensor.storage_offset, tensors)) or not all(map(torch.Tensor.is_contiguous, tensors)):
            return False
        there = map(torch.UntypedStorage.nbytes, map(torch.Tensor.untyped_storage, tensors))
        return all(map(ge, there, map(_nbytes, tensors)))
    except Exception:
        return False


_nbytes = attrgetter("nbytes")


def _may_be_short(tensor: torch.Tensor) -> bool:
    """Whether the storage is shorter than the tensor reaches, or does not say so. It is asked of each sample, so that
    it must be quick."""
    try:
        if tensor.is_contiguous():
            reach = tensor.numel()
        else:
            reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
        return tensor.untyped_storage().nbytes() < (tensor.storage_offset() + reach) * tensor.itemsize
    except Exception:  # sparse and nested tensors, those of transforms
        return True


def _converted(sample: Any) -> Any:
    require_few_ways(sample)
    return torch_data.default_convert(sample)
