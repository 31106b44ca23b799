"""Checkpoints as several ranks would save them, written by torch in one process."""

import io

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner, create_default_global_save_plan
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import SavePlan, TensorWriteData, WriteItem, WriteItemType


class Ranks(DefaultSavePlanner):
    """Saves boxes of tensors as several ranks would, in this process."""

    def __init__(self, state):
        super().__init__()
        self.tensors = state

    def resolve_data(self, item):
        value = self.tensors[item.index.fqn]
        if item.type == WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            torch.save(value, stream)
            return stream
        box = item.tensor_data.chunk
        return value[tuple(slice(a, a + n) for a, n in zip(box.offsets, box.sizes, strict=True))]


def items_of(name, value, boxes):
    if not isinstance(value, torch.Tensor):
        return [WriteItem(index=MetadataIndex(name), type=WriteItemType.BYTE_IO)]
    return [
        WriteItem(
            index=MetadataIndex(name, at),
            type=WriteItemType.SHARD,
            tensor_data=TensorWriteData(
                chunk=ChunkStorageMetadata(torch.Size(at), torch.Size(sizes)),
                properties=TensorProperties(dtype=value.dtype),
                size=value.size(),
            ),
        )
        for at, sizes in boxes
    ]


def save_by_ranks(folder, state, layout, writer=None):
    """`layout`: for each rank the boxes that it saves of each name."""
    writer = writer or dcp.FileSystemWriter(folder)
    writer.set_up_storage_writer(is_coordinator=True)
    planner = Ranks(state)
    plans = [
        writer.prepare_local_plan(SavePlan([i for n, boxes in rank.items() for i in items_of(n, state[n], boxes)]))
        for rank in layout
    ]
    plans, metadata = create_default_global_save_plan(plans)
    plans = writer.prepare_global_plan(plans)
    writer.finish(metadata, [writer.write_data(plan, planner).wait() for plan in plans])
