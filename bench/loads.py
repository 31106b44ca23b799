"""Programs that load a whole file into memory of their own, or map it: ours and the peers'."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from line import PEER_PYTHON, Call, Program

TORCH = ("torch",)


def ours(path: Path, mmap: bool = False) -> Program:
    return Program(partial(_ours, path, mmap), ("penstock",))


def torch_load(path: Path, mmap: bool = False, clone: bool = False) -> Program:
    return Program(partial(_torch, path, mmap, clone), TORCH)


def load_file(path: Path) -> Program:
    """Mapped."""
    return Program(partial(_safetensors, path, clone=False), (*TORCH, "safetensors.torch"))


def numpy_load(path: Path) -> Program:
    return Program(partial(_numpy, path), ("numpy",))


def peers_of_pt(path: Path) -> dict[str, Program]:
    return {
        "torch.load": torch_load(path),
        "torch.load, mapped and cloned": torch_load(path, mmap=True, clone=True),
    }


def peers_of_safetensors(path: Path) -> dict[str, Program]:
    return {
        "load_file and cloned": Program(partial(_safetensors, path, clone=True), TORCH),
        "fastsafetensors": Program(partial(fastsafetensors, path, "cpu"), TORCH, PEER_PYTHON),
        "runai-model-streamer": Program(partial(runai, path, "cpu"), TORCH, PEER_PYTHON),
    }


def _cloned(tensors: dict) -> dict:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def _ours(path: Path, mmap: bool) -> Call:
    import penstock

    return lambda: penstock.load(path, mmap=mmap)


def _torch(path: Path, mmap: bool, clone: bool) -> Call:
    import torch

    if clone:
        return lambda: _cloned(torch.load(path, weights_only=True, mmap=mmap))
    return lambda: torch.load(path, weights_only=True, mmap=mmap)


def _numpy(path: Path) -> Call:
    import numpy as np

    return lambda: np.load(path)


def _safetensors(path: Path, clone: bool) -> Call:
    from safetensors.torch import load_file

    return (lambda: _cloned(load_file(path))) if clone else (lambda: load_file(path))


def fastsafetensors(path: Path, device: str) -> Call:
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    def run() -> object:
        loader = SafeTensorsFileLoader(SingleGroup(), device=device, nogds=True)
        loader.add_filenames({0: [str(path)]})
        buffer = loader.copy_files_to_device()
        return {name: buffer.get_tensor(name) for name in buffer.key_to_rank_lidx}, buffer, loader

    return run


def runai(path: Path, device: str) -> Call:
    from runai_model_streamer import SafetensorsStreamer

    def run() -> object:
        with SafetensorsStreamer() as streamer:
            streamer.stream_file(str(path), device=device)
            return dict(streamer.get_tensors())

    return run
