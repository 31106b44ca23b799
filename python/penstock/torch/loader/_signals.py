"""What a signal's handler raises, told from what the program's functions raise.

Python runs a handler wherever it calls or returns from a function, so also between two steps of a loader. An error of
a function belongs to a batch, whose place it takes. What a handler raises belongs to none: the batch is still to come.
So each step of a loader leaves what it took where the next call finds it, until the step is done.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from inspect import CO_GENERATOR
from traceback import walk_tb
from types import CodeType
from typing import Any


def is_of_signal(error: BaseException) -> bool:
    """Whether a handler raised it: what is no Exception, such as KeyboardInterrupt, or what came through the code of a
    handler of the program."""
    if not isinstance(error, Exception):
        return True
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return bool(handlers) and any(code in handlers for code in _codes(error))


def cut_generator(error: BaseException) -> bool:
    """Whether it came through a generator, which is at its end then, whatever it had to give."""
    return any(code.co_flags & CO_GENERATOR for code in _codes(error))


def _codes(error: BaseException) -> Iterator[CodeType]:
    """The functions that it, and what led to it, came through."""
    cause: BaseException | None = error
    while cause is not None:
        for frame, _ in walk_tb(cause.__traceback__):
            yield frame.f_code
        cause = cause.__cause__


def _code(handler: Any) -> CodeType | None:
    own = getattr(handler, "__code__", None)
    return own if own is not None else getattr(getattr(handler, "__call__", None), "__code__", None)  # noqa: B004
