"""The types of properties of compiled classes, which stand in the module's stub: autodoc asks the getter for them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import penstock
from penstock import _core


def properties() -> Iterator[tuple[type, str, str]]:
    """Class, name and type."""
    stub = ast.parse((Path(penstock.__file__).parent / "_core.pyi").read_text())
    for kind in (node for node in stub.body if isinstance(node, ast.ClassDef)):
        for node in kind.body:
            is_function = isinstance(node, ast.FunctionDef) and node.returns is not None
            if is_function and any(ast.unparse(one) == "property" for one in node.decorator_list):
                yield getattr(_core, kind.name), node.name, ast.unparse(node.returns)


def typed(getter: Callable[[Any], Any], told: str) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        return getter(self)

    get.__annotations__ = {"return": told}
    return get


def setup(app: Any) -> dict[str, Any]:
    for kind, name, told in properties():
        found = vars(kind).get(name)
        if isinstance(found, property) and found.fget is not None:
            setattr(kind, name, property(typed(found.fget, told), doc=found.__doc__))
    return {"parallel_read_safe": True}
