"""Penstock's values as torch's, over the same memory.

Every part of `penstock.torch` that gives tensors to the user goes through here: loads, samples and batches.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._core import _samples_to_torch
from penstock.torch import _private
from penstock.torch._samples import as_mapping_of


def to_torch(tensor: penstock.Tensor) -> torch.Tensor:
    """A torch tensor over the memory of a Penstock tensor; the memory lives as long as either of
    them.

    BufferError for what torch has no type for (text, dates, structures). Read-only memory is
    copied, because torch has no tensors that refuse to be written.
    """
    if tensor.is_cuda:
        return _on_device(tensor)
    if tensor.read_only:
        tensor = tensor.clone()
    return _private.from_capsule(tensor.__dlpack__())  # type: ignore[no-any-return]


def _on_device(tensor: penstock.Tensor) -> torch.Tensor:
    """The tensor on a device, ordered behind the work that fills it, on torch's current stream.

    Penstock uses the memory again when the work of that moment and of the default stream is over. Penstock would not
    wait for later work on another stream, so that torch gets a copy of its own there.
    """
    device = torch.device(str(tensor.device))
    current, default = torch.cuda.current_stream(device), torch.cuda.default_stream(device)
    out = from_dlpack(tensor.__dlpack__(stream=current.cuda_stream or 1))
    if current == default:
        return out
    copy = out.clone()
    default.wait_stream(current)
    return copy


def sample_to_torch(value: Any) -> Any:
    """A sample's structure with torch tensors in it. What is torch's already stays as it is, and
    shared parts stay shared.

    Arrays that torch has no type for (text, dates, structures) become NumPy's. Mappings of other
    types than dict are changed in place, so that they keep their type.
    """
    if type(value) is list:
        samples = _samples_to_torch(value, _private.from_capsule)
        if samples is not None:
            return samples
    return _of_torch(value, {})


def _of_torch(value: Any, made: dict[int, Any]) -> Any:
    """The value for torch. `made` has, by the id of each container that was met, what it became."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is penstock.Tensor:
        return _tensor_or_array(value)
    if not isinstance(value, dict) and kind is not list and kind is not tuple:
        return value
    out = made.get(id(value))
    if out is not None:
        return out
    if kind is tuple:
        made[id(value)] = out = tuple([_of_torch(item, made) for item in value])
    elif kind is list:
        made[id(value)] = out = []
        out.extend([_of_torch(item, made) for item in value])
    else:
        made[id(value)] = out = {} if kind is dict else value
        for key, item in list(value.items()):
            out[key] = _of_torch(item, made)
    return out


_PLAIN = {type(None), bool, int, float, str, bytes}


def _tensor_or_array(tensor: penstock.Tensor) -> Any:
    try:
        out = to_torch(tensor)
    except BufferError:
        return (tensor.clone() if tensor.read_only else tensor).numpy()
    return out.requires_grad_() if tensor.requires_grad else out


def batch_to_torch(value: Any) -> Any:
    """A batch's structure with torch tensors in it; TypeError for what torch has no type for.

    The types are those that `default_collate` gives: tuples become lists, a tuple of strings stays
    one, and mappings keep their type, except counters, because tensors are nothing to count with.
    """
    if isinstance(value, penstock.Tensor):
        return _stacked(value)
    if isinstance(value, (OrderedDict, defaultdict)):
        for key, item in list(value.items()):
            value[key] = batch_to_torch(item)
        return value
    if isinstance(value, dict):
        return {key: batch_to_torch(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [tuple(item) if _is_text(item) else item for item in map(batch_to_torch, value)]
    return value


def _is_text(value: Any) -> bool:
    return type(value) is list and len(value) > 0 and isinstance(value[0], (str, bytes))


def _stacked(tensor: penstock.Tensor) -> Any:
    try:
        out = to_torch(tensor)
        # What is stacked of tensors that require gradients leads back to them: torch stacks them once more.
        return torch.stack([row.requires_grad_() for row in out]) if tensor.requires_grad else out
    except BufferError:
        if tensor.ndim == 1 and tensor.numpy().dtype.kind in "US":  # whose rows default_collate takes for strings
            return tensor.numpy().tolist()
        raise TypeError(
            f"torch has no tensors of {tensor.dtype} to make a batch of; a collate_fn gets such samples as NumPy arrays"
        ) from None


def in_rows(batch: Any) -> Any:
    """What `default_collate` gave, with every tensor in C order."""
    if isinstance(batch, torch.Tensor):
        return batch if batch.layout is not torch.strided or batch.is_contiguous() else batch.contiguous()
    if isinstance(batch, Mapping):
        items = {key: in_rows(item) for key, item in batch.items()}
        is_as_before = all(items[key] is item for key, item in batch.items())
        return batch if is_as_before else as_mapping_of(batch, items)
    if isinstance(batch, (list, tuple)):
        parts = [in_rows(item) for item in batch]
        if all(map(operator.is_, parts, batch)):
            return batch
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
