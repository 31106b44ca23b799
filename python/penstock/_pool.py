"""Threads for a piece of work, which a program that ends does not take away."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Pool(ThreadPoolExecutor):
    """As `ThreadPoolExecutor`, also behind the end of the main thread.

    From then on Python's own takes no work, though other threads of the program run on until they are done, that of an
    `async_save` among them. Whoever has work for a thread then does it itself.
    """

    _is_closed = False

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        try:
            return super().submit(function, *args, **named)
        except RuntimeError:
            if self._is_closed:
                raise
        out: Future[Any] = Future()
        try:
            out.set_result(function(*args, **named))
        except BaseException as error:  # as a thread of the pool keeps it
            out.set_exception(error)
        return out

    def shutdown(self, *args: Any, **named: Any) -> None:
        self._is_closed = True
        super().shutdown(*args, **named)
