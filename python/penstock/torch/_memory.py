"""Whether the memory that torch tensors claim is there, because torch lets a storage be freed or shortened under a
tensor."""

from __future__ import annotations

from collections.abc import Iterable

import torch

import penstock
from penstock._core import _memory_fault

__all__ = ["require_memory"]


def require_memory(tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
    """UnsupportedError names the first tensor whose elements cannot be touched. Meta tensors pass:
    callers decide about those."""
    for name, tensor in tensors:
        fault = None if tensor.is_meta else _memory_fault(tensor)
        if fault is not None:
            raise penstock.UnsupportedError(f"{name}: {fault}", fault, tensor=name)
