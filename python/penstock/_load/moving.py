"""Nested values from one device to another, in one batch of copies."""

from __future__ import annotations

from penstock._core import Tensor, _move
from penstock._wrong_argument import names_arguments
from penstock.errors import LimitError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any


@names_arguments
def to(value: Any, device: object, *, non_blocking: bool = False, copy: bool = False) -> Any:
    """A nested value with all its tensors on a device, moved in one batch.

    Memory that tensors share is moved once and stays shared. Dicts, lists and tuples, named ones too,
    are made anew; whatever else is in them is the same object.

    Parameters
    ----------
    value
        A Tensor, or dicts, lists and tuples of them and of other things.
    device
        Where the tensors go.
    non_blocking
        As in `Tensor.to`.
    copy
        Make a new tensor also of one that is there already.

    Returns
    -------
    The same nesting, with the moved tensors.
    """
    found: dict[str, Tensor] = {}
    try:
        _collect(value, "", found, set())
        moved = _move(list(found), list(found.values()), device, non_blocking, copy)
        return _rebuilt(value, dict(zip(map(id, found.values()), moved, strict=True)), {})
    except RecursionError:
        raise LimitError("the value is nested deeper than Python follows calls; move its parts") from None


def _children(value: Any) -> list[tuple[object, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, (list, tuple)) else []


def _collect(value: Any, name: str, found: dict[str, Tensor], seen: set[int]) -> None:
    """The tensors by the text of their places: "layers.0.weight"."""
    if isinstance(value, Tensor):
        found[f"{name}#{len(found)}" if name in found else name] = value
        return
    children = _children(value)
    if not children or id(value) in seen:
        return
    seen.add(id(value))
    for key, child in children:
        _collect(child, f"{name}.{key}" if name else str(key), found, seen)


def _rebuilt(value: Any, moved: dict[int, Tensor], made: dict[int, Any]) -> Any:
    if isinstance(value, Tensor):
        return moved[id(value)]
    if not isinstance(value, (dict, list, tuple)):
        return value
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, tuple):
        parts = [_rebuilt(part, moved, made) for part in value]
        made[id(value)] = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return made[id(value)]
    import copy

    out: Any = copy.copy(value)
    made[id(value)] = out
    for key, child in _children(value):
        out[key] = _rebuilt(child, moved, made)
    return out
