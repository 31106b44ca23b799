"""Distributed tensors (DTensor), and the classes of torch.distributed that say how they are laid out.

torch allows these by itself once torch.distributed.tensor is imported. They are made as torch.load makes them, by code
that torch has for this; it needs no process group.
"""

from __future__ import annotations

from typing import Any

import torch

from penstock.torch._private import make_wrapper_subclass, set_obj_state
from penstock.torch.loading._attributes import attributes_of
from penstock.torch.loading._typed import Conversion

# Of the allowed ones; what is merely named so is no class of torch's.
_OWN_WAYS = ("torch.distributed.device_mesh.", "torch.distributed.tensor.placement_types.")


def is_of_torch(kind: type[Any], name: str) -> bool:
    """Whether torch has to make objects of this class in a way of its own."""
    return name.startswith(_OWN_WAYS) and f"{kind.__module__}.{kind.__qualname__}" == name


def made(kind: type[Any], args: Any, state: Any) -> Any:
    """An object of such a class. TypeError, ValueError or RuntimeError where the parts do not make one."""
    out = kind.__new__(kind, *args)
    if state is None:
        return out
    if not isinstance(state, dict):
        raise TypeError(f"the state of a {kind.__name__} is a {type(state).__name__}")
    out.__setstate__(state)
    return out


def wrapper(args: Any, state: Any, conversion: Conversion | None = None) -> torch.Tensor | None:
    """The DTensor of a wrapper's parts; None for wrappers of other classes. `conversion` is what its
    local part went through."""
    if not isinstance(args, tuple) or len(args) != 8 or not isinstance(args[0], type):
        return None
    kind, dtype, size, strides, offset, layout, _, requires_grad = args
    if f"{kind.__module__}.{kind.__qualname__}" != "torch.distributed.tensor.DTensor":
        return None
    parts = dict(attributes_of(state))
    local, spec = parts.get("_local_tensor"), parts.get("_spec")
    if not isinstance(local, torch.Tensor) or spec is None or type(spec).__name__ != "DTensorSpec":
        raise TypeError("a DTensor lacks its local part, or the description of its layout")
    if conversion is not None:
        dtype = conversion.type_for(dtype)
        if spec.tensor_meta is not None:
            spec.tensor_meta = spec.tensor_meta._replace(dtype=dtype)
    out: torch.Tensor = make_wrapper_subclass(
        kind,
        size,
        strides=strides,
        dtype=dtype,
        storage_offset=offset,
        layout=layout,
        device=local.device,
        requires_grad=requires_grad,
    )
    return set_obj_state(out, state)  # type: ignore[no-any-return]
