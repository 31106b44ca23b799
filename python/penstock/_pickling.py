"""How datasets, archives and entries come back from a pickle: by calls of these functions, which pickle by name."""

from __future__ import annotations

import penstock
from penstock._core import Archive, Entry

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["archive", "dataset", "entry", "named_zip"]


def dataset(function: str, *args: Any) -> Any:
    """What `penstock.<function>(*args)` makes."""
    return getattr(penstock, function)(*args)


def named_zip(parts: dict[str, Any]) -> Any:
    """`penstock.zip` of datasets with names."""
    return penstock.zip(**parts)


def archive(path: Any, verify: bool) -> Any:
    return Archive._restore(path, verify)


def entry(path: Any, name: str, keys: tuple[Any, ...], verify: bool) -> Any:
    return Entry._restore(path, name, keys, verify)
