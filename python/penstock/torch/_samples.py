"""Batches on their way to the user: nested values with tensors, moved to a device."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from typing import Any

import torch

import penstock


def to_device(value: Any, device: torch.device) -> Any:
    """The nested value with its tensors on `device`. Copies from pinned memory do not wait.

    What has a method `to` of its own (packed sequences, batches of other libraries) is moved by that. Shared containers
    stay shared. LimitError for a value that holds itself, and for one that nests too deeply.
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
    named = type(value) if isinstance(value, Mapping) else value  # the attributes of some dicts are their keys
    if callable(getattr(named, "to", None)) and not isinstance(value, type):
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
