"""What `stats()` of a loader gives."""

from __future__ import annotations

from typing import Any


class LoaderStats(dict[str, Any]):
    """The figures of a loader by name. Printed, they are a few lines that end with what limits the
    speed."""

    def __init__(self, figures: dict[str, Any], text: str) -> None:
        super().__init__(figures)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[Any, ...]:
        return LoaderStats, (dict(self), self._text)
