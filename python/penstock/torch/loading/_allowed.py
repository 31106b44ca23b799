"""Objects of the classes that torch.serialization.add_safe_globals allows, as far as they can be made without a call.

An allowed class is made where that only means setting its parts: objects whose state is their attributes, members of
enumerations, named tuples, tensors of a subclass, paths, dates and other plain values of Python's, the layouts of
torch's distributed tensors, the graphs of torch_geometric. Functions are refused, and so are classes that are made in a
way of their own, because a file could choose what these run on.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import weakref
from collections.abc import Iterator
from types import MemberDescriptorType, SimpleNamespace
from typing import Any

import torch

from penstock._objects.plain_values import is_plain, plain
from penstock.torch.loading import _distributed
from penstock.torch.loading._attributes import RefusedError, require_plain_class

__all__ = ["Allowed", "RefusedError"]


class Allowed:
    """The names that the program allows at the moment when this is made."""

    def __init__(self) -> None:
        self._named = dict(_named_globals())

    def __contains__(self, name: str) -> bool:
        return name in self._named

    def made(self, name: str, args: Any, state: Any) -> Any:
        """The object of an allowed name. Without arguments (`args` is None) it is what the name
        stands for; otherwise it is made of the arguments."""
        named = self._named[name]
        if args is None:
            return named
        if not isinstance(named, type):
            raise RefusedError(f"{name} is a function, and Penstock calls none")
        if issubclass(named, torch.Tensor):
            return _tensor(named, name, args, state)
        if issubclass(named, enum.Enum):
            return _member(named, name, args)
        if issubclass(named, tuple) and hasattr(named, "_fields"):
            return _named_tuple(named, name, args, state)
        if is_plain(named) or _distributed.is_of_torch(named, name):
            return _plain(named, name, args, state)
        made = _derived(named, args)
        if made is None:
            made = _bare(named, name, args, has_state=state is not None)
        _give_state(made, name, state)
        return made

    def begun(self, name: str, args: Any) -> Any:
        """The object of an allowed name, without the state that follows; None where it cannot be made without it."""
        named = self._named[name]
        if not isinstance(named, type) or issubclass(named, (enum.Enum, *_BASES)) or is_plain(named):
            return None
        if issubclass(named, torch.Tensor):
            return _tensor(named, name, args, None)
        return _bare(named, name, args, has_state=True)

    def complete(self, name: str, begun: Any, state: Any) -> None:
        """Gives an object of `begun` its state; tensors get theirs when everything is there."""
        if isinstance(begun, torch.Tensor):
            require_plain_class(type(begun), state)
        else:
            _give_state(begun, name, state)


def _give_state(made: Any, name: str, state: Any) -> None:
    try:
        _set_down(made, name, state)
    except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise RefusedError(f"the state of a {name} is none that its attributes are set by ({error})") from error


def _named_globals() -> Iterator[tuple[str, Any]]:
    for allowed in torch.serialization.get_safe_globals():
        if isinstance(allowed, tuple):
            yield allowed[1], allowed[0]
        else:
            yield f"{allowed.__module__}.{allowed.__qualname__}", allowed
            if allowed is collections.UserDict:  # its name in pickles that Python 2 may read
                yield "collections.IterableUserDict", allowed


def _member(kind: type[enum.Enum], name: str, args: Any) -> Any:
    if len(args) == 1:
        for member in kind:
            if type(member.value) is type(args[0]) and member.value == args[0]:
                return member
        if type(args[0]) is int and _combines_in_the_usual_way(kind):
            with contextlib.suppress(ValueError):
                return kind(args[0])
    raise RefusedError(f"{name} has no member {args!r}, and Penstock calls nothing that could make one")


_WAYS = ("_missing_", "_create_pseudo_member_")


def _combines_in_the_usual_way(kind: Any) -> bool:
    """Whether only Python's own code makes members that combine several flags."""
    ways, usual = (
        [getattr(getattr(flags, way, None), "__func__", None) for way in _WAYS] for flags in (kind, enum.Flag)
    )
    return issubclass(kind, enum.Flag) and ways == usual and kind._member_type_ in (object, int)


def _plain(kind: type[Any], name: str, args: Any, state: Any) -> Any:
    try:
        return plain(kind, args, state) if is_plain(kind) else _distributed.made(kind, args, state)
    except (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, AttributeError) as error:
        raise RefusedError(f"the parts of {name} do not make one: {error}") from None


def _named_tuple(kind: type[Any], name: str, args: Any, state: Any) -> Any:
    own = kind.__mro__[: kind.__mro__.index(tuple)]
    made_by_namedtuple = sum("__new__" in vars(base) for base in own) == 1
    if not made_by_namedtuple or len(args) != len(kind._fields) or state is not None:
        raise RefusedError(f"{name} has a way of its own to be made, and Penstock calls none")
    return tuple.__new__(kind, args)


def _tensor(kind: type[torch.Tensor], name: str, args: Any, state: Any) -> torch.Tensor:
    if len(args) != 1 or type(args[0]) is not torch.Tensor or args[0].layout != torch.strided:
        raise RefusedError(f"{name} has a way of its own to be made, and Penstock calls none")
    require_plain_class(kind, state)
    made: torch.Tensor = args[0].as_subclass(kind)
    return made


def _is_slotted_dataclass(kind: type[Any]) -> bool:
    """Whether the state is the list of the fields' values, set by functions that dataclasses itself put there."""
    setter = getattr(dataclasses, "_dataclass_setstate", None)
    return dataclasses.is_dataclass(kind) and setter is not None and getattr(kind, "__setstate__", None) is setter


_BASES = (str, bytes, int, float, complex, tuple, set, frozenset)


def _derived(kind: Any, args: Any) -> Any:
    """A value of a class derived from one of Python's own and made as that is made; None for all others."""
    base: Any = next((base for base in _BASES if issubclass(kind, base)), None)
    if base is None or kind.__new__ is not base.__new__ or len(args) != 1 or hasattr(kind, "__setstate__"):
        return None
    if base in (set, frozenset):
        if type(args[0]) is not list or kind.__init__ is not base.__init__:
            return None
        made = base.__new__(kind, args[0])
        if base is set:
            set.update(made, args[0])
        return made
    return base.__new__(kind, args[0]) if type(args[0]) is base else None


def _bare(kind: type[Any], name: str, args: Any, *, has_state: bool) -> Any:
    """An object that consists of its attributes alone, before they are set."""
    ways = ("__new__", "__reduce__", "__reduce_ex__")
    if issubclass(kind, SimpleNamespace) and not args and not hasattr(kind, "__setstate__"):
        given = [getattr(kind, way) is getattr(SimpleNamespace, way) for way in ("__init__", *ways)]
        if all(given):
            return SimpleNamespace.__new__(kind)
    usual = all(getattr(kind, way) is getattr(object, way) for way in ways)
    known_state = has_state or kind.__init__ is object.__init__
    own_state = hasattr(kind, "__setstate__") and not _is_slotted_dataclass(kind) and not _is_graph(kind)
    if not usual or args or own_state or not known_state:
        raise RefusedError(f"{name} has a way of its own to be made, and Penstock calls none")
    return object.__new__(kind)


def _is_graph(kind: type[Any]) -> bool:
    """Whether it is a class of torch_geometric's whose state is its attributes, and of its stores a reference to what
    they belong to."""
    setter = getattr(kind, "__setstate__", None)
    return str(getattr(setter, "__module__", "")).startswith("torch_geometric.data.")


def _set_down(made: Any, name: str, state: Any) -> None:
    kind = type(made)
    if _is_slotted_dataclass(kind) and isinstance(state, list):
        names = [field.name for field in dataclasses.fields(kind)]
        state = (None, dict(zip(names, state, strict=False)))
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        vars(made).update(attributes)
        if _is_graph(kind) and attributes.get("_parent") is not None:
            vars(made)["_parent"] = weakref.ref(attributes["_parent"])
    for slot, value in (slots or {}).items():
        place = getattr(kind, slot, None)
        if not isinstance(place, MemberDescriptorType):
            raise RefusedError(f"{name} has no slot {slot!r}")
        place.__set__(made, value)
