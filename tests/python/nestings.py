"""Containers that hold one part twice, level by level: a few of them are more ways than any walk can take."""

from __future__ import annotations

from typing import Any

LEVELS = [25, 60]


def in_dicts(part: Any, levels: int) -> Any:
    for _ in range(levels):
        part = {"a": part, "b": part}
    return part


def in_lists(part: Any, levels: int) -> Any:
    for _ in range(levels):
        part = [part, part]
    return part


def in_tuples(part: Any, levels: int) -> Any:
    for _ in range(levels):
        part = (part, part)
    return part


NESTINGS = [in_dicts, in_lists, in_tuples]
