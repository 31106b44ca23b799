"""What `max` and `min` along a dimension give."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from penstock._core import Tensor


class Extremum(NamedTuple):
    """The greatest or least elements, and where along the dimension they are.

    Parameters
    ----------
    values
        The elements.
    indices
        Where they are: of equal ones the first.
    """

    values: Tensor
    indices: Tensor


Extremum.__module__ = "penstock"
