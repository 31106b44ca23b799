"""The native transforms as methods, for classes that hold a penstock.Dataset: each gives an object of the same kind
whose samples are behind one more step."""

from __future__ import annotations

from penstock._core import Dataset

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from typing_extensions import Self

    Keys = str | Iterable[str] | None

__all__ = ["Transforms"]


class Transforms:
    """Methods named as those of penstock.Dataset, which do the work."""

    def _transformed(self, name: str, *args: Any) -> Self:
        """What the dataset's method of that name makes, as an object of this kind."""
        raise NotImplementedError

    def cast(self, dtype: Any, strict: bool = False, keys: Keys = None) -> Self:
        return self._transformed("cast", dtype, strict, keys)

    def _typed(self, dtype: Any, strict: bool = False, keys: Keys = None) -> Self:
        return self._transformed("_typed", dtype, strict, keys)

    def scale(self, factor: float, keys: Keys = None) -> Self:
        return self._transformed("scale", factor, keys)

    def normalize(
        self, mean: float | Iterable[float], std: float | Iterable[float], dim: int = 0, keys: Keys = None
    ) -> Self:
        return self._transformed("normalize", mean, std, dim, keys)

    def clamp(self, min: float, max: float, keys: Keys = None) -> Self:
        return self._transformed("clamp", min, max, keys)

    def permute(self, dims: Iterable[int], keys: Keys = None) -> Self:
        return self._transformed("permute", dims, keys)

    def crop(self, begin: Any, size: Any, dims: Any = None, keys: Keys = None) -> Self:
        return self._transformed("crop", begin, size, dims, keys)

    def center_crop(self, size: Any, dims: Any = None, keys: Keys = None) -> Self:
        return self._transformed("center_crop", size, dims, keys)

    def random_crop(self, size: Any, dims: Any = None, keys: Keys = None, scales: Any = None) -> Self:
        return self._transformed("random_crop", size, dims, keys, scales)

    def flip(self, dims: Any = None, keys: Keys = None) -> Self:
        return self._transformed("flip", dims, keys)

    def random_flip(self, dims: Any = None, p: float = 0.5, keys: Keys = None) -> Self:
        return self._transformed("random_flip", dims, p, keys)

    def pad(self, before: Any, after: Any, value: float = 0.0, dims: Any = None, keys: Keys = None) -> Self:
        return self._transformed("pad", before, after, value, dims, keys)

    def one_hot(self, classes: int, keys: Keys = None) -> Self:
        return self._transformed("one_hot", classes, keys)


for _name in [name for name in vars(Transforms) if not name.startswith("_")]:
    getattr(Transforms, _name).__doc__ = getattr(Dataset, _name).__doc__
del _name
