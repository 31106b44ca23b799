"""How datasets, loaders, archives and others come back from a pickle: by functions of this module, which pickle by
name."""

from __future__ import annotations

import sys

import penstock
from penstock._api.loader import DataLoader
from penstock._core import Archive, LazyTensor, _typed, join, zip

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any

# Types of torch that its own pickles cannot be read back with, and those that their bits pickle as.
_BITS = {
    "uint16": "int16",
    "uint32": "int32",
    "uint64": "int64",
    "complex32": "int32",
    "bits16": "int16",
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), "uint8"),
    **dict.fromkeys(("float4_e2m1fn_x2", "bits8", "bits1x8", "bits2x4", "bits4x2"), "uint8"),
}


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


def zipped(parts: list[Any], named: dict[str, Any]) -> Any:
    """`penstock.zip`, which warned where it was made."""
    return zip(parts, named, False)


def joined(parts: list[Any], named: dict[str, Any], by: Any, missing: str) -> Any:
    """`penstock.join` of datasets, or of a dict of them."""
    return join(parts, named, by, missing)


def with_fields(below: Any, templates: dict[str, str], missing: str, check: bool, raw: Any) -> Any:
    """`below.fields(...)`."""
    return below.fields(templates, missing=missing, check=check, raw=raw)


def archive(path: Any, verify: bool) -> Any:
    return Archive._restore(path, verify)


def entry(path: Any, name: str, keys: tuple[Any, ...], verify: bool) -> Any:
    return LazyTensor._restore(path, name, keys, verify)


def raw(path: Any, layout: tuple[Any, ...], keys: tuple[Any, ...]) -> Any:
    """What `penstock.raw(path, *layout)` gives, or a part of it."""
    tensor = penstock.raw(path, *layout)
    for key in keys:
        tensor = tensor[key]
    return tensor


def _own_class(kind: type[Any]) -> Any:
    """Penstock's class that a program's class is derived from, or the class itself."""
    return next(base for base in kind.__mro__ if base.__module__ in {"penstock", "penstock._core"})


def sampler(kind: type[Any], arguments: tuple[Any, ...], attributes: dict[str, Any] | None) -> Any:
    """A sampler of that class. A program's own class gets its attributes back, and its `__init__` is not called."""
    made: Any = kind.__new__(kind)  # type: ignore[call-overload]
    _own_class(kind).__init__(made, *arguments)
    if attributes:
        made.__dict__.update(attributes)
    return made


def loader(kind: type[Any], arguments: dict[str, Any], state: dict[str, Any], attributes: dict[str, Any] | None) -> Any:
    """A loader that goes on where the other one stood. A program's own class gets its attributes back."""
    made: Any = kind.__new__(kind)  # type: ignore[call-overload]
    DataLoader.__init__(made, **arguments)
    made.load_state_dict(state)
    if attributes:
        made.__dict__.update(attributes)
    return made


def reduced_dataset(recipe: tuple[Any, tuple[Any, ...]]) -> tuple[Any, ...]:
    """How a dataset pickles that is made by `function(*arguments)`."""
    function, arguments = recipe
    return function, tuple(map(_with_bits, arguments))


class _Viewed:
    """Pickles a tensor of torch as the bits of its elements, which are the tensor's own memory: where another pickler
    than Python's shares that among processes, it still does."""

    def __init__(self, bits: Any, dtype: str) -> None:
        self._arguments = bits, dtype

    def __reduce__(self) -> tuple[Any, ...]:
        return viewed, self._arguments


def viewed(bits: Any, dtype: str) -> Any:
    import torch

    return bits.view(getattr(torch, dtype))


def _with_bits(value: Any) -> Any:
    """The value, or what pickles in its place: a tensor of torch, or a list of some, of types in `_BITS`."""
    torch = sys.modules.get("torch")
    if torch is None:
        return value
    if type(value) in (list, tuple) and len(value) > 0 and isinstance(value[0], torch.Tensor):
        return type(value)(map(_with_bits, value))
    if not isinstance(value, torch.Tensor):
        return value
    name = str(value.dtype).removeprefix("torch.")
    return _Viewed(value.detach().view(getattr(torch, _BITS[name])), name) if name in _BITS else value


def reduced_sampler(given: Any) -> tuple[Any, ...]:
    return sampler, (type(given), given._arguments, getattr(given, "__dict__", None))


def reduced_loader(given: Any) -> tuple[Any, ...]:
    """How a loader pickles. pickle itself refuses what holds something that cannot be pickled, and names that."""
    return loader, (type(given), given._arguments(), given.state_dict(), getattr(given, "__dict__", None))
