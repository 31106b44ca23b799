"""Which objects Penstock's own writer of `.pt` writes exactly as they are. torch's pickling writes all others
(`_pickling.py`)."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any

import torch

from penstock._core import _is_plain

_Parts = Callable[[Any], Iterable[Iterable[Any]] | None]

_PLAIN = (NoneType, bool, int, float, complex, str, bytes)
_TORCH = (torch.Size, torch.device, torch.layout, torch.qscheme)
_STORAGES = (torch.UntypedStorage, torch.storage.TypedStorage)
_LEAVES = frozenset((*_PLAIN, *_TORCH, *_STORAGES))


def is_native(root: Any) -> bool:
    """Whether the writer knows each part of the object by its exact type. Otherwise a part could come back as another
    type.

    The writer knows no derived classes, and keeps neither the attributes of a Counter nor the identity of a bytearray.
    """
    return _is_plain(root, _LEAVES, _parts, sys.maxsize)


def is_small_of_numpy(root: Any) -> bool:
    """Whether it is some small plain values and NumPy's arrays of numbers, which `load` reads however they lie."""
    return _is_plain(root, _SIMPLE, _simple_parts, _SMALL)


def _parts(part: Any, kind: type[Any]) -> Iterable[Iterable[Any]] | None:
    """What the object, which is no plain container, consists of; None where that would not describe it completely."""
    known = _PARTS.get(kind)
    if known is not None:
        return known(part)
    if kind.__module__.partition(".")[0] == "penstock":  # its own tensors and entries, which only it can write
        return (part.args or (), (part.state,)) if kind.__name__ == "Opaque" else ()
    if kind.__qualname__ == "NestedTensor" and kind.__module__ == "torch.nested._internal.nested_tensor":
        return ([value for name, value in vars(part).items() if not name.startswith("_")],)
    return () if issubclass(kind, torch.storage.TypedStorage) else None


_SIMPLE = frozenset((NoneType, bool, float))
_SMALL = 1000  # objects, so that no nesting is deeper
NUMBERS = frozenset("?bBhHiIlLqQefdFD")  # of NumPy's types; long doubles differ between machines


def _simple_parts(part: Any, kind: type[Any]) -> Iterable[Iterable[Any]] | None:
    if kind is int:
        is_simple = part.bit_length() < 64
    elif kind is str:
        is_simple = part.isascii()
    else:
        dtype: Any = getattr(part, "dtype", None) if kind.__module__ == "numpy" else None
        is_simple = getattr(dtype, "char", "") in NUMBERS and dtype.isbuiltin == 1 and kind.__name__ == "ndarray"
    return () if is_simple else None


# Types that have a name and bits, in torch alone.
_BITS = frozenset(
    kind
    for name, kind in vars(torch).items()
    if isinstance(kind, torch.dtype)
    and (name.startswith("bits") or name in {f"{s}int{n}" for s in ("", "u") for n in range(1, 8)})
)


def _tensor_parts(part: torch.Tensor) -> Iterable[Iterable[Any]] | None:
    return None if part.dtype in _BITS else (vars(part).values(),)


_PARTS: dict[type[Any], _Parts] = {
    collections.OrderedDict: lambda part: (part.keys(), part.values(), vars(part).values()),
    collections.Counter: lambda part: None if vars(part) else (part.keys(), part.values()),
    torch.Tensor: _tensor_parts,
    torch.nn.Parameter: _tensor_parts,
    torch.dtype: lambda part: None if part in _BITS else (),
}
