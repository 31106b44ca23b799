"""Reading tensors into memory that is there, the last step of `load_into`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import penstock
from penstock._core import _entry_parts, _load_into
from penstock.torch._convert import to_torch
from penstock.torch._devices import reachable
from penstock.torch._memory import has_span, is_wrapper, with_memory_of_their_own
from penstock.torch.loading._content import EntryAt


def fill(archive: penstock.Archive, places: Sequence[tuple[torch.Tensor, EntryAt | torch.Tensor, str]]) -> None:
    """Reads tensors straight into the target's memory where that memory has the right form and
    belongs to one place alone. All others are read one by one and copied into their places in
    order, so that the last of several tied places counts. Each has its path, for errors."""
    last: dict[Any, tuple[torch.Tensor, EntryAt | torch.Tensor, str]] = {}
    for wanted in places:
        key = _memory_of(wanted[0])
        last.pop(key, None)  # the turn is the last one's, too: views of the place may come before it
        last[key] = wanted
    direct: list[tuple[int, torch.Tensor]] = []
    # Not detached: the parts of a sparse tensor are its own.
    copied: list[tuple[EntryAt | torch.Tensor, torch.Tensor, str]] = []
    own = with_memory_of_their_own([place for place, _, _ in last.values()])
    with torch.no_grad():
        for (tensor, leaf, path), is_alone in zip(last.values(), own, strict=True):
            place = tensor.detach()
            is_direct = isinstance(leaf, EntryAt) and is_alone and _can_be_read_into(place)
            if not isinstance(leaf, EntryAt) or not is_direct or _loses_parts(archive, leaf.number, place):
                copied.append((leaf, tensor, path))
            elif place.numel():
                direct.append((leaf.number, place.reshape(leaf.shape)))
        _load_into(archive, [number for number, _ in direct], [place for _, place in direct])
        for leaf, place, path in copied:
            _copy(_one(archive, leaf.number) if isinstance(leaf, EntryAt) else leaf, place, path)
    # As torch's copies would: a backward pass through what was there before must not go on.
    for _, place in direct:
        if not place.is_inference():
            torch.autograd.graph.increment_version(place)


def _copy(source: torch.Tensor, place: torch.Tensor, path: str) -> None:
    """UnsupportedError for wrappers whose class does not know how to be filled."""
    try:
        place.copy_(source)
    except (NotImplementedError, TypeError, RuntimeError) as error:
        if not is_wrapper(place):
            raise
        kind = f"{type(place).__module__}.{type(place).__qualname__}"
        raise penstock.UnsupportedError(
            f"{path}: the target is a tensor of class {kind}, which cannot be filled: {type(error).__name__}: {error}; "
            "use assign=True",
            tensor=path,
        ) from error


def _memory_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """A key that two tensors of the same elements share and no other tensor has."""
    if not has_span(tensor):
        return (id(tensor),)
    return (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.is_conj())


def _can_be_read_into(place: torch.Tensor) -> bool:
    if type(place) is not torch.Tensor:  # a class of its own may copy in a way of its own
        return False
    if place.is_conj() or place.is_neg() or place.is_quantized or place.layout != torch.strided:
        return False
    return place.device.type == "cpu" or reachable(place.device) is not None


def _loses_parts(archive: penstock.Archive, number: int, place: torch.Tensor) -> bool:
    """Whether imaginary parts would be dropped; torch warns of that."""
    return _entry_parts(archive, number)[1].startswith("complex") and not place.is_complex()


def _one(archive: penstock.Archive, number: int) -> torch.Tensor:
    name = archive.keys()[number]
    return to_torch(archive[name].load())
