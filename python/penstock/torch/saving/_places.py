"""The place of a part in an object, as messages name it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from penstock._asked import attribute
from penstock._text import abbreviated


def place_of(root: Any, wanted: Any) -> str:
    """ "at ['a'][1]: " for the nearest part that is `wanted` or of that class; "" for the whole, or no part."""
    part = part_of(root, lambda part: part is wanted or type(part) is wanted)
    return "" if part is None else part[0]


def part_of(root: Any, is_wanted: Callable[[Any], bool]) -> tuple[str, Any] | None:
    """The nearest part that is wanted, behind its place."""
    seen: set[int] = set()
    waiting: deque[tuple[str, Any]] = deque([("", root)])
    while waiting:
        place, part = waiting.popleft()
        if is_wanted(part):
            return (f"at {place}: " if place else ""), part
        if id(part) in seen:
            continue
        seen.add(id(part))
        waiting.extend((place + step, inner) for step, inner in _parts(part))
    return None


def holds_objects(obj: Any) -> bool:
    """Whether it is an array of NumPy's with Python objects in it. Other things with a dtype may warn when they are
    asked for it, or raise."""
    return hasattr(type(obj), "flat") and attribute(attribute(obj, "dtype"), "char", "") == "O"


def _parts(part: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(part, dict):
        for key, value in part.items():
            step = f"[{abbreviated(repr(key))}]"
            yield step, value
            yield step, key
    elif isinstance(part, (list, tuple, set, frozenset)):
        yield from ((f"[{index}]", item) for index, item in enumerate(part))
    elif holds_objects(part):  # elements of structures are made anew at each look
        yield from ((f".flat[{index}]", item) for index, item in enumerate(part.flat))
    if isinstance(part, defaultdict):
        yield ".default_factory", part.default_factory
    attributes = attribute(part, "__dict__")
    if type(attributes) is dict:
        yield from ((f".{name}", value) for name, value in attributes.items())
