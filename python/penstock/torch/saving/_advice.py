"""What to save in the place of an object that a `.pt` cannot hold, for messages."""

from __future__ import annotations

import collections.abc
import datetime
import enum
import os
import uuid
from typing import Any

import torch

import penstock
from penstock._asked import attribute


def advice(obj: Any) -> str:
    """What to save instead of the object, such as "tensor.as_subclass(torch.Tensor)"."""
    for kinds, text in _KINDS:
        if isinstance(obj, kinds):
            return text
    named = type(obj)  # the attributes of some dicts are their keys, and looking for one is a KeyError
    if hasattr(named, "filled") and hasattr(named, "mask"):
        return "x.filled(), or x.data and x.mask each, as torch.as_tensor(x) would lose the mask"
    kind = attribute(attribute(obj, "dtype"), "kind", "") if hasattr(named, "dtype") else ""
    if hasattr(named, "__array_interface__") and kind in _ARRAYS:
        return _ARRAYS[kind]
    if hasattr(named, "__dlpack__") or kind in {*"biufc"}:
        return "torch.as_tensor(x)"
    for kind, text in _SHAPES:
        if isinstance(obj, kind):
            return text
    return "vars(x)" if type(attribute(obj, "__dict__")) is dict and vars(obj) else "plain values in its place"


_KINDS: tuple[tuple[Any, str], ...] = (
    (torch.Tensor, "tensor.as_subclass(torch.Tensor)"),
    ((torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler), "its state_dict()"),
    (torch.Generator, "generator.get_state()"),
    (torch.memory_format, "its name, str(x)"),
    (penstock.DType, "torch's dtype"),
    (enum.Enum, "its value or its name"),
    (os.PathLike, "str(path)"),
    ((datetime.date, datetime.time), "its isoformat()"),
    (uuid.UUID, "str(x)"),
    (range, "list(x)"),
    (slice, "(x.start, x.stop, x.step)"),
    ((type, collections.abc.Callable), "its name"),
    ((str, int, float), "the plain value, str(x), int(x) or float(x)"),
    (tuple, "tuple(x)"),
)
# By the kind of a NumPy array's dtype, those that torch has no tensors of.
_ARRAYS = {
    "T": "x.tolist(), or x.astype('U80') in a width that holds its text",
    "V": "x.tolist()",
    **dict.fromkeys("SUMm", "numpy.asarray(x)"),
}
_SHAPES: tuple[tuple[Any, str], ...] = (
    ((memoryview, collections.abc.ByteString) if hasattr(collections.abc, "ByteString") else memoryview, "bytes(x)"),
    (collections.abc.Mapping, "dict(x)"),
    (collections.abc.Sequence, "list(x)"),
    (collections.abc.Set, "set(x)"),
)
