"""Names, types and shapes in files of 100 GB (sparse: no payload is read, so none has to be there)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import sparse
from line import Call, Line, Program


def _ours(path: Path) -> Call:
    import penstock

    def run() -> object:
        with penstock.open(path) as archive:
            return [(name, archive[name].dtype, archive[name].shape) for name in archive]

    return run


def _np_load(path: Path) -> Call:
    import numpy as np

    def run() -> object:
        array = np.load(path, mmap_mode="r")
        return array.dtype, array.shape

    return run


def _npz_names(path: Path) -> Call:
    import numpy as np

    return lambda: np.load(path).files


def _torch_load(path: Path) -> Call:
    import torch

    return lambda: [(name, t.dtype, t.shape) for name, t in torch.load(path, mmap=True).items()]


def _torch_fake(path: Path) -> Call:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    def run() -> object:
        with FakeTensorMode():
            return [(name, t.dtype, t.shape) for name, t in torch.load(path).items()]

    return run


def _safe_open(path: Path) -> Call:
    from safetensors import safe_open

    def run() -> object:
        with safe_open(path, "np") as file:
            slices = ((name, file.get_slice(name)) for name in file.keys())  # noqa: SIM118 - it is no dict
            return [(name, part.get_dtype(), part.get_shape()) for name, part in slices]

    return run


PEERS = {
    ".npy": {"np.load, mapped": (_np_load, ("numpy",))},
    ".npz": {"np.load, names only": (_npz_names, ("numpy",))},
    ".pt": {
        "torch.load, mapped": (_torch_load, ("torch",)),
        "torch.load of fake tensors": (_torch_fake, ("torch", "torch._subclasses.fake_tensor")),
    },
    ".safetensors": {"safe_open": (_safe_open, ("safetensors",))},
}


def lines(root: Path) -> list[Line]:
    return [
        Line(
            name=f"list a sparse {extension} of 100 GB",
            unit="ms",
            kind="time",
            ours=Program(partial(_ours, path), ("penstock",)),
            peers={name: Program(partial(make, path), imports) for name, (make, imports) in peers.items()},
            fresh=True,
            goal=5,
        )
        for extension, peers in PEERS.items()
        for path in [sparse.file(root, extension)]
    ]
