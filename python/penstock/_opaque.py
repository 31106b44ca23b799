"""What a file holds that Penstock does not know: kept, never run."""

from __future__ import annotations

from reprlib import recursive_repr

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Opaque"]


class Opaque:
    """An object of a class that Penstock does not know, or a call that it does not make.

    Nothing in a file is ever run: where a pickle would construct `type_name` from `args` and give it `state`, these
    three are kept as they lie in the file. `args` is None for a bare name of a class or function.
    """

    __slots__ = ("__weakref__", "args", "state", "type_name")

    type_name: str
    args: tuple[Any, ...] | None
    state: Any

    def __init__(self, type_name: str, args: tuple[Any, ...] | None = None, state: Any = None) -> None:
        self.type_name = type_name
        self.args = args
        self.state = state

    @recursive_repr(fillvalue="...")
    def __repr__(self) -> str:
        parts = [repr(self.type_name)]
        if self.args:
            parts.append(f"args={self.args!r}")
        if self.state is not None:
            parts.append(f"state={self.state!r}")
        return f"penstock.Opaque({', '.join(parts)})"
