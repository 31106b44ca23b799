"""Loads into one block of memory: `load(shared=True)`, which several processes map, and `load(pinned=True)`.

All tensors of a shared load lie in one file without a name (memfd). It is sealed against becoming shorter, so that no
process that maps it can lose its pages, and it ends with the last process that maps it: nothing has to be removed, and
nothing lies in /dev/shm. Another process finds it as /proc/PID/fd/N while this one maps it, because whoever maps it
here (mmap, torch) keeps a descriptor as long.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import mmap
import os

from penstock._core import (
    _converted_entries,
    _entry_parts,
    _load_into,
    _load_storages_into,
    _load_typed_into,
    _pinned_bytes,
    _pinned_over,
    _storage_parts,
    _tensor_in,
    _value_over,
    empty,
)
from penstock.errors import InvalidArgumentError, LimitError, OutOfMemoryError, UnsupportedError

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from penstock._core import Archive

__all__ = [
    "aligned",
    "descriptor_of",
    "lay_out",
    "load_block",
    "mapped",
    "mapping_at",
    "new_file",
    "opened",
    "path_of",
    "pinned_block",
    "shared_block",
    "shared_pinned_block",
]

_NAME = "penstock"
_ALIGNMENT = 64
_PAGE = mmap.PAGESIZE
_LARGE = 1 << 20  # storages from here on lie behind a page as far as in the file, as direct reads want it


def new_file(nbytes: int) -> int:
    """The descriptor of a new file in memory, which never becomes shorter.

    UnsupportedError where the system gives none, OutOfMemoryError where it has no room.
    """
    empty((nbytes,), "uint8", "cpu")  # says it where the machine cannot have so much
    try:
        descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (OSError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise LimitError("no file can be opened any more; raise the limit (ulimit -n)") from error
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise OutOfMemoryError(f"{nbytes} bytes of shared memory: the kernel has no memory") from error
        raise UnsupportedError(
            f"the system gives no memory that processes share (memfd_create: {_reason(error)}); load without it, or "
            "allow memfd_create where the container forbids it (seccomp)"
        ) from error
    try:
        os.ftruncate(descriptor, max(nbytes, _PAGE))
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    except OSError as error:
        os.close(descriptor)
        raise OutOfMemoryError(f"{nbytes} bytes of shared memory: {_reason(error)}") from error
    return descriptor


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def mapped(descriptor: int, nbytes: int) -> mmap.mmap:
    """A mapping that can be written. It keeps a descriptor of its own."""
    try:
        memory = mmap.mmap(descriptor, max(nbytes, _PAGE))
    except OSError as error:
        raise OutOfMemoryError(
            f"{nbytes} bytes of shared memory cannot be mapped: {_reason(error)}; raise the limit on addresses (ulimit "
            "-v)"
        ) from error
    with contextlib.suppress(OSError, AttributeError):  # advice: shmem_enabled may be "never"
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def path_of(descriptor: int) -> str:
    """By which other processes open it."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def opened(path: str) -> int:
    """A descriptor of a file that another process made by `new_file`. OSError, and UnsupportedError for another file:
    one that becomes shorter would end a process that reads it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        sealed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
    except OSError:  # which a file of a folder has none of
        sealed = 0
    if not sealed:
        os.close(descriptor)
        raise UnsupportedError(f"{path}: it is no memory that penstock.sharing.share has named")
    return descriptor


def lay_out(
    archive: Archive, left_out: Collection[int] = (), odd: Collection[int] = ()
) -> tuple[dict[int, tuple[int, int]], int]:
    """Where the storages with tensors go in one block, {storage: (offset, bytes)} in the order of the files, and how
    many bytes that takes. `odd`: entries that do not count."""
    used = set()
    for index in range(len(archive)):
        number, _, shape, *_ = _entry_parts(archive, index)
        if 0 not in shape and index not in odd:
            used.add(number)
    placed = []
    for number in used.difference(left_out):
        nbytes, _, source, begin = _storage_parts(archive, number)
        placed.append((source, begin or 0, number, nbytes))
    out, end = {}, 0
    for _, begin, number, nbytes in sorted(placed):
        unit, shift = (_PAGE, begin % _PAGE) if nbytes >= _LARGE and begin % _ALIGNMENT == 0 else (_ALIGNMENT, 0)
        at = (max(end - shift, 0) + unit - 1) // unit * unit + shift
        out[number] = (at, nbytes)
        end = at + nbytes
    return out, end


def aligned(nbytes: int) -> int:
    """Where the next part of a block begins."""
    return (nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def shared_block(nbytes: int) -> Any:
    """Memory that other processes map too, while this one does."""
    descriptor = new_file(nbytes)
    try:
        return memoryview(mapped(descriptor, nbytes))
    finally:
        os.close(descriptor)


def pinned_block(nbytes: int) -> Any:
    """Page-locked memory of this process."""
    return _pinned_bytes(nbytes)


def shared_pinned_block(nbytes: int) -> Any:
    """Memory that other processes map, page-locked for this one."""
    return _pinned_over(shared_block(nbytes))


def load_block(
    archive: Archive,
    block_of: Callable[[int], Any],
    progress: Any,
    report: dict[str, Any] | None,
    direct: bool | None,
    threads: int | None,
    dtype: Any = None,
    strict: bool = False,
) -> Any:
    """What `load` gives, in one block of memory, which `block_of` makes. What becomes `dtype` lies behind the rest."""
    typed = set() if dtype is None else set(_converted_entries(archive, dtype))
    odd = _entries_apart(archive, typed, dtype)
    places, nbytes = lay_out(archive, odd=odd)
    behind = {}
    for index, (name, shape, size) in odd.items():
        behind[index] = aligned(nbytes), name, shape
        nbytes = aligned(nbytes) + size
    memory = block_of(max(nbytes, 1))
    storages = {number: memory[at : at + size] for number, (at, size) in places.items()}
    entries = {
        index: _tensor_in(memory, at, name, shape, _c_order(shape)) for index, (at, name, shape) in behind.items()
    }
    if typed:
        converted = {
            index: (memory[at : at + odd[index][2]], _c_order(shape))
            for index, (at, _, shape) in behind.items()
            if index in typed
        }
        _load_typed_into(archive, converted, storages, dtype, strict, progress)
    else:
        _load_storages_into(archive, storages, progress, report, direct, threads)
    views = [index for index in entries if index not in typed]
    if views:
        _load_into(archive, views, [entries[index] for index in views])
    return _value_over(archive, storages, entries)


def _entries_apart(archive: Archive, typed: set[int], dtype: Any) -> dict[int, tuple[str, tuple[int, ...], int]]:
    """{entry: (dtype, shape, bytes)} of those whose values lie nowhere in the file: conjugated and negated views, and
    what becomes another type."""
    out = {}
    for index, name in enumerate(archive.keys()):
        _, kept, shape, _, _, _, conj, neg = _entry_parts(archive, index)
        if index in typed:
            out[index] = dtype.name, shape, math.prod(shape) * dtype.itemsize
        elif (conj or neg) and 0 not in shape:
            out[index] = kept, shape, archive[name].nbytes
    return out


def _c_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def mapping_at(address: int) -> tuple[int, int, int]:
    """(begin, end, inode) of the shared memory in which an address lies."""
    with open("/proc/self/maps") as lines:
        for line in lines:
            span, mode, offset, _, inode, *name = line.split()
            begin, end = (int(part, 16) for part in span.split("-"))
            if begin <= address < end:
                if name and name[0] == f"/memfd:{_NAME}" and mode[3] == "s":
                    return begin - int(offset, 16), end, int(inode)
                break
    raise InvalidArgumentError(
        "found a tensor in memory of this process alone, expected those of a load with shared=True"
    )


def descriptor_of(inode: int) -> int:
    """One of this process's on the file: whatever maps it keeps one."""
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            same = os.fstat(number).st_ino == inode
            if same and os.readlink(f"/proc/self/fd/{number}").startswith(f"/memfd:{_NAME}"):
                return number
    raise InvalidArgumentError("the descriptor of the shared memory was closed by the program")
