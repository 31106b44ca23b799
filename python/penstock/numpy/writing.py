"""`numpy.save`, `savez` and `savez_compressed` without pickles."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

import penstock
from penstock._asked import has
from penstock._core import _memory_fault
from penstock._files.replace import replaced
from penstock._wrong_argument import names_arguments

__all__ = ["save", "savez", "savez_compressed"]

# As NumPy has them: programs may set numpy.savez to ours.
_SAVEZ, _SAVEZ_COMPRESSED = np.savez, np.savez_compressed


class MaskedError(penstock.UnsupportedError, NotImplementedError):
    """An array has a mask, which no file of NumPy's holds; NumPy raises the second of its types, or saves no mask."""


File = str | bytes | os.PathLike[str] | IO[bytes]


@names_arguments
def save(
    file: File, arr: ArrayLike, allow_pickle: bool = True, fix_imports: bool = True, *, sync: bool = False
) -> None:
    """Writes the bytes that `numpy.save` writes.

    Parameters
    ----------
    file
        A path, to which `.npy` is added where it lacks that, or an object with `write`. A path's
        file, or the object of a URL (s3://, gs://, az://), appears whole or not at all; an open file is
        written to where it stands.
    arr
        An array, or what NumPy makes one of.
    allow_pickle
        Changes nothing: arrays of Python objects are refused, as only pickling could hold them.
    fix_imports
        About pickles; it changes nothing.
    sync
        Whether the file of a path is on the disk before it appears. Without it, as with numpy.save, the
        system writes it a while later. A program that is killed leaves the old file or the new one,
        whole, in either case; a machine that loses power within that while may leave neither.

    Raises
    ------
    penstock.UnsafeError
        For arrays of Python objects.
    penstock.UnsupportedError
        For a torch tensor whose memory is not there (its storage freed or shortened, fake, meta).
    MaskedError
        For a masked array, whose mask a `.npy` has no place for (a NotImplementedError too).
    """
    array = _checked(_array(arr))
    if has(file, "write"):
        stream: Any = file
        np.lib.format.write_array(stream, array, allow_pickle=False)
        return
    path = _with_suffix(file, ".npy")
    if _is_kept(array):
        penstock.save(array, path, format="npy", sync=sync)
    else:
        replaced(path, lambda out: _write_array(out, array), sync=sync)


def _write_array(file: Any, array: np.ndarray[Any, Any]) -> None:
    """By the file's `write`: to its descriptor NumPy writes by itself, and tells no number of the system's when that
    fails."""
    stream: Any = SimpleNamespace(write=file.write)
    np.lib.format.write_array(stream, array, allow_pickle=False)


@names_arguments
def savez(file: File, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Writes several arrays to a `.npz`, uncompressed.

    Parameters
    ----------
    file
        A path, to which `.npz` is added where it lacks that, or an object with `write`. A path's
        file, or the object of a URL (s3://, gs://, az://), appears whole or not at all; an open file is
        written to where it stands. It is not flushed to the disk, as NumPy does not: `save` of
        `penstock` does that.
    args
        Arrays that are named "arr_0", "arr_1", ... by their places.
    allow_pickle
        Changes nothing: arrays of Python objects are refused, as only pickling could hold them.
    kwds
        Arrays by their names.

    Raises
    ------
    penstock.UnsafeError
        For arrays of Python objects.
    penstock.InvalidArgumentError
        For names that a zip archive cannot hold, or that would come back as others.
    MaskedError
        For a masked array, whose mask a `.npz` has no place for (a NotImplementedError too).
    penstock.UnsupportedError
        For a torch tensor whose memory is not there (its storage freed or shortened, fake, meta).
    """
    _save_npz(file, _named(args, kwds), compress=False)


@names_arguments
def savez_compressed(file: File, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Writes several arrays to a `.npz`, compressed.

    Parameters
    ----------
    file
        A path, to which `.npz` is added where it lacks that, or an object with `write`. A path's
        file, or the object of a URL (s3://, gs://, az://), appears whole or not at all; an open file is
        written to where it stands. It is not flushed to the disk, as NumPy does not: `save` of
        `penstock` does that.
    args
        Arrays that are named "arr_0", "arr_1", ... by their places.
    allow_pickle
        Changes nothing: arrays of Python objects are refused, as only pickling could hold them.
    kwds
        Arrays by their names.

    Raises
    ------
    penstock.UnsafeError
        For arrays of Python objects.
    penstock.InvalidArgumentError
        For names that a zip archive cannot hold, or that would come back as others.
    MaskedError
        For a masked array, whose mask a `.npz` has no place for (a NotImplementedError too).
    penstock.UnsupportedError
        For a torch tensor whose memory is not there (its storage freed or shortened, fake, meta).
    """
    _save_npz(file, _named(args, kwds), compress=True)


def _named(args: tuple[ArrayLike, ...], kwds: dict[str, ArrayLike]) -> dict[str, np.ndarray[Any, Any]]:
    arrays = dict(kwds)
    for number, value in enumerate(args):
        name = f"arr_{number}"
        if name in arrays:
            raise ValueError(f"Cannot use un-named variables and keyword {name}")
        arrays[name] = value
    for name in arrays:
        _require_key(name)
    return {name: _checked(_array(value, name), name) for name, value in arrays.items()}


def _save_npz(file: File, arrays: dict[str, np.ndarray[Any, Any]], *, compress: bool) -> None:
    # Without allow_pickle=False, which NumPy before 2.1 takes for an array; there are no objects among `arrays`.
    write: Callable[..., None] = _SAVEZ_COMPRESSED if compress else _SAVEZ
    if has(file, "write"):
        write(file, **arrays)
        return
    path = _with_suffix(file, ".npz")
    if all(_is_kept(array) for array in arrays.values()):
        penstock.save(arrays, path, format="npz", compress=compress, sync=False)
    else:
        replaced(path, lambda out: write(out, **arrays))


def _array(value: ArrayLike, name: str | None = None) -> np.ndarray[Any, Any]:
    """NumPy's array of it. UnsupportedError for a torch tensor that has lost its memory, which NumPy reads over."""
    fault = _memory_fault(value)
    if fault is not None:
        raise penstock.UnsupportedError(fault if name is None else f"{name}: {fault}", fault, tensor=name)
    array: np.ndarray[Any, Any] = np.asanyarray(value)
    return array


def _require_key(key: str) -> None:
    """zipfile ends a member's name at a zero byte, so that the array would come back under another."""
    if "\0" in key:
        raise penstock.InvalidArgumentError(
            f"the key {key!r} has a zero byte, where zip archives end a name; rename the array", tensor=key
        )
    if len(key.encode("utf-8", "surrogatepass")) + len(".npy") > _LONGEST_NAME:
        raise penstock.InvalidArgumentError(
            f"the key {key[:40]!r}... and '.npy' are longer than the {_LONGEST_NAME} bytes that a zip archive can hold",
            tensor=key,
        )
    if any("\ud800" <= letter <= "\udfff" for letter in key):
        raise penstock.InvalidArgumentError(
            f"the key {key!r} is not text that UTF-8 can hold; rename the array", tensor=key
        )


_LONGEST_NAME = 65535


def _checked(array: np.ndarray[Any, Any], name: str | None = None) -> np.ndarray[Any, Any]:
    where = "" if name is None else f" ({name!r})"
    if isinstance(array, np.ma.MaskedArray):
        raise MaskedError(
            f"a masked array cannot be saved{where}, because NumPy's files have no place for its mask; save its "
            "filled() values, or data and mask each",
            tensor=name,
        )
    if array.dtype.kind == "T":
        raise penstock.UnsupportedError(
            f"an array of NumPy's StringDType cannot be saved{where}: its text lies outside of the array; give it a "
            "text dtype with a width, such as .astype('U80')",
            tensor=name,
        )
    if array.dtype.hasobject:
        raise penstock.UnsafeError(
            f"Object arrays cannot be saved{where}: only pickling could hold Python objects, which Penstock never "
            "does; give it a numeric or text dtype",
            tensor=name,
        )
    return array


def _is_kept(array: np.ndarray[Any, Any]) -> bool:
    """Whether Penstock writes the array's dtype as it is: it makes other byte orders native outside structures.

    ValueError for fields that overlap or are out of order, which no header can say.
    """
    dtype = array.dtype
    if dtype.names is None:
        return bool(dtype.itemsize > 0 and dtype.isnative and not _has_metadata(dtype))
    if _has_metadata(dtype):
        return False
    if not _has_short_header(np.lib.format.dtype_to_descr(dtype)):
        return False
    # Structures without fields, and numbers that have fields too, are a plain type to whoever asks for their bytes.
    return len(dtype.names) > 0 and issubclass(dtype.type, np.void)


def _has_metadata(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy warns that it leaves something of the dtype out."""
    if dtype.metadata is not None:
        return True
    if dtype.subdtype is not None:
        return _has_metadata(dtype.subdtype[0])
    return any(_has_metadata(dtype[name]) for name in dtype.names or ())


def _has_short_header(descr: Any) -> bool:
    """Whether the header is of version 1.0; NumPy warns of others, which its older releases do not read."""
    text = repr(descr)
    return len(text) < 60_000 and all(ord(letter) < 256 for letter in text)


def _with_suffix(file: Any, suffix: str) -> str:
    path = os.fsdecode(os.fspath(file))
    return path if path.endswith(suffix) else path + suffix
