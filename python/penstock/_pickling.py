"""How datasets, loaders, archives and others come back from a pickle: by functions of this module, which pickle by
name."""

from __future__ import annotations

import penstock
from penstock._core import Archive, DataLoader, LazyTensor, _typed

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "archive",
    "dataset",
    "entry",
    "loader",
    "mapped",
    "named_zip",
    "reduced_loader",
    "reduced_sampler",
    "sampler",
    "sourced_files",
    "transformed",
    "typed",
]


def dataset(function: str, *args: Any) -> Any:
    """What `penstock.<function>(*args)` makes: a dataset, or how batches are made of samples."""
    return getattr(penstock, function)(*args)


def sourced_files(args: tuple[Any, ...], source: Any) -> Any:
    """`penstock.files` with a function of the program that opens them."""
    return penstock.files(*args, source=source)


def transformed(below: Any, method: str, args: tuple[Any, ...]) -> Any:
    """What a method of a dataset gives: the same samples behind a transform."""
    return getattr(below, method)(*args)


def typed(given: Any, dtype: Any) -> Any:
    """The dataset with its tensors in one type."""
    return _typed(given, dtype)


def mapped(given: Any, function: Any, batched: bool, seeded: bool) -> Any:
    """`given.map(function)`."""
    return given.map(function, batched=batched, seeded=seeded)


def named_zip(parts: dict[str, Any]) -> Any:
    """`penstock.zip` of datasets with names."""
    return penstock.zip(**parts)


def archive(path: Any, verify: bool) -> Any:
    return Archive._restore(path, verify)


def entry(path: Any, name: str, keys: tuple[Any, ...], verify: bool) -> Any:
    return LazyTensor._restore(path, name, keys, verify)


def _own_class(kind: type[Any]) -> Any:
    """Penstock's class that a program's class is derived from, or the class itself."""
    return next(base for base in kind.__mro__ if base.__module__ in {"penstock", "penstock._core"})


def sampler(kind: type[Any], arguments: tuple[Any, ...], attributes: dict[str, Any] | None) -> Any:
    """A sampler of that class. A program's own class gets its attributes back, and its `__init__`
    is not called."""
    made: Any = kind.__new__(kind)  # type: ignore[call-overload]
    _own_class(kind).__init__(made, *arguments)
    if attributes:
        made.__dict__.update(attributes)
    return made


def loader(kind: type[Any], arguments: dict[str, Any], state: dict[str, Any], attributes: dict[str, Any] | None) -> Any:
    """A loader that goes on where the other one stood. A program's own class gets its attributes
    back."""
    made: Any = kind.__new__(kind)  # type: ignore[call-overload]
    DataLoader.__init__(made, **arguments)
    made.load_state_dict(state)
    if attributes:
        made.__dict__.update(attributes)
    return made


def reduced_sampler(given: Any) -> tuple[Any, ...]:
    return sampler, (type(given), given._arguments, getattr(given, "__dict__", None))


def reduced_loader(given: Any) -> tuple[Any, ...]:
    """How a loader pickles. pickle itself refuses what holds something that cannot be pickled, and
    names that."""
    return loader, (type(given), given._arguments(), given.state_dict(), getattr(given, "__dict__", None))
