"""Paths that lead to the same place wherever the process goes meanwhile."""

from __future__ import annotations

import os

from penstock._core import _absolute

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any


def absolute(path: str | bytes | os.PathLike[Any]) -> str:
    """The path behind the current folder; a URL, and an absolute path, as it is, and a file: URL as its path. Nothing
    in it is resolved: "a/.." of a link leads elsewhere than no step, and a '/' at the end stands for the folder of a
    checkpoint."""
    return _absolute(os.fsdecode(path))
