"""Penstock's entries as NumPy's arrays, dtype for dtype; NumPy's side of safetensors' API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import penstock
from penstock._weights.safetensors import Framework, SafetensorError
from penstock.errors import _twin

Array = np.ndarray[Any, np.dtype[Any]]


def dtype_of(entry: penstock.LazyTensor) -> np.dtype[Any]:
    """The dtype that the file gives the entry, in the file's byte order."""
    text = entry.dtype.numpy_descr or entry.dtype.name  # long double has a name alone
    if text.startswith("["):
        import ast

        dtype = np.lib.format.descr_to_dtype(ast.literal_eval(text))
    else:
        dtype = _named(text)
    return dtype.newbyteorder("S") if entry.byte_swapped else dtype


def check_header(size: int, most: int, where: str, version: Callable[[], int]) -> None:
    """LimitError for a `.npy` whose header takes `size` bytes with its prefix, and more than `most` without it.

    The prefix takes 10 bytes in version 1 and 12 in later ones; `version` is asked for where it decides.
    """
    if size - 12 > most or (size - 10 > most and version() == 1):
        raise penstock.LimitError(
            f"{where}: Header info length (about {size - 10}) is large, beyond max_header_size={most}; raise it if you "
            "trust the file"
        )


# By width: machines differ in which of them they have.
_LONG = {"f12", "f16", "c24", "c32"}


def _named(text: str) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(text)
        return dtype
    except TypeError:
        pass
    if text[1:] in _LONG:
        raise penstock.UnsupportedError(
            f"NumPy has no type for {text} here: it is the long double of another machine, where this one has "
            f"{np.dtype(np.longdouble).name}; load the file there and save it as float64"
        )
    try:
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, text))
        return dtype
    except (ImportError, AttributeError):
        raise penstock.UnsupportedError(
            f"NumPy has no type for {text} and neither has the package ml_dtypes, if it is there; load it with "
            "penstock.load"
        ) from None


def array_of(entry: penstock.LazyTensor) -> Array:
    """The entry's elements in memory of their own, in the file's byte order and memory order."""
    dtype = dtype_of(entry)
    tensor = entry._as_stored().load()
    array: Array
    if dtype.itemsize == 0:  # not by np.empty, which gives text the width 1
        array = np.ndarray(tensor.shape, dtype)
        return array
    if not entry.dtype.numpy_descr:
        return _of_bytes(tensor, dtype)
    array = tensor.numpy()
    if entry.byte_swapped:
        array = array.view(dtype)
    # What was inflated on the way comes in C order.
    if tensor.strides != entry.strides:
        array = np.asfortranarray(array)
    return array


def _of_bytes(tensor: penstock.Tensor, dtype: np.dtype[Any]) -> Array:
    """An array of the bytes, for a dtype that Penstock knows only by name. The dimensions may lie in any order."""
    raw: Array = tensor.view_bytes().numpy()
    strides = raw.strides[:-1]
    memory: Any = raw.data if raw.flags.c_contiguous else raw.base
    out: Array = np.ndarray(tensor.shape, dtype, memory, 0, strides)
    return out


class Arrays(Framework):
    """Arrays on the CPU, the only device that NumPy has."""

    def __init__(self, device: Any) -> None:
        if str(device) != "cpu":
            raise SafetensorError(f"Device {device} is not supported for framework numpy")

    def map(self, path: str, unchanged: Callable[[], bool]) -> None:
        """Arrays are read, as safetensors reads them."""

    def whole(self, tensor: penstock.Tensor, name: str) -> Array:
        try:
            array: Array = tensor.numpy()
        except penstock.DTypeMismatchError as error:
            # Of these ml_dtypes has types; without it the package safetensors raises TypeError too.
            missing = tensor.dtype.name == "bfloat16" or tensor.dtype.name.startswith("float8")
            raise (TypeError if missing else SafetensorError)(
                f"data type '{tensor.dtype}' not understood: NumPy has no type for tensor {name!r}; load it with "
                "penstock.open, convert it with .to or take its bytes with .view_bytes"
            ) from error
        return array

    def part(self, entry: penstock.LazyTensor, key: Any) -> Array:
        parts = key if isinstance(key, tuple) else (key,)
        if isinstance(key, list) and not key:  # the only list that safetensors takes: no rows
            parts = (slice(0, 0),)
        indices = tuple(_plain(part, position) for position, part in enumerate(parts))
        try:
            return self.whole(entry[indices].load(), entry.name)
        except penstock.Error as error:
            raise _twin(error, SafetensorError) from error


def _plain(part: Any, position: int) -> Any:
    """The part of an index: a slice, an integer or an ellipsis. SafetensorError for others, as from safetensors."""
    if part is Ellipsis:
        return part
    if isinstance(part, slice):
        if part.step is not None and part.step <= 0:
            raise SafetensorError(f"Slice step must be a positive integer, got {part.step}")
        return part
    try:
        return part.__index__()
    except (AttributeError, TypeError):
        raise SafetensorError(
            f"Unsupported slice index at position {position}: expected slice, int, or ellipsis"
        ) from None
