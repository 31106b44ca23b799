"""How datasets, archives and entries come back from a pickle: by calls of these functions, which pickle by name."""

from __future__ import annotations

import penstock
from penstock._core import Archive, Entry

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["archive", "dataset", "entry"]


def dataset(function: str, *args: Any) -> Any:
    """What `penstock.<function>(*args)` makes."""
    return getattr(penstock, function)(*args)


def archive(path: Any, verify: bool) -> Any:
    return Archive._restore(path, verify)


def entry(path: Any, name: str, keys: tuple[Any, ...], verify: bool) -> Any:
    return Entry._restore(path, name, keys, verify)
