"""Which part of a file each tensor, number and object of a target takes. All of this is decided before anything is
changed, so that an error leaves the target as it was."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import torch
from torch.nn.parameter import is_lazy

import penstock
from penstock._text import abbreviated
from penstock.torch._convert import to_torch
from penstock.torch._memory import require_memory, shares_elements
from penstock.torch.loading._content import Content, EntryAt, Made, is_plain, kind_of, shape_of
from penstock.torch.loading._modules import has_own_ways, keys_of_later, passed_over, tensors_of

_Steps = tuple[Any, ...]
_MOST_OF_A_PATH = 1000


@dataclass
class _TupleParts:
    """The items of a tuple as they will be. A tuple cannot be changed, so that a new one takes its places."""

    before: tuple[Any, ...]
    items: list[Any]
    puts: list[Callable[[Any], None]] = field(default_factory=list)
    inner: list[_TupleParts] = field(default_factory=list)
    """Tuples among the items, which come first."""

    def settle(self) -> None:
        while self.inner:
            self.inner.pop().settle()
        if not all(a is b for a, b in zip(self.before, self.items, strict=True)):
            made = tuple.__new__(type(self.before), self.items)
            while self.puts:
                self.puts.pop()(made)


@dataclass
class _Node:
    """A part of the target with the file's part for it, and the place of both."""

    target: Any
    content: Any
    steps: _Steps
    put: Callable[[Any], None] | None
    """Sets another object in its place; None at the root."""
    around: _TupleParts | None = None

    @property
    def path(self) -> str:
        return ".".join(map(str, self.steps))


@dataclass
class Plan:
    """What loading will do. `problems` say why it cannot be done; keys and paths are as in `IncompatibleKeys`."""

    content: Content
    assign: bool
    places: list[tuple[torch.Tensor, EntryAt | torch.Tensor, str]] = field(default_factory=list)
    calls: list[_Node] = field(default_factory=list)
    """Modules with ways of their own, optimizers and the like: what `load_state_dict` is called of."""
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _puts: list[Callable[[], None]] = field(default_factory=list)
    _tuples: list[_TupleParts] = field(default_factory=list)
    _open: list[_Node] = field(default_factory=list)
    _seen: dict[tuple[int, int], tuple[Any, Any, _TupleParts | None]] = field(default_factory=dict)
    """Containers by their ids, and they themselves: an id is another's when its object is gone."""

    def make(self, target: Any) -> None:
        self.content.nest_like(target)
        self._open.append(_Node(target, self.content.root, (), None))
        while self._open:
            self._visit(self._open.pop())

    def settle(self) -> None:
        """Puts numbers and other objects into their places, then tuples that have other parts now."""
        for put in self._puts:
            put()
        for parts in reversed(self._tuples):
            parts.settle()

    def _visit(self, node: _Node) -> None:
        target = node.target
        if isinstance(target, torch.nn.Module):
            self._module(node)
        elif isinstance(target, (torch.Tensor, penstock.Tensor)) or _is_array(target):
            self._tensor(node)
        elif callable(getattr(type(target), "load_state_dict", None)):
            self._stateful(node)
        elif isinstance(target, (Mapping, list, tuple)) and not _is_value(target):
            self._container(node)
        else:
            self._value(node)

    # One method a kind of target.

    def _module(self, node: _Node) -> None:
        module, content = node.target, node.content
        if not isinstance(content, Mapping):
            self._unlike(node, "a module")
        elif self.assign or has_own_ways(module) or not _is_flat(content):
            if not self.assign:
                require_memory((_joined(node.path, key), place) for key, place in tensors_of(module))
            self.calls.append(node)
        else:
            wanted = dict(tensors_of(module))
            for key in keys_of_later(module, content):
                del wanted[key]
            self.missing += [_joined(node.path, key) for key in wanted if key not in content]
            known = passed_over(module)
            unexpected = [key for key in content if key not in wanted and not key.startswith(known)]
            self.unexpected += [_joined(node.path, key) for key in unexpected]
            for key, place in wanted.items():
                if key in content:
                    self._place(place, content[key], _joined(node.path, key))

    def _stateful(self, node: _Node) -> None:
        if isinstance(node.content, Mapping):
            self.calls.append(node)
        else:
            self._unlike(node, f"{kind_of(node.target)}, which takes a state dict")

    def _tensor(self, node: _Node) -> None:
        leaf = self._leaf(node)
        if isinstance(node.target, torch.Tensor) and is_lazy(node.target):
            self.problems.append(
                f"{_named(node.path)}: the target is a lazy parameter, which has no shape yet; give its module instead."
            )
        elif leaf is None:
            self._unlike(node, f"a tensor of shape {tuple(node.target.shape)}")
        elif not self.assign:
            if isinstance(node.target, torch.Tensor):
                self._place(node.target, leaf, node.path)
            else:
                self._array(node, leaf)
        elif node.put is None:
            self.problems.append("assign=True replaces tensors, and a tensor by itself lies in nothing; use load.")
        elif _fits(node.target, leaf, node.path, self.problems):
            self._put(node, leaf)

    def _array(self, node: _Node, leaf: EntryAt | torch.Tensor) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of arrays that must not be written
                place = _writable(node.target)
        except (BufferError, TypeError, ValueError, UserWarning) as error:
            self.problems.append(f"{_named(node.path)}: the array cannot be filled: {error}.")
            return
        self._place(place, leaf, node.path)

    def _leaf(self, node: _Node) -> EntryAt | torch.Tensor | None:
        """The file's tensor; None for other objects."""
        made = node.content
        if isinstance(made, Made):
            made = self.content.at(node.steps)
        if _is_array(made):
            made = torch.from_numpy(made)
        return made if isinstance(made, (EntryAt, torch.Tensor)) else None

    def _place(self, place: torch.Tensor, leaf: EntryAt | torch.Tensor, path: str) -> None:
        if not _fits(place, leaf, path, self.problems):
            return
        if place.is_meta:
            self.problems.append(
                f"{_named(path)}: the target is on the meta device and has no memory to fill; use assign=True."
            )
            return
        require_memory([(_named(path), place)])
        if shares_elements(place):
            self.problems.append(
                f"{_named(path)}: elements of the target are one and the same in memory (it is expanded), so that they "
                "cannot be filled; use a clone() of it, or assign=True."
            )
            return
        self.places.append((place, leaf, _named(path)))

    def _container(self, node: _Node) -> None:
        target, content = node.target, node.content
        seen = self._seen.get((id(target), id(content)))
        parts = seen[2] if seen else _TupleParts(target, list(target)) if isinstance(target, tuple) else None
        if parts is not None and node.put is not None:
            parts.puts.append(node.put)
            if node.around is not None:
                node.around.inner.append(parts)
        if seen:  # by another way, or a cycle
            return
        self._seen[id(target), id(content)] = target, content, parts
        like = Mapping if isinstance(target, Mapping) else (list, tuple)
        if not isinstance(content, like):
            self._unlike(node, kind_of(target))
            return
        if parts is not None:
            self._tuples.append(parts)
        inner = []
        for step in _keys(target):
            steps = (*node.steps, step)
            if _has(content, step):
                put = self._putter(target if parts is None else parts.items, step, node)
                inner.append(_Node(target[step], content[step], steps, put, parts))
            else:
                self._lacks(target[step], steps)
        self.unexpected += [
            path
            for step in _keys(content)
            if not _has(target, step)
            for path in _leaves(content[step], (*node.steps, step))
        ]
        self._open.extend(reversed(inner))

    def _putter(self, items: Any, step: Any, node: _Node) -> Callable[[Any], None] | None:
        """What puts a new value in this place; None where nothing can be replaced."""
        if isinstance(items, Mapping) and not isinstance(items, MutableMapping):
            return None
        if isinstance(node.target, tuple) and node.put is None:
            return None
        return lambda value: items.__setitem__(step, value)

    def _value(self, node: _Node) -> None:
        target, content = node.target, node.content
        if target is not None and not _is_like(target, content) and not isinstance(content, Made):
            self._unlike(node, kind_of(target))
            return
        # What holds tensors or objects has marks in their place.
        value = content if is_plain(content) else self.content.at(node.steps)
        if isinstance(content, Made) and target is not None and not _is_like(target, value):
            self._unlike(node, kind_of(target))
        elif node.put is not None:
            self._put(node, value)
        elif isinstance(target, list):
            self._puts.append(lambda: target.__setitem__(slice(None), value))
        elif type(value) is not type(target) or value != target:
            where = _named(node.path) if node.steps else "the target"
            self.problems.append(
                f"{where}: {kind_of(target)} cannot be replaced where it lies; put it into a dict or a list."
            )

    # What they have in common.

    def _put(self, node: _Node, value: Any) -> None:
        put = node.put
        assert put is not None
        self._puts.append(lambda: put(value))

    def _lacks(self, target: Any, steps: _Steps) -> None:
        self.missing += _leaves(target, steps)

    def _unlike(self, node: _Node, wanted: str) -> None:
        where = _named(node.path) if node.steps else "the file"
        self.problems.append(f"{where}: found {kind_of(node.content)} in the file, where the target has {wanted}.")


def _named(path: str) -> str:
    return abbreviated(path, _MOST_OF_A_PATH) or "the target"


def _joined(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _is_flat(content: Mapping[Any, Any]) -> bool:
    """Whether it is a plain state dict. What any other one means to a module only torch can say."""
    return all(isinstance(key, str) and isinstance(leaf, EntryAt) for key, leaf in content.items())


def _is_array(target: Any) -> bool:
    kind = type(target)
    return kind.__module__ == "numpy" and kind.__name__ in {"ndarray", "memmap"}


def _writable(array: Any) -> torch.Tensor:
    """A torch tensor over the memory of an array of NumPy's or Penstock's."""
    if not isinstance(array, penstock.Tensor):
        return torch.from_numpy(array)
    if array.read_only:
        raise BufferError("its memory is read-only")
    return to_torch(array)


def _is_value(target: Any) -> bool:
    """Whether a list or tuple is one value. Those of numbers and strings are: histories and the like grow from file to
    file."""
    return isinstance(target, (list, tuple)) and is_plain(target)


def _is_like(target: Any, content: Any) -> bool:
    """Whether the file's value may stand for the target's: both are numbers, or text, or lists of these."""
    if content is None:
        return True
    if isinstance(target, Number):
        return isinstance(content, Number)
    if isinstance(target, (list, tuple)):
        return isinstance(content, (list, tuple)) and is_plain(content)
    return type(target) is type(content)


def _fits(place: Any, leaf: EntryAt | torch.Tensor, path: str, problems: list[str]) -> bool:
    """Whether the shapes fit. torch lets an element of shape (1,) stand for a scalar, because files of before 0.4 have
    it so."""
    shape = shape_of(leaf)
    if tuple(place.shape) == shape or (place.ndim == 0 and shape == (1,)):
        return True
    problems.append(
        f"size mismatch for {_named(path)}: copying a param with shape {torch.Size(shape)} from checkpoint, the shape "
        f"in current model is {torch.Size(place.shape)}."
    )
    return False


def _keys(container: Any) -> Any:
    return list(container) if isinstance(container, Mapping) else range(len(container))


def _has(container: Any, step: Any) -> bool:
    return step in container if isinstance(container, Mapping) else step < len(container)


def _leaves(value: Any, steps: _Steps) -> Iterator[str]:
    """The paths of everything that is no container, and of containers that are empty or were met before."""
    seen: set[int] = set()
    open_parts = [(value, steps)]
    while open_parts:
        part, at = open_parts.pop()
        path = ".".join(map(str, at))
        if isinstance(part, torch.nn.Module):
            yield from (_joined(path, key) for key, _ in tensors_of(part))
        elif isinstance(part, (Mapping, list, tuple)) and len(part) and id(part) not in seen and not _is_value(part):
            seen.add(id(part))
            open_parts.extend((part[step], (*at, step)) for step in reversed(_keys(part)))
        else:
            yield path
