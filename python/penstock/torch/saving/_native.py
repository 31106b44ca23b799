"""Which objects Penstock's own writer of `.pt` writes exactly as they are. torch's pickling writes all others
(`_pickling.py`)."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any

import torch

_Parts = Callable[[Any], Iterable[Iterable[Any]] | None]

_PLAIN = (NoneType, bool, int, float, complex, str, bytes)
_TORCH = (torch.Size, torch.device, torch.layout, torch.qscheme)
_STORAGES = (torch.UntypedStorage, torch.storage.TypedStorage)
_LEAVES = frozenset((*_PLAIN, *_TORCH, *_STORAGES))


def is_native(root: Any) -> bool:
    """Whether the writer knows each part of the object by its exact type. Otherwise a part could
    come back as another type.

    The writer knows no derived classes, and keeps neither the attributes of a Counter nor the
    identity of a bytearray.
    """
    seen: set[int] = set()
    open_parts = [root]
    while open_parts:
        part = open_parts.pop()
        kind = type(part)
        if kind in _LEAVES or id(part) in seen:
            continue
        seen.add(id(part))
        groups = _parts(part, kind)
        if groups is None:
            return False
        for group in groups:
            if not _LEAVES.issuperset(map(type, group)):
                open_parts.extend(group)
    return True


def _parts(part: Any, kind: type[Any]) -> Iterable[Iterable[Any]] | None:
    """What the object consists of; None where that would not describe it completely."""
    known = _PARTS.get(kind)
    if known is not None:
        return known(part)
    if kind.__module__.partition(".")[0] == "penstock":  # its own tensors and entries, which only it can write
        return (part.args or (), (part.state,)) if kind.__name__ == "Opaque" else ()
    if kind.__qualname__ == "NestedTensor" and kind.__module__ == "torch.nested._internal.nested_tensor":
        return ([value for name, value in vars(part).items() if not name.startswith("_")],)
    return () if issubclass(kind, torch.storage.TypedStorage) else None


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
    list: lambda part: (part,),
    tuple: lambda part: (part,),
    set: lambda part: (part,),
    dict: lambda part: (part.keys(), part.values()),
    collections.OrderedDict: lambda part: (part.keys(), part.values(), vars(part).values()),
    collections.Counter: lambda part: None if vars(part) else (part.keys(), part.values()),
    torch.Tensor: _tensor_parts,
    torch.nn.Parameter: _tensor_parts,
    torch.dtype: lambda part: None if part in _BITS else (),
}
