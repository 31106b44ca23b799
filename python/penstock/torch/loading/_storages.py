"""The tensors of an archive as torch's: Penstock reads the storages, torch makes views over them.

A storage is read once, wherever it goes: host memory, a mapping of the file, or a CUDA device.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from mmap import MAP_SHARED
from types import MappingProxyType
from typing import Any

import torch
from torch.serialization import default_restore_location
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._core import (
    _alignments,
    _array_entries,
    _entry_parts,
    _is_hosted,
    _load_parts,
    _mappable_place,
    _storage_count,
    _storage_parts,
)
from penstock._files.identity import require_same
from penstock.errors import _within
from penstock.torch._devices import filled, reachable
from penstock.torch._errors import DeviceMemoryError, UnmadeError, UnmappableFileError, UnreachableDeviceError
from penstock.torch._private import detect_fake_mode, serialization_state, set_tensor_metadata
from penstock.torch.loading._once import BlockLayout, layout_of
from penstock.torch.loading._together import Together

Restore = Callable[[torch.UntypedStorage, str], torch.UntypedStorage]
MapLocation = str | torch.device | dict[str, str] | Callable[[torch.UntypedStorage, str], Any] | None


@dataclass(eq=False, slots=True)
class Packed:
    """A tensor of a type that only exists together with other parts (quantized): its storage, and how it lies there."""

    storage: torch.storage.TypedStorage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool


def read_tensors(
    archive: penstock.Archive,
    map_location: MapLocation,
    *,
    mmap: bool,
    progress: Any = None,
    together: Together | None = None,
) -> list[Any]:
    """A torch tensor for each entry of the archive, or a Packed for quantized ones. Shared storages are shared.

    Entries that are NumPy's arrays become arrays. A file that is another one now than when it was opened is not mapped.
    """
    arrays = arrays_of(archive)
    fake = detect_fake_mode(None) is not None
    if fake or is_meta(map_location):
        return Views(archive, _meta_storages(archive, map_location), arrays).all()
    if skips_data():
        return Views(archive, moved(archive, _empty_storages(archive), map_location), arrays).all()
    if together is not None:
        layout = layout_of(archive, storages_of(archive, arrays))
        return in_a_block(archive, map_location, arrays, together, layout, progress)
    if mmap:
        storages = _mapped_storages(archive, storages_of(archive, arrays))
        return Views(archive, moved(archive, storages, map_location), arrays).all()
    placed = _device_storages(archive, storages_of(archive, arrays), map_location, progress)
    if placed is not None:
        return Views(archive, placed, arrays).all()
    tensors, wholes = _load_parts(archive, progress)
    for index, storage in zip(arrays, storages_of(archive, arrays), strict=True):
        tensors[index] = wholes[storage] = None
    if stays_on_cpu(archive, map_location):
        views = Views(archive, [None if whole is None else storage_of(whole) for whole in wholes], arrays)
        return [views.one(i) if whole is None else _whole(whole, views, i) for i, whole in enumerate(tensors)]
    for i, tensor in enumerate(tensors):
        if tensor is not None:
            wholes[_entry_parts(archive, i)[0]] = tensor
    loaded = [None if whole is None else storage_of(whole) for whole in wholes]
    for number in {_entry_parts(archive, i)[0] for i in range(len(tensors)) if i not in arrays}:
        if loaded[number] is None:
            loaded[number] = _unread(archive, number)
    return Views(archive, moved(archive, loaded, map_location), arrays).all()


def in_a_block(
    archive: penstock.Archive,
    map_location: MapLocation,
    arrays: dict[int, Any],
    how: Together,
    layout: BlockLayout,
    progress: Any,
    places: Mapping[int, tuple[int, tuple[int, ...]]] = MappingProxyType({}),
    origins: Sequence[int] = (),
) -> list[Any]:
    """Tensors over a block that is read as it is laid out; `places` and `origins` are those of converted entries."""
    stays = stays_on_cpu(archive, map_location)
    device = None if stays or not isinstance(map_location, (str, torch.device)) else reachable(map_location)
    loaded = how.read(archive, device or torch.device("cpu"), layout, progress, stays=stays)
    storages = (
        loaded.storages if stays or device is not None else moved(archive, loaded.storages, map_location, origins)
    )
    return Views(archive, storages, arrays, places, str(layout.dtype or ""), loaded.begins).all()


def arrays_of(archive: penstock.Archive) -> dict[int, Any]:
    indices = _array_entries(archive)
    if not indices:
        return {}
    from penstock.numpy._arrays import array_of

    names = archive.keys()
    arrays = {index: array_of(archive[names[index]]) for index in indices}
    storages = set(storages_of(archive, arrays))
    # An array that two ways lead to has a name for each, and is asked for by the first.
    aliases = (i for i in range(len(names)) if i not in arrays and _entry_parts(archive, i)[0] in storages)
    return arrays | dict.fromkeys(aliases)


def storages_of(archive: penstock.Archive, arrays: dict[int, Any]) -> list[int]:
    return [_entry_parts(archive, index)[0] for index in arrays]


def _whole(tensor: penstock.Tensor, views: Views, index: int) -> Any:
    """A tensor that is all of its storage. Most tensors of a file are, so that this takes as few steps as possible."""
    try:
        out = from_dlpack(tensor.__dlpack__())
    except BufferError:  # a type that DLPack has no name for
        entry = _entry_parts(views.archive, index)
        views.storages[entry[0]] = storage_of(tensor)
        return views.one(index)
    return views.with_gradient(out, index) if tensor.requires_grad else out


def storage_of(whole: penstock.Tensor) -> torch.UntypedStorage:
    return from_dlpack(whole.view_bytes().reshape(-1).__dlpack__()).untyped_storage()


@dataclass(eq=False)
class Views:
    """Makes tensors over storages that are there, as the archive's entries say.

    Entries in `places` have another type, `dtype`, and lie in a storage of their own: its number,
    and the strides in it. Storages in `begins` are parts of the storage that stands for them.
    """

    archive: penstock.Archive
    storages: list[torch.UntypedStorage | None]
    arrays: dict[int, Any]
    places: Mapping[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    dtype: str = ""
    begins: Mapping[int, int] = field(default_factory=dict)

    def all(self) -> list[Any]:
        return [self.one(index) for index in range(len(self.archive))]

    def one(self, index: int) -> Any:
        if index in self.arrays:
            return self.arrays[index]
        number, name, shape, strides, byte_offset, requires_grad, conj, neg = _entry_parts(self.archive, index)
        if index in self.places:
            number, strides = self.places[index]
            name, byte_offset, conj, neg = self.dtype, 0, False, False
        dtype = vars(torch).get(name)  # getattr would import modules by that name
        if not isinstance(dtype, torch.dtype):
            raise self._error(penstock.UnsupportedError, index, f"torch has no type for {name}; use penstock.load")
        storage = self._storage(number)
        offset = (self.begins.get(number, 0) + byte_offset) // dtype.itemsize
        if _is_quantized(dtype):
            typed = torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
            return Packed(typed, offset, shape, strides, requires_grad)
        tensor = torch.empty((0,), dtype=dtype, device=storage.device)
        try:
            tensor.set_(storage, offset, shape, strides)
            if storage._fake_device is not None:
                tensor.fake_device = torch.device(storage._fake_device)  # type: ignore[attr-defined]
            if conj or neg:
                flags = {name: True for name, value in (("conj", conj), ("neg", neg)) if value}
                set_tensor_metadata(tensor, flags)
        except Exception as error:  # such as sizes whose product only Penstock can tell is 0
            raise self._error(penstock.CorruptError, index, f"torch cannot have it: {error}") from error
        return self.with_gradient(tensor, index) if requires_grad else tensor

    def with_gradient(self, tensor: torch.Tensor, index: int) -> torch.Tensor:
        if not tensor.is_floating_point() and not tensor.is_complex():
            raise self._error(
                penstock.CorruptError, index, f"it requires a gradient, which a tensor {tensor.dtype} has not"
            )
        return tensor.requires_grad_()

    def _error(self, kind: type[penstock.Error], index: int, message: str) -> penstock.Error:
        return _within(kind(message), self.archive.path, self.archive.keys()[index])

    def _storage(self, number: int) -> torch.UntypedStorage:
        storage = self.storages[number]
        if storage is None:
            storage = self.storages[number] = _unread(self.archive, number)
        return storage


def _unread(archive: penstock.Archive, number: int) -> torch.UntypedStorage:
    """A storage of zeros, as large as the file's. No tensor has elements in it, so that it was not read."""
    if number >= _storage_count(archive):  # of a converted tensor
        return torch.UntypedStorage(0)
    return torch.zeros(_storage_parts(archive, number)[0], dtype=torch.uint8, device="cpu").untyped_storage()


def _is_quantized(dtype: torch.dtype) -> bool:
    return dtype in {torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4}


# Where storages go.


def check_map_location(map_location: Any) -> None:
    if map_location is None or isinstance(map_location, (str, torch.device, dict)) or callable(map_location):
        return
    raise penstock.DTypeMismatchError(
        f"map_location is of type {type(map_location).__name__}; it must be None, a device, its name, a dict or a "
        "function"
    )


def is_meta(map_location: MapLocation) -> bool:
    return isinstance(map_location, (str, torch.device)) and str(map_location) == "meta"


def stays_on_cpu(archive: penstock.Archive, map_location: MapLocation) -> bool:
    if map_location is None:
        return _is_hosted(archive)
    return isinstance(map_location, (str, torch.device)) and str(map_location) == "cpu"


def _restore(map_location: MapLocation) -> Restore:
    def restore(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage:
        if callable(map_location):
            placed = map_location(storage, location)
            if isinstance(placed, torch.storage.TypedStorage):
                return placed._untyped_storage
            if placed is not None and not isinstance(placed, torch.UntypedStorage):
                raise penstock.DTypeMismatchError(
                    f"map_location gave an object of type {type(placed).__name__}; it must give a storage, or None for "
                    "the device that the file records"
                )
            if placed is not None:
                return placed
        return _at(storage, _wanted(map_location, location))

    return restore


def _at(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage:
    """The storage on the device of that name. Only torch can find the device."""
    try:
        moved: torch.UntypedStorage = default_restore_location(storage, location)
    except torch.OutOfMemoryError as error:
        raise DeviceMemoryError(f"there is no memory left on {location!r}: {error}") from error
    except Exception as error:
        reason = str(error).partition("\n")[0].removesuffix(".")
        raise UnreachableDeviceError(
            f"torch cannot put a storage on the device {location!r}, which the file or map_location names: {reason}. "
            "Give map_location='cpu', or a dict from the file's devices to yours"
        ) from error
    return moved


def _wanted(map_location: MapLocation, location: str) -> str:
    """The name of the device for a storage that was recorded at `location`. A function for this is asked elsewhere."""
    if isinstance(map_location, dict):
        return map_location.get(location, location)
    return str(map_location) if isinstance(map_location, (str, torch.device)) else location


def _device_storages(
    archive: penstock.Archive, resident: Sequence[int], map_location: MapLocation, progress: Any
) -> list[torch.UntypedStorage | None] | None:
    """The storages, read straight to CUDA devices or to the host where they belong there; None where this does not work
    for all."""
    devices = devices_of(archive, map_location)
    if devices is None:
        return None
    places = {
        number: (_storage_parts(archive, number)[0], device)
        for number, device in enumerate(devices)
        if number not in resident
    }
    memory = filled(archive, places, progress)
    return [memory[n].untyped_storage() if n in memory else None for n in range(_storage_count(archive))]


def devices_of(archive: penstock.Archive, map_location: MapLocation) -> list[torch.device] | None:
    """The device of each storage, where some go to CUDA devices and Penstock can fill all of them; otherwise None.

    Only torch can say where a function wants a storage, and what is wrong with a device that is not there.
    """
    if callable(map_location) or stays_on_cpu(archive, map_location):
        return None
    out = []
    for number in range(_storage_count(archive)):
        wanted = _wanted(map_location, _storage_parts(archive, number)[1] or "cpu")
        device = torch.device("cpu") if wanted == "cpu" else reachable(wanted)
        if device is None:
            return None
        out.append(device)
    return out


def moved(
    archive: penstock.Archive,
    storages: Sequence[torch.UntypedStorage | None],
    map_location: MapLocation,
    origins: Sequence[int] = (),
) -> list[torch.UntypedStorage | None]:
    """The storages where they belong. Those behind the file's own belong where the file's storages `origins` do."""
    restore = _restore(map_location)
    out: list[torch.UntypedStorage | None] = []
    for storage, i in zip(storages, (*range(_storage_count(archive)), *origins), strict=True):
        try:
            out.append(None if storage is None else restore(storage, _storage_parts(archive, i)[1] or "cpu"))
        except penstock.Error as error:
            raise _within(error, archive.path, _name_within(archive, i)) from error.__cause__
    return out


def _name_within(archive: penstock.Archive, storage: int) -> str | None:
    """The name of the first tensor in a storage."""
    return next((name for i, name in enumerate(archive.keys()) if _entry_parts(archive, i)[0] == storage), None)


def _meta_storages(archive: penstock.Archive, map_location: MapLocation) -> list[torch.UntypedStorage | None]:
    """Storages without memory, marked as torch marks them: with the place of their bytes in the file."""
    out: list[torch.UntypedStorage | None] = []
    for i in range(_storage_count(archive)):
        storage = meta_storage(archive, i, _storage_parts(archive, i)[0], map_location)
        storage._checkpoint_offset = _storage_parts(archive, i)[3]
        out.append(storage)
    return out


def meta_storage(
    archive: penstock.Archive, number: int, nbytes: int, map_location: MapLocation
) -> torch.UntypedStorage:
    """A storage without memory in the place of the file's storage of that number. Where its tensors are to be fake, and
    not on the meta device, it has the device that they say they are on."""
    storage = torch.UntypedStorage(nbytes, device="meta")
    if not is_meta(map_location):
        storage._fake_device = _fake_device(archive, number, map_location)  # type: ignore[assignment]
    return storage


def _fake_device(archive: penstock.Archive, number: int, map_location: MapLocation) -> str:
    """Where map_location wants a storage that is not read. A device that this machine lacks will do."""
    if callable(map_location):
        raise UnmadeError(
            "a function as map_location places storages, and under a FakeTensorMode there are none; give a device, its "
            "name or a dict"
        )
    wanted = _wanted(map_location, _storage_parts(archive, number)[1] or "cpu")
    try:
        return str(torch.device(wanted))
    except RuntimeError as error:
        reason = str(error).partition("\n")[0].removesuffix(".")
        message = f"torch knows no device {wanted!r}, which the file or map_location names: {reason}"
        raise _within(UnreachableDeviceError(message), archive.path, _name_within(archive, number)) from error


def skips_data() -> bool:
    """Whether torch.serialization.skip_data is in force."""
    return bool(getattr(serialization_state, "skip_data", False))


def _empty_storages(archive: penstock.Archive) -> list[torch.UntypedStorage | None]:
    return [torch.UntypedStorage(_storage_parts(archive, i)[0]) for i in range(_storage_count(archive))]


def _lacks_descriptors(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return error.errno in {errno.EMFILE, errno.ENFILE}
    return False


def _mapped_file(path: str, shared: bool, opened: tuple[int, ...]) -> torch.UntypedStorage:
    try:
        mapped: Any = torch.UntypedStorage.from_file(path, shared, os.path.getsize(path))
    except RuntimeError as error:
        advice = "raise the limit on addresses (ulimit -v)"
        if _lacks_descriptors(path):  # torch tells no number
            advice = "raise the limit on open files (ulimit -n)"
        message = f"the file cannot be mapped; leave mmap out, or {advice}"
        raise UnmappableFileError(f"{path}: {message}", message, path) from error
    require_same(path, opened)
    return mapped  # type: ignore[no-any-return]


def _mapped_storages(archive: penstock.Archive, resident: Sequence[int]) -> list[torch.UntypedStorage | None]:
    """The storages that are not `resident`, mapped from their files. What lies in several places, or where its type
    cannot be used, is copied, and so is what has the other byte order, because the file's own bytes stay as they are.
    """
    files: dict[str, torch.UntypedStorage] = {}
    shared = torch.serialization.get_default_mmap_options() == MAP_SHARED
    alignments = _alignments(archive)
    out: list[torch.UntypedStorage | None] = []
    for i in range(_storage_count(archive)):
        if i in resident:
            out.append(None)
            continue
        nbytes = _storage_parts(archive, i)[0]
        place = _mappable_place(archive, i)
        if place is None or alignments[i] == 0:
            out.append(filled(archive, {i: (nbytes, torch.device("cpu"))})[i].untyped_storage())
            continue
        path, offset, opened = place
        if path not in files:
            files[path] = _mapped_file(path, shared, opened)
        mapped = files[path][offset : offset + nbytes]
        out.append(mapped.clone() if offset % alignments[i] else mapped)
    return out
