"""Distributed checkpoints: a folder that 4 ranks saved to one process, and to one file, beside torch's own ways.

2 GB, or as many as PENSTOCK_BENCH_DCP_GB says. Every tensor is sharded over the ranks by its rows, as FSDP does it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from line import Call, Line, Program

GIGABYTES = float(os.environ.get("PENSTOCK_BENCH_DCP_GB", "2"))
RANKS = 4
COLUMNS = 4096
ROWS = 4096  # of a tensor: 64 MiB
TENSORS = max(1, round(GIGABYTES * 1e9 / (4 * ROWS * COLUMNS)))
BYTES = TENSORS * 4 * ROWS * COLUMNS
TORCH = ("torch", "torch.distributed.checkpoint", "torch.distributed.checkpoint.format_utils")


def _make(folder: Path) -> None:
    """Saves the boxes of all ranks in this process."""
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.default_planner import DefaultSavePlanner, create_default_global_save_plan
    from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
    from torch.distributed.checkpoint.planner import SavePlan, TensorWriteData, WriteItem, WriteItemType

    rows = ROWS // RANKS

    class Random(DefaultSavePlanner):
        def resolve_data(self, write_item: WriteItem) -> Any:
            return torch.randn(rows, COLUMNS)

    def item(name: str, rank: int) -> WriteItem:
        at = torch.Size((rank * rows, 0))
        chunk = ChunkStorageMetadata(at, torch.Size((rows, COLUMNS)))
        data = TensorWriteData(chunk, TensorProperties(dtype=torch.float32), torch.Size((ROWS, COLUMNS)))
        return WriteItem(MetadataIndex(name, at), WriteItemType.SHARD, tensor_data=data)

    temporary = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    writer = dcp.FileSystemWriter(temporary)
    writer.set_up_storage_writer(is_coordinator=True)
    names = [f"layers.{number}.weight" for number in range(TENSORS)]
    plans = [writer.prepare_local_plan(SavePlan([item(name, rank) for name in names])) for rank in range(RANKS)]
    plans, metadata = create_default_global_save_plan(plans)
    writer.finish(metadata, [writer.write_data(p, Random()).wait() for p in writer.prepare_global_plan(plans)])
    temporary.rename(folder)


def _state() -> dict[str, Any]:
    """Memory that is there already, and was touched."""
    import torch

    return {f"layers.{number}.weight": torch.zeros(ROWS, COLUMNS) for number in range(TENSORS)}


def _dcp_load(folder: Path, ours: bool) -> Call:
    import torch.distributed.checkpoint as dcp

    state = _state()
    if not ours:
        return lambda: dcp.load(state, checkpoint_id=folder, no_dist=True)
    from penstock.torch.dcp import StorageReader

    return lambda: dcp.load(state, storage_reader=StorageReader(folder), no_dist=True)


def _load(folder: Path) -> Call:
    import penstock

    return lambda: penstock.load(folder)


def _to_torch(folder: Path, out: Path) -> Call:
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    return lambda: dcp_to_torch_save(folder, out)


def _convert(folder: Path, out: Path) -> Call:
    command = ["build/release/bin/penstock", "convert", "--force", str(folder), str(out)]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def lines(root: Path) -> list[Line]:
    folder = root / f"dcp-{BYTES // 1_000_000}"
    if not folder.exists():
        _make(folder)
    work = BYTES / 1e9
    of = f"a checkpoint of {RANKS} ranks, {work:.1f} GB"
    by_torch = Program(partial(_dcp_load, folder, False), TORCH)
    loaded = {
        "dcp.load with StorageReader": Program(partial(_dcp_load, folder, True), (*TORCH, "penstock.torch.dcp")),
        "load": Program(partial(_load, folder), ("penstock",)),
    }
    out = [
        Line(name=f"{how}: {of}", unit="GB/s", ours=ours, peers={"dcp.load": by_torch}, work=work, goal_peer=3)
        for how, ours in loaded.items()
    ]
    converted = {
        "ours": Program(partial(_convert, folder, root / "dcp.safetensors"), ("penstock",)),
        "peers": {"dcp_to_torch_save": Program(partial(_to_torch, folder, root / "dcp.pt"), TORCH)},
        "fresh": True,
        "repeats": 3,
    }
    out.append(Line(name=f"convert {of}, to one file", unit="GB/s", work=work, goal_peer=2, **converted))
    out.append(Line(name=f"memory: convert {of}", unit="MB", kind="memory", goal=64, **converted))
    return out
