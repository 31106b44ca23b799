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
    plain = torch.nn.Module._load_from_state_dict
    norm = NormBase._load_from_state_dict  # differs where its counter is not in the file
    for part in module.modules():
        kind = type(part)
        if (
            kind._load_from_state_dict not in (plain, norm)
            or kind.load_state_dict is not torch.nn.Module.load_state_dict
        ):
            return True
        if kind.get_extra_state is not torch.nn.Module.get_extra_state:
            return True
        if part._load_state_dict_pre_hooks or part._load_state_dict_post_hooks:
            return True
    return False


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
