"""Files in memory (memfd) that several processes map, and how these find each other's.

C++ makes and maps them (`io/file/memory_file.h`). Another process finds one as /proc/PID/fd/N while this one maps it,
because a mapping keeps a descriptor.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from penstock._core import _mapped_memory as mapped
from penstock._core import _memory_file as new_file
from penstock.errors import InvalidArgumentError, UnsupportedError

__all__ = ["aligned", "descriptor_of", "mapped", "mapping_at", "new_file", "opened", "path_of"]

_NAME = "penstock"
_ALIGNMENT = 64


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


def aligned(nbytes: int) -> int:
    """Where the next part of a block begins."""
    return (nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


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
