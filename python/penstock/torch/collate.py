"""The ways to make a batch of samples: done natively for Penstock's datasets, on torch tensors for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch.utils.data import default_collate

import penstock
from penstock._core import _storage_fault
from penstock._text import plural
from penstock.torch._samples import as_mapping_of
from penstock.torch._shared_parts import require_few_ways

__all__ = ["Nested", "Pad", "Ragged", "Rule", "Stack", "nested", "pad", "pad_to", "ragged", "stack"]

_Leaf = Callable[[list[torch.Tensor], str | None], Any]


class Rule:
    """A `collate_fn` for any loader: called with the samples, it gives the batch in torch tensors.

    `native` is the same rule as a penstock.Collate. A rule pickles, and compares by value.
    """

    native: penstock.Collate

    def __call__(self, samples: list[Any]) -> Any:
        return _collated(samples, self._tensors)

    def _tensors(self, tensors: list[torch.Tensor], key: str | None) -> Any:
        """The batch of what lies in one place of all samples; `key` is that of the dict around it."""
        raise NotImplementedError

    def of_native(self, batch: Any) -> Any:
        """The batch that `native` made, as this rule gives it."""
        return batch


def _collated(samples: Sequence[Any], tensors: _Leaf) -> Any:
    require_few_ways(samples[0])  # whose nesting that of the batch is
    return _collated_parts(samples, tensors, None)


def _collated_and_met(samples: Sequence[Any], tensors: _Leaf) -> tuple[Any, set[str | None]]:
    """The batch, and the keys of the dicts right around tensors."""
    met: set[str | None] = set()

    def noted(parts: list[torch.Tensor], key: str | None) -> Any:
        met.add(key)
        return tensors(parts, key)

    return _collated(samples, noted), met


def _require_keys(keys: Iterable[str], met: set[str | None], what: str) -> None:
    for key in keys:
        if key not in met:
            raise penstock.KeyNotFoundError(f"the samples have no key {key!r} to {what}")


def _collated_parts(samples: Sequence[Any], tensors: _Leaf, key: str | None) -> Any:
    first = samples[0]
    if _is_array(first):
        return tensors([_tensor(sample, number, key) for number, sample in enumerate(samples)], key)
    if isinstance(first, Mapping):
        parts = {
            name: _collated_parts([sample[name] for sample in samples], tensors, name if isinstance(name, str) else key)
            for name in first
        }
        return as_mapping_of(first, parts)
    if isinstance(first, (list, tuple)):
        if any(len(sample) != len(first) for sample in samples):
            raise penstock.ShapeMismatchError("each element in list of batch should be of equal size")
        items = [_collated_parts(part, tensors, key) for part in zip(*samples, strict=True)]
        return type(first)(*items) if hasattr(first, "_fields") else items
    return default_collate(samples)  # type: ignore[arg-type]


def _tensor(sample: Any, number: int, key: str | None) -> torch.Tensor:
    """The tensor, if its memory is there. torch would read past a storage that was freed or shortened, so that such a
    sample is refused."""
    fault = _storage_fault(sample) if isinstance(sample, torch.Tensor) else None
    if fault is None:
        return torch.as_tensor(sample)
    place = f"sample {number} of the batch" + ("" if key is None else f", at [{key!r}]")
    raise penstock.UnsupportedError(f"{place}: {fault}", fault)


def _is_array(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    kind = getattr(getattr(value, "dtype", None), "kind", "")  # without NumPy's import
    return type(value).__name__ == "ndarray" and kind in {"b", "i", "u", "f", "c"}


@dataclass(frozen=True)
class Stack(Rule):
    """What `stack` gives."""

    native: penstock.Collate = field(default_factory=penstock.stack, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return (stack, ())

    def _tensors(self, tensors: list[torch.Tensor], key: str | None) -> Any:
        return default_collate(tensors)


@dataclass(frozen=True)
class Ragged(Rule):
    """What `ragged` gives."""

    cu_seqlens: bool = False
    keys: tuple[str, ...] = ()
    native: penstock.Collate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "native", penstock.ragged(self.cu_seqlens, self.keys or None))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.cu_seqlens, self.keys))

    def __call__(self, samples: list[Any]) -> Any:
        batch, met = _collated_and_met(samples, self._tensors)
        _require_keys(self.keys, met, "join")
        return batch

    def _tensors(self, tensors: list[torch.Tensor], key: str | None) -> Any:
        if not self.cu_seqlens:
            return tensors
        if (self.keys and key not in self.keys) or (not self.keys and tensors[0].dim() == 0):
            return default_collate(tensors)
        _require_alike(tensors, [0], "joining")
        rows = [len(tensor) for tensor in tensors]
        if sum(rows) > _MOST_ROWS:
            raise penstock.InvalidArgumentError(
                f"the samples of the batch have {sum(rows)} rows, more than the {_MOST_ROWS} that cu_seqlens, which is "
                "int32, can count; use a smaller batch_size"
            )
        ends = torch.tensor([0, *accumulate(rows)], dtype=torch.int32)
        return {"values": torch.cat(tensors), "cu_seqlens": ends, "max_seqlen": max(rows)}


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


# What an int32 can count.
_MOST_ROWS = (1 << 31) - 1


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

    def __reduce__(self) -> tuple[Any, ...]:
        return (Pad, (self.length, self.dim, self.mode, self.value, self.lengths, self.mask, self.keys, self.dims))

    def __call__(self, samples: list[Any]) -> Any:
        batch, met = _collated_and_met(samples, self._tensors)
        _require_keys(self.keys, met, "pad")
        return batch

    def _tensors(self, tensors: list[torch.Tensor], key: str | None) -> Any:
        rank = tensors[0].dim()
        dims = [dim + rank if dim < 0 else dim for dim in self._wanted_dims()]
        lacking = [given for given, dim in zip(self._wanted_dims(), dims, strict=True) if not 0 <= dim < rank]
        if (self.keys and key not in self.keys) or (not self.keys and lacking):
            return default_collate(tensors)
        if lacking:
            raise penstock.ShapeMismatchError(
                f"dimension {lacking[0]} cannot be padded, because the sample has shape {tuple(tensors[0].shape)}"
            )
        if len(set(dims)) < len(dims):
            raise penstock.InvalidArgumentError(f"dims {self.dims} name a dimension twice; name each once")
        _require_alike(tensors, dims, "padding")
        own = torch.tensor([[tensor.shape[dim] for dim in dims] for tensor in tensors])
        slot = self._slot(tensors, dims, own)
        values = torch.stack([self._padded_all(tensor, dims, slot) for tensor in tensors])
        if not self.lengths and not self.mask:
            return values
        own = torch.minimum(own, torch.tensor(slot))
        batch = {"values": values}
        if self.lengths:
            batch["lengths"] = own if self._is_list() else own[:, 0]
        if self.mask:
            batch["mask"] = _inside(own, slot)
        return batch

    def _is_list(self) -> bool:
        return self.dims is not None or isinstance(self.length, tuple)

    def _wanted_dims(self) -> tuple[int, ...]:
        if self.dims is not None:
            return self.dims
        return tuple(range(-len(self.length), 0)) if isinstance(self.length, tuple) else (self.dim,)

    def _slot(self, tensors: list[torch.Tensor], dims: list[int], own: torch.Tensor) -> list[int]:
        """The sizes that the dimensions get."""
        if self.length is None:
            return own.amax(0).tolist()
        if not isinstance(self.length, tuple):
            return [self.length]
        for number, sizes in enumerate(own.tolist()):
            for dim, size, most in zip(dims, sizes, self.length, strict=True):
                if size > most:
                    raise penstock.ShapeMismatchError(
                        f"sample {number} of the batch has shape {tuple(tensors[number].shape)}, which is larger than "
                        f"the {most} to pad dimension {dim} to; choose a larger size, cut it, or pad to the longest "
                        "of the batch with pad"
                    )
        return list(self.length)

    def _padded_all(self, tensor: torch.Tensor, dims: list[int], slot: list[int]) -> torch.Tensor:
        for dim, length in zip(dims, slot, strict=True):
            tensor = self._padded(tensor, dim, length)
        return tensor

    def _padded(self, tensor: torch.Tensor, dim: int, length: int) -> torch.Tensor:
        size = tensor.shape[dim]
        if size >= length:
            return tensor.narrow(dim, 0, length)
        if self.mode in {"zero", "constant"}:
            shape = list(tensor.shape)
            shape[dim] = length
            out = tensor.new_full(shape, self.value)
            out.narrow(dim, 0, size).copy_(tensor)
            return out
        return tensor.index_select(dim, self._sources(size, length).to(tensor.device))

    def _sources(self, size: int, length: int) -> torch.Tensor:
        """Which element each place takes: the elements mirrored, or the last one repeated."""
        needed = 2 if self.mode == "reflect" else 1
        if size < needed:
            raise penstock.ShapeMismatchError(
                f"a sample has {plural(size, 'element')} along dimension {self.dim}; mode {self.mode!r} needs {needed} "
                "or more, padding with a constant none"
            )
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


def _require_alike(tensors: list[torch.Tensor], dims: list[int], what: str) -> None:
    first = tensors[0]
    rest = [size for d, size in enumerate(first.shape) if d not in dims]
    for i, tensor in enumerate(tensors):
        if tensor.dtype != first.dtype:
            raise penstock.DTypeMismatchError(
                f"the tensors of a batch must have one dtype, but sample {i} of it has {tensor.dtype} and the first "
                f"has {first.dtype}"
            )
        if tensor.dim() != first.dim() or [size for d, size in enumerate(tensor.shape) if d not in dims] != rest:
            alone = ("dimension " if len(dims) == 1 else "dimensions ") + " and ".join(map(str, dims))
            raise penstock.ShapeMismatchError(
                f"{what} changes {alone} alone, but sample {i} of the batch has shape {tuple(tensor.shape)} and the "
                f"first has {tuple(first.shape)}; make the other dimensions equal, or keep the "
                "tensors apart with ragged"
            )


def _names(keys: str | Iterable[str] | None) -> tuple[str, ...]:
    return (keys,) if isinstance(keys, str) else tuple(keys or ())


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
