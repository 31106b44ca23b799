"""Open files that are read by another way than their own methods."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

__all__ = ["number_of"]


def number_of(file: Any) -> int | None:
    """The descriptor of an open file whose positions are those of the bytes on disk; None for any other object.

    Decompressors, decrypting readers and windows onto larger files have a fileno too: that of the file they read from.
    So has a file opened as text, whose positions mean nothing.
    """
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None and type(file) is tempfile._TemporaryFileWrapper:
        file = file.file
    if type(file) in (io.BufferedReader, io.BufferedRandom):
        file = file.raw
    if type(file) is not io.FileIO:
        return None
    try:
        number = file.fileno()
    except (OSError, ValueError):
        return None
    return number if os.path.isfile(f"/proc/self/fd/{number}") else None
