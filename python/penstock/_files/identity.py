"""Whether a path is still the file that it was."""

from __future__ import annotations

import os


def identity(path: str | bytes) -> tuple[int, ...] | None:
    """A value that changes when another file takes the path, or other bytes are written; None where
    the system does not tell."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
