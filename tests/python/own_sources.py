"""What the program's function behind `files(names, source=function)` may give."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path


def ways_to_give(path: Path) -> dict[str, Callable[[], object]]:
    """Functions by name; each gives the content of the file in its own way."""
    return {
        "bytes": path.read_bytes,
        "view": lambda: memoryview(path.read_bytes()),
        "str": lambda: str(path),
        "path": lambda: path,
        "file": lambda: path.open("rb"),
        "memory": lambda: io.BytesIO(path.read_bytes()),
    }
