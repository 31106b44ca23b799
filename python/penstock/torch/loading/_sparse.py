"""Sparse tensors of their parts, which are checked first: torch does not look at all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import penstock
from penstock.torch._private import FakeTensor
from penstock.torch.loading._storages import skips_data


def has_values(*tensors: torch.Tensor | None) -> bool:
    """Whether there is something to check: tensors on the meta device and fake ones have no elements, and within
    torch.serialization.skip_data nothing was read. All are there, or none."""
    if skips_data() or any(isinstance(tensor, FakeTensor) for tensor in tensors):
        return False
    on_meta = {tensor.is_meta for tensor in tensors if tensor is not None}
    if len(on_meta) > 1:
        raise RuntimeError("only some of them are on the meta device")
    return False in on_meta


def sparse_coo(args: Any) -> torch.Tensor:
    indices, values, size, *coalesced = args
    is_coalesced = coalesced[0] if coalesced else None
    check = has_values(indices, values)
    # A fake tensor's device need not be here.
    place = {} if isinstance(values, FakeTensor) else {"device": values.device}
    whole = torch.sparse_coo_tensor(
        indices, values, size, check_invariants=check, is_coalesced=None if is_coalesced else is_coalesced, **place
    )
    if not is_coalesced:
        return whole
    # torch's own look at the order starts threads for each tensor, however small: milliseconds on a busy machine.
    if check and not _is_ascending(indices):
        raise penstock.CorruptError("a sparse COO tensor is said to be coalesced, but its indices are not in order")
    return torch.sparse_coo_tensor(indices, values, size, check_invariants=False, is_coalesced=True, **place)


def _is_ascending(indices: torch.Tensor) -> bool:
    """Whether each column is above the one before it, as the first row that differs says."""
    steps = indices.diff(dim=1)
    above = torch.zeros(steps.shape[1], dtype=torch.bool, device=steps.device)
    same = ~above
    for row in steps:
        above |= same & (row > 0)
        same &= row == 0
    return bool(above.all())


def sparse_compressed(layout: torch.layout) -> Callable[[Any], torch.Tensor]:
    def build(args: Any) -> torch.Tensor:
        compressed, plain, values, size = args
        check = has_values(compressed, plain, values)
        try:
            return torch.sparse_compressed_tensor(
                compressed, plain, values, size, layout=layout, check_invariants=check, device=values.device
            )
        except RuntimeError:
            if not check or not _breaks_order_only(compressed, plain, values, size, layout):
                raise
        return torch.sparse_compressed_tensor(
            compressed, plain, values, size, layout=layout, check_invariants=False, device=values.device
        )

    return build


def _breaks_order_only(*parts: Any) -> bool:
    """Whether the tensor breaks no rule of torch's but that the indices of each row are in order and there once, which
    torch itself neither asks of files nor needs to stay inside its memory."""
    try:
        torch.sparse_compressed_tensor(**_in_order(*parts), check_invariants=True)
    except (RuntimeError, LookupError, ArithmeticError):
        return False
    return True


def _in_order(
    compressed: torch.Tensor, plain: torch.Tensor, values: torch.Tensor, size: Any, layout: torch.layout
) -> dict[str, Any]:
    """The parts with the indices of each row counted from 0. IndexError when one is outside of the tensor."""
    batch = plain.dim() - 1
    by_rows = layout in (torch.sparse_csr, torch.sparse_bsr)
    blocked = layout in (torch.sparse_bsr, torch.sparse_bsc)
    width = size[batch + 1 if by_rows else batch] // (values.shape[batch + (2 if by_rows else 1)] if blocked else 1)
    if plain.numel() == 0 or int(plain.min()) < 0 or int(plain.max()) >= width:
        raise IndexError("an index is outside")
    if compressed.numel() == 0 or int(compressed.min()) < 0 or int(compressed.max()) > plain.shape[-1]:
        raise IndexError("a row is outside")  # and would be counted through
    ordered = torch.empty_like(plain)
    starts = compressed.reshape(-1, compressed.shape[-1])[:, :-1]
    counts = compressed.diff().reshape(starts.shape)
    for row, start, count in zip(ordered.view(-1, plain.shape[-1]), starts, counts, strict=True):
        first = torch.repeat_interleave(start, count)
        row.copy_(torch.arange(len(row), dtype=first.dtype, device=first.device) - first)
    return {
        "compressed_indices": compressed,
        "plain_indices": ordered,
        "values": values,
        "size": size,
        "layout": layout,
        "device": values.device,
    }
