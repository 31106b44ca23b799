"""What is left of our reading when others make a loader of their own from our dataset.

They ask the dataset for the samples of a batch (`__getitems__`). Those are read as one stacked batch and taken apart
again, so that stacking them anew costs little. A NotNativeWarning tells once which arguments of our loader are lost.
"""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import get_worker_info

from penstock._text import plural
from penstock.torch._samples import as_mapping_of
from penstock.torch._shared_parts import require_few_ways


class NotNativeWarning(UserWarning):
    """Penstock's own reading has no part in what the program asks for, of a Penstock dataset or by an argument that
    only Penstock has: the text says why, and what to do. Results are right all the same, but that random steps may be
    the same in every epoch."""


class Promises:
    """What the arguments of a loader of ours say of a dataset, which a loader that others make of it cannot keep.

    It is said once in a program, where the first of its workers reads: processes that it forks share the mark.
    """

    def __init__(self, arguments: str) -> None:
        self._arguments = arguments
        self._said = mmap.mmap(-1, 1)

    def say(self) -> None:
        worker = get_worker_info()
        if self._said[0] or (worker is not None and worker.id != 0):
            return
        self._said[0] = 1
        warnings.warn(
            f"a dataset of a penstock.torch.DataLoader with {self._arguments} is read by another loader, made from its "
            "parts as accelerate and transformers do: that one reads the same samples, but does not know these "
            "arguments; leave them out, or go through the penstock.torch.DataLoader itself",
            NotNativeWarning,
            stacklevel=3,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Promises, (self._arguments,)


def holds_tensors_alone(sample: Any) -> bool:
    """Whether the sample is a tensor, or a dict, list or tuple of nothing else."""
    if isinstance(sample, (list, tuple)):
        return len(sample) > 0 and all(map(holds_tensors_alone, sample))
    if isinstance(sample, dict):
        return len(sample) > 0 and all(map(holds_tensors_alone, sample.values()))
    return isinstance(sample, torch.Tensor) and sample.layout is torch.strided


def taken_apart(batch: Any, count: int) -> list[Any]:
    """The samples that `default_collate` makes this batch of. TypeError where there is no `count` of them in it."""
    require_few_ways(batch)
    return _taken_apart(batch, count)


def _taken_apart(batch: Any, count: int) -> list[Any]:
    if isinstance(batch, torch.Tensor) and batch.ndim > 0 and len(batch) == count:
        return list(batch.unbind(0))
    if isinstance(batch, Mapping):
        parts = {key: _taken_apart(item, count) for key, item in batch.items()}
        return [as_mapping_of(batch, {key: part[i] for key, part in parts.items()}) for i in range(count)]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        fields = [_taken_apart(item, count) for item in batch]
        return [type(batch)(*(field[i] for field in fields)) for i in range(count)]
    if isinstance(batch, (list, tuple)):
        if len(batch) == count and all(isinstance(item, (str, bytes)) for item in batch):
            return list(batch)
        items = [_taken_apart(item, count) for item in batch]
        kind = list if isinstance(batch, list) else tuple
        return [kind(item[i] for item in items) for i in range(count)]
    raise TypeError(
        f"a function of batches gave {_shown(batch)} for a batch of {plural(count, 'sample')}; a loader that is not "
        "penstock.torch.DataLoader wants samples, and there are not as many in it: take penstock.torch.DataLoader, or "
        "call the function in the loop"
    )


def _shown(batch: Any) -> str:
    kind = f"an object of type {type(batch).__name__}"
    return f"a tensor of shape {tuple(batch.shape)}" if isinstance(batch, torch.Tensor) else kind
