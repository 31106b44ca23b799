"""A state dict of 2.2 GB into fresh memory, and mapped."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import corpus
from line import PEER_PYTHON, WORKERS, Call, Floor, Line, Program

#: Measured in new processes, and once more in processes that load again and again: there malloc hands out memory that
#: the process has used before, which has neither to be faulted in nor to be zeroed.
FRESH = {True: "fresh process", False: "again in one process"}
TORCH = ("torch",)


def _cloned(tensors: dict) -> dict:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _ours(path: Path, mmap: bool = False) -> Call:
    import penstock

    return lambda: penstock.load(path, mmap=mmap)


def _torch(path: Path, mmap: bool = False, clone: bool = False) -> Call:
    import torch

    if clone:
        return lambda: _cloned(torch.load(path, weights_only=True, mmap=mmap))
    return lambda: torch.load(path, weights_only=True, mmap=mmap)


def _safetensors(path: Path, clone: bool) -> Call:
    from safetensors.torch import load_file

    return (lambda: _cloned(load_file(path))) if clone else (lambda: load_file(path))


def _fastsafetensors(path: Path) -> Call:
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    def run() -> object:
        loader = SafeTensorsFileLoader(SingleGroup(), device="cpu", nogds=True)
        loader.add_filenames({0: [str(path)]})
        buffer = loader.copy_files_to_device()
        return {name: buffer.get_tensor(name) for name in buffer.key_to_rank_lidx}, buffer, loader

    return run


def _runai(path: Path) -> Call:
    from runai_model_streamer import SafetensorsStreamer

    def run() -> object:
        with SafetensorsStreamer() as streamer:
            streamer.stream_file(str(path), device="cpu")
            return dict(streamer.get_tensors())

    return run


def _line(name: str, path: Path, fresh: bool, peers: dict[str, Program]) -> Line:
    return Line(
        name=f"state dict of 2.2 GB, {name}, {FRESH[fresh]}",
        unit="GB/s",
        work=path.stat().st_size / 1e9,
        ours=Program(partial(_ours, path), ("penstock",)),
        peers=peers,
        floor=Floor(["read", str(WORKERS), str(path)], "bytes_per_second", 1e9),
        fresh=fresh,
        goal_peer=1,
        goal_floor=0.95,
    )


def _mapped_line(name: str, path: Path, peers: dict[str, Program]) -> Line:
    return Line(
        name=f"state dict of 2.2 GB, {name}, mapped",
        unit="ms",
        kind="time",
        ours=Program(partial(_ours, path, mmap=True), ("penstock",)),
        peers=peers,
        fresh=True,
        goal=5,
    )


def lines(root: Path) -> list[Line]:
    pt, st = corpus.state(root)
    of_pt = {
        "torch.load": Program(partial(_torch, pt), TORCH),
        "torch.load, mapped and cloned": Program(partial(_torch, pt, mmap=True, clone=True), TORCH),
    }
    of_safetensors = {
        "load_file and cloned": Program(partial(_safetensors, st, clone=True), TORCH),
        "fastsafetensors": Program(partial(_fastsafetensors, st), TORCH, PEER_PYTHON),
        "runai-model-streamer": Program(partial(_runai, st), TORCH, PEER_PYTHON),
    }
    mapped = {"load_file": Program(partial(_safetensors, st, clone=False), ("torch", "safetensors.torch"))}
    return [
        *(_line(".pt", pt, fresh, of_pt) for fresh in FRESH),
        *(_line(".safetensors", st, fresh, of_safetensors) for fresh in FRESH),
        _mapped_line(".pt", pt, {"torch.load": Program(partial(_torch, pt, mmap=True), TORCH)}),
        _mapped_line(".safetensors", st, mapped),
    ]
