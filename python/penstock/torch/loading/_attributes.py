"""Attributes of tensors that a file gives: set down where that calls nothing, neither of the class nor of torch's."""

from __future__ import annotations

from collections.abc import Iterator
from types import MemberDescriptorType
from typing import Any

import torch

_NO_PLACE = object()


class RefusedError(Exception):
    """Why an allowed name cannot be made without running it."""


def require_plain_class(kind: Any, state: Any) -> None:
    """RefusedError where a tensor of this class is more than its data and attributes, so that only the class's own
    code could make it."""
    name = f"{getattr(kind, '__module__', None)}.{getattr(kind, '__qualname__', kind)}"
    if not isinstance(kind, type) or not issubclass(kind, torch.Tensor):
        raise RefusedError(f"{name} is no class of tensors")
    if kind.__setstate__ is not torch.Tensor.__setstate__ or kind.__setattr__ is not torch.Tensor.__setattr__:
        raise RefusedError(f"{name} has a way of its own to be made, and Penstock calls none")
    for attribute, _ in attributes_of(state):
        place = _place(kind, attribute)
        if not isinstance(place, MemberDescriptorType) and hasattr(type(place), "__set__"):
            raise RefusedError(f"{name} sets {attribute!r} in a way of its own, and Penstock calls none")


def set_attributes(tensor: torch.Tensor, state: Any) -> None:
    """Sets attributes that the program had set on a tensor, in slots too. None of them may hide what plain tensors have
    by themselves; those of a class that is allowed are the class's own."""
    kind = type(tensor)
    is_plain = kind in (torch.Tensor, torch.nn.Parameter)
    for name, value in attributes_of(state):
        place = _place(kind, name)
        if isinstance(place, MemberDescriptorType):
            place.__set__(tensor, value)
        elif tensor.is_nested and name.startswith("_"):
            pass  # of torch's own class
        elif place is _NO_PLACE or not (is_plain or hasattr(type(place), "__set__")):
            vars(tensor)[name] = value


def attributes_of(state: Any) -> Iterator[tuple[str, Any]]:
    """What a state says: a dict, or a pair of that and of the slots."""
    for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
        if isinstance(part, dict):
            yield from ((name, value) for name, value in part.items() if isinstance(name, str))


def _place(kind: type[Any], name: str) -> Any:
    """What the class has by that name. Nothing of it is asked, as getattr would."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return _NO_PLACE
