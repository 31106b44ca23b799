"""Open files, read by their descriptor where that gives the same bytes as their own methods."""

from __future__ import annotations

import io
import os
import sys
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


def read_up_to(file: Any, count: int | None, refuse: Callable[[object], Exception]) -> bytearray:
    """That many bytes of a file object, or fewer where it ends. Memory grows with what is read, not
    with `count`.

    `readinto` is used where the object has it, because it saves a copy; otherwise `read`, which may
    give less than was asked for. A class that gives bytes of its own by `read` alone, and inherits
    `readinto`, is read by `read`. For an object that gives no bytes, what `refuse` makes of it is
    raised.
    """
    out = bytearray()
    if count != 0 and _reads_into(file):
        try:
            return _read_into(file, out, count, refuse)
        except (NotImplementedError, io.UnsupportedOperation):  # a class that only inherits the method
            if out:
                raise
    while count is None or len(out) < count:
        part = file.read() if count is None else file.read(min(max(_STEP, len(out)), count - len(out)))
        if not part:
            break
        if not isinstance(part, (bytes, bytearray, memoryview)):
            raise refuse(part)
        out += part
    return out


def _reads_into(file: Any) -> bool:
    if not callable(getattr(file, "readinto", None)):
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
        if read is not None and not isinstance(read, int):
            raise refuse(read)
        if not read:
            break
    return out
