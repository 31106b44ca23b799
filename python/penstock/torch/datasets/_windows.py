"""Parts of one long array as samples, for datasets that hold a penstock.Dataset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typing_extensions import Self

import penstock


class Windows:
    """Methods named as those of penstock.Dataset, which do the work."""

    _alike: bool | None

    def _transformed(self, name: str, *args: Any) -> Self:
        """What the dataset's method of that name makes, as an object of this kind."""
        raise NotImplementedError

    def slices(self, starts: Iterable[int] | None = None, lengths: Iterable[int] | None = None) -> Self:
        made = self._transformed("slices", starts, lengths)
        made._alike = None  # they differ in length
        return made

    def windows(self, length: int, stride: int | None = None, shift: int = 0, join: str | None = None) -> Self:
        return self._transformed("windows", length, stride, shift, join)

    def random_windows(self, length: int, count: int, shift: int = 0) -> Self:
        return self._transformed("random_windows", length, count, shift)


for _name in [name for name in vars(Windows) if not name.startswith("_")]:
    getattr(Windows, _name).__doc__ = getattr(penstock.Dataset, _name).__doc__
del _name
