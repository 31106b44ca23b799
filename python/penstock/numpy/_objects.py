"""Arrays of Python objects. Their pickles are read by Penstock's own machine, and nothing in them is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import penstock
from penstock._core import _assemble, _resident_arrays
from penstock._objects.numpy_objects import Unfit, rebuilt
from penstock._objects.opaque import Opaque
from penstock._objects.plain_values import plain_of
from penstock._text import listed
from penstock.numpy._arrays import Array, array_of

# References to Python's data types are values: nothing is called to read them.
_TYPES: dict[str, Any] = {
    f"builtins.{kind.__name__}": kind
    for kind in (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, range, set, slice, str, tuple)
}


def refused(where: str, key: str | None = None) -> penstock.UnsafeError:
    """The error of arrays of objects that allow_pickle was not given for; a ValueError, as NumPy's."""
    message = (
        "Object arrays cannot be loaded when allow_pickle=False: it is an array of Python objects, stored as a pickle; "
        "pass allow_pickle=True, as to NumPy. Nothing of it is run: numbers, text, containers and arrays are read"
    )
    return penstock.UnsafeError(f"{where}: {message}", message, where, None, key)


def decoder_of(encoding: str) -> Callable[[bytes], str | None] | None:
    """What makes text of the byte strings of Python 2; None for text where they are UTF-8."""
    if encoding == "bytes":
        return lambda data: None
    return (lambda data: data.decode("latin-1")) if encoding == "latin1" else None


def _arrays_in(archive: penstock.Archive) -> list[Array]:
    """The arrays among the objects: all at once where their bytes are values as they are."""
    arrays: list[Any] = _resident_arrays(archive)
    if any(array is None for array in arrays):
        arrays = [
            array_of(archive[name]) if array is None else array for name, array in zip(archive, arrays, strict=True)
        ]
    return arrays


def _is_native(array: Any) -> bool:
    """Whether it is an array as NumPy would give it."""
    return type(array) is np.ndarray and array.dtype.isnative


def objects_in(archive: penstock.Archive, key: str | None = None) -> Array:
    """The array of objects that is all of the archive. UnsafeError for objects that only code could make."""
    unknown: set[str] = set()

    def named(name: str, args: Any, state: Any, begun: Any) -> Any:
        if state is ...:
            return None
        if name == "numpy.ndarray" and state is None and len(args) == 1 and _is_native(args[0]):
            return args[0]
        if name in {"", "items"}:
            return args[0]
        found = _TYPES.get(name) if args is None else plain_of(name, args, state)
        if found is None and name.startswith("numpy."):
            found = rebuilt(name, args, state)
        if found is None:
            unknown.add(name)
            return Opaque(name, args, state)
        return found

    try:
        content = _assemble(archive, _arrays_in(archive), named)
    except Unfit as error:
        message = f"the array of objects holds parts that do not make one: {error}; save it again"
        raise penstock.UnsupportedError(f"{archive.path}: {message}", message, archive.path, None, key) from error
    if unknown:
        message = (
            f"the array of objects names {listed(sorted(unknown))}, which only running code could make; nothing was "
            "run. penstock.load gives such objects as inert penstock.Opaque ones"
        )
        raise penstock.UnsafeError(f"{archive.path}: {message}", message, archive.path, None, key)
    if isinstance(content, np.ndarray) and content.dtype == object:
        return content
    array: Array = np.empty((), object)  # without dimensions, an array is its only object
    array[()] = content
    return array
