"""Files that replace others as a whole: a reader sees the old file or the new one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import penstock
from penstock._core import _goes_to_store, _Output, _put_file

__all__ = ["replaced", "system_error"]


def replaced(path: str | bytes, write: Callable[[Any], None], *, sync: bool = False) -> None:
    """Calls `write` with a binary file that then takes the path's place, as `save` of Penstock does it.
    For a URL, the file is uploaded when it is whole. When `write` raises, nothing of the new file is
    left. Errors name the path."""
    name = os.fsdecode(path)
    if _goes_to_store(name):
        _put(name, write)
        return
    out = _Output(name, sync)
    try:
        with os.fdopen(out.duplicate(), "wb") as file:
            write(file)
        out.commit()
    except BaseException as error:
        ours = _of_writing(name, error, "cannot write the file")
        if ours is None:
            raise
        raise ours from error
    finally:
        out.discard()


def _put(url: str, write: Callable[[Any], None]) -> None:
    """What writes may go back in its file, which an object does not allow."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile(prefix="penstock-") as out:
            write(out)
            out.flush()
            _put_file(out.name, url)
    except BaseException as error:
        ours = _of_writing(url, error, f"cannot write a temporary file in {tempfile.gettempdir()}")
        if ours is None:
            raise
        raise ours from error


def system_error(error: BaseException) -> OSError | None:
    """The system's error behind another one: writers may raise an error of their own as they close the file."""
    cause: BaseException | None = error if isinstance(error, (OSError, RuntimeError)) else None
    while cause is not None and not isinstance(cause, penstock.Error):
        if isinstance(cause, OSError) and cause.errno is not None:
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _of_writing(name: str, error: BaseException, what: str) -> penstock.Error | None:
    """What an exception while writing becomes; None where writing is not what failed."""
    refused = system_error(error)
    if refused is not None:
        return _error(name, refused.errno, what)
    if not _is_failed_write(error):
        return None
    message = f"{what}: {error}; free some space or write elsewhere"
    return penstock.InputOutputError(f"{name}: {message}", message, name)


def _is_failed_write(error: BaseException) -> bool:
    """Whether less was written than should be, of which NumPy (`ndarray.tofile`) and torch (its old format) tell no
    number."""
    if isinstance(error, penstock.Error):
        return False
    by_numpy = isinstance(error, OSError) and error.errno is None and "requested and" in str(error)
    return by_numpy or (isinstance(error, RuntimeError) and str(error).startswith("write(): fd "))


def _error(name: str, number: int | None, what: str = "cannot write the file") -> penstock.Error:
    kind = _KINDS.get(number, penstock.InputOutputError)
    message = f"{what}: {os.strerror(number or 0)}; {_ADVICE.get(number, 'check the path')}"
    return kind(f"{name}: {message}" if name else message, message, name, errno=number)


_ADVICE: dict[int | None, str] = {
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close files in other programs",
    errno.ENAMETOOLONG: "use a shorter path",
    errno.ELOOP: "its symbolic links lead in a circle",
    errno.EROFS: "write somewhere else",
    errno.EFBIG: "the file system or a limit (RLIMIT_FSIZE) takes no larger files",
    errno.ENOSPC: "free some space or write elsewhere",
    errno.EDQUOT: "free some space or write elsewhere",
}


_KINDS: dict[int | None, type[penstock.Error]] = {
    errno.ENOENT: penstock.NotFoundError,
    errno.ELOOP: penstock.NotFoundError,
    errno.EROFS: penstock.PermissionDeniedError,
    errno.ENOTDIR: penstock.NotDirectoryError,
    errno.EISDIR: penstock.IsDirectoryError,
    errno.EACCES: penstock.PermissionDeniedError,
    errno.EPERM: penstock.PermissionDeniedError,
}
