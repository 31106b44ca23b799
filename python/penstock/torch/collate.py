"""The ways to make a batch of samples: done natively for Penstock's datasets, on torch tensors for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import default_collate

import penstock
from penstock._core import _storage_fault
from penstock._text import plural
from penstock.torch._samples import as_mapping_of
from penstock.torch._shared_parts import require_few_ways

__all__ = ["Pad", "Ragged", "Rule", "Stack", "pad", "pad_to", "ragged", "stack"]

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


def _collated(samples: Sequence[Any], tensors: _Leaf) -> Any:
    require_few_ways(samples[0])  # whose nesting that of the batch is
    return _collated_parts(samples, tensors, None)


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

    native: penstock.Collate = field(default_factory=penstock.ragged, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return (ragged, ())

    def _tensors(self, tensors: list[torch.Tensor], key: str | None) -> Any:
        return tensors


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
        met: set[str | None] = set()

        def tensors(parts: list[torch.Tensor], key: str | None) -> Any:
            met.add(key)
            return self._tensors(parts, key)

        batch = _collated(samples, tensors)
        for key in self.keys:
            if key not in met:
                raise penstock.KeyNotFoundError(f"the samples have no key {key!r} to pad")
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
        _require_alike(tensors, dims)
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


def _require_alike(tensors: list[torch.Tensor], dims: list[int]) -> None:
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
                f"padding changes {alone} alone, but sample {i} of the batch has shape {tuple(tensor.shape)} and the "
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


def ragged() -> Ragged:
    """Tensors stay apart: each becomes a list of tensors.

    Returns
    -------
    Ragged
        A `collate_fn` for any loader.
    """
    return Ragged()


def stack() -> Stack:
    """Tensors of equal dtype and shape become one with a new dimension 0, as default_collate does it.

    Returns
    -------
    Stack
        A `collate_fn` for any loader.
    """
    return Stack()
