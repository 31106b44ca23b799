"""Plain objects of a file without their classes: `unknown="data"` of `load`.

An object is plain where the file says nothing of it but its class, its attributes, and the items of a dict or list.
What these mean to the class is not asked, so that nothing has to be allowed. Of OmegaConf's containers, whose
attributes are nodes around the values, the values are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import penstock

NOT_DATA: Any = object()
# Without attributes these have no state in a pickle, as a call of any function has none.
_EMPTY = ("argparse.Namespace", "types.SimpleNamespace")


class Items:
    """What a pickle puts into an object of an unknown class: a list or a dict."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any] | dict[Any, Any]) -> None:
        self.items = items


class Fields(dict[Any, Any]):
    """The attributes of an object, as items and as attributes: `x["lr"]`, `x.lr` and `vars(x)["lr"]`. Those that are
    called like a method of a dict's are items alone, so that it is a dict to all that takes one."""

    __slots__ = ("_apart",)

    _apart: dict[str, Any]
    """Attributes beside the items, of dicts that have both."""

    def __getattr__(self, name: str) -> Any:
        if name != "_apart" and not name.startswith("__"):
            for place in (getattr(self, "_apart", {}), self):
                if name in place:
                    return place[name]
        raise AttributeError(f"there is no attribute {name!r}")

    @property
    def __dict__(self) -> dict[Any, Any]:  # type: ignore[override]
        return getattr(self, "_apart", self)


def without_marks(args: Any) -> Any:
    """The arguments with plain lists and dicts among them."""
    return args and tuple(part.items if type(part) is Items else part for part in args)


def begun_data(name: str, args: Any) -> Any:
    """What `data_of` will fill, for objects that are parts of their own state; NOT_DATA for others."""
    if not _has_items_alone(args):
        return NOT_DATA
    return [] if name == "omegaconf.listconfig.ListConfig" else Fields()


def data_of(name: str, args: Any, state: Any, begun: Any = None) -> Any:
    """What the object holds; NOT_DATA where it is more than its attributes and items. `begun` is filled."""
    if not _has_items_alone(args) or not (args or state is not None or name in _EMPTY):
        return NOT_DATA
    attributes = _attributes(state)
    if attributes is None:
        return NOT_DATA
    if name.startswith("omegaconf."):
        return _of_omegaconf(attributes, begun)
    lists = [part.items for part in args if type(part.items) is list]
    if lists:
        return lists[0] if len(args) == 1 and not attributes and begun is None else NOT_DATA
    items = args[0].items if args else {}
    fields = Fields() if begun is None else begun
    if not isinstance(fields, Fields):
        return NOT_DATA
    fields.clear()  # of attributes alone, which it got while its items were not there yet
    fields.update(items or attributes)
    if items and attributes and attributes.keys() != items.keys():
        fields._apart = attributes
    return fields


def _has_items_alone(args: Any) -> bool:
    return args is not None and len(args) <= 2 and all(type(part) is Items for part in args)


def _attributes(state: Any) -> dict[str, Any] | None:
    """Those in the object's dict and in its slots; None where the state says something else."""
    out: dict[str, Any] = {}
    for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
        if part is not None and not (isinstance(part, dict) and all(isinstance(name, str) for name in part)):
            return None
        out.update(part or {})
    return out


def _of_omegaconf(attributes: dict[str, Any], begun: Any) -> Any:
    content = attributes.get("_content")
    if "_content" not in attributes:
        return attributes["_val"] if "_val" in attributes else _filled(begun, attributes)
    if begun is None and not isinstance(content, (dict, list)):
        return content  # None, or text that stands for another value
    return _filled(begun, content)


def _filled(begun: Any, content: Any) -> Any:
    if isinstance(content, list):
        out: list[Any] = [] if begun is None else begun
        out[:] = content
        return out
    fields = Fields() if begun is None else begun
    fields.update(content or {})
    return fields


def left_over(root: Any) -> set[str]:
    """The names of what in the value is more than data: objects that only code could make."""
    out: set[str] = set()
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        part = waiting.pop()
        parts = _parts(part)
        if parts is None or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, penstock.Opaque) and part.args is not None:
            out.add(_class_of(part))
        waiting.extend(parts)
    return out


def _parts(part: Any) -> Iterator[Any] | None:
    if isinstance(part, dict):
        return iter((*part.keys(), *part.values(), *(vars(part).values() if type(part) is Fields else ())))
    if isinstance(part, (list, tuple, set, frozenset)):
        return iter(part)
    return iter(()) if isinstance(part, penstock.Opaque) else None


def _class_of(found: penstock.Opaque) -> str:
    """The name that has to be allowed: of composite tensors and wrappers that is one of their parts."""
    for part in found.args or () if found.type_name in ("torch.wrapper_subclass", "torch.tensor_subclass") else ():
        if isinstance(part, penstock.Opaque) and part.args is None:
            return part.type_name
    return found.type_name
