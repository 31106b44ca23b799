"""Where a dataset of Ray is written, so that it is there whole or not at all.

On a disk that all nodes share, each task writes files of its own into a folder beside the one that was asked for, under
names that nobody else uses, so that a task that is started again cannot meet what a dead worker left. When all tasks
are done, the driver gives the files their names, drops what no task said it wrote, and renames the folder. Until then
there is nothing under its name.

A store renames nothing, but an object of parts appears only when its upload is completed, by anyone who knows its id
and its parts. So tasks send the parts and return what completing takes, and the driver completes all uploads when all
tasks are done. Uploads that nobody completed are taken back by the driver, which finds them by a word in their names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from typing import Any, NamedTuple, Protocol

import penstock
from penstock._core import _abort_uploads, _complete_parts, _goes_to_store, _require_new_place, _save_parts
from penstock._files.paths import absolute
from penstock.ray._numbers import checksum_of, number_shard, packing_of, unnumbered


class Written(NamedTuple):
    """A file of a task."""

    task: int
    name: str
    nbytes: int
    ticket: Any = None  # what completes its upload
    checksum: int = 0  # of its samples, where they are packed


class Place(Protocol):
    """Travels to the workers."""

    name: str

    def require_free(self) -> None:
        """InvalidArgumentError where something is there."""

    def begin(self) -> None:
        """In the driver, before the first task."""

    def write(self, content: Any, metadata: dict[str, str] | None, task: int) -> Written:
        """In a task. Metadata makes a shard of packed samples."""

    def complete(self, written: list[Written]) -> None:
        """In the driver, when all tasks are done."""

    def drop(self) -> None:
        """In the driver, in place of `complete` or behind it where it failed."""


def place_at(folder: str, extension: str) -> Place:
    """UnsupportedError for URLs that nothing can be written to."""
    return (
        _InStore(folder, extension)
        if _goes_to_store(folder)
        else _OnDisk(absolute(folder).rstrip("/") or "/", extension)
    )


class _OnDisk:
    def __init__(self, folder: str, extension: str) -> None:
        self.name = folder
        self._extension = extension
        parent, name = os.path.split(folder)
        self._temporary = os.path.join(parent, f".{name}.{uuid.uuid4().hex[:12]}")

    def require_free(self) -> None:
        _require_new_place(self.name)
        parent = os.path.dirname(self.name)
        if not os.path.isdir(parent):
            message = f"there is no folder {parent} to write into; make it first"
            raise penstock.NotFoundError(f"{self.name}: {message}", message, self.name)

    def begin(self) -> None:
        os.mkdir(self._temporary)

    def write(self, content: Any, metadata: dict[str, str] | None, task: int) -> Written:
        name = uuid.uuid4().hex + self._extension
        path = os.path.join(self._temporary, name)
        try:
            penstock.save(content, path, metadata=None if metadata is None else {**metadata, **unnumbered()})
        except penstock.NotFoundError as error:
            message = f"this node does not see {self._temporary}; all nodes need to share the folder that is written to"
            raise penstock.NotFoundError(message, message, self._temporary) from error
        checksum = 0 if metadata is None else checksum_of(content, metadata)
        return Written(task, name, os.path.getsize(path), checksum=checksum)

    def complete(self, written: list[Written]) -> None:
        self._require_there(written)
        for name in set(os.listdir(self._temporary)) - {file.name for file in written}:
            os.unlink(os.path.join(self._temporary, name))
        digits = max(5, len(str(len(written) - 1)))
        packing = packing_of([file.checksum for file in written])
        for i, file in enumerate(written):
            path = os.path.join(self._temporary, file.name)
            if file.checksum:
                number_shard(path, i, len(written), packing)
            os.rename(path, os.path.join(self._temporary, f"{i:0{digits}d}{self._extension}"))
        self.require_free()
        os.rename(self._temporary, self.name)

    def drop(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _require_there(self, written: list[Written]) -> None:
        for file in written:
            path = os.path.join(self._temporary, file.name)
            if not os.path.exists(path) or os.path.getsize(path) != file.nbytes:
                message = (
                    "a worker wrote this file, and this process does not see it; all nodes need to share the folder"
                )
                raise penstock.NotFoundError(f"{path}: {message}", message, path)


class _InStore:
    def __init__(self, url: str, extension: str) -> None:
        self.name = url.removesuffix("/") + "/"
        self._extension = extension
        self._word = uuid.uuid4().hex[:12]

    def require_free(self) -> None:
        _require_new_place(self.name)

    def begin(self) -> None:
        pass  # a folder is the beginning of names

    def write(self, content: Any, metadata: dict[str, str] | None, task: int) -> Written:
        name = f"{task:06d}-{self._word}-{uuid.uuid4().hex[:8]}{self._extension}"
        ticket, nbytes = _save_parts(content, self.name + name, metadata)
        return Written(task, name, nbytes, ticket)

    def complete(self, written: list[Written]) -> None:
        self.require_free()
        _complete_parts([(self.name + file.name, file.ticket) for file in written])
        self.drop()  # what tasks sent that were started again

    def drop(self) -> None:
        with contextlib.suppress(penstock.Error):
            _abort_uploads(self.name, self._word)
