"""Where a checkpoint is written: a folder of this machine, or one in a store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from penstock._core import _goes_to_store, _names_in, _Output, _remove
from penstock._files.replace import told


def folder_at(path: str, sync: bool) -> Folder:
    """`sync`: whether files are on the disk when they appear. UnsupportedError for URLs that cannot be written to."""
    return _InStore(path) if _goes_to_store(path) else Folder(path, sync)


class Folder:
    """Files that appear whole or not at all."""

    def __init__(self, path: str, sync: bool = True) -> None:
        self._path = path
        self._sync = sync
        self._open: set[_Output] = set()

    def make(self) -> None:
        """Makes it where it is missing."""
        with told(self._path, "the folder cannot be made"):
            os.makedirs(self._path, exist_ok=True)

    def names(self) -> list[str]:
        """Of what is in it."""
        with told(self._path, "the folder cannot be listed"):
            return os.listdir(self._path)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[_Output]:
        """A file that is there at the end of the block, complete, in place of an earlier one. Where the block fails, it
        is not; an error at its end may mean that it is there all the same."""
        path = os.path.join(self._path, name)
        with told(path, "it cannot be written"):
            out = _Output(path, self._sync)
            self._open.add(out)
            try:
                yield out
                out.commit()
            finally:
                self._open.discard(out)
                out.discard()

    def remove(self, name: str) -> None:
        """Removes a file of it."""
        os.unlink(os.path.join(self._path, name))

    def cancel(self) -> None:
        """Ends what other threads write and wait for."""
        for out in list(self._open):
            out.cancel()


class _InStore(Folder):
    def make(self) -> None:
        pass  # a folder is the beginning of names

    def names(self) -> list[str]:
        return _names_in(self._path)

    def remove(self, name: str) -> None:
        _remove(os.path.join(self._path, name))
