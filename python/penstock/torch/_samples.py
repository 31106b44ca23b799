"""What is done with samples and batches on their way to the user: errors get the sample's name, bad samples are set
aside, and tensors are moved."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import torch

import penstock
from penstock._core import _is_of_surroundings, _outage


class Samples:
    """The samples of a loader's dataset as the dataset itself gives them, with the names that C++
    has for them."""

    def __init__(self, dataset: Any, native: penstock.Dataset) -> None:
        self._dataset = dataset
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, index: int | list[int]) -> Any:
        return self._dataset[index]

    def describe(self, index: int) -> str:
        return self._native.describe(index)


class SetAside:
    """Samples that could not be read, and why. A loader tries each of them once in its life."""

    def __init__(self) -> None:
        self._reasons: dict[int, tuple[str, str]] = {}
        self._in_a_row: list[int] = []  # the latest, since one could be read
        self._refused: list[int] = []  # the latest, since functions made a batch

    def __contains__(self, index: int) -> bool:
        return index in self._reasons

    def listed(self) -> list[tuple[int, str, str]]:
        return [(index, *reason) for index, reason in sorted(self._reasons.items())]

    def clear(self) -> None:
        self._reasons.clear()

    def add(self, index: int, what: str, why: str) -> None:
        self._reasons[index] = (what, why)

    def become(self, samples: Iterable[tuple[int, str, str]]) -> None:
        """What a feed has set aside, which knew these too."""
        self._reasons = {index: (what, why) for index, what, why in samples}

    def any_of(self, indices: Iterable[int]) -> bool:
        return bool(self._reasons) and any(index in self._reasons for index in indices)

    def refuse(self, index: int, what: str, error: Exception) -> None:
        """Sets a sample aside whose function raised; raises where too many did so behind each other, as `try_each`."""
        self._reasons[index] = (what, str(error))
        self._refused.append(index)
        self._require_no_outage(error, self._refused)

    def some_were_made(self) -> None:
        self._refused.clear()

    def try_each(self, samples: Samples, indices: Iterable[int]) -> bool:
        """Reads each sample by itself. True where one of them could not be read.

        Raises where none of these could, and too many before them: that is an outage, and none of them is set aside.
        """
        found = False
        last = None
        for index in indices:
            if index in self._reasons:
                found = True
                continue
            try:
                samples[index]
            except Exception as error:  # whatever a function behind the samples raises
                if _is_of_surroundings(error):
                    raise
                self._reasons[index] = (samples.describe(index), str(error))
                self._in_a_row.append(index)
                found, last = True, error
            else:
                self._in_a_row.clear()
        if last is not None:
            self._require_no_outage(last, self._in_a_row)
        return found

    def _require_no_outage(self, last: Exception, in_a_row: list[int]) -> None:
        outage = _outage(last, len(in_a_row))
        if outage is not None:
            for index in in_a_row:
                self._reasons.pop(index, None)
            in_a_row.clear()
            raise outage from None

    def without(self, indices: Iterable[int]) -> list[int]:
        return [index for index in indices if index not in self._reasons]

    def replaced(self, samples: Samples, indices: Iterable[int]) -> list[int]:
        """The indices with the next readable sample in the place of each bad one; empty where there
        is no readable sample."""
        out = []
        for wanted in indices:
            index = wanted
            while self.try_each(samples, (index,)):
                index = (index + 1) % len(samples)
                if index == wanted:
                    return []
            out.append(index)
        return out


def to_device(value: Any, device: torch.device) -> Any:
    """The nested value with its tensors on `device`. Copies from pinned memory do not wait.

    What has a method `to` of its own (packed sequences, batches of other libraries) is moved by
    that. Shared containers stay shared. LimitError for a value that holds itself, and for one that
    nests too deeply.
    """
    try:
        return _moved(value, device, {})
    except RecursionError as error:
        raise penstock.LimitError(
            f"the batch holds itself, or nests too deeply to be moved to {device}; give another one, or leave device "
            "out and move its tensors yourself"
        ) from error


def _moved(value: Any, device: torch.device, made: dict[int, tuple[Any, Any]]) -> Any:
    """The moved value. `made` has each container by its id, with what it became; the container is kept, because the id
    of one that is gone may be given to another."""
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=value.is_pinned() if device.type == "cuda" else False)
    if callable(getattr(value, "to", None)) and not isinstance(value, type):
        return value.to(device)
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if id(value) not in made:
        made[id(value)] = value, _moved_parts(value, device, made)
    return made[id(value)][1]


def _moved_parts(value: Any, device: torch.device, made: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, Mapping):
        return as_mapping_of(value, {key: _moved(item, device, made) for key, item in value.items()})
    parts = (_moved(item, device, made) for item in value)
    return type(value)(*parts) if isinstance(value, tuple) and hasattr(value, "_fields") else type(value)(parts)


def as_mapping_of(like: Mapping[Any, Any], content: dict[Any, Any]) -> Any:
    """`content`, which has the keys of `like`, as a mapping of the type of `like`; a dict where
    that type cannot be made."""
    if type(like) is dict:
        return content
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(content)  # type: ignore[call-arg]
        out = copy.copy(like)
        for key, item in content.items():
            out[key] = item
        return out
    except TypeError:
        return content
