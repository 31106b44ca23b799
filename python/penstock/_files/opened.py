"""Open files, read by their descriptor where that gives the same bytes as their own methods."""

from __future__ import annotations

import io
import os
import sys

from penstock._asked import attribute

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def number_of(file: Any) -> int | None:
    """The descriptor of an open file whose positions are those of the bytes on disk and that has
    nothing unwritten; None for all other objects.

    Decompressors, decrypting readers and windows onto larger files have a fileno too: that of the
    file they read from. A file opened as text has one as well, but its positions mean nothing.
    """
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None and type(file) is tempfile._TemporaryFileWrapper:
        file = file.file
    raw = file.raw if type(file) in (io.BufferedReader, io.BufferedRandom) else file
    if type(raw) is not io.FileIO:
        return None
    try:
        file.flush()  # what was written is on its way
        number = raw.fileno()
    except (OSError, ValueError):
        return None
    return number if os.path.isfile(f"/proc/self/fd/{number}") else None


_STEP = 1 << 18
_MOST_NPY_HEADER = 1 << 20


def read_up_to(file: Any, count: int | None, refuse: Callable[[object], Exception]) -> bytearray:
    """That many bytes of a file object, or fewer where it ends. Memory grows with what is read, not
    with `count`.

    `readinto` is used where the object has it, because it saves a copy; otherwise `read`, which may
    give less than was asked for. A class that gives bytes of its own by `read` alone, and inherits
    `readinto`, is read by `read`. For an object that gives no bytes, None where it has none yet, what
    `refuse` makes of it is raised.
    """
    out = bytearray()
    if count != 0 and _reads_into(file):
        try:
            return _read_into(file, out, count, refuse)
        except (NotImplementedError, io.UnsupportedOperation):  # a class that only inherits the method
            if out:
                raise
    while count is None or len(out) < count:
        step = max(_STEP, len(out))
        part = file.read(step if count is None else min(step, count - len(out)))
        if not isinstance(part, (bytes, bytearray, memoryview)):
            raise refuse(part)
        if not part:
            break
        out += part
    return out


def _reads_into(file: Any) -> bool:
    if not callable(attribute(file, "readinto")):
        return False
    for kind in type(file).__mro__:
        if "readinto" in vars(kind):
            return True
        if "read" in vars(kind):
            return False
    return True  # by attributes of its own


def _read_into(file: Any, out: bytearray, count: int | None, refuse: Callable[[object], Exception]) -> bytearray:
    while count is None or len(out) < count:
        begin = len(out)
        step = max(_STEP, begin) if count is None else min(max(_STEP, begin), count - begin)
        out.extend(bytes(step))
        read: object = 0
        try:
            with memoryview(out) as whole, whole[begin:] as place:
                read = file.readinto(place)
        finally:
            del out[begin + (read if isinstance(read, int) and 0 <= read <= step else 0) :]
        if not isinstance(read, int):
            raise refuse(read)
        if not read:
            break
    return out


def read_npy_header(
    head: bytearray, read: Callable[[int], bytearray], check: Callable[[int, int], None] | None = None
) -> bool:
    """Adds the rest of its header to the first six bytes of a `.npy`; false where its length is cut, or that of none.

    `check` is asked before it is read whether the header, of so many bytes in all and of that version, may be.
    """
    head += read(2)
    width = 2 if head[6:7] == b"\1" else 4
    head += read(width)
    length = int.from_bytes(head[8:], "little")
    if len(head) < 8 + width or length > _MOST_NPY_HEADER:
        return False
    if check is not None:
        check(len(head) + length, head[6])
    head += read(length)
    return True
