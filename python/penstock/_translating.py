"""Errors that become others on their way out."""

from __future__ import annotations

from contextlib import ContextDecorator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Translating(ContextDecorator):
    """Raises what `translate` makes of an exception that is raised within. The exception stays what
    it is where that gives None or the exception itself.

    No generator with `contextmanager`: CPython 3.13.0 keeps an error that leaves a generator as
    another one in a circle with the frames that it came through. What these hold, such as the bytes
    of a file, would then stay until the garbage collector comes.
    """

    def __init__(self, translate: Callable[[BaseException], BaseException | None]) -> None:
        self._translate = translate

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            return
        twin = self._translate(error)
        if twin is None or twin is error:
            return
        try:
            raise twin
        finally:
            del twin, error, trace  # whose tracebacks lead here, and to all that was read
