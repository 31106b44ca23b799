"""What programs call, by subject: signatures and docstrings stand here once, over the compiled functions of
`penstock._core`, which take all of their arguments by position.

A class that C++ makes objects of gets its methods by `methods_of`. One that programs alone make is derived from the
compiled one.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    Methods = TypeVar("Methods", bound=type)
else:

    def overload(function: Any) -> Any:
        """As `typing.overload`."""
        return function


__all__ = ["methods_of", "overload"]


class _Signature:
    """The signature of a compiled class, which is asked for rarely and takes long to import what makes it."""

    def __init__(self, kind: type, made_by: Any) -> None:
        self.kind = kind
        self.made_by = made_by

    def __get__(self, instance: object, owner: type) -> Any:
        if owner is not self.kind:
            raise AttributeError("__signature__")
        import inspect

        signature = inspect.signature(self.made_by)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def methods_of(kind: type) -> Callable[[Methods], Methods]:
    """A decorator that gives a compiled class the methods and the docstring of the class behind it, which type checkers
    take for its base: the compiled class names it so in python/src."""

    def attach(methods: Methods) -> Methods:
        for base in methods.__mro__[-2::-1]:
            for name, value in vars(base).items():
                if not name.startswith("__"):
                    setattr(kind, name, value)
        kind.__doc__ = methods.__doc__
        if "__init__" in vars(methods):  # what the compiled one takes
            kind.__signature__ = _Signature(kind, vars(methods)["__init__"])  # type: ignore[attr-defined]
        return methods

    return attach
