"""What programs call, by subject: signatures and docstrings stand here once, over the compiled functions of
`penstock._core`, which take all of their arguments by position.

A class that C++ makes objects of gets its methods by `methods_of`. One that programs alone make is derived from the
compiled one.
"""

from __future__ import annotations

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    Methods = TypeVar("Methods", bound=type)
else:

    def overload(function: Any) -> Any:
        """As `typing.overload`."""
        return function


__all__ = ["methods_of", "overload"]


def methods_of(kind: type) -> Callable[[Methods], Methods]:
    """A decorator that gives a compiled class the methods and the docstring of the class behind it, which type checkers
    take for its base: the compiled class names it so in python/src."""

    def attach(methods: Methods) -> Methods:
        for base in methods.__mro__[-2::-1]:
            for name, value in vars(base).items():
                if not name.startswith("__"):
                    setattr(kind, name, value)
        kind.__doc__ = methods.__doc__
        return methods

    return attach
