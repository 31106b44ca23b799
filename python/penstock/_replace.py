"""Files that replace others whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from typing import Any

import penstock

__all__ = ["replaced"]


def replaced(path: str | bytes, write: Callable[[Any], None]) -> None:
    """Calls `write` with a binary file that then takes the path's place; links lead to it as before, and it keeps its
    permissions. Nothing is left of it when `write` raises."""
    path = os.path.realpath(os.fsdecode(path))
    exists = os.path.exists(path)
    if exists and not os.path.isfile(path) and not os.path.isdir(path):
        raise penstock.UnsupportedError(
            f"{path}: this is a device, FIFO or socket, which a file cannot replace; name another path"
        )
    temporary = f"{path}.{secrets.token_hex(6)}.tmp"
    try:
        with open(temporary, "xb") as out:
            write(out)
        if exists:
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
