"""The ways to make a batch of samples: done natively for Penstock's datasets, on torch tensors for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Any

import torch
from torch.utils.data import default_collate

import penstock
from penstock._core import _placed, _require_met
from penstock._wrong_argument import names_arguments
from penstock.torch._samples import as_mapping_of
from penstock.torch._shared_parts import require_few_ways, require_storages

__all__ = ["Nested", "Pad", "Ragged", "Rule", "Stack", "nested", "pad", "pad_to", "ragged", "stack"]

_Leaf = Callable[[list[torch.Tensor], str | None, str], Any]


class Rule:
    """A `collate_fn` for any loader: called with the samples, it gives the batch in torch tensors.

    `native` is the same rule as a penstock.Collate. A rule pickles, and compares by value.
    """

    native: penstock.Collate

    def __reduce__(self) -> tuple[Any, ...]:
        own: Any = self  # each rule is a dataclass
        return type(self), tuple(getattr(self, each.name) for each in fields(own) if each.init)

    def __call__(self, samples: list[Any]) -> Any:
        require_few_ways(samples[0])  # whose nesting that of the batch is
        met: list[str | None] = []  # the keys of the dicts right around tensors

        def placed(tensors: list[torch.Tensor], key: str | None, path: str) -> Any:
            met.append(key)
            return self._tensors(tensors, key, path)

        batch = _collated(samples, placed, None, "")
        _require_met(self.native, met)
        return batch

    def _tensors(self, tensors: list[torch.Tensor], key: str | None, path: str) -> Any:
        """The batch of what lies in one place of all samples: at `path` of each, for errors, with the `key` of the dict
        around it."""
        dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors]
        place = _placed(self.native, dtypes, [tensor.shape for tensor in tensors], key, path)
        return default_collate(tensors) if place is None else self._put(tensors, *place)

    def _put(self, tensors: list[torch.Tensor], shape: Sequence[int], dims: list[int], longest: int) -> Any:
        """Puts tensors that are not stacked into a batch of this shape."""
        raise NotImplementedError

    def of_native(self, batch: Any) -> Any:
        """The batch that `native` made, as this rule gives it."""
        return batch


def _collated(samples: Sequence[Any], tensors: _Leaf, key: str | None, path: str) -> Any:
    first = samples[0]
    if _is_array(first):
        for number, sample in enumerate(samples):
            require_storages(sample, number, key)
        return tensors([*map(torch.as_tensor, samples)], key, path)
    if isinstance(first, Mapping):
        parts = {}
        for name in first:
            inner = name if isinstance(name, str) else key
            parts[name] = _collated([sample[name] for sample in samples], tensors, inner, f"{path}[{name!r}]")
        return as_mapping_of(first, parts)
    if isinstance(first, (list, tuple)):
        if any(len(sample) != len(first) for sample in samples):
            raise penstock.ShapeMismatchError("each element in list of batch should be of equal size")
        columns = enumerate(zip(*samples, strict=True))
        items = [_collated(part, tensors, key, f"{path}[{number}]") for number, part in columns]
        return type(first)(*items) if hasattr(first, "_fields") else items
    return default_collate(samples)  # type: ignore[arg-type]


def _is_array(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    return type(value).__name__ == "ndarray" and value.dtype.kind in {"b", "i", "u", "f", "c"}  # without NumPy's import


@dataclass(frozen=True)
class Stack(Rule):
    """What `stack` gives."""

    native: penstock.Collate = field(default_factory=penstock.stack, init=False, repr=False, compare=False)

    def _tensors(self, tensors: list[torch.Tensor], key: str | None, path: str) -> Any:
        return default_collate(tensors)


@dataclass(frozen=True)
class Ragged(Rule):
    """What `ragged` gives."""

    cu_seqlens: bool = False
    keys: tuple[str, ...] = ()
    native: penstock.Collate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "native", penstock.ragged(self.cu_seqlens, self.keys or None))

    def _tensors(self, tensors: list[torch.Tensor], key: str | None, path: str) -> Any:
        return super()._tensors(tensors, key, path) if self.cu_seqlens else tensors

    def _put(self, tensors: list[torch.Tensor], shape: Sequence[int], dims: list[int], longest: int) -> Any:
        ends = torch.tensor([0, *accumulate(map(len, tensors))], dtype=torch.int32)
        return {"values": torch.cat(tensors), "cu_seqlens": ends, "max_seqlen": longest}


@dataclass(frozen=True)
class Nested(Ragged):
    """What `nested` gives."""

    cu_seqlens: bool = True

    def __call__(self, samples: list[Any]) -> Any:
        return self.of_native(super().__call__(samples))

    def of_native(self, batch: Any) -> Any:
        if isinstance(batch, Mapping):
            if _is_joined(batch):
                return _nested(batch["values"], batch["cu_seqlens"], batch["max_seqlen"])
            return as_mapping_of(batch, {key: self.of_native(item) for key, item in batch.items()})
        if isinstance(batch, (list, tuple)):
            items = [self.of_native(item) for item in batch]
            return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)
        return batch


def _is_joined(batch: Mapping[Any, Any]) -> bool:
    """Whether this is what joining made of a tensor. Integers of samples are tensors in a batch; its own is none."""
    return batch.keys() == {"values", "cu_seqlens", "max_seqlen"} and type(batch["max_seqlen"]) is int


def _nested(values: torch.Tensor, ends: torch.Tensor, longest: int) -> torch.Tensor:
    return torch.nested.nested_tensor_from_jagged(values, ends.to(torch.int64), max_seqlen=longest)


@dataclass(frozen=True)
class Pad(Rule):
    """What `pad` and `pad_to` give."""

    length: int | tuple[int, ...] | None
    dim: int
    mode: str
    value: float
    lengths: bool
    mask: bool
    keys: tuple[str, ...]
    dims: tuple[int, ...] | None = None
    native: penstock.Collate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        options = (self.dim, self.mode, self.value, self.lengths, self.mask, self.keys or None, self.dims)
        native = penstock.pad(*options) if self.length is None else penstock.pad_to(self.length, *options)
        object.__setattr__(self, "native", native)

    def _put(self, tensors: list[torch.Tensor], shape: Sequence[int], dims: list[int], longest: int) -> Any:
        values = torch.stack([self._padded(tensor, shape[1:]) for tensor in tensors])
        if not self.lengths and not self.mask:
            return values
        slot = [shape[dim + 1] for dim in dims]
        own = torch.tensor([[min(tensor.shape[dim], shape[dim + 1]) for dim in dims] for tensor in tensors])
        batch = {"values": values}
        if self.lengths:
            is_list = self.dims is not None or isinstance(self.length, tuple)
            batch["lengths"] = own if is_list else own[:, 0]
        if self.mask:
            batch["mask"] = _inside(own, slot)
        return batch

    def _padded(self, tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        for dim, length in enumerate(shape):
            if tensor.shape[dim] != length:
                tensor = self._padded_along(tensor, dim, length)
        return tensor

    def _padded_along(self, tensor: torch.Tensor, dim: int, length: int) -> torch.Tensor:
        size = tensor.shape[dim]
        if size >= length:
            return tensor.narrow(dim, 0, length)
        if self.mode in {"zero", "constant"}:
            out = tensor.new_full((*tensor.shape[:dim], length, *tensor.shape[dim + 1 :]), self.value)
            out.narrow(dim, 0, size).copy_(tensor)
            return out
        return tensor.index_select(dim, self._sources(size, length).to(tensor.device))

    def _sources(self, size: int, length: int) -> torch.Tensor:
        """Which element each place takes: the elements mirrored, or the last one repeated."""
        places = torch.arange(length)
        if self.mode == "replicate":
            return places.clamp(max=size - 1)
        places %= 2 * (size - 1)
        return torch.where(places < size, places, 2 * (size - 1) - places)


def _inside(own: torch.Tensor, slot: list[int]) -> torch.Tensor:
    """True inside the sizes of each sample, in a batch of samples of this shape."""
    mask = torch.ones(len(own), *slot, dtype=torch.bool)
    for d, length in enumerate(slot):
        along = [-1 if i == d else 1 for i in range(len(slot))]
        mask &= (torch.arange(length) < own[:, d : d + 1]).view(len(own), *along)
    return mask


def _names(keys: str | Iterable[str] | None) -> tuple[str, ...]:
    return (keys,) if isinstance(keys, str) else tuple(keys or ())


@names_arguments
def pad(
    dim: int = 0,
    mode: str = "zero",
    value: float = 0.0,
    lengths: bool = False,
    mask: bool = False,
    keys: str | Iterable[str] | None = None,
    dims: Iterable[int] | None = None,
) -> Pad:
    """Pads a dimension of each sample at its end to the longest of the batch, then stacks.

    Parameters
    ----------
    dim
        The dimension.
    mode
        "zero", "constant" (`value`), "reflect" or "replicate".
    value
        What "constant" pads with.
    lengths
        Each padded tensor becomes a dict of `values` and `lengths` (int64).
    mask
        Each padded tensor becomes a dict of `values` and `mask` (bool), with `lengths` too if wanted.
    keys
        Only these keys of a dict are padded, the others stacked.
    dims
        Several dimensions in place of `dim`; `lengths` then has a row for each sample.

    Returns
    -------
    Pad
        A `collate_fn` for any loader.
    """
    return Pad(None, dim, mode, value, lengths, mask, _names(keys), None if dims is None else tuple(dims))


@names_arguments
def pad_to(
    length: int | Iterable[int],
    dim: int = 0,
    mode: str = "zero",
    value: float = 0.0,
    lengths: bool = False,
    mask: bool = False,
    keys: str | Iterable[str] | None = None,
    dims: Iterable[int] | None = None,
) -> Pad:
    """Pads or cuts a dimension of each sample to a length, or pads several to sizes, then stacks.

    Of Penstock's datasets, what lies beyond the cut is not read. With a list of sizes nothing is cut,
    and a sample that is larger is an error that names it.

    Parameters
    ----------
    length
        How long the dimension is in each batch, or a list of sizes.
    dim
        The dimension.
    mode
        "zero", "constant" (`value`), "reflect" or "replicate".
    value
        What "constant" pads with.
    lengths
        Each padded tensor becomes a dict of `values` and `lengths` (int64).
    mask
        Each padded tensor becomes a dict of `values` and `mask` (bool), with `lengths` too if wanted.
    keys
        Only these keys of a dict are padded, the others stacked.
    dims
        The dimensions that a list of sizes is for; by default the last ones.

    Returns
    -------
    Pad
        A `collate_fn` for any loader.
    """
    size = tuple(length) if isinstance(length, Iterable) else length
    return Pad(size, dim, mode, value, lengths, mask, _names(keys), None if dims is None else tuple(dims))


@names_arguments
def ragged(cu_seqlens: bool = False, keys: str | Iterable[str] | None = None) -> Ragged:
    """Tensors stay apart: each becomes a list of tensors. With `cu_seqlens` they are joined.

    Parameters
    ----------
    cu_seqlens
        Each tensor becomes a dict of `values`, all one behind the other along dimension 0;
        `cu_seqlens`, int32 of batch + 1 numbers: sample i has the rows from `cu_seqlens[i]` to
        `cu_seqlens[i + 1]`; and `max_seqlen`, an int, the rows of the longest. This is what attention
        over sequences of different length takes. Tensors without dimensions are stacked.
    keys
        Join only these keys of a dict, and stack the others.

    Returns
    -------
    Ragged
        A `collate_fn` for any loader.
    """
    return Ragged(cu_seqlens, _names(keys))


@names_arguments
def nested(keys: str | Iterable[str] | None = None) -> Nested:
    """Tensors that differ in dimension 0 become one nested tensor (`torch.nested`, layout `torch.jagged`).

    Of Penstock's datasets the tensors are read into its values, and nothing is padded or copied.
    Tensors without dimensions are stacked.

    Parameters
    ----------
    keys
        Only these keys of a dict become nested tensors, and the others are stacked.

    Returns
    -------
    Nested
        A `collate_fn` for any loader.
    """
    return Nested(True, _names(keys))


def stack() -> Stack:
    """Tensors of equal dtype and shape become one with a new dimension 0, as default_collate does it.

    Returns
    -------
    Stack
        A `collate_fn` for any loader.
    """
    return Stack()
