"""Raises what a signal's handler would raise, at each point in turn where Python runs handlers.

Python runs a handler when a function of Python begins and behind each call of a function in C. `sys.setprofile` is told
of both and may raise there, as a handler may.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class StopError(KeyboardInterrupt):
    """What the handler raises."""


def interrupted(batches: Iterator[Any], at: int, within: str) -> tuple[list[Any], bool]:
    """What the iterator gives, where the handler raises at the point of that number in files whose path has `within`;
    and whether there was such a point."""
    got: list[Any] = []
    left = at

    def handler(frame: Any, event: str, _: object) -> None:
        nonlocal left
        if event not in {"call", "c_return"} or within not in frame.f_code.co_filename or _ends_an_object(frame):
            return
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise StopError

    sys.setprofile(handler)
    try:
        got.extend(batches)  # which keeps each before Python runs a handler
    except StopError:
        sys.setprofile(None)
        got.extend(batches)
        return got, True
    finally:
        sys.setprofile(None)
    return got, False


def _ends_an_object(frame: Any) -> bool:
    """Whether it is called by __del__, out of which Python lets nothing come."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def interrupted_everywhere(make: Callable[[], Iterator[Any]], within: str, step: int = 1) -> list[list[Any]]:
    """What each iterator gives that was interrupted once, at another point each; and at last one that was not."""
    out, at = [], 0
    while True:
        got, was = interrupted(make(), at, within)
        out.append(got)
        if not was:
            return out
        at += step


class InTurn:
    """The batches of a loader as lists. After an interruption the loader's state says how many were
    given."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.batches, self.given = loader, iter(loader), 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        told = self.loader.state_dict()["batch"]
        assert told == self.given or (told == 0 and self.given == len(self.loader))  # of the next epoch
        batch = np.asarray(next(self.batches)).tolist()
        self.given += 1
        return batch
