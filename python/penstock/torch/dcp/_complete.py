"""Whether a load fills all that it was asked for. A planner of torch makes its plan of what `.metadata` says, and asks
nothing where that says nothing: a damaged chunk would leave its part of a tensor as it was, without a word."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner

from penstock._core import _dcp_require_apart, _dcp_require_cover
from penstock.errors import CorruptError
from penstock.torch.dcp._metadata import failed

_PLANS = ("create_local_plan", "create_global_plan", "finish_plan")


def require_cover(metadata: Metadata, path: str) -> None:
    """CorruptError where the chunks of a tensor are not the whole of it, each element once."""
    tensors = [
        (name, item.size, [(chunk.offsets, chunk.sizes) for chunk in item.chunks])
        for name, item in metadata.state_dict_metadata.items()
        if isinstance(item, TensorStorageMetadata)
    ]
    _dcp_require_cover(path, tensors)


def require_apart(metadata: Metadata, path: str) -> None:
    """CorruptError where two chunks or objects lie in the same bytes: one would have the other's content."""
    places = [
        (index.fqn, place.relative_path, place.offset, place.length)
        for index, place in (metadata.storage_data or {}).items()
        if index.fqn in metadata.state_dict_metadata
    ]
    _dcp_require_apart(path, places)


def require_filled(plan: LoadPlan, planner: LoadPlanner, metadata: Metadata, path: str) -> None:
    """CorruptError for a tensor of the state dict that a plan of torch's own planner does not fill. Planners of a
    program may leave out what they like."""
    if not isinstance(planner, DefaultLoadPlanner):
        return
    if any(getattr(type(planner), name) is not getattr(DefaultLoadPlanner, name) for name in _PLANS):
        return
    planned: dict[str, int] = {}
    for item in plan.items:
        if item.type != LoadItemType.BYTE_IO:
            planned[item.dest_index.fqn] = planned.get(item.dest_index.fqn, 0) + math.prod(item.lengths)
    for name, target in planner.state_dict.items():
        described = metadata.state_dict_metadata.get(name)
        wanted = _local_elements(target) if isinstance(described, TensorStorageMetadata) else 0
        if planned.get(name, 0) < wanted:
            message = (
                f"it has {planned.get(name, 0)} of the {wanted} elements that are wanted on this rank: it is damaged, "
                "or not that of a whole save; copy or save the checkpoint again"
            )
            raise failed(CorruptError, message, path, name)


def _local_elements(target: Any) -> int:
    """Of what this rank holds of a tensor."""
    if hasattr(target, "local_shards"):
        return sum(shard.tensor.numel() for shard in target.local_shards())
    if hasattr(target, "to_local"):
        return target.to_local().numel() if target.device_mesh.get_coordinate() is not None else 0
    return target.numel() if isinstance(target, torch.Tensor) else 0
