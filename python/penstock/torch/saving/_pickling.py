"""Objects that torch's own pickling writes. Each class and function that it names is checked first: `load` must read
it."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn.parameter import is_lazy

import penstock
from penstock._core import _memory_fault
from penstock.torch._convert import to_torch
from penstock.torch._memory import is_wrapper
from penstock.torch._private import mkldnn
from penstock.torch.loading._globals import Readable, full_name, is_filled, is_written_as_parameter
from penstock.torch.loading._storages import skips_data
from penstock.torch.saving._advice import advice
from penstock.torch.saving._places import holds_objects, part_of, place_of

_SAVE = torch.save  # as torch has it: programs may set torch.save to ours


def save_pickled(obj: Any, file: Any, protocol: int, *, zipped: bool, byteorder: bool, known: bool) -> None:
    """Writes what torch.save writes into a binary file, with its settings of torch.utils.serialization.config. `known`:
    that `load` reads it.

    DTypeMismatchError for a part that `load` would not read says where that lies and what to save instead.
    UnsupportedError where an array of objects contains itself, and where a tensor has lost its memory.
    """
    module: Any = pickle if known else SimpleNamespace(__name__="pickle", Pickler=_Pickler, dump=pickle.dump)
    out: Any = _Output(file)
    try:
        try:
            _SAVE(obj, out, module, protocol, zipped, not byteorder)
        finally:
            out.write = len
    except RecursionError as error:
        raise penstock.LimitError(
            "the value nests deeper than Python's own pickler goes, which writes this one; make it flatter, or raise "
            "sys.setrecursionlimit"
        ) from error
    except _RefusedError as error:
        raise error.told(obj) from None


class _Output:
    """A file for torch. The destructor of its writer of archives completes one that was broken off (by Ctrl-C), and
    ends the process if the file raises, which is closed by then; so `write` is replaced before by a function that does
    nothing. To a file with a descriptor the old format would be written past `write`, without the system's number of
    what fails."""

    def __init__(self, file: Any) -> None:
        self.write: Any = file.write
        self.seek = file.seek
        self.flush = file.flush


class _RefusedError(Exception):
    """Ends torch's pickling. `told` gives the program's error, which says where in its object the part lies."""

    def __init__(self, told: Callable[[Any], penstock.Error]) -> None:
        super().__init__()
        self.told = told


_ENDLESS = (
    "found an array of objects that contains itself, which penstock.torch.load cannot make; save a list that does"
)


class _Pickler(pickle.Pickler):
    """Asked about all but values of Python's plain types."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._readable = Readable()
        self._owner: Any = None
        self._reads_memory = not skips_data()

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (penstock.Tensor, penstock.LazyTensor)):
            tensor = obj if isinstance(obj, penstock.Tensor) else obj.load()
            return to_torch(tensor).__reduce_ex__(2)
        if holds_objects(obj) and place_of(list(obj.flat), obj):
            raise _RefusedError(lambda root: penstock.UnsupportedError(f"{place_of(root, obj)}{_ENDLESS}"))
        if self._readable.is_name(obj):
            known = self._readable.knows(obj)
        else:
            known = self._readable.knows_class_of(obj)
            self._owner = obj if known else self._owner
        if not known:
            owner = self._owner
            raise _RefusedError(lambda root: _refusal(root, obj, owner))
        kind = type(obj)
        if kind is not torch.nn.Parameter and is_written_as_parameter(kind):
            warnings.warn(
                f"{full_name(kind)} is written as torch.nn.Parameter, as torch.save writes it: neither torch.load nor "
                "penstock.torch.load gives tensors of that class",
                stacklevel=2,
            )
        if isinstance(obj, torch.Tensor) and self._reads_memory and _has_elements(obj):
            fault = _memory_fault(obj) or _layout_fault(obj)
            if fault is not None:
                raise _RefusedError(lambda root: penstock.UnsupportedError(f"{place_of(root, obj)}{fault}"))
        return NotImplemented


def _has_elements(tensor: torch.Tensor) -> bool:
    return not is_lazy(tensor) and not tensor.is_meta and not is_wrapper(tensor)


def _layout_fault(tensor: torch.Tensor) -> str | None:
    if tensor.layout != mkldnn:
        return None
    return f"found a tensor of layout {tensor.layout}, which torch does not save either; save .to_dense() of it"


def _refusal(root: Any, part: Any, owner: Any) -> penstock.Error:
    """Of a part that `load` would not read; `owner`: the last object whose parts were written."""
    place = place_of(root, part) or ("" if owner is None else place_of(root, owner))
    if isinstance(owner, torch.Tensor) and type(owner) is part:
        part = owner
    is_name = Readable().is_name(part)
    name = full_name(part if is_name else type(part))
    what = f"a reference to {name}" if is_name else f"an object of class {name}"
    message = f"{place}found {what}, which torch.load(weights_only=True) and penstock.torch.load do not read; "
    message += f"save {advice(part)}"
    if not is_filled(part):
        allowed = name.removeprefix("__main__.")
        message += f", or allow it by torch.serialization.add_safe_globals([{allowed}]) here and where it is read"
    return penstock.DTypeMismatchError(message)


def unmade(root: Any, name: str, reason: str) -> penstock.Error:
    """Of a part of an allowed class that `load` would not make of what its pickle says."""
    part = part_of(root, lambda part: full_name(type(part)) == name or full_name(part) == name)
    what = f"found what a file holds as {name}" if part is None else f"{part[0]}found an object of class {name}"
    save = "plain values in its place" if part is None else advice(part[1])
    return penstock.DTypeMismatchError(
        f"{what}, which penstock.torch.load does not make though it is allowed: {reason}; save {save}, or write it by "
        "torch.save for torch.load alone"
    )
