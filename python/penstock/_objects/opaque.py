"""What a file holds that Penstock does not know: kept, never run."""

from __future__ import annotations

from contextvars import ContextVar

from penstock._text import abbreviated

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any


class Opaque:
    """An object of a class that Penstock does not know, or a call that it does not make.

    Nothing in a file is ever run: where a pickle would construct an object, its parts are kept as they
    lie in the file. Its text says no more than fits on a few lines.

    Parameters
    ----------
    type_name
        The class or function that the file names.
    args
        What it would be called with; None for a bare name.
    state
        What the object would then be given.
    """

    __module__ = "penstock"

    __slots__ = ("__weakref__", "args", "state", "type_name")

    type_name: str
    args: tuple[Any, ...] | None
    state: Any

    def __init__(self, type_name: str, args: tuple[Any, ...] | None = None, state: Any = None) -> None:
        self.type_name = type_name
        self.args = args
        self.state = state

    def __repr__(self) -> str:
        writer = _writing.get()
        if writer is not None:  # inside an object that the writer leaves to its own repr
            return writer.text(self)
        token = _writing.set(writer := _Writer())
        try:
            return _cut(writer.text(self), _MOST_TEXT)
        finally:
            _writing.reset(token)


_MOST_TEXT = 2000
_MOST_PARTS = 500
_DEEPEST = 16


class _Writer:
    """Writes parts as Python shows them, until the budget of parts is spent; "..." stands for the rest."""

    def __init__(self) -> None:
        self._left = _MOST_PARTS
        self._open: list[int] = []

    def text(self, part: Any) -> str:
        self._left -= 1
        if self._left < 0:
            return "..."
        kind = type(part)
        if kind is str or kind is bytes:
            return repr(part if len(part) <= _MOST_TEXT else part[:_MOST_TEXT])
        if kind is not Opaque and not isinstance(part, (list, tuple, dict, set, frozenset)):
            return repr(part)
        if id(part) in self._open or len(self._open) == _DEEPEST:
            return "..."
        self._open.append(id(part))
        try:
            return self._opaque(part) if kind is Opaque else self._container(part)
        finally:
            self._open.pop()

    def _opaque(self, part: Opaque) -> str:
        parts = [repr(abbreviated(part.type_name))]
        if part.args:
            parts.append(f"args={self.text(part.args)}")
        if part.state is not None:
            parts.append(f"state={self.text(part.state)}")
        return f"penstock.Opaque({', '.join(parts)})"

    def _container(self, part: Any) -> str:
        kind = type(part)
        if isinstance(part, dict):
            text = f"{{{self._items(f'{self.text(k)}: {self.text(v)}' for k, v in part.items())}}}"
        elif isinstance(part, list):
            text = f"[{self._items(self.text(item) for item in part)}]"
        elif isinstance(part, tuple):
            text = f"({self._items(self.text(item) for item in part)}{',' if len(part) == 1 else ''})"
        else:
            text = f"{{{self._items(self.text(item) for item in part)}}}" if part else ""
        return text if kind in {list, tuple, dict} or (kind is set and part) else f"{kind.__name__}({text})"

    def _items(self, texts: Any) -> str:
        shown = []
        for text in texts:
            shown.append(text)
            if self._left <= 0:
                shown.append("...")
                break
        return ", ".join(shown)


_writing: ContextVar[_Writer | None] = ContextVar("penstock_opaque_text", default=None)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
