"""The classes and functions that a `.pt` may name, as `load` reads them; `penstock.torch.saving` refuses to write
others."""

from __future__ import annotations

import collections
import sys
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch

from penstock.torch._private import FakeTensor, get_allowed_globals, storage_classes

_BUILTINS = (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
_COLLECTIONS = (collections.Counter, collections.OrderedDict, collections.defaultdict)
_LAZY = (torch.nn.parameter.UninitializedBuffer, torch.nn.parameter.UninitializedParameter)
_TORCH = (torch.Size, torch.Tensor, torch.device, torch.nn.Parameter, *_LAZY)

# References to these are values: nothing is called to read them.
DATA_TYPES: dict[str, Any] = {
    f"{kind.__module__}.{kind.__qualname__}": kind for kind in (*_BUILTINS, *_COLLECTIONS, *_TORCH)
}

_NUMPY = frozenset(
    f"numpy.{core}.{name}"
    for core in ("core", "_core")
    for name in ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")
)

_STORAGES = frozenset(storage_classes)


def full_name(named: Any) -> str:
    """The name that a pickle has for a class or function."""
    return f"{getattr(named, '__module__', None)}.{getattr(named, '__qualname__', named)}"


def is_filled(obj: Any) -> bool:
    """Whether a pickle makes the object empty first and fills it then. torch.load(weights_only=True) does so only with
    its own kinds of list and dict, whatever the program allows."""
    return isinstance(obj, (dict, list, collections.deque))


def is_written_as_parameter(kind: Any) -> bool:
    """Whether torch writes tensors of the class as torch.nn.Parameter, so that a file does not name the class."""
    return issubclass(kind, torch.nn.Parameter) and kind.__reduce_ex__ is torch.nn.Parameter.__reduce_ex__


class Readable:
    """Which names of a file `load` knows in this program at this moment.

    These are the names that torch.load(weights_only=True) knows, those that torch.serialization.add_safe_globals
    allows, Python's own data types, NumPy's arrays, and the parameters of torch's lazy modules.
    """

    def __init__(self) -> None:
        self._named: dict[str, Any] = dict(get_allowed_globals())
        self._named.update(DATA_TYPES)
        for allowed in torch.serialization.get_safe_globals():
            named, name = allowed if isinstance(allowed, tuple) else (allowed, full_name(allowed))
            self._named[name] = named

    def is_name(self, obj: Any) -> bool:
        """Whether a pickle holds nothing of the object but its name."""
        return isinstance(obj, (type, FunctionType, BuiltinFunctionType))

    def knows(self, named: Any) -> bool:
        """Whether the name of a class or function is read."""
        name = full_name(named)
        if self._named.get(name) is named or name in _NUMPY or named in _STORAGES:
            return True
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(named, type):
            return False
        arrays = (numpy.ndarray, numpy.dtype, numpy.matrix, numpy.recarray, numpy.memmap, numpy.record)
        # Other packages add types of their own to that dict.
        return named in arrays or (named.__module__ == "numpy" and named in numpy.sctypeDict.values())

    def knows_class_of(self, obj: Any) -> bool:
        """Whether objects of this class can be read. The parts of the object are examined separately."""
        kind: Any = type(obj)
        if is_filled(obj):
            return kind in _COLLECTIONS
        if is_written_as_parameter(kind):
            return True
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(obj, numpy.dtype):
            return bool(obj.type.__module__ == "numpy")
        if numpy is not None and isinstance(obj, (numpy.generic, numpy.ndarray)) and obj.dtype.hasobject:
            return bool(obj.dtype == object) and self.knows(kind)
        return kind in _CONSTANTS or self.knows(kind)


_CONSTANTS = frozenset((torch.dtype, torch.layout, torch.qscheme, FakeTensor))
