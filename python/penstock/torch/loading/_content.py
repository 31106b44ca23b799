"""What a file holds, as `load_into` sees it before anything is read: its containers, numbers and strings, with a mark
for each tensor and for each object that has to be loaded to be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

import penstock
from penstock._asked import has
from penstock._core import _assemble, _entry_parts, _part
from penstock._text import abbreviated
from penstock.torch.loading._checkpoint import load_archive

_SCALARS = (type(None), bool, int, float, complex, str, bytes)
_TENSORS = ("", "torch.nn.parameter.Buffer", "torch.nn.parameter.Parameter")


class EntryAt:
    """A tensor that is an entry of the archive and nothing more."""

    __slots__ = ("number", "shape")

    def __init__(self, number: int, shape: tuple[int, ...]) -> None:
        self.number = number
        self.shape = shape


class Made:
    """An object of a named type that is made of its parts when it is loaded: a sparse tensor, an
    array, a torch.Size."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Content:
    """The content of an archive: `root` has marks in the place of tensors, and `at` loads what lies at a place.

    With `loaded` everything was read before; `root` is that.
    """

    def __init__(self, archive: penstock.Archive, loaded: Any = None, *, is_loaded: bool = False) -> None:
        self.archive = archive
        self._loaded = loaded
        self._is_loaded = is_loaded
        self.root = loaded if is_loaded else self._outline()
        self._is_nested = False

    def _outline(self) -> Any:
        marks = [EntryAt(number, _entry_parts(self.archive, number)[2]) for number in range(len(self.archive))]
        return _assemble(self.archive, marks, _marked)

    def nest_like(self, target: Any) -> None:
        """Gives a file whose names are flat ("layers.0.weight") the nesting of the target, as far as
        its names lead there."""
        if not isinstance(target, (Mapping, list, tuple)) or not _has_names_alone(self.root):
            return
        nested = _nested(dict(self.root), target)
        if isinstance(nested, list) or nested.keys() != self.root.keys():
            self.root, self._is_nested = nested, True

    def at(self, steps: Sequence[Any]) -> Any:
        """What the keys lead to, loaded into host memory. Nothing else is read where the keys are
        strings and integers."""
        if self._is_nested and not self._is_loaded:
            return self._at_name(".".join(map(str, steps)))
        if not self._is_loaded and all(type(step) in (str, int) for step in steps):
            return load_archive(_part(self.archive, list(steps), None), "cpu")
        if not self._is_loaded:
            self._loaded, self._is_loaded = load_archive(self.archive, "cpu"), True
        value = self.root if self._is_nested else self._loaded
        for step in steps:
            value = value[step]
        return value

    def _at_name(self, name: str) -> Any:
        """The tensor of that name, or those whose names begin with it."""
        is_tensor = name in self.archive
        part = _part(self.archive, [name] if is_tensor else None, None if is_tensor else f"{name}.")
        return load_archive(part, "cpu")


def _has_names_alone(content: Any) -> bool:
    """Whether it is a dict of tensors by their names, and nothing else."""
    return isinstance(content, Mapping) and all(
        isinstance(key, str) and isinstance(leaf, (EntryAt, torch.Tensor)) for key, leaf in content.items()
    )


def _nested(names: dict[str, Any], target: Any) -> Any:
    """The tensors in the nesting of the target. What has no place there keeps its name."""
    out: dict[Any, Any] = {}
    for step in target if isinstance(target, Mapping) else range(len(target)):
        part = target[step]
        if str(step) in names:
            out[step] = names.pop(str(step))
            continue
        begin = f"{step}."
        inner = {name[len(begin) :]: leaf for name, leaf in names.items() if name.startswith(begin)}
        if not inner or not (part is None or isinstance(part, (Mapping, list, tuple)) or has(part, "load_state_dict")):
            continue
        names = {name: leaf for name, leaf in names.items() if not name.startswith(begin)}
        out[step] = _nested(inner, part) if isinstance(part, (Mapping, list, tuple)) else inner
    if not isinstance(target, Mapping) and not names and len(out) == len(target):
        return [out[step] for step in range(len(target))]
    return {**out, **names}


def _marked(name: str, args: Any, state: Any, begun: Any) -> Any:
    if begun is not None:
        return begun
    if name in _TENSORS and args and isinstance(args[0], EntryAt):
        return args[0]
    return Made(name)


def shape_of(leaf: EntryAt | torch.Tensor) -> tuple[int, ...]:
    return leaf.shape if isinstance(leaf, EntryAt) else tuple(leaf.shape)


def is_plain(value: Any) -> bool:
    """Whether the value consists of numbers, strings and None, alone or in lists and tuples."""
    seen: set[int] = set()
    open_parts = [value]
    while open_parts:
        part = open_parts.pop()
        if type(part) in (list, tuple):
            if id(part) not in seen:
                seen.add(id(part))
                open_parts.extend(part)
        elif type(part) not in _SCALARS and type(part) is not torch.Size:
            return False
    return True


def kind_of(value: Any) -> str:
    """The kind of a value as a sentence names it, with its article."""
    if isinstance(value, EntryAt):
        return f"a tensor of shape {value.shape}"
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, Made):
        return f"an object of class {abbreviated(value.name)}" if value.name else "an object"
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, complex)):
        return f"the number {value!r}"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Mapping):
        return f"a dict of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"a {'list' if isinstance(value, list) else 'tuple'} of {len(value)}"
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return f"an object of class {name}"
