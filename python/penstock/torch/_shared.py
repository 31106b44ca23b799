"""Tensors that share memory, by the rules of safetensors, which writes no memory twice."""

from __future__ import annotations

from collections.abc import Collection

import torch

from penstock.torch._memory import is_wrapper


def _end(tensor: torch.Tensor) -> int:
    """The address behind the last element of the tensor."""
    if tensor.numel() == 0:
        return tensor.data_ptr()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def shared_names(tensors: dict[str, torch.Tensor]) -> list[list[str]]:
    """The names in groups: each tensor of a group overlaps in memory with one before it in the group."""
    storages: dict[tuple[torch.device, int], list[str]] = {}
    for name, tensor in tensors.items():
        if tensor.is_meta or is_wrapper(tensor):
            continue
        storage = tensor.untyped_storage()
        if storage.nbytes() > 0:
            storages.setdefault((tensor.device, storage.data_ptr()), []).append(name)
    groups: list[list[str]] = []
    for names in storages.values():
        if len(names) == 1:
            groups.append(names)
            continue
        reached = 0
        for name in sorted(names, key=lambda name: (tensors[name].data_ptr(), _end(tensors[name]), name)):
            if tensors[name].data_ptr() >= reached:
                groups.append([])
            groups[-1].append(name)
            reached = max(reached, _end(tensors[name]))
    return groups


def _is_complete(tensor: torch.Tensor) -> bool:
    storage = tensor.untyped_storage()
    return tensor.data_ptr() == storage.data_ptr() and tensor.numel() * tensor.element_size() == storage.nbytes()


def duplicate_names(tensors: dict[str, torch.Tensor], preferred: Collection[str] = ()) -> dict[str, list[str]]:
    """For each memory that several names share, the name to keep and those to leave out.

    The name that is kept covers all of the memory: the first by name, or one of `preferred`. RuntimeError where none
    covers it, because keeping one would lose elements or write many that belong to no tensor.
    """
    out: dict[str, list[str]] = {}
    for names in shared_names(tensors):
        complete = sorted(name for name in names if _is_complete(tensors[name]))
        if not complete:
            raise RuntimeError(
                f"Found tensors of which none covers all of the memory they lie in: {sorted(names)}. Save the tensor "
                "that they are parts of, or clone() them"
            )
        if len(names) > 1:
            kept = next((name for name in complete if name in preferred), complete[0])
            out[kept] = sorted(name for name in names if name != kept)
    return out
