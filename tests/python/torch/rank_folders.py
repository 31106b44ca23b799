"""Writes folders as torch_checkpointing leaves them: `rank_folders.py FOLDER SEED COUNT`.

A program of its own, because distributed tensors need a process group. One process writes the files of all ranks: the
parts are cut by torch's own placements, and `metadata.pkl` is made by torch_checkpointing's classes. Each folder has
`expected.pt` beside it, with the whole tensors.
"""

from __future__ import annotations

import itertools
import pickle
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch_checkpointing import CheckpointManager, ItemSpec
from torch_checkpointing.checkpoint_layout import LayoutInfo, SafetensorsSerialization
from torch_checkpointing.config import SyncCheckpointSaverConfig
from torch_checkpointing.default_metadata import DefaultShardingMetadata
from torch_checkpointing.default_resharder import DefaultResharder
from torch_checkpointing.distributed_metadata import (
    DistributedItemMetadata,
    DistributedMetadata,
    GlobalObjectMetadata,
)
from torch_checkpointing.dtensor_metadata import DTensorShardingMetadata
from torch_checkpointing.storage.filesystem import LocalFileSystemStorageConfig

DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn]
WORLD = 8


def full_tensor(random_: random.Random) -> torch.Tensor:
    shape = [random_.randint(0, 9) or random_.randint(0, 1) for _ in range(random_.randint(0, 3))]
    numbers = torch.randint(0, 100, shape, generator=torch.Generator().manual_seed(random_.randrange(2**32)))
    return numbers.to(random_.choice(DTYPES))


def placements_of(random_: random.Random, tensor: torch.Tensor, dims: int) -> list:
    kinds = [Replicate] if tensor.ndim == 0 else [Replicate, Shard, Shard, _StridedShard]
    out = []
    for _ in range(dims):
        kind = random_.choice(kinds)
        dim = random_.randrange(tensor.ndim) if tensor.ndim else 0
        if kind is Replicate:
            out.append(Replicate())
        elif kind is Shard:
            out.append(Shard(dim))
        else:
            out.append(_StridedShard(dim, split_factor=random_.randint(1, 3)))
    return out


def local_part(tensor: torch.Tensor, mesh: DeviceMesh, placements: list, place: tuple[int, ...]) -> torch.Tensor:
    part = tensor
    for parts, number, placement in zip(mesh.mesh.shape, place, placements, strict=True):
        if not isinstance(placement, Replicate):
            pieces, _ = placement._split_tensor(part, parts, with_padding=False, contiguous=True)
            part = pieces[number]
    return part.clone()


def write_distributed(folder: Path, random_: random.Random) -> None:
    """An item in files of .pt or .safetensors, some tensors nested."""
    folder.mkdir()
    shape = random_.choice([(8,), (2, 4), (4, 2), (2, 2, 2), (2, 2), (3,)])
    ranks = [0, *random_.sample(range(1, WORLD), torch.Size(shape).numel() - 1)]  # torch empties what rank 0 lacks
    random_.shuffle(ranks)
    mesh = DeviceMesh("cpu", torch.tensor(ranks).reshape(shape), _init_backend=False)
    whole = {f"w{i}": full_tensor(random_) for i in range(4)}
    placements = {name: placements_of(random_, tensor, len(shape)) for name, tensor in whole.items()}
    plain = random_.random() < 0.3  # as .safetensors
    files, described = {}, {}
    for rank, place in zip(ranks, itertools.product(*map(range, shape)), strict=True):
        local = {name: local_part(tensor, mesh, placements[name], place) for name, tensor in whole.items()}
        made = {
            name: DTensor.from_local(
                part, mesh, placements[name], run_check=False, shape=whole[name].shape, stride=whole[name].stride()
            )
            for name, part in local.items()
        }
        for name, tensor in made.items():
            described[name] = DTensorShardingMetadata.from_dtensor(tensor)
        if plain:
            save_file({f"layers.{name}": part for name, part in local.items()}, folder / f"rank{rank}.safetensors")
            files[rank] = LayoutInfo(f"rank{rank}.safetensors", SafetensorsSerialization())
        else:
            torch.save({"layers": made, "list": [1, {"of": rank}], "step": 3}, folder / f"model_{rank}.pt")
    item = DistributedItemMetadata(
        {
            ("layers", name): [GlobalObjectMetadata(sharding, tuple(sorted(ranks)))]
            for name, sharding in described.items()
        },
        {rank: files.get(rank) for rank in range(WORLD)},
    )
    described_all = DistributedMetadata({"model": item}, WORLD).to_dict()
    if random_.random() < 0.3:
        described_all = as_first_version(described_all)
    (folder / "metadata.pkl").write_bytes(pickle.dumps(described_all))
    first = {"of": min(ranks)}  # the rank whose file comes first
    rest = {} if plain else {"list": [1, first], "step": 3}
    layers = {f"layers.{name}": t for name, t in whole.items()} if plain else {"layers": whole}
    torch.save({"model": layers | rest}, folder / "expected.pt")


def as_first_version(described: dict) -> dict:
    """The same in the form of version 1.0."""
    paths = described["metadata"]["model"]["nested_path_to_metadata"]
    layouts = described["metadata"]["model"]["rank_to_layout_info"]
    return {
        "metadata": {f'["model",{path[1:]}': groups for path, groups in paths.items()},
        "rank_to_layout_info_mappings": {rank: {"model": layout} for rank, layout in layouts.items()},
        "world_size": described["world_size"],
        "version": "1.0",
    }


def write_own_class(folder: Path) -> None:
    """Tensors that say themselves which boxes they have: rows dealt by turns, the last rank has two columns."""
    folder.mkdir()
    whole = torch.arange(60.0).reshape(6, 10)
    rows = {0: [0, 2, 4], 1: [1, 3, 5]}
    groups = []
    for rank, mine in rows.items():
        local = whole[mine]
        torch.save({"w": local, f"only{rank}": torch.full((2,), rank), "n": rank}, folder / f"own_{rank}.pt")
        sharding = DefaultShardingMetadata(
            (6, 10), [(row, 0) for row in mine], [(i, 0) for i in range(3)], [(1, 10)] * 3, "torch.float32"
        )
        groups.append(GlobalObjectMetadata(sharding, (rank,)))
    item = DistributedItemMetadata({("w",): groups}, {0: None, 1: None})
    (folder / "metadata.pkl").write_bytes(pickle.dumps(DistributedMetadata({"own": item}, 2).to_dict()))
    both = {"w": whole, "only0": torch.full((2,), 0), "n": 0, "only1": torch.full((2,), 1)}
    torch.save({"own": both}, folder / "expected.pt")


def write_by_manager(folder: Path) -> None:
    """By the library's own manager, which writes one rank without a device."""
    config = CheckpointManager.Config(
        storage_config=LocalFileSystemStorageConfig(use_direct_io=False),
        save=SyncCheckpointSaverConfig(),
        items={"model": ItemSpec(resharder=DefaultResharder())},
    )
    tied = torch.arange(12.0).reshape(3, 4)
    model = {"w": tied, "tied": tied, "part": tied[1:, 2:], "deep": {"0": [torch.ones(2), torch.zeros(0)]}, "lr": 0.5}
    manager = CheckpointManager(config)
    manager.save(str(folder), {"model": model, "epoch": 7})
    manager.close()
    torch.save({"model": model}, folder / "expected.pt")


if __name__ == "__main__":
    place, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    write_by_manager(place / "manager")
    write_own_class(place / "own")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=WORLD)
    for number in range(count):
        write_distributed(place / f"random{number}", random.Random(seed * 1000 + number))
    dist.destroy_process_group()
