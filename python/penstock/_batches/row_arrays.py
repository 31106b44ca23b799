"""The array that `penstock.rows` takes the samples of, as Dask and others want arrays: shape, dtype, chunks, parts.

A dataset of rows knows by what call it was made (its recipe, which it pickles by). The array is found by that: the
entry of the file, or the array in memory. Nothing is read before a part is asked for, and then that part alone.
"""

from __future__ import annotations

import os

import penstock
from penstock._core import Source

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any

_CHUNK = 1 << 20  # bytes


def _array(dataset: Any) -> Any:
    """The LazyTensor or Tensor whose rows the samples are; AttributeError where they are none."""
    found = getattr(dataset, "_row_array", None)
    if found is None:
        found = dataset._row_array = _made(dataset)
    return found


def _made(dataset: Any) -> Any:
    _, arguments = dataset.__reduce__()
    if arguments[0] != "rows":
        raise AttributeError(
            "the samples of this dataset are not the rows of one array as it is stored; take rows() without transforms"
        )
    source, key = arguments[1], arguments[2]
    if isinstance(source, (str, bytes, os.PathLike, Source)):
        archive = penstock.open(source)
        return archive[key] if key is not None else archive.values()[0]
    if isinstance(source, penstock.LazyTensor):
        return source
    if hasattr(source, "ndim"):
        return penstock.asarray(source)
    samples = dataset[:]  # of a sequence, such as a range or a column of a Hugging Face dataset
    if not isinstance(samples, penstock.Tensor):
        raise AttributeError("the samples of this dataset are text, which is no array")
    return samples


def shape(dataset: Any) -> tuple[int, ...]:
    out: tuple[int, ...] = _array(dataset).shape
    return out


def dtype(dataset: Any) -> penstock.DType:
    out: penstock.DType = _array(dataset).dtype
    return out


def chunks(dataset: Any) -> tuple[int, ...]:
    return chunks_of(_array(dataset))


def chunks_of(array: Any) -> tuple[int, ...]:
    """As many rows as make a chunk, where elements lie in C order; of rows larger than that, a part of one."""
    left = max(1, _CHUNK // max(1, array.dtype.itemsize))
    out: list[int] = []
    for length in reversed(array.shape):
        out.append(max(1, min(length, left)))
        left = max(1, left // max(1, length))
    return tuple(reversed(out))


def token(dataset: Any) -> tuple[Any, ...]:
    _, arguments = dataset.__reduce__()
    if arguments[0] == "rows" and isinstance(arguments[1], Source):
        return "penstock.rows", arguments[1].name, arguments[1].size, arguments[2]
    array = getattr(dataset, "_row_array", None)
    if array is None and arguments[0] == "rows":
        array = _array(dataset)
    if isinstance(array, penstock.LazyTensor):
        return token_of(array)
    if isinstance(array, penstock.Tensor):
        return "penstock.rows", array.dtype.name, array.shape, array.tobytes()
    return "penstock.Dataset", arguments


def token_of(entry: Any) -> tuple[Any, ...]:
    """What an entry of a file is, other after the file has been written to."""
    try:
        path, *rest = entry.__reduce__()[1]
    except penstock.UnsupportedError:  # of memory, or of another library's file system: other each time
        return "penstock.LazyTensor", repr(entry), os.urandom(16)
    text = os.fsdecode(path)
    try:
        found = os.stat(text)
        version: tuple[int, ...] = (found.st_ino, found.st_size, found.st_mtime_ns)
    except OSError:  # not a file of this machine
        version = ()
    return "penstock.LazyTensor", text, version, repr(rest)


def part(dataset: Any, key: tuple[Any, ...]) -> Any:
    """`array[key]` by NumPy's rules, read now, in a NumPy array: Dask keeps an empty one to compute types with."""
    array = _array(dataset)
    if any(not _is_basic(item) for item in key):
        return _outer(array, key)
    return _loaded(array[key]).numpy()


def _loaded(part: Any) -> Any:
    return part.load() if isinstance(part, penstock.LazyTensor) else part


def _is_basic(item: Any) -> bool:
    """What entries of files take themselves: integers, Ellipsis, slices with positive steps."""
    if isinstance(item, slice):
        return item.step is None or item.step > 0
    return item is Ellipsis or (hasattr(item, "__index__") and getattr(item, "ndim", 0) == 0)


def _outer(array: Any, key: tuple[Any, ...]) -> Any:
    """Lists, masks and slices with negative steps: the box around them is read, and NumPy chooses from it."""
    import numpy as np

    items = _for_each_dimension(key, len(array.shape))
    box: list[slice] = []
    inner: list[Any] = []
    for dim, (item, length) in enumerate(zip(items, array.shape, strict=True)):
        if isinstance(item, slice):
            taken = range(length)[item]
            step = abs(taken.step)
            first, last = (taken[0], taken[-1]) if len(taken) else (0, -1)
            box.append(slice(min(first, last) if len(taken) else 0, max(first, last) + 1 if len(taken) else 0, step))
            inner.append(slice(None, None, -1) if taken.step < 0 else slice(None))
            continue
        chosen = np.asarray(item)
        if chosen.dtype == bool:
            if chosen.shape != (length,):
                raise IndexError(f"found a mask of shape {chosen.shape} for dimension {dim} of {length}")
            chosen = chosen.nonzero()[0]
        elif chosen.dtype.kind not in "iu" and chosen.size:
            raise IndexError(f"found indices of {chosen.dtype} for dimension {dim}, expected integers or a mask")
        chosen = chosen.astype(np.int64)
        chosen = np.where(chosen < 0, chosen + length, chosen)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < length:
            raise IndexError(f"found an index outside of dimension {dim} of {length}")
        low, high = (int(chosen.min()), int(chosen.max()) + 1) if chosen.size else (0, 0)
        box.append(slice(low, high))
        inner.append(chosen - low)
    read = _loaded(array[tuple(box)]).numpy()
    return np.ascontiguousarray(read[tuple(inner)])


def _for_each_dimension(key: tuple[Any, ...], count: int) -> list[Any]:
    given = [item for item in key if item is not Ellipsis]
    if any(item is None for item in given) or len(key) - len(given) > 1 or len(given) > count:
        raise IndexError(f"found {len(given)} indices of an array of {count} dimensions, with at most one Ellipsis")
    at = next((i for i, item in enumerate(key) if item is Ellipsis), len(key))
    return [*key[:at], *[slice(None)] * (count - len(given)), *key[at + 1 :]]
