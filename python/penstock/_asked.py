"""What objects of the program's have by a name.

The code that answers is theirs: a dict whose `__getattr__` is its `__getitem__` raises KeyError for what it lacks, and
a property raises what it likes. Who asks takes either for a no.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any

_NONE: Any = object()


def attribute(given: Any, name: str, default: Any = None) -> Any:
    """As `getattr`, whatever the object raises."""
    try:
        return getattr(given, name, default)
    except Exception:
        return default


def has(given: Any, name: str) -> bool:
    """As `hasattr`, whatever the object raises."""
    return attribute(given, name, _NONE) is not _NONE
