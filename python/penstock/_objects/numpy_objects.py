"""NumPy's dtypes, scalars and arrays of a pickle, made from their parts. NumPy's own unpickling is not used, because it
believes what a file tells it."""

from __future__ import annotations

import contextlib
import math
import re
import struct
import sys
from typing import Any

import numpy as np

_PLAIN = re.compile(r"[?bBhHiIlLqQefdgFDG]|O8?|[biufcSUVMm]\d{1,9}")
_SCALARS = frozenset(
    "numpy.bool numpy.int8 numpy.int16 numpy.int32 numpy.int64 numpy.uint8 numpy.uint16 numpy.uint32 numpy.uint64 "
    "numpy.float16 numpy.float32 numpy.float64 numpy.complex64 numpy.complex128 numpy.bytes_ numpy.str_".split()
)
# Bytes of a float, or of each part of a complex number, and the bits of its fraction.
_NARROW = {"float16": (2, 10), "float32": (4, 23), "complex64": (4, 23)}
_TYPES: dict[str, Any] = {
    f"numpy.{kind.__name__}": kind for kind in np.sctypeDict.values() if kind.__module__ == "numpy"
} | {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in (np.ndarray, np.dtype, np.matrix, np.recarray, np.memmap, np.record)
}
_ARRAYS: dict[str, Any] = {
    "numpy.memmap": np.memmap,
    "numpy.matrix": np.matrix,
    "numpy.recarray": np.recarray,
    "numpy.rec.recarray": np.recarray,
}
_ALIGNED = 0x80  # of a dtype's flags
_Dtype = np.dtype[Any]


class Unfit(Exception):  # noqa: N818 - never leaves this package
    """The object that could not be made, and the part that does not fit."""


def rebuilt(name: str, args: Any, state: Any) -> Any:
    """The object of that name, or None for an unknown name; Unfit where the parts do not make one."""
    if args is None:
        return _TYPES.get(name)
    try:
        if name in _SCALARS:
            return _plain_scalar("bool_" if name == "numpy.bool" else name.removeprefix("numpy."), *args)
        if name == "numpy.dtype":
            return _dtype(args, state)
        if name == "numpy.core.multiarray.scalar":
            return _scalar(*args)
        if name == "numpy.core.numeric._frombuffer":
            return _from_buffer(*args)
        if name == "numpy.objects":
            return _of_lists(args, state)
        if name == "numpy.ndarray" or name in _ARRAYS:
            return _array(name, args, state)
    except (ValueError, OverflowError, MemoryError) as error:
        raise Unfit(f"{name} ({error})") from error
    except (TypeError, IndexError, KeyError, AttributeError) as error:  # in Python's words
        raise Unfit(f"{name} (its parts are of other kinds than NumPy writes)") from error
    return None


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("ascii")


def _dtype(args: Any, state: Any) -> _Dtype:
    """numpy.dtype(text, align, copy), and its state (version, order, subdtype, names, fields, size, ...)."""
    if args[0] is np.record:
        return np.dtype((np.record, _dtype(("V0", *args[1:]), state)))
    text = _text(args[0])
    if _PLAIN.fullmatch(text) is None:
        raise ValueError(f"there is no dtype {text!r}")
    if state is None:
        return np.dtype(text)
    _, order, base, names, fields, size = state[:6]
    dtype: _Dtype
    if base is not None:
        dtype = np.dtype((_known(base[0]), base[1]))
    elif names is not None:
        dtype = _structure(names, fields, size, aligned=len(state) > 7 and bool(state[7] & _ALIGNED))
    elif text[0] in "Mm":
        unit, count = state[8][1][:2]
        dtype = np.dtype(text if _text(unit) == "generic" else f"{text}[{int(count)}{_text(unit)}]")
    else:
        dtype = np.dtype(text)
    return dtype.newbyteorder(">") if _text(order) == ">" else dtype


def _structure(names: Any, fields: Any, size: Any, *, aligned: bool) -> _Dtype:
    parts = [fields[name] for name in names]
    layout: Any = {
        "names": [_text(name) for name in names],
        "formats": [_known(part[0]) for part in parts],
        "offsets": [part[1] for part in parts],
        "titles": [part[2] if len(part) > 2 else None for part in parts],
        "itemsize": size,
    }
    if aligned:
        with contextlib.suppress(ValueError):  # aligned as another machine has it
            return np.dtype(layout, align=True)  # type: ignore[no-any-return]
    return np.dtype(layout)  # type: ignore[no-any-return]


def _known(dtype: Any) -> _Dtype:
    if not isinstance(dtype, np.dtype):
        raise ValueError("a field of a dtype is no dtype")
    return dtype


def _plain_scalar(name: str, value: Any) -> Any:
    kinds: Any = {"bytes_": bytes, "str_": str}.get(name, (bool, int, float, complex))
    if not isinstance(value, kinds):
        raise TypeError(name)
    if value != value and name in _NARROW:
        return _narrow_nan(name, value)
    return getattr(np, name)(value)


def _narrow_nan(name: str, value: Any) -> Any:
    """A NaN with the sign and the fraction that the file has, which NumPy's conversion would change."""
    width, fraction_bits = _NARROW[name]
    parts = [value.real, value.imag] if isinstance(value, complex) else [value]
    raw = b""
    for part in parts:
        (bits,) = struct.unpack("<Q", struct.pack("<d", part))
        narrow = (bits >> 63 << (8 * width - 1)) | ((1 << (8 * width - 1)) - (1 << fraction_bits))
        narrow |= (bits & ((1 << 52) - 1)) >> (52 - fraction_bits)
        raw += narrow.to_bytes(width, "little") if math.isnan(part) else np.float32(part).tobytes()
    return np.frombuffer(raw, np.dtype(name).newbyteorder("<"))[0]


def _scalar(dtype: Any, data: Any = b"") -> Any:
    """One element of its bytes. Objects are elements as they are."""
    if _known(dtype).hasobject:
        if dtype != np.dtype(object):
            raise ValueError("a structure with objects")
        return data
    element = _of_bytes(data, dtype, ())
    if dtype.kind == "U" and bool((_code_points(element) > sys.maxunicode).any()):
        raise ValueError("a text with what is not a Unicode code point")
    return element[()]


def _code_points(text: np.ndarray[Any, _Dtype]) -> np.ndarray[Any, _Dtype]:
    return np.frombuffer(text.tobytes(), np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))


def _of_bytes(data: Any, dtype: _Dtype, shape: tuple[int, ...]) -> np.ndarray[Any, _Dtype]:
    raw = data.encode("latin-1") if isinstance(data, str) else data
    if not isinstance(raw, (bytes, bytearray)):  # of a number both would be as many zeros
        raise TypeError("data")
    if dtype.itemsize == 0:  # not by np.zeros, which gives text the width 1
        empty: np.ndarray[Any, _Dtype] = np.ndarray(shape, dtype)
        return empty
    return np.frombuffer(bytearray(raw), dtype).reshape(shape)


def _array(name: str, args: Any, state: Any) -> np.ndarray[Any, _Dtype]:
    """An array that was read, or one of the state (version, shape, dtype, Fortran order, bytes or list of objects)."""
    array: np.ndarray[Any, _Dtype]
    if args and isinstance(args[0], np.ndarray):
        array = args[0].astype(args[0].dtype.newbyteorder("="), copy=False)  # as NumPy gives it
    else:
        shape, dtype, fortran, data = state[-4:]
        order: Any = "F" if fortran else "C"
        if isinstance(data, list):
            array = _of_objects(data, _known(dtype), shape, order)
        elif _known(dtype).hasobject:
            raise ValueError("an array of objects without objects")
        else:
            flat = _of_bytes(data, dtype, (-1,) if dtype.itemsize else shape)
            own = dtype if dtype.names else dtype.newbyteorder("=")
            array = flat.astype(own, copy=False).reshape(shape, order=order)
    return array.view(_ARRAYS[name]) if name in _ARRAYS else array


def _from_buffer(data: Any, dtype: Any = None, shape: Any = (), order: Any = "C", axes: Any = None) -> Any:
    """An array that was read, or one of bytes: as it lies in a file of protocol 5."""
    if dtype is None:
        return data
    if _known(dtype).hasobject:
        raise ValueError("an array of objects without objects")
    flat = _of_bytes(data, dtype, (-1,) if dtype.itemsize else shape)
    if order == "K" and axes is not None:
        return flat.reshape(shape).transpose(axes)
    return flat.reshape(shape, order=order)


def _of_objects(data: list[Any], dtype: _Dtype, shape: tuple[int, ...], order: Any) -> np.ndarray[Any, _Dtype]:
    if dtype != np.dtype(object):
        raise ValueError("objects in an array of another type")
    if math.prod(shape) != len(data) or min(shape, default=0) < 0:
        raise ValueError("as many objects as the shape has elements")
    # Item by item: as an array, a list of lists would have more dimensions.
    array: np.ndarray[Any, _Dtype] = np.fromiter(data, object, len(data)).reshape(shape)
    return array.copy(order) if order == "F" else array


def _of_lists(items: Any, shape: tuple[int, ...]) -> np.ndarray[Any, _Dtype]:
    """An array of objects that lie in lists, nested as its dimensions say; without dimensions it has one object."""
    level = list(items)
    for size in shape[1:]:
        if any(type(part) is not list or len(part) != size for part in level):
            raise ValueError("lists as long as the dimensions")
        level = [item for part in level for item in part]
    return _of_objects(level, np.dtype(object), shape, "C")
