"""What `max` and `min` along a dimension give."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from penstock._core import Tensor


class Extremum(typing.NamedTuple):
    """The greatest or least elements, and where along the dimension they are: of equal ones the first."""

    values: Tensor
    indices: Tensor
