"""Temporary files, for writing where no path leads."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import penstock
from penstock._asked import attribute
from penstock.errors import _renamed

_AT_ONCE = 1 << 20  # bytes


@contextmanager
def temporary_path(suffix: str, name: str) -> Iterator[str]:
    """A path to write to, which is removed at the end of the block. Errors get `name` in its place,
    except those of the system, which are about the folder of temporary files."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        path = os.path.join(folder, f"x{suffix}")
        try:
            yield path
        except penstock.Error as error:
            if not isinstance(error, OSError):
                _renamed(error, path, name)
            raise


def copied(source: IO[bytes], out: Any) -> None:
    """Writes all that is left in `source` to an object with `write`, which may take less than it is given. The object
    is flushed, so that whoever opens the same file by its name finds all of it, and is not closed.

    InputOutputError where it takes nothing.
    """
    while chunk := source.read(_AT_ONCE):
        _write_all(chunk, out)
    _flush(out)


def written(data: bytes, out: Any) -> None:
    """Writes `data`, as `copied` does. The object gets it as a memoryview, as torch gives its bytes."""
    _write_all(data, out)
    _flush(out)


def _write_all(data: bytes, out: Any) -> None:
    left = memoryview(data)
    while left:
        taken = out.write(left)
        if taken is None and not isinstance(out, io.RawIOBase):
            return  # what says nothing took all
        if not taken:
            raise penstock.InputOutputError("the stream takes no more; what was written is not the whole file")
        left = left[taken:]


def _flush(out: Any) -> None:
    flush = attribute(out, "flush")
    if callable(flush):
        flush()
