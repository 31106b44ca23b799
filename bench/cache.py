"""Files taken out of the page cache, so that they are read from their disk."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

from line import Absent

#: A file with more than this left is not cold.
MOST_LEFT = 0.01
TRIES, WAIT_SECONDS = 5, 0.2


def drop(path: Path) -> None:
    """Absent where it stays, as on a tmpfs or while another process maps it."""
    for _ in range(TRIES):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)  # pages that are not written yet stay
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
        left = cached_share(path)
        if left <= MOST_LEFT:
            return
        time.sleep(WAIT_SECONDS)
    raise Absent(
        f"{path} cannot be dropped from the page cache ({left:.0%} of it stays): put the data on a disk, and let no "
        "other process map it"
    )


def cached_share(path: Path) -> float:
    """Which part of a file is in the page cache, by mincore(2), which tells only of files that are ours or writable."""
    size = path.stat().st_size
    if size == 0:
        return 0.0
    # Not by mmap's default: without write access ctypes gives no address.
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as mapped:
        resident = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        first = ctypes.c_char.from_buffer(mapped)
        address, length = ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size)
        failed = ctypes.CDLL(None, use_errno=True).mincore(address, length, resident)
        del first  # a mapping with a pointer into it does not close
        if failed:
            raise OSError(ctypes.get_errno(), "mincore failed", str(path))
    return sum(flags & 1 for flags in resident) / len(resident)
