"""Tensors that become another type while they are loaded: `dtype=` of `load`.

C++ reads and converts (`_load_typed`). Here is decided which entries it converts, and where the results go: each lies
in a run of memory, a storage of its own that is numbered behind the file's own ones. Entries that are the same view
have one run. All other entries are views of the file's storages, as without a type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import penstock
from penstock._core import (
    _assemble,
    _block_layout,
    _converted_entries,
    _entry_parts,
    _load_dtype,
    _load_typed,
    _storage_count,
    _storage_parts,
)
from penstock.torch._devices import filled_typed
from penstock.torch._private import detect_fake_mode
from penstock.torch.loading._once import BlockLayout
from penstock.torch.loading._storages import (
    MapLocation,
    Views,
    arrays_of,
    devices_of,
    in_a_block,
    is_meta,
    meta_storage,
    moved,
    skips_data,
    storage_of,
    storages_of,
)
from penstock.torch.loading._together import Together

# Objects that keep the types of their parts: a quantized tensor is none of floating-point numbers, and a storage has
# bytes. What the attributes of a wrapper mean only its class knows; torch's own DTensor has its local part in one.
_KEPT = ("torch.quantized", "torch.storage.TypedStorage")
_WRAPPER, _DISTRIBUTED = "torch.wrapper_subclass", "torch.distributed.tensor.DTensor"

_Storages = list[torch.UntypedStorage | None]


@dataclass(frozen=True)
class Conversion:
    """The type that floating-point and complex tensors get, for Penstock and for torch."""

    dtype: penstock.DType
    of_torch: torch.dtype
    strict: bool
    keeps_complex: bool = False

    def type_for(self, dtype: torch.dtype) -> torch.dtype:
        """What becomes of a tensor of this type."""
        changes = dtype.is_floating_point or (dtype.is_complex and not self.keeps_complex)
        return self.of_torch if changes else dtype

    def entries(self, archive: penstock.Archive) -> list[int]:
        """Which entries have other types."""
        found = _converted_entries(archive, self.dtype)
        if not self.keeps_complex:
            return found
        return [index for index in found if not _entry_parts(archive, index)[1].startswith("complex")]

    def converted(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that is not made of the archive's entries."""
        wanted = self.type_for(tensor.dtype)
        if wanted == tensor.dtype:
            return tensor
        part = tensor.real if tensor.is_complex() and not wanted.is_complex else tensor
        out = part.detach().to(wanted)
        if self.strict and type(out) is torch.Tensor and not out.is_meta and _overflows(part, out):
            raise penstock.InvalidArgumentError(f"a value is too large for {self.dtype}; leave out strict")
        return out.requires_grad_(tensor.requires_grad)


def _overflows(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether a finite number became none."""
    wide = torch.complex128 if after.is_complex() else torch.float64
    return bool((before.detach().to(wide).isfinite() & ~after.to(wide).isfinite()).any())


def conversion_of(
    dtype: Any, strict: bool = False, mmap: bool | None = None, *, keeps_complex: bool = False
) -> Conversion | None:
    """The conversion that the arguments of a load ask for. What cannot be raises the errors of penstock.load."""
    wanted = _load_dtype(dtype, strict, mmap)
    if wanted is None:
        return None
    of_torch = vars(torch).get(str(wanted))  # getattr would import modules by that name
    if not isinstance(of_torch, torch.dtype):
        raise penstock.UnsupportedError(f"torch has no type for {wanted}; use penstock.load")
    return Conversion(wanted, of_torch, bool(strict), keeps_complex)


@dataclass
class _Runs:
    """Where the converted entries lie: the number of a storage, and the strides in it. `sizes` are the bytes of the
    runs, and `origins` the file's storages that they stand for."""

    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)


def read_converted(
    archive: penstock.Archive,
    map_location: MapLocation,
    conversion: Conversion,
    *,
    progress: Any = None,
    together: Together | None = None,
) -> list[Any]:
    """What `read_tensors` gives, of the type. Nothing is mapped."""
    arrays = arrays_of(archive)
    kept = _kept(archive) | arrays.keys()
    converted = [index for index in conversion.entries(archive) if index not in kept]
    others = [index for index in range(len(archive)) if index not in arrays and index not in set(converted)]
    devices = None
    fake = detect_fake_mode(None) is not None
    unread = fake or is_meta(map_location) or skips_data()
    if not unread and together is not None:
        runs = _planned(archive, converted, conversion.dtype.itemsize)
        layout = _laid_out(archive, storages_of(archive, arrays), runs, conversion)
        return in_a_block(archive, map_location, arrays, together, layout, progress, runs.places, runs.origins)
    if not unread:
        devices = devices_of(archive, map_location)
    if unread or devices is not None:
        runs = _planned(archive, converted, conversion.dtype.itemsize)
        if devices is not None:
            storages = _on_devices(archive, runs, others, devices, conversion, progress)
        elif fake or is_meta(map_location):
            storages = _without_memory(archive, runs, map_location)
        else:
            storages = moved(archive, _uninitialized(archive, runs, others), map_location, runs.origins)
    else:
        runs, storages = _read(archive, converted, others, conversion, progress)
        storages = moved(archive, storages, map_location, runs.origins)
    return Views(archive, storages, arrays, runs.places, str(conversion.dtype)).all()


class _Mark(int):
    """Stands for an entry."""


def _kept(archive: penstock.Archive) -> set[int]:
    """The entries that are parts of what keeps its types."""
    out: set[int] = set()

    def look(name: str, args: Any, state: Any, begun: Any = None) -> Any:
        if begun is not None:
            return begun
        if name in _KEPT:
            out.update(_marks(args))
        if name == _WRAPPER and args[0] != _DISTRIBUTED:
            out.update(_marks(state))
        return name if args is None else None

    _assemble(archive, [_Mark(index) for index in range(len(archive))], look)
    return out


def _marks(parts: Any) -> Iterator[_Mark]:
    """Those in the parts, and in the containers among them."""
    seen: set[int] = set()
    waiting = [parts]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _Mark):
            yield part
        elif isinstance(part, (dict, list, tuple)) and id(part) not in seen:
            seen.add(id(part))
            waiting.extend(part.values() if isinstance(part, dict) else part)


def _planned(archive: penstock.Archive, converted: Sequence[int], itemsize: int) -> _Runs:
    """A run for each different view. Strides stay where the elements lie close together."""
    runs = _Runs()
    known: dict[Any, int] = {}
    begin = _storage_count(archive)
    for index in converted:
        number, name, shape, strides, offset, _, conj, neg = _entry_parts(archive, index)
        view = (number, name, shape, strides, offset, conj, neg)
        run = known.setdefault(view, len(runs.sizes))
        if run == len(runs.sizes):
            runs.sizes.append(torch.Size(shape).numel() * itemsize)
            runs.origins.append(number)
        runs.places[index] = (begin + run, _dense(shape, strides))
    return runs


def _dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides themselves where every element has a place of its own and none lies between them, else those of a
    contiguous tensor."""
    step = 1
    for dim in sorted((d for d, size in enumerate(shape) if size != 1), key=strides.__getitem__):
        if strides[dim] != step:
            break
        step *= shape[dim]
    else:
        return strides
    out, step = [0] * len(shape), 1
    for dim in reversed(range(len(shape))):
        out[dim] = step
        step *= max(shape[dim], 1)
    return tuple(out)


def _laid_out(archive: penstock.Archive, left_out: list[int], runs: _Runs, conversion: Conversion) -> BlockLayout:
    """The storages of what is not converted in one block, and the runs behind them."""
    places, nbytes = _block_layout(archive, left_out, runs.places, runs.sizes)
    count = _storage_count(archive) + len(runs.sizes)
    typed = {number: (index, strides) for index, (number, strides) in runs.places.items() if number in places}
    return BlockLayout(places, nbytes, count, typed, conversion.dtype, conversion.strict)


def _wanted_storages(archive: penstock.Archive, entries: Sequence[int]) -> set[int]:
    return {_entry_parts(archive, index)[0] for index in entries}


def _read(
    archive: penstock.Archive, converted: list[int], others: list[int], conversion: Conversion, progress: Any
) -> tuple[_Runs, _Storages]:
    memory, places, wholes = _load_typed(archive, converted, others, conversion.dtype, conversion.strict, progress)
    runs = _Runs(origins=[0] * len(memory))
    for index, (run, strides) in zip(converted, places, strict=True):
        runs.places[index] = (len(wholes) + run, strides)
        runs.origins[run] = _entry_parts(archive, index)[0]
    return runs, [None if part is None else storage_of(part) for part in (*wholes, *memory)]


def _on_devices(
    archive: penstock.Archive,
    runs: _Runs,
    others: list[int],
    devices: list[torch.device],
    conversion: Conversion,
    progress: Any,
) -> _Storages:
    begin = _storage_count(archive)
    first: dict[int, tuple[int, torch.device, tuple[int, ...]]] = {}
    entries: dict[int, int] = {}
    for index, (number, strides) in runs.places.items():
        run = number - begin
        if entries.setdefault(number, index) == index:
            first[index] = (runs.sizes[run], devices[runs.origins[run]], strides)
    wholes = {
        number: (_storage_parts(archive, number)[0], devices[number]) for number in _wanted_storages(archive, others)
    }
    typed, plain = filled_typed(archive, first, wholes, conversion.dtype, conversion.strict, progress)
    memory = plain | {number: typed[index] for number, index in entries.items()}
    return [memory[n].untyped_storage() if n in memory else None for n in range(begin + len(runs.sizes))]


def _without_memory(archive: penstock.Archive, runs: _Runs, map_location: MapLocation) -> _Storages:
    origins = (*range(_storage_count(archive)), *runs.origins)
    sizes = (*(_storage_parts(archive, n)[0] for n in range(_storage_count(archive))), *runs.sizes)
    return [meta_storage(archive, n, nbytes, map_location) for nbytes, n in zip(sizes, origins, strict=True)]


def _uninitialized(archive: penstock.Archive, runs: _Runs, others: list[int]) -> _Storages:
    wanted = _wanted_storages(archive, others)
    own = (_storage_parts(archive, n)[0] if n in wanted else None for n in range(_storage_count(archive)))
    return [None if nbytes is None else torch.UntypedStorage(nbytes) for nbytes in (*own, *runs.sizes)]
