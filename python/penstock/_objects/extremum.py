"""What `max` and `min` along a dimension give."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from penstock._core import Tensor


class Extremum(tuple["Tensor", "Tensor"]):
    """The greatest or least elements, and where along the dimension they are.

    Parameters
    ----------
    values
        The elements.
    indices
        Where they are: of equal ones the first.
    """

    __module__ = "penstock"

    __slots__ = ()

    def __new__(cls, values: Tensor, indices: Tensor) -> Extremum:
        return super().__new__(cls, (values, indices))

    @property
    def values(self) -> Tensor:
        return self[0]

    @property
    def indices(self) -> Tensor:
        return self[1]

    def __getnewargs__(self) -> tuple[Tensor, Tensor]:
        return self[0], self[1]

    def __repr__(self) -> str:
        return f"Extremum(values={self[0]!r}, indices={self[1]!r})"
