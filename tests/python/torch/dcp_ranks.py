"""Ranks that save and load distributed checkpoints, in real processes with gloo. A program: `dcp_ranks.py FOLDER`.

It imports torch once and forks each world, because importing it in every rank would take most of the time. Rank 0 of
each world prints what it has done, one word a case; a rank that fails prints why and ends the program.
"""

from __future__ import annotations

import datetime
import os
import shutil
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch._dynamo  # which DTensor imports on first use, in every rank
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from penstock.torch.dcp import StorageReader, StorageWriter, _boxes, _sharing

torch.set_num_threads(1)  # before anything is computed: threads do not survive a fork

_sharing._ROUND = 1 << 20  # so that there are several

TENSORS = {
    "rows": torch.arange(7 * 6, dtype=torch.int32).reshape(7, 6),
    "columns": torch.arange(5 * 9, dtype=torch.bfloat16).reshape(5, 9),
    "cube": torch.arange(6 * 5 * 4, dtype=torch.float64).reshape(6, 5, 4),
    "few": torch.arange(2, dtype=torch.int64),  # some ranks have none of it
    "large": torch.arange(700_000, dtype=torch.float32).reshape(700, 1000),
}
PLACEMENTS = {"rows": Shard(0), "columns": Shard(1), "cube": Shard(0), "few": Shard(0), "large": Shard(0)}
OTHER = {"rows": Shard(1), "columns": Shard(0), "cube": Shard(2), "few": Replicate(), "large": Shard(1)}
PLAIN = {"bias": torch.arange(400_000.0), "scalar": torch.tensor(2.5), "flag": torch.tensor([True, False])}


class Odd:
    """What torch.load(weights_only=True) refuses."""


def dealt(full, mesh, *placements):
    return DTensor.from_local(
        _part(full, mesh, placements), mesh, placements, run_check=False, shape=full.shape, stride=full.stride()
    )


def _part(full, mesh, placements):
    for dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            chunks = full.chunk(mesh.size(dim), placement.dim)
            at = mesh.get_local_rank(dim)
            full = chunks[at] if at < len(chunks) else full.narrow(placement.dim, 0, 0)
    return full.clone(memory_format=torch.contiguous_format)


def state(mesh, placements=PLACEMENTS, fill=None):
    """The state dict of this rank; filled with one number where it is to be loaded."""
    out = {name: dealt(full, mesh, placements[name]) for name, full in TENSORS.items()}
    out |= {name: full.clone() for name, full in PLAIN.items()}
    if fill is not None:
        for value in out.values():
            (value.to_local() if isinstance(value, DTensor) else value).fill_(fill)
    return {"model": out, "step": 17 if fill is None else None, "lists": [1, "é", None]}


def require_same(loaded, expected):
    assert loaded["step"] == 17
    assert loaded["lists"] == [1, "é", None]
    for name, value in expected["model"].items():
        mine = loaded["model"][name]
        if isinstance(value, DTensor):
            mine, value = mine.to_local(), value.to_local()
        assert mine.dtype == value.dtype, name
        assert torch.equal(mine, value), name


def message_of(call):
    try:
        call()
    except dcp.api.CheckpointException as error:
        return str(error)
    raise AssertionError("it should have failed")


class Counted:
    """Bytes that _boxes reads."""

    def __init__(self):
        self.read, _boxes._dcp_read = _boxes._dcp_read, self
        self.bytes = 0

    def __call__(self, archive, boxes):
        self.bytes += sum(memory.nbytes for *_, memory in boxes)
        self.read(archive, boxes)

    def of_all_ranks(self):
        _boxes._dcp_read = self.read
        total = torch.tensor(self.bytes)
        dist.all_reduce(total)
        return int(total)


def saves(folder, rank, size):
    mesh = init_device_mesh("cpu", (size,))
    dcp.save(state(mesh), storage_writer=StorageWriter(folder / "ours"))
    dcp.save(state(mesh), checkpoint_id=folder / "theirs")
    for step in (1, 2):  # twice into one folder, the second time by several threads
        dcp.save(state(mesh), storage_writer=StorageWriter(folder / "twice", thread_count=step))
    assert len({name[:4] for name in os.listdir(folder / "twice")}) == size + 1
    dcp.async_save(state(mesh), storage_writer=StorageWriter(folder / "async")).result()
    unsafe = StorageWriter(folder / "unsafe", weights_only=False)
    dcp.save({"bias": PLAIN["bias"], "odd": Odd()}, storage_writer=unsafe)
    yield "saved"
    grid = init_device_mesh("cpu", (2, size // 2))
    full = TENSORS["cube"]
    boxes = {"cube": dealt(full, grid, Shard(0), Shard(1)), "rows": dealt(TENSORS["rows"], grid, Replicate(), Shard(0))}
    dcp.save(boxes, storage_writer=StorageWriter(folder / "boxes"))
    yield "boxes"
    file = folder / "cannot"
    if rank == 0:
        file.write_text("a file")
    dist.barrier()
    told = message_of(lambda: dcp.save(state(mesh), storage_writer=StorageWriter(file / "x")))
    assert all(word in told for word in ("cannot/x", "the folder cannot be made")), told
    again = StorageWriter(folder / "ours", overwrite=False)
    assert "has a checkpoint already" in message_of(lambda: dcp.save(state(mesh), storage_writer=again))
    safe = StorageWriter(folder / "safe")  # what a reader would refuse: every rank is told
    assert "Odd" in message_of(lambda: dcp.save({"odd": Odd()}, storage_writer=safe))
    assert not (folder / "safe" / ".metadata").exists()
    yield "refused"

    class Fails(StorageWriter):
        def write_data(self, plan, planner):
            if rank == 1:
                raise ValueError("rank 1 is out of paper")
            return super().write_data(plan, planner)

    before = (folder / "twice" / ".metadata").read_bytes()
    assert "out of paper" in message_of(lambda: dcp.save(state(mesh), storage_writer=Fails(folder / "twice")))
    assert (folder / "twice" / ".metadata").read_bytes() == before
    yield "kept"


def loads(folder, rank, size):
    mesh = init_device_mesh("cpu", (size,))
    expected, turned = state(mesh), state(mesh, OTHER)
    for name in ("ours", "theirs", "twice", "async"):
        for broadcast in ("off", "on") if name in ("ours", "theirs") else ("on",):
            loaded = state(mesh, fill=3)
            dcp.load(loaded, storage_reader=StorageReader(folder / name, broadcast=broadcast))
            require_same(loaded, expected)
    loaded = state(mesh, OTHER, fill=3)
    dcp.load(loaded, storage_reader=StorageReader(folder / "theirs"))
    require_same(loaded, turned)
    for name in ("ours", "twice"):
        loaded = state(mesh, fill=3)
        dcp.load(loaded, checkpoint_id=folder / name)  # torch reads what we wrote
        require_same(loaded, expected)
    yield "resharded"
    whole = sum(tensor.nbytes for tensor in PLAIN.values()) + sum(
        tensor.nbytes * (size if OTHER[name] == Replicate() else 1) for name, tensor in TENSORS.items()
    )
    for broadcast in ("off", "on"):
        counted = Counted()
        loaded = state(mesh, OTHER, fill=3)
        loaded["model"]["bias"] = loaded["model"]["bias"].double()  # one that is not read into its place
        dcp.load(loaded, storage_reader=StorageReader(folder / "ours", broadcast=broadcast))
        assert torch.equal(loaded["model"]["bias"], PLAIN["bias"].double())
        extra = (size - 1) * sum(tensor.nbytes for tensor in PLAIN.values()) if broadcast == "off" else 0
        few = (size - 1) * TENSORS["few"].nbytes if broadcast == "on" else 0
        assert counted.of_all_ranks() == whole + extra - few
    yield "once"
    loaded = {"cube": torch.zeros(6, 5, 4, dtype=torch.float64), "rows": torch.zeros(7, 6, dtype=torch.int32)}
    dcp.load(loaded, storage_reader=StorageReader(folder / "boxes", broadcast="on"))
    assert all(torch.equal(loaded[name], TENSORS[name]) for name in loaded)
    if size == 8:
        grid = init_device_mesh("cpu", (4, 2))  # parcels for two and for four of the ranks
        loaded = {
            "cube": dealt(torch.zeros(6, 5, 4, dtype=torch.float64), grid, Replicate(), Shard(1)),
            "rows": dealt(torch.zeros(7, 6, dtype=torch.int32), grid, Shard(0), Replicate()),
        }
        dcp.load(loaded, storage_reader=StorageReader(folder / "boxes", broadcast="on"))
        assert torch.equal(loaded["cube"].to_local(), _part(TENSORS["cube"], grid, (Replicate(), Shard(1))))
        assert torch.equal(loaded["rows"].to_local(), _part(TENSORS["rows"], grid, (Shard(0), Replicate())))
    yield "boxes"
    if size == 3:
        part_of_the_ranks(folder, rank)
        yield "group"
    if size == 2:
        yield from disagree(folder, rank, mesh)


def part_of_the_ranks(folder, rank):
    group = dist.new_group([1, 2])
    if rank == 0:
        return
    full = torch.arange(400_000.0)
    dcp.save({"w": full.clone()}, storage_writer=StorageWriter(folder / "group"), process_group=group)
    loaded = {"w": torch.zeros(400_000)}
    reader = StorageReader(folder / "group", broadcast="on", process_group=group)
    dcp.load(loaded, storage_reader=reader, process_group=group)
    assert torch.equal(loaded["w"], full)
    reader = StorageReader(folder / "group", broadcast="on")
    told = message_of(lambda: dcp.load(loaded, storage_reader=reader, process_group=group))
    assert "give it as process_group" in told, told


def disagree(folder, rank, mesh):
    def load(path, broadcast="on"):
        return message_of(
            lambda: dcp.load(state(mesh, fill=3), storage_reader=StorageReader(path, broadcast=broadcast))
        )

    told = load(folder / ("ours" if rank == 0 else "async"))
    assert "rank 1 reads save" in told, told
    told = load(folder / ("ours" if rank == 0 else "twice"))
    assert all(word in told for word in ("different checkpoints", "(tensor '")), told
    assert "other options" in load(folder / "ours", "on" if rank == 0 else "off")
    cut = folder / "cut"
    if rank == 0:
        shutil.copytree(folder / "theirs", cut)
        file = cut / "__0_0.distcp"
        os.truncate(file, file.stat().st_size // 2)
    dist.barrier()
    for broadcast in ("on", "off"):
        told = load(cut, broadcast)
        assert all(word in told for word in ("__0_0.distcp", "another save", "tensor 'model.")), told
    reader = StorageReader(folder / "unsafe", broadcast="on")
    told = message_of(lambda: dcp.load({"bias": torch.zeros(400_000), "odd": None}, storage_reader=reader))
    assert "Odd" in told, told
    yield "disagree"


def run(function, folder, size):
    pids = []
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                meeting = f"file://{folder}/meeting{size}"
                limit = datetime.timedelta(seconds=60)
                dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size, timeout=limit)
                for done in function(folder, rank, size):
                    if rank == 0:
                        print(size, done, flush=True)
                dist.barrier()
                dist.destroy_process_group()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    failed = False
    while pids:
        pid, status = os.wait()
        pids.remove(pid)
        if status != 0 and not failed:
            failed = True
            for other in pids:
                os.kill(other, 9)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    place = Path(sys.argv[1])
    run(saves, place, 4)
    for world in (2, 3, 8):
        run(loads, place, world)
