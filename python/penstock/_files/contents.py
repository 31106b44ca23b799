"""What `penstock.load` and `penstock.open` take besides paths: bytes in memory and open files."""

from __future__ import annotations

import io
import os

import penstock
from penstock._asked import attribute, has
from penstock._core import _is_legacy, _legacy_end, _npy_sizes, _pickle_end
from penstock._files.opened import number_of, read_npy_header, read_up_to

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any

_NPY = b"\x93NUMPY"


def content(given: Any) -> tuple[Any, str]:
    """(bytes, what errors call them) of an object with a buffer or of an open file; (None, path) where the file of that
    path holds just those.

    A file is read from where it stands. Behind a `.npy`, and behind a `.pt` of before torch 1.6, it then stands at its
    end, so that the next one follows; behind everything else at the end of the file.
    """
    if isinstance(given, (bytes, bytearray, memoryview)):
        return _viewed(given), "<bytes>"
    if has(given, "read") and not isinstance(given, _mapped_type()):
        return _read(given)
    try:
        return _viewed(given), f"<{type(given).__name__}>"
    except TypeError:
        pass
    name = type(given).__name__
    message = (
        f"found an object of type {name}, expected a path (str, bytes or os.PathLike), the bytes of a file, or a file "
        "opened in mode 'rb'"
    )
    if has(given, "__dlpack__") or has(given, "__array_interface__"):
        message += "; an array is its own content already, which penstock.asarray takes"
    raise penstock.DTypeMismatchError(message)


def _mapped_type() -> Any:
    import mmap

    return mmap.mmap


def _viewed(given: Any) -> memoryview:
    """A view of the bytes without a copy where they lie in one piece; TypeError for what has no buffer of bytes."""
    view = memoryview(given)
    if view.itemsize != 1:
        raise TypeError("not bytes")
    return view if view.contiguous else memoryview(bytes(view))


def _read(file: Any) -> tuple[Any, str]:
    name = _name_of(file)
    if isinstance(file, io.TextIOBase):
        raise opened_as_text(name)
    if type(file) is io.BytesIO:
        # Its bytes are shared until somebody writes to it.
        return _taken(file, memoryview(file.getvalue())[file.tell() :], name)
    path = _path_of(file)
    if path is not None:
        file.seek(0, os.SEEK_END)
        return None, path
    head = _up_to(file, len(_NPY), name)
    if head == _NPY:
        return _npy(file, head, name), name
    start = file.tell() - len(head) if _is_seekable(file) else None
    head += _up_to(file, None, name)
    if not head and start:
        raise _at_end(name, start)
    if _is_legacy(head[:64]):
        end = _legacy_end(head, name)
        if start is not None:
            file.seek(start + end)
        return memoryview(head)[:end], name
    return head, name


def _taken(file: Any, rest: memoryview, name: str) -> tuple[Any, str]:
    """All that a BytesIO has from where it stands, or the first file in it where others may follow."""
    start = file.tell()
    if not rest and start:
        raise _at_end(name, start)
    end = len(rest)
    if rest[: len(_NPY)] == _NPY:
        header, payload = _npy_sizes(rest, name)
        end = min(end, header + (_objects_end(rest[header:]) if payload is None else payload))
    elif _is_legacy(rest[:64]):
        end = _legacy_end(rest, name)
    file.seek(start + end)
    return rest[:end], name


def _npy(file: Any, head: bytearray, name: str) -> bytearray:
    """One `.npy` and nothing behind it, even where the file goes on."""
    if not read_npy_header(head, lambda count: _up_to(file, count, name)):
        return head
    header, payload = _npy_sizes(head, name)
    if len(head) != header or payload is not None:
        return head + _up_to(file, payload, name) if len(head) == header else head
    start = file.tell() if _is_seekable(file) else None
    rest = _up_to(file, None, name)
    end = _objects_end(rest)
    if start is not None:
        file.seek(start + end)
    return head + rest[:end]


def _objects_end(rest: Any) -> int:
    """Where an array of objects ends: it is a pickle, and no header says how long."""
    try:
        return _pickle_end(rest)
    except penstock.Error:
        return len(rest)  # whoever reads it says what is wrong


def _path_of(file: Any) -> str | None:
    """The path of a plain open file that stands at its beginning and holds one file only. Faster ways can then read it
    by its path."""
    number = number_of(file)
    if number is None or file.tell() != 0:
        return None
    head = os.pread(number, 64, 0)
    if not head or head.startswith(_NPY) or _is_legacy(head):
        return None
    path = attribute(file, "name")
    try:
        same = isinstance(path, (str, bytes)) and os.path.samestat(os.stat(path), os.fstat(number))
    except (OSError, ValueError):
        same = False
    return os.fsdecode(path) if same and path is not None else None


def _name_of(file: Any) -> str:
    name = attribute(file, "name")
    return os.fsdecode(name) if isinstance(name, (str, bytes)) and name else f"<{type(file).__name__}>"


def _is_seekable(file: Any) -> bool:
    if not has(file, "tell"):
        return False
    try:
        file.tell()
        return bool(file.seekable()) if has(file, "seekable") else has(file, "seek")
    except (OSError, AttributeError, ValueError):
        return False


def _up_to(file: Any, count: int | None, name: str) -> bytearray:
    def refuse(part: object) -> penstock.Error:
        if isinstance(part, str):
            return opened_as_text(name)
        if part is None:
            message = "the file has nothing to read yet (it does not block); read it whole and give its bytes"
            return penstock.InputOutputError(f"{name}: {message}", message, name)
        message = f"the file's read() gives an object of type {type(part).__name__}, where bytes were expected"
        return penstock.DTypeMismatchError(f"{name}: {message}", message, name)

    return read_up_to(file, count, refuse)


def opened_as_text(name: str) -> penstock.Error:
    message = "the file is opened as text; open it in binary mode: open(path, 'rb')"
    return penstock.InvalidArgumentError(f"{name}: {message}", message, name)


def _at_end(name: str, position: int) -> penstock.Error:
    message = f"the file stands at its end, at byte {position}; call seek(0) to read it from its beginning"
    return penstock.TruncatedError(f"{name}: {message}", message, name)
