"""Plain values of Python's (paths, dates, ranges), made of parts whose types are checked first."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import re
import uuid
from collections.abc import Callable
from typing import Any

from penstock._text import plural


def is_plain(kind: type[Any]) -> bool:
    """Whether `plain` can make objects of this class. It makes none of derived classes."""
    return kind in _MAKERS


def plain(kind: type[Any], args: Any, state: Any) -> Any:
    """The value of that class with these parts.

    ValueError, TypeError, IndexError or ArithmeticError where they do not make one.
    """
    return _MAKERS[kind](kind, args if state is None else (*args, state))


def plain_of(name: str, args: Any, state: Any) -> Any:
    """The value of the class of that name; None for other names, and where the parts do not make one."""
    kind = _BY_NAME.get(name)
    if kind is None or args is None:
        return None
    try:
        return plain(kind, args, state)
    except (ValueError, TypeError, LookupError, ArithmeticError):
        return None


def _of(*kinds: type[Any] | None) -> Callable[[Any, Any], Any]:
    """Called with parts that are exactly of these types, as many as there are."""

    def make(kind: Any, args: Any) -> Any:
        for part in args:
            if (None if part is None else type(part)) not in kinds:
                raise TypeError(f"a part is of type {type(part).__name__}")
        return kind(*args)

    return make


def _fields(data: Any, size: int) -> tuple[int, ...]:
    if type(data) is not bytes or len(data) != size:
        raise TypeError(f"the fields are no {size} bytes")
    return tuple(data)


def _zone(rest: Any) -> datetime.timezone | None:
    zone = rest[0] if rest else None
    if len(rest) > 1 or not (zone is None or type(zone) is datetime.timezone):
        raise TypeError("the time zone is no timezone")
    return zone


def _date(kind: Any, args: Any) -> Any:
    if len(args) != 1:
        raise TypeError(f"found {plural(len(args), 'part')}, expected one")
    high, low, month, day = _fields(args[0], 4)
    return kind(high * 256 + low, month, day)


def _clock(fields: tuple[int, ...]) -> tuple[int, ...]:
    hour, minute, second, *micro = fields
    return hour, minute, second, int.from_bytes(bytes(micro), "big")


def _time(kind: Any, args: Any) -> Any:
    hour, *rest = _fields(args[0], 6)
    return kind(*_clock((hour & 0x7F, *rest)), _zone(args[1:]), fold=hour >> 7)


def _datetime(kind: Any, args: Any) -> Any:
    high, low, month, day, *rest = _fields(args[0], 10)
    fold, month = month >> 7, month & 0x7F
    return kind(high * 256 + low, month, day, *_clock(tuple(rest)), _zone(args[1:]), fold=fold)


def _fraction(kind: Any, args: Any) -> Any:
    """A fraction of a text of two integers. No exponent is taken, because it would make a number of as many digits as
    it says."""
    if len(args) == 1 and type(args[0]) is str and re.fullmatch(r"-?[0-9]+(/[0-9]+)?", args[0], re.ASCII):
        return kind(*map(int, args[0].split("/")))
    return _of(int)(kind, args)


def _uuid(kind: Any, args: Any) -> Any:
    (state,) = args
    if type(state) is not dict or type(state.get("int")) is not int:
        raise TypeError("there is not a number")
    return kind(int=state["int"])


_MAKERS: dict[type[Any], Callable[[Any, Any], Any]] = {
    range: _of(int),
    slice: _of(int, None),
    pathlib.PurePath: _of(str),
    pathlib.PurePosixPath: _of(str),
    pathlib.PureWindowsPath: _of(str),
    pathlib.Path: _of(str),
    pathlib.PosixPath: _of(str),
    datetime.date: _date,
    datetime.time: _time,
    datetime.datetime: _datetime,
    datetime.timedelta: _of(int),
    datetime.timezone: _of(datetime.timedelta, str),
    decimal.Decimal: _of(str),
    fractions.Fraction: _fraction,
    uuid.UUID: _uuid,
}

_BY_NAME = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _MAKERS}
