"""Open files that are read by another way than their own methods."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

__all__ = ["number_of"]


def number_of(file: Any) -> int | None:
    """The descriptor of an open file whose positions are those of the bytes on disk, with nothing of it unwritten; None
    for any other object.

    Decompressors, decrypting readers and windows onto larger files have a fileno too: that of the file they read from.
    So has a file opened as text, whose positions mean nothing.
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
