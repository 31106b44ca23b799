"""Which function made the files of a folder, noted beside them: one that is other must not take them for its own."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys

from penstock._asked import attribute
from penstock.errors import InvalidArgumentError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_NAME = ".penstock_map.json"


def name_of(function: Any) -> str:
    """The name of a function; of an object that is called, and of what holds a function, that of what runs."""
    while isinstance(function, functools.partial):
        function = function.func
    name = attribute(function, "__qualname__") or attribute(function, "__name__")  # of a function of NumPy's
    named = function if isinstance(name, str) else type(function)
    return f"{attribute(named, '__module__')}.{name if named is function else named.__qualname__}"


class MadeBy:
    """The note of a folder about the files that `function` makes of those that `what` tells."""

    def __init__(self, folder: str, what: str, function: Any) -> None:
        self._path = os.path.join(folder, _NAME)
        self._what = what
        self._function = function
        self._notes = self._read()
        digest = hashlib.sha256(_told(function).encode("utf-8", "backslashreplace")).hexdigest()[:32]
        # Another version of Python compiles the same text to other code.
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        self._own = {"function": name_of(function), "code": digest, "python": python}

    def _read(self) -> dict[str, Any]:
        try:
            with open(self._path, encoding="utf-8") as file:
                notes = json.load(file)
        except (OSError, ValueError):
            return {}
        return notes if isinstance(notes, dict) else {}

    def require_same(self, path: str) -> None:
        """InvalidArgumentError where another function made the file at `path`. Without a note nobody knows."""
        noted = self._notes.get(self._what)
        if not isinstance(noted, dict) or noted.get("function") is None:
            return
        known = ("function", "code") if noted.get("python") == self._own["python"] else ("function",)
        if all(noted.get(name) == self._own[name] for name in known):
            return
        other = noted["function"]
        who = f"another version of {other}, or with other values" if other == self._own["function"] else str(other)
        message = (
            f"it was made by {who}; map into another folder, delete the files to have them made anew, or delete "
            f"{self._path} to keep them as they are"
        )
        raise InvalidArgumentError(f"{path}: {message}", message, path)

    def note(self) -> None:
        """Writes down who makes the files from here on."""
        if self._notes.get(self._what) != self._own:
            from penstock._files.replace import replaced

            text = json.dumps({**self._notes, self._what: self._own}, indent=1)
            replaced(self._path, lambda file: file.write(text.encode()), sync=False)


def _told(given: Any, depth: int = 0) -> str:
    """A text that is the same in another run for the same function and the same plain values, and another for others.
    Of what is neither it has the class alone."""
    kind = type(given)
    if depth > 8:
        return "..."
    if given is None or kind in (bool, int, float, complex, str, bytes):
        return repr(given)
    if kind in (tuple, list, set, frozenset):
        parts = [_told(part, depth + 1) for part in given]
        return f"{kind.__name__}({sorted(parts) if kind in (set, frozenset) else parts})"
    if kind is dict:
        return f"dict({[(_told(key, depth + 1), _told(value, depth + 1)) for key, value in given.items()]})"
    if isinstance(given, functools.partial):
        return f"partial{_told([given.func, list(given.args), given.keywords], depth + 1)}"
    code = attribute(given, "__code__")
    if code is not None:
        held = [_of_cell(cell) for cell in attribute(given, "__closure__") or ()]
        values = [attribute(given, "__defaults__"), attribute(given, "__kwdefaults__"), held]
        return f"{name_of(given)}{_told_code(code, depth)}{_told(values, depth + 1)}"
    if attribute(given, "__func__") is not None:  # a method, whose object has its values
        return f"method{_told([given.__func__, given.__self__], depth + 1)}"
    if isinstance(given, type):
        return f"{given.__module__}.{given.__qualname__}"
    call = attribute(attribute(kind, "__call__"), "__code__")
    own = attribute(given, "__dict__") if call is not None else None
    return (
        f"{name_of(given)}{_told_code(call, depth) if call is not None else ''}{_told(own, depth + 1) if own else ''}"
    )


def _of_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # still empty
        return None


def _told_code(code: CodeType, depth: int) -> str:
    inner = [
        _told_code(part, depth + 1) if hasattr(part, "co_code") else _told(part, depth + 1) for part in code.co_consts
    ]
    return f"{code.co_code.hex()}{code.co_names}{inner}"
