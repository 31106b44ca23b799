"""Whether a path is still the file that it was."""

from __future__ import annotations

import os

import penstock


def identity(path: str | bytes) -> tuple[int, ...] | None:
    """A value that changes when another file takes the path, or other bytes are written; None where
    the system does not tell."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def require_same(path: str | bytes, before: tuple[int, ...] | None) -> None:
    """ChangedError unless the path is still the file that it was, or where the system did not tell."""
    if before is None or identity(path) != before:
        name, message = os.fsdecode(path), "the file was replaced or written to while it was loaded; load it again"
        raise penstock.ChangedError(f"{name}: {message}", message, name)
