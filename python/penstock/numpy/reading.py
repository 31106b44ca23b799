"""`numpy.load` without pickles."""

from __future__ import annotations

import io
import mmap
import os
import sys
import zipfile
from collections.abc import Callable
from typing import IO, Any, cast

import numpy as np

import penstock
from penstock._asked import attribute, has
from penstock._core import _npy_sizes, _open_bytes, _open_file, _open_memory, _pickle_end
from penstock._files.identity import identity, require_same
from penstock._files.opened import number_of, read_npy_header, read_up_to
from penstock._files.paths import absolute
from penstock._wrong_argument import names_arguments
from penstock.errors import _shown, _twin
from penstock.numpy._arrays import Array, array_of, check_header, dtype_of
from penstock.numpy._objects import decoder_of, objects_in, refused
from penstock.numpy.npz import BadMemberError, NpzFile, warn_of_python2

__all__ = ["BadNpzError", "NoDataError", "load"]

_ZIP = b"PK"
_MODES = {"r": "r", "readonly": "r", "r+": "r+", "c": "c"}


class BadNpzError(penstock.CorruptError, zipfile.BadZipFile):
    """What begins like a zip archive and is none; NumPy raises the second of its types."""


class UnreadNpzError(penstock.UnsupportedError, zipfile.BadZipFile):
    """A zip archive of a kind that is not read: of several disks, encrypted, or compressed in another way."""


class UnsafeNpzError(penstock.UnsafeError, zipfile.BadZipFile):
    """A zip archive that readers disagree about."""


class NoDataError(penstock.TruncatedError, EOFError):
    """There is nothing in the file, or nothing behind the arrays read so far."""


@names_arguments
def load(
    file: str | bytes | os.PathLike[str] | IO[bytes],
    mmap_mode: str | None = None,
    allow_pickle: bool = False,
    fix_imports: bool = True,
    encoding: str = "ASCII",
    *,
    max_header_size: int = 10000,
) -> Any:
    """What `numpy.load` gives: the array of a `.npy`, an NpzFile over a `.npz`, with the file's dtypes.

    Nothing in a file is run, with `allow_pickle` neither: numbers, text, containers, arrays, dates and
    other plain values of Python's in arrays of objects are read by Penstock itself, and objects of
    other classes are refused. So are plain pickles. Warnings are those of NumPy.

    Parameters
    ----------
    file
        A path, or an object with `read`, `seek` and `tell`, which is read from where it stands. Behind
        an array it then stands at the array's end, so that further ones follow.
    mmap_mode
        "r", "r+" or "c" map a `.npy` and give a numpy.memmap. It changes nothing for a `.npz`, whose
        arrays are read when they are asked for. It is refused for a file object and for "w+", which
        would empty the file.
    allow_pickle
        Whether arrays of Python objects are read. As with NumPy, True also lifts `max_header_size`.
    fix_imports
        It changes nothing: names of Python 2 are known.
    encoding
        Of byte strings that Python 2 wrote into arrays of objects: "latin1", "bytes", or "ASCII", with
        which what is UTF-8 becomes text and anything else stays bytes.
    max_header_size
        Longer headers of a `.npy` are refused.

    Returns
    -------
    numpy.ndarray, numpy.memmap or NpzFile

    Raises
    ------
    NoDataError
        Where there is nothing, or nothing more, in the file (an EOFError too).
    BadNpzError
        For a broken zip archive (a zipfile.BadZipFile too).
    penstock.UnsafeError
        For arrays of Python objects without `allow_pickle`, and for objects that only code could make.
    penstock.UnknownFormatError, penstock.UnsupportedError
        For content that is neither a `.npy` nor a `.npz`.
    """
    if allow_pickle:
        max_header_size = sys.maxsize
    if encoding not in {"ASCII", "latin1", "bytes"}:
        raise ValueError("encoding must be 'ASCII', 'latin1', or 'bytes'")
    if mmap_mode is not None and mmap_mode not in _MODES:
        raise penstock.InvalidArgumentError(_unmappable(mmap_mode))
    if has(file, "read"):
        return _load_stream(file, mmap_mode, max_header_size, allow_pickle, encoding)
    path: Any = os.fspath(cast(Any, file))
    if os.fsdecode(path).startswith("file:"):
        path = file = absolute(path)
    before = identity(path) if mmap_mode is not None else None
    archive = _opened(path, lambda: _open_file(path, True, decoder_of(encoding)))
    if archive.format == "npz":
        return NpzFile(archive, absolute(path), _shown(os.fsdecode(path)), max_header_size, allow_pickle)
    with archive:
        if _holds_objects(archive):
            if mmap_mode is not None:
                raise ValueError("Array can't be memory-mapped: Python objects in dtype.")
            return _objects(archive, allow_pickle)
        entry = _only(archive, max_header_size, lambda: _version_in(path))
        warn_of_python2(archive, 0, 4)
        if mmap_mode is None:
            return array_of(entry)
        mapped = _mapped(entry, file, _MODES[mmap_mode])
        require_same(path, before)  # which was mapped by its name
        return mapped


def _unmappable(mode: str) -> str:
    if mode in {"w+", "write"}:
        return f"mmap_mode {mode!r} would empty the file before it is read; use 'r+' to change it"
    return f"mmap_mode is {mode!r}; it must be one of 'r', 'r+', 'c'"


def _begins(path: str | bytes, data: memoryview | None) -> bytes:
    """The first bytes of what was read, none where it is empty: of `data`, or of the file."""
    if data is not None:
        return bytes(data[: len(_ZIP)])
    content = _open_bytes(path)
    return content.read(0, min(len(_ZIP), content.size))


def _opened(path: str | bytes, opener: Any, data: memoryview | None = None, begin: int = 0) -> penstock.Archive:
    """The archive, with NumPy's exceptions where they say more about the content: `data` behind byte `begin`, or the
    file's."""
    name = os.fsdecode(path)
    try:
        archive: penstock.Archive = opener()
    except penstock.UnknownFormatError as error:
        if not _begins(path, data):
            message = "No data left in file" + (
                f" behind byte {begin}, where it stands: seek(0) first" if begin else ""
            )
            raise NoDataError(f"{name}: {message}", message, name) from error
        raise
    except (penstock.TruncatedError, penstock.CorruptError, penstock.UnsafeError, penstock.UnsupportedError) as error:
        if _begins(path, data) == _ZIP:
            raise _bad_zip(error, name) from error
        raise
    except penstock.ChecksumError as error:
        raise _twin(error, BadMemberError, name) from error
    if archive.format not in {"npy", "npz"}:
        message = f"found a {archive.format} file, expected .npy or .npz; load it with penstock.load"
        raise penstock.UnsupportedError(f"{name}: {message}", message, name)
    return archive


def _bad_zip(error: penstock.Error, name: str) -> penstock.Error:
    """The error, of zipfile's kind too: it has no other for a broken container."""
    kinds = {penstock.UnsupportedError: UnreadNpzError, penstock.UnsafeError: UnsafeNpzError}
    kind = next((kinds[base] for base in kinds if isinstance(error, base)), BadNpzError)
    return _twin(error, kind, name)


def _only(archive: penstock.Archive, max_header_size: int, version: Callable[[], int]) -> penstock.LazyTensor:
    entry = archive[next(iter(archive))]
    check_header(entry.offset or 0, max_header_size, archive.path, version)
    return entry


def _holds_objects(archive: penstock.Archive) -> bool:
    """Whether the `.npy` is an array of objects; an array of numbers has its only entry behind the header."""
    return not (len(archive) == 1 and archive[next(iter(archive))].offset)


def _objects(archive: penstock.Archive, allow_pickle: bool) -> Array:
    if not allow_pickle:
        raise refused(archive.path)
    return objects_in(archive)


def _version_in(path: str | bytes) -> int:
    version: int = _open_bytes(path).read(6, 1)[0]
    return version


def _mapped(entry: penstock.LazyTensor, path: Any, mode: Any) -> Array:
    order = "C" if entry.strides == _c_strides(entry.shape) else "F"
    return np.memmap(path, dtype_of(entry), mode, entry.offset or 0, entry.shape, order)  # type: ignore[call-overload,no-any-return]


def _c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides[: len(shape)]))


def _load_stream(file: Any, mmap_mode: str | None, max_header_size: int, allow_pickle: bool, encoding: str) -> Any:
    if mmap_mode is not None:
        raise ValueError("Filename must be a string or a path-like object.  Memmap cannot use existing file handles.")
    name = str(attribute(file, "name", "<memory>"))
    number = number_of(file)
    begin = file.tell() if has(file, "tell") else 0
    whole = file.getvalue() if type(file) is io.BytesIO else b""  # its own bytes: who writes to it gets others
    if whole.startswith(_MAGIC, begin):
        data = memoryview(whole)[begin:]
    elif number is not None and os.fstat(number).st_size > begin:
        # Mapped, so that no more is read than the array.
        data = memoryview(mmap.mmap(number, 0, access=mmap.ACCESS_READ))[begin:]
    else:
        data = memoryview(_next_file(file, max_header_size, name))
    try:
        archive = _opened(name, lambda: _open_memory(data, name, True, decoder_of(encoding)), data, begin)
    except (penstock.TruncatedError, penstock.CorruptError) as error:
        if number is not None or not data or bytes(data[:6]) == _MAGIC or bytes(data[:2]) == b"PK":
            raise
        message = "found neither a .npy nor a .npz; penstock.load knows further formats"
        raise penstock.UnknownFormatError(f"{name}: {message}", message, name) from error
    if archive.format == "npz":
        return NpzFile(archive, data, max_header_size=max_header_size, allow_pickle=allow_pickle)
    with archive:
        if _holds_objects(archive):
            array = _objects(archive, allow_pickle)
            if has(file, "seek"):
                header = _npy_sizes(data, name)[0]
                file.seek(begin + header + _pickle_end(data[header:]))
            return array
        entry = _only(archive, max_header_size, lambda: data[6])
        warn_of_python2(archive, 0, 5)
        array = array_of(entry)
        if whole or number is not None:
            file.seek(begin + (entry.offset or 0) + entry.nbytes)
    return array


_MAGIC: bytes = np.lib.format.MAGIC_PREFIX


def _next_file(file: Any, max_header_size: int, name: str) -> bytes | bytearray:
    """A `.npy`, and nothing behind it, or all there is of a `.npz`; of anything else its beginning."""
    head = _some(file, len(_MAGIC))
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return head + _some(file, None)
    if head != _MAGIC:
        return head + _some(file, _MOST_FOREIGN) if head else head

    def check(size: int, version: int) -> None:
        check_header(size, max_header_size, name, lambda: version)

    if not read_npy_header(head, lambda count: _some(file, count), check):
        return head
    header, payload = _npy_sizes(head, name)
    return head + _some(file, payload) if len(head) == header else head


_MOST_FOREIGN = 1 << 16  # enough to say what it is


def _some(file: Any, count: int | None) -> bytearray:
    def refuse(part: object) -> Exception:
        if isinstance(part, str):
            return TypeError(f"{attribute(file, 'name', file)} is read as text; open it in mode 'rb'")
        return TypeError(f"{attribute(file, 'name', file)} gives a {type(part).__name__} where bytes were expected")

    return read_up_to(file, count, refuse)
