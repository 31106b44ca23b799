"""What loading a state dict means for a module: which tensors it has, and whether it does more than copying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from penstock.torch._private import NormBase


def has_own_ways(module: torch.nn.Module) -> bool:
    """Whether loading means more than copying, because torch's load_state_dict calls something that
    is not torch's default.

    A meta tensor counts as well: only torch can say that nothing is copied into it.
    """
    if torch.__future__.get_swap_module_params_on_conversion() or any(t.is_meta for _, t in tensors_of(module)):
        return True
    plain = torch.nn.Module
    norm = NormBase._load_from_state_dict  # differs where its counter is not in the file
    for part in module.modules():
        kind = type(part)
        if any(getattr(kind, way) not in (getattr(plain, way), norm) or way in vars(part) for way in _WAYS):
            return True
        if part._load_state_dict_pre_hooks or part._load_state_dict_post_hooks:
            return True
    return False


# Of a class, or put into the object itself.
_WAYS = ("_load_from_state_dict", "load_state_dict", "get_extra_state", "set_extra_state")


def passed_over(module: torch.nn.Module) -> tuple[str, ...]:
    """What the keys begin with that torch takes for expected and for nothing: of children that were set to None."""
    parts = module.named_modules(remove_duplicate=False)
    gone = ((name, child) for name, part in parts for child, inner in part._modules.items() if inner is None)
    return tuple(f"{name}.{child}.".lstrip(".") for name, child in gone)


def keys_of_later(module: torch.nn.Module, state: Mapping[str, Any]) -> Iterator[str]:
    """The counters of batches in the module. Older state dicts lack them, and then they stay as they are."""
    versions = getattr(state, "_metadata", {})
    for name, part in module.named_modules(remove_duplicate=False):
        if isinstance(part, NormBase) and part.num_batches_tracked is not None:
            key = f"{name}.num_batches_tracked".lstrip(".")
            if key not in state and (versions.get(name, {}).get("version") or 0) < 2:
                yield key


def tensors_of(module: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and persistent buffers in the order in which load_state_dict visits them."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield prefix + name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield prefix + name, buffer
    for name, child in module._modules.items():
        if child is not None:
            yield from tensors_of(child, f"{prefix}{name}.")
