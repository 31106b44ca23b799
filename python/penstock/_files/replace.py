"""Files that replace others as a whole: a reader sees the old file or the new one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import penstock
from penstock._core import _goes_to_store, _Output, _put_file, _system_error


def replaced(path: str | bytes, write: Callable[[Any], None], *, sync: bool = False) -> None:
    """Calls `write` with a binary file that then takes the path's place, as `save` of Penstock does it. For a URL, the
    file is uploaded when it is whole. When `write` raises, nothing of the new file is left. Errors name the path."""
    name = os.fsdecode(path)
    if _goes_to_store(name):
        _put(name, write)
        return
    out = _Output(name, sync)
    try:
        with told(name, "cannot write the file"), os.fdopen(out.duplicate(), "wb") as file:
            write(file)
        out.commit()
    finally:
        out.discard()


def _put(url: str, write: Callable[[Any], None]) -> None:
    """What writes may go back in its file, which an object does not allow."""
    import tempfile

    with (
        told(url, f"cannot write a temporary file in {tempfile.gettempdir()}"),
        tempfile.NamedTemporaryFile(prefix="penstock-") as out,
    ):
        write(out)
        out.flush()
        _put_file(out.name, url)


@contextlib.contextmanager
def told(path: str, what: str) -> Iterator[None]:
    """Errors of the system become Penstock's, with the path. Writers may raise an error of their own as they close the
    file; then the one behind it is told."""
    try:
        yield
    except penstock.Error:
        raise
    except (OSError, RuntimeError) as error:
        behind = _behind(error)
        if behind is None:
            raise
        ours = behind if isinstance(behind, penstock.Error) else _system_error(behind.errno, what, path)
        raise ours from error


def _behind(error: BaseException) -> Any:
    """The first error of Penstock's, or of the system, that led to another one."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, penstock.Error) or (isinstance(found, OSError) and found.errno is not None):
            return found
        found = found.__cause__ or found.__context__
    return None
