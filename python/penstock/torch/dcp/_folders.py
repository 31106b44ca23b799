"""Where a checkpoint is written: a folder of this machine, or one in a store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Protocol

from penstock._core import _goes_to_store, _names_in, _Output, _remove
from penstock._replace import system_error
from penstock.errors import Error, InputOutputError, PermissionDeniedError
from penstock.torch.dcp._metadata import failed

__all__ = ["Folder", "folder_at"]


class Folder(Protocol):
    """Files that appear whole or not at all."""

    def make(self) -> None:
        """Makes it where it is missing."""

    def names(self) -> list[str]:
        """Of what is in it."""

    def writing(self, name: str, token: str) -> contextlib.AbstractContextManager[Any]:
        """A file that is there at the end of the block, complete, in place of an earlier one; or not at all.
        `token` makes the names of files that are being written its own."""

    def remove(self, name: str) -> None: ...

    def cancel(self) -> None:
        """Ends what other threads write and wait for."""


def folder_at(path: str, sync: bool) -> Folder:
    """`sync`: whether files are on the disk when they appear. UnsupportedError for URLs that cannot be written to."""
    return _InStore(path) if _goes_to_store(path) else _OnDisk(path, sync)


class _OnDisk:
    def __init__(self, path: str, sync: bool) -> None:
        self._path = path
        self._sync = sync

    def make(self) -> None:
        with _told(self._path):
            os.makedirs(self._path, exist_ok=True)

    def names(self) -> list[str]:
        return os.listdir(self._path)

    def writing(self, name: str, token: str) -> contextlib.AbstractContextManager[Any]:
        return _replacing(os.path.join(self._path, name), token, self._sync)

    def remove(self, name: str) -> None:
        os.unlink(os.path.join(self._path, name))

    def cancel(self) -> None:
        pass  # a disk does not have anyone wait for long


class _InStore:
    def __init__(self, url: str) -> None:
        self._url = url
        self._open: set[_Output] = set()

    def make(self) -> None:
        pass  # a folder is the beginning of names

    def names(self) -> list[str]:
        return _names_in(self._url)

    @contextlib.contextmanager
    def writing(self, name: str, token: str) -> Iterator[_Output]:
        out = _Output(os.path.join(self._url, name))
        self._open.add(out)
        try:
            yield out
            out.commit()
        except RuntimeError as error:
            # torch's own writer tells of another error as it closes the file.
            ours = error.__context__
            if isinstance(error, Error) or not isinstance(ours, Error):
                raise
            raise ours from None
        finally:
            self._open.discard(out)
            out.discard()

    def remove(self, name: str) -> None:
        _remove(os.path.join(self._url, name))

    def cancel(self) -> None:
        for out in list(self._open):
            out.cancel()


@contextlib.contextmanager
def _replacing(path: str, token: str, sync: bool) -> Iterator[Any]:
    """A file that comes to `path` at the end of the block, complete, or not at all."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name.removeprefix('.')}.{token}.partial")
    with _told(path):
        try:
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if sync:
            _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Has names in the folder reach the disk."""
    with contextlib.suppress(OSError):  # not every file system can
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Errors of the system as Penstock's, with the path."""
    try:
        yield
    except Error:
        raise
    except (OSError, RuntimeError) as error:
        refused = system_error(error)  # torch's own writer tells of another error as it closes the file
        if refused is None:
            raise
        kind = PermissionDeniedError if isinstance(refused, PermissionError) else InputOutputError
        message = f"it could not be written: {refused.strerror or refused}; nothing of this save is left in its place"
        raise failed(kind, message, path) from error
