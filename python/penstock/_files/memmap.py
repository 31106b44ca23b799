"""Which place of which file a `numpy.memmap` is, so that it is read from there, and pickles as that.

That is so where the memory is the file's: mapped, shared and without a right to write. All others are memory: changes
of mode "c" are nowhere else, and one that may be written to is seen as it is.
"""

from __future__ import annotations

import os

import penstock

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any


def entry_of(array: Any) -> Any:
    """The LazyTensor of the elements that the memmap has, or None where it is to be taken as memory."""
    flags = array.flags
    if array.size == 0 or array.dtype.itemsize == 0 or not (flags.c_contiguous or flags.f_contiguous):
        return None
    path = getattr(array, "filename", None)
    if path is None:
        return None
    offset = _offset_in(os.fspath(path), array.__array_interface__["data"][0], array.nbytes)
    if offset is None:
        return None
    try:
        return penstock.raw(os.fspath(path), array.dtype, array.shape, offset, "C" if flags.c_contiguous else "F")
    except penstock.Error:  # a type that only NumPy has, a file that was cut
        return None


def _offset_in(path: str, address: int, size: int) -> int | None:
    """Where in the file at `path` these bytes of memory lie; None where they are not, or are more than, its bytes."""
    try:
        status = os.stat(path)
        with open("/proc/self/maps") as maps:
            for line in maps:
                span, rights, begin, device, inode = line.split(maxsplit=5)[:5]
                first, last = (int(part, 16) for part in span.split("-"))
                if not first <= address < last:
                    continue
                major, minor = (int(part, 16) for part in device.split(":"))
                same = (os.makedev(major, minor), int(inode)) == (status.st_dev, status.st_ino)
                shared = rights == "r--s" and address + size <= last
                return int(begin, 16) + address - first if same and shared else None
    except (OSError, ValueError):
        pass
    return None
