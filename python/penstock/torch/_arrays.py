"""torch's side of safetensors' API: what `penstock._weights.safetensors` asks of a library of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._core import _entry_parts, _require_unchanged, _storage_parts
from penstock._weights.safetensors import Framework, SafetensorError
from penstock._weights.shards import Shards
from penstock.torch._convert import to_torch
from penstock.torch._devices import device_of, filled, present, reachable


def _no_type(dtype: object, name: str) -> SafetensorError:
    return SafetensorError(f"torch has no type for {dtype}, that of tensor {name!r}; use penstock.open")


class Arrays(Framework):
    """Tensors on one device. Where the device is not there, the first tensor raises NoDeviceError."""

    def __init__(self, device: Any) -> None:
        self._device = device_of(device)
        self._direct = reachable(self._device)
        self._numbers: dict[str, int] = {}
        self._file: torch.UntypedStorage | None = None

    def map(self, path: str, unchanged: Callable[[], bool]) -> None:
        if self._device.type != "cpu":
            return
        try:
            mapped: Any = torch.UntypedStorage.from_file(path, False, os.path.getsize(path))
        except (OSError, RuntimeError):
            return  # what cannot be mapped is read
        if unchanged():
            self._file = mapped

    def whole(self, tensor: penstock.Tensor, name: str) -> torch.Tensor:
        try:
            out = to_torch(tensor)
        except BufferError as error:
            raise _no_type(tensor.dtype, name) from error
        return self._moved(out)

    def one(self, archive: penstock.Archive, entry: penstock.LazyTensor) -> torch.Tensor:
        if self._file is not None:
            _require_unchanged(archive)
            return self._mapped(self._file, entry)
        if self._direct is None:
            return super().one(archive, entry)  # type: ignore[no-any-return]
        return self._read_there(archive, [entry.name])[entry.name]

    def every(self, shards: Shards) -> dict[str, torch.Tensor]:
        if self._file is not None:
            _require_unchanged(shards.archive)
            return {name: self._mapped(self._file, entry) for name, entry in shards.entries.items()}
        if self._direct is None:
            return super().every(shards)
        return self._read_there(shards.archive, shards.entries)

    def _mapped(self, file: torch.UntypedStorage, entry: penstock.LazyTensor) -> torch.Tensor:
        dtype = self.dtype(entry.dtype.name, entry.name)
        begin = entry.offset or 0
        if entry.nbytes == 0 or begin % dtype.itemsize:
            return self.whole(entry.load(), entry.name)
        part: Any = file[begin : begin + entry.nbytes]
        out = torch.empty(0, dtype=dtype, device="cpu")
        out.set_(part, 0, entry.shape)  # type: ignore[call-overload]
        return out

    def _read_there(self, archive: penstock.Archive, names: Iterable[str]) -> dict[str, torch.Tensor]:
        """Reads entries straight to the device; each of them is the whole of a storage. All calls have the same
        archive."""
        assert self._direct is not None
        if not self._numbers:
            self._numbers = {name: number for number, name in enumerate(archive.keys())}
        parts = {name: _entry_parts(archive, self._numbers[name]) for name in names}
        dtypes = {name: self.dtype(dtype, name) for name, (_, dtype, *_) in parts.items()}
        places = {part[0]: (_storage_parts(archive, part[0])[0], self._direct) for part in parts.values()}
        memory = filled(archive, places)
        return {name: memory[part[0]].view(dtypes[name]).reshape(part[2]) for name, part in parts.items()}

    def dtype(self, dtype: str, name: str) -> torch.dtype:
        """torch's of that name; SafetensorError names the tensor where it has none."""
        known = vars(torch).get(dtype)  # getattr would import modules by that name
        if isinstance(known, torch.dtype):
            return known
        raise _no_type(dtype, name)

    def part(self, entry: penstock.LazyTensor, key: Any) -> torch.Tensor:
        if is_basic(key):
            try:
                device = "cpu" if self._direct is None else str(self._direct)
                return self.whole(entry[key].load(device=device), entry.name)
            except penstock.IndexOutOfRangeError:
                pass  # torch's own error says it below
        # Of a mapped file, torch touches what it takes.
        mapped = entry.load(mmap=True)
        whole = from_dlpack(mapped.__dlpack__(max_version=(1, 0)))
        taken = whole[key]
        if taken.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr():
            taken = taken.clone(memory_format=torch.contiguous_format)
        entry.load(mmap=True)  # is an error where the file changed under the copy
        return self._moved(taken)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if self._device.type == "cpu" else tensor.to(present(self._device))


def is_basic(key: Any) -> bool:
    """Whether the index consists of integers, slices with positive steps and Ellipsis. Penstock
    applies these before it reads."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(type(part) is int or part is Ellipsis or _is_plain_slice(part) for part in parts)


def _is_plain_slice(part: Any) -> bool:
    if not isinstance(part, slice):
        return False
    bounds = (part.start, part.stop, part.step)
    return all(bound is None or type(bound) is int for bound in bounds) and (part.step is None or part.step > 0)
