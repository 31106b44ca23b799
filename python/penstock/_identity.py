"""Whether a path is still the file that it was."""

from __future__ import annotations

import os


def identity(path: str | bytes) -> tuple[int, ...] | None:
    """What changes when the path becomes another file, or the file other bytes; None where nothing can be said."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
