"""Files that are written on the way to where no path leads."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import penstock
from penstock.errors import _within

__all__ = ["temporary_path"]


@contextmanager
def temporary_path(suffix: str, name: str) -> Iterator[str]:
    """A path to write to, which goes with the block. Errors name `name` in its place, but for those of the system,
    which are about the folder of temporary files."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        path = os.path.join(folder, f"x{suffix}")
        try:
            yield path
        except penstock.Error as error:
            if error.path != path or isinstance(error, OSError):
                raise
            bare = type(error)(error.message, error.message, None, error.offset, error.tensor)
            raise _within(bare, name) from error
