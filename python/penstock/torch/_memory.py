"""Whether the memory that torch tensors claim is there, because torch lets a storage be freed or shortened under a
tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

import penstock
from penstock._core import _memory_fault
from penstock.torch._private import FakeTensor, debug_has_internal_overlap


def is_wrapper(tensor: torch.Tensor) -> bool:
    """Whether the tensor is its class and its attributes, without elements of its own. torch pickles it as those by the
    same rule."""
    kind: Any = type(tensor)
    if kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__ or isinstance(tensor, FakeTensor):
        return False
    try:
        return tensor.data_ptr() == 0
    except Exception:  # tensors of transforms and functional ones do not tell
        return False


def has_span(tensor: torch.Tensor) -> bool:
    """Whether its elements lie at strides in memory that it knows."""
    is_strided = tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_meta
    return is_strided and tensor.numel() > 0 and not is_wrapper(tensor)


def shares_elements(tensor: torch.Tensor) -> bool:
    """Whether two of its elements are one in memory, so that torch writes none of them."""
    return has_span(tensor) and debug_has_internal_overlap(tensor) == 1


def with_memory_of_their_own(tensors: Sequence[torch.Tensor]) -> list[bool]:
    """For each tensor whether its memory is free of other tensors, and of a second element of its own."""
    alone = [not has_span(tensor) or debug_has_internal_overlap(tensor) == 0 for tensor in tensors]
    spans = []
    for number, tensor in enumerate(tensors):
        if has_span(tensor):
            steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            begin = tensor.data_ptr()
            spans.append((str(tensor.device), begin, begin + (steps + 1) * tensor.itemsize, number))
    reach: tuple[str, int, int] = ("", 0, -1)  # device, end, and whose that is
    for device, begin, end, number in sorted(spans):
        if device == reach[0] and begin < reach[1]:
            alone[number] = alone[reach[2]] = False
        if device != reach[0] or end > reach[1]:
            reach = (device, end, number)
    return alone


def require_memory(tensors: Iterable[tuple[str, torch.Tensor]], *, wrappers: bool = True) -> None:
    """UnsupportedError names the first tensor whose elements cannot be touched. Meta tensors pass:
    callers decide about those. So do lazy parameters, which have no shape yet, and `wrappers`, whose
    parts are tensors that their class knows."""
    for name, tensor in tensors:
        passes = is_lazy(tensor) or tensor.is_meta or (wrappers and is_wrapper(tensor))
        fault = None if passes else _memory_fault(tensor)
        if fault is not None:
            raise penstock.UnsupportedError(f"{name}: {fault}", fault, tensor=name)
