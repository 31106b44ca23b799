"""A guess at what the caller meant, where the keys of a file are not those of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

_WRAPPERS = "module."


def hint(target: Any, content: Any, missing: Sequence[str]) -> str:
    """A line to add to the list of what does not fit; empty where nothing better is known."""
    if not missing or not isinstance(content, Mapping):
        return ""
    for key, part in [(None, content), *((key, part) for key, part in content.items() if isinstance(part, Mapping))]:
        prefix = _prefix_of(part, missing)
        if prefix is None or (key is None and not prefix):
            continue
        options = [f"key={key!r}"] if key is not None else []
        options += [f"prefix={prefix!r}"] if prefix else []
        return f"\n\tThe file has them elsewhere: give load_into {' and '.join(options)}."
    if isinstance(target, torch.nn.Module) and all(key.startswith(_WRAPPERS) for key in missing):
        inner = [key.removeprefix(_WRAPPERS) for key in missing]
        for key, part in [("", content), *((f", key={key!r}", p) for key, p in content.items())]:
            if isinstance(part, Mapping) and all(name in part for name in inner):
                return f"\n\tThe file is of the module within: call load_into(model.module, ...{key})."
    return ""


def _prefix_of(part: Mapping[Any, Any], missing: Sequence[str]) -> str | None:
    """The prefix that all missing keys have in this part of the file; None where some key is not there with it."""
    first = missing[0]
    for key in part:
        if not isinstance(key, str) or not key.endswith(first):
            continue
        prefix = key[: len(key) - len(first)]
        if (not prefix or prefix.endswith(".")) and all(prefix + name in part for name in missing):
            return prefix
    return None
