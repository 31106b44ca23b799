"""torch's side of safetensors' API."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._safetensors import Framework, SafetensorError
from penstock.torch._convert import to_torch

__all__ = ["Arrays"]


class Arrays(Framework):
    """Tensors on one device; RuntimeError from torch, on the first tensor, where the device is not there."""

    def __init__(self, device: Any) -> None:
        text = str(device)
        self._device = torch.device(int(text) if text.isdigit() else text)

    def whole(self, tensor: penstock.Tensor, name: str) -> torch.Tensor:
        try:
            out = to_torch(tensor)
        except BufferError as error:
            message = f"torch has no type for {tensor.dtype}, that of tensor {name!r}; use penstock.open"
            raise SafetensorError(message) from error
        return out if self._device.type == "cpu" else out.to(self._device)

    def part(self, entry: penstock.Entry, key: Any) -> torch.Tensor:
        if is_basic(key):
            try:
                return self.whole(entry[key].load(), entry.name)
            except penstock.IndexOutOfRangeError:
                pass  # torch's own error says it below
        # Of a mapped file, torch touches what it takes.
        mapped = entry.load(mmap=True)
        whole = from_dlpack(mapped.__dlpack__(max_version=(1, 0)))
        taken = whole[key]
        if taken.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr():
            taken = taken.clone(memory_format=torch.contiguous_format)
        return taken if self._device.type == "cpu" else taken.to(self._device)


def is_basic(key: Any) -> bool:
    """Integers, slices with positive steps and Ellipsis, which Penstock takes before it reads."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(type(part) is int or part is Ellipsis or _is_plain_slice(part) for part in parts)


def _is_plain_slice(part: Any) -> bool:
    if not isinstance(part, slice):
        return False
    bounds = (part.start, part.stop, part.step)
    return all(bound is None or type(bound) is int for bound in bounds) and (part.step is None or part.step > 0)
