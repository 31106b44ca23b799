"""Opens what `load` and `load_into` are given: a path or URL, a file that is open, or any object that can be read.

What is open is read from where it stands. Errors name what the program gave, and a file of before torch 1.6 may have
others behind it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import torch

import penstock
from penstock._asked import attribute, has
from penstock._core import (
    Source,
    _is_legacy,
    _legacy_end,
    _numpy_facts,
    _open_bytes,
    _open_file,
    _open_memory,
    _part,
)
from penstock._files.contents import opened_as_text
from penstock._files.opened import number_of, read_up_to
from penstock._text import plural
from penstock.errors import _renamed, _twin
from penstock.torch._errors import CutFileError, EmptyFileError, UnknownFileError
from penstock.torch.loading._ranks import agreed, plan_of
from penstock.torch.loading._together import Together

FileLike = str | os.PathLike[str] | IO[bytes] | Source


@contextlib.contextmanager
def opened_by_all(
    f: FileLike, key: Any, prefix: str | None, together: Together | None, *, verify: bool, decode: Any = None
) -> Iterator[penstock.Archive]:
    """The part of a file that is asked for; where ranks read it together, the same on all of them."""

    def open_part() -> penstock.Archive:
        archive = opened(f, verify, decode)
        return archive if key is None and prefix is None else _part(archive, key, prefix)

    ranks = None if together is None else together.ranks
    if ranks is None or together is None:
        part = open_part()
    else:
        part = agreed(ranks, open_part, lambda archive: plan_of([archive], together.alike))
    with part:
        yield part


def decoder_of(encoding: object) -> Callable[[bytes], str | None] | None:
    """What turns byte strings of Python 2 into text; None for the usual way, which gives text where they are UTF-8."""
    if not isinstance(encoding, str):
        raise penstock.DTypeMismatchError(f"encoding is of type {type(encoding).__name__}; it must be a name, 'utf-8'")
    if encoding == "bytes":
        return lambda data: None
    if encoding.lower().replace("_", "-") in {"utf-8", "utf8"}:
        return None
    return lambda data: data.decode(encoding)


def is_path(f: object) -> bool:
    return isinstance(f, (str, bytes, os.PathLike))


def opened(f: FileLike, verify: bool, decode: Callable[[bytes], str | None] | None = None) -> penstock.Archive:
    """The archive in a file, or in what can be read of an object from where it stands.

    A file of before torch 1.6 may have others behind it, so that the object then stands at its end,
    where torch leaves it.
    """
    given: Any = f
    start = 0 if is_path(f) or not has(f, "tell") else given.tell()
    try:
        archive = _opened(f, verify, decode)
    except EmptyFileError:
        raise
    except penstock.UnknownFormatError as error:
        if not _is_empty(f, start):
            raise
        raise _twin(error, EmptyFileError) from error
    if archive.format == "npz" and not _numpy_facts(archive)[0]:
        path = archive.path
        archive.close()
        message = (
            "the file is a zip archive without members, with nothing in it to load; penstock.load gives an empty dict"
        )
        raise UnknownFileError(f"{path}: {message}", message, path)
    return archive


def _is_empty(f: Any, start: int) -> bool:
    """Whether there is nothing in a file, or in an object behind where it stood."""
    if is_path(f):
        return _open_bytes(f).size == 0
    if isinstance(f, Source):
        return f.size == 0
    at = f.tell()
    f.seek(start)
    content = f.read(1)
    f.seek(at)
    return not content


def _opened(f: FileLike, verify: bool, decode: Callable[[bytes], str | None] | None) -> penstock.Archive:
    options = (verify, decode, _is_big_endian_by_default())
    given: Any = f
    if isinstance(given, bytes) and b"\0" in given:
        raise penstock.DTypeMismatchError(
            f"found {plural(len(given), 'byte')} of a file's content, expected a path or a file; put them into an "
            "io.BytesIO"
        )
    if isinstance(f, (str, bytes, os.PathLike, Source)):
        return _open_file(f, *options)
    for method in ("read", "seek", "tell"):
        if not has(f, method):
            raise AttributeError(
                f"f: found an object of type {type(f).__name__} without .{method}(), expected a path or a file that "
                "can be read; put its bytes into an io.BytesIO"
            )
    name = str(attribute(f, "name", "<memory>"))
    if isinstance(f, io.TextIOBase):
        raise opened_as_text(name)
    start, number = f.tell(), number_of(f)
    if start == 0 and number is not None and not _is_legacy(os.pread(number, 64, start)):
        with contextlib.suppress(penstock.PermissionDeniedError, penstock.NotFoundError):  # to open it once more
            return _open_file(_path_of(number), *options)
    data: Any = f.getbuffer()[start:] if type(f) is io.BytesIO else _rest_of(f, name)
    if start > 0 and len(data) == 0:
        message = f"the file object stands at its end, byte {start}, and nothing follows; call its seek(0) first"
        raise EmptyFileError(f"{name}: {message}", message, name, start)
    if _is_legacy(data[:64]):  # others may follow, and the next call goes on there
        end = _legacy_end(data, name)
        f.seek(start + end)
        data = memoryview(data)[:end]
    return _open_memory(data, name, *options)


def _rest_of(f: Any, name: str) -> bytearray:
    """Everything that `f` still gives. One call of its `read` may give less than there is."""

    def refuse(part: object) -> Exception:
        if isinstance(part, str):
            return opened_as_text(name)
        if part is None:
            message = "the file has no bytes yet, where more of it were expected (its read gave None); let it block"
            return CutFileError(f"{name}: {message}", message, name)
        message = f"the file gives an object of type {type(part).__name__}, where bytes were expected"
        return penstock.DTypeMismatchError(f"{name}: {message}", message, name)

    return read_up_to(f, None, refuse)


def _path_of(number: int) -> str:
    return f"/proc/self/fd/{number}"


@contextlib.contextmanager
def named_as_given(f: FileLike) -> Iterator[None]:
    """Gives errors about an open file, which is read by its number, the name that the program knows."""
    try:
        yield
    except penstock.Error as error:
        number = None if is_path(f) else number_of(f)
        if number is not None:
            _renamed(error, _path_of(number), str(attribute(f, "name", "<memory>")))
        raise


def _is_big_endian_by_default() -> bool:
    """Whether torch takes files that record no byte order for big-endian."""
    order = torch.serialization.get_default_load_endianness()
    kinds = torch.serialization.LoadEndianness
    return order == kinds.BIG or (order == kinds.NATIVE and sys.byteorder == "big")
