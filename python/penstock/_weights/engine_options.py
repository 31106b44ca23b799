"""What loaders of engines for inference share: their options, and whether an engine is one they were written for."""

from __future__ import annotations

import importlib.metadata
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import penstock

_TEXTS = {"include", "exclude", "ignore"}
_OPTIONS = {"weights", "device", "ring_bytes", "threads", "key", "mmap", "ranks", *_TEXTS}


def checked_options(given: Any, ignored: Sequence[str] | str | None) -> dict[str, Any]:
    """The engine's `model_loader_extra_config` as arguments of `penstock.torch.weights`, with the engine's own patterns
    of files to ignore. InvalidArgumentError for what is no option."""
    if not isinstance(given or {}, Mapping):
        raise penstock.InvalidArgumentError(
            f"model_loader_extra_config is a dict for load format penstock, not a {type(given).__name__}"
        )
    options = dict(given or {})
    unknown = sorted(str(name) for name in options.keys() - _OPTIONS)
    if unknown:
        raise penstock.InvalidArgumentError(
            f"model_loader_extra_config has {', '.join(unknown)}, which load format penstock does not know; its "
            f"options are {', '.join(sorted(_OPTIONS))}"
        )
    for name in _TEXTS & options.keys():
        options[name] = _texts(name, options[name])
    options["ignore"] = [*options.get("ignore", ()), *_texts("ignore_patterns", ignored or ())]
    return options


def _texts(name: str, value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(text, str) for text in texts):
        raise penstock.InvalidArgumentError(f"{name}={value!r}: it is a list of patterns")
    return texts


def changed_signature(function: Callable[..., Any], expected: Sequence[str]) -> str | None:
    """How a function's parameters differ from those expected, which it must have and may add optional ones to."""
    found = inspect.signature(function).parameters
    needed = [name for name, one in found.items() if one.default is one.empty and one.kind not in (2, 4)]
    if needed == list(expected):
        return None
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} takes ({', '.join(needed)}), where ({', '.join(expected)}) was expected"


def version_of(distribution: str) -> str:
    """Of what is installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "of an unknown version"


def mismatch(engine: str, distribution: str, written_for: str, what: str) -> penstock.UnsupportedError:
    """The error for an engine whose loaders have another form."""
    return penstock.UnsupportedError(
        f"Penstock {penstock.__version__} was written for {engine} {written_for}, and {engine} "
        f"{version_of(distribution)} is installed: {what}; take another load format, or other versions"
    )
