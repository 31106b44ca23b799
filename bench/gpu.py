"""Files in the page cache and pageable tensors to the memory of a CUDA device and back, and products of matrices there.
Needs a device."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import corpus
import loads
from line import PEER_PYTHON, Absent, Call, Floor, Line, Program

GB = (1, 4, 16)
FORMATS = ("pt", "safetensors", "npy")
MATRICES = (1024, 4096, 8192)
MOVED_GB = 1
SWEPT_GB = 4
IMAGES = 8192
IMAGE = (3, 224, 224)
IMAGE_WORKERS = 8
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
RINGS = (16, 32, 64, 128, 256)
THREADS = (1, 2, 4, 8, 16)


def _ours(path: Path, ring: int | None = None, threads: int | None = None) -> Call:
    if ring is not None:
        os.environ["PENSTOCK_RING"] = str(ring)
    import penstock

    return lambda: penstock.load(path, device="cuda:0", threads=threads)


def _finished(work: Call) -> Call:
    """With the wait for all that the device has been given."""
    import torch

    def run() -> object:
        result = work()
        torch.cuda.synchronize()
        return result

    torch.zeros(1, device="cuda")  # a context of its own counts for nobody
    return run


def _torch(path: Path) -> Call:
    import torch

    return _finished(lambda: torch.load(path, weights_only=True, map_location="cuda"))


def _numpy(path: Path) -> Call:
    import numpy as np
    import torch

    return _finished(lambda: torch.from_numpy(np.load(path)).to("cuda"))


def _safetensors(path: Path) -> Call:
    from safetensors.torch import load_file

    return _finished(lambda: load_file(path, device="cuda"))


def _fastsafetensors(path: Path) -> Call:
    return _finished(loads.fastsafetensors(path, "cuda:0"))


def _runai(path: Path) -> Call:
    return _finished(loads.runai(path, "cuda:0"))


def _instanttensor(path: Path) -> Call:
    """Through the page cache, which the files are in."""
    from instanttensor import BackendPolicy, safe_open

    def run() -> object:
        with safe_open(str(path), framework="pt", device=0, backend=BackendPolicy.BUFFERED) as file:
            return dict(file.tensors())

    return _finished(run)


def _peers(path: Path) -> dict[str, Program]:
    if path.suffix == ".pt":
        return {"torch.load to cuda": Program(partial(_torch, path), loads.TORCH)}
    if path.suffix == ".npy":
        return {"np.load, then torch's to": Program(partial(_numpy, path), loads.TORCH)}
    return {
        "load_file to cuda": Program(partial(_safetensors, path), ("torch", "safetensors.torch")),
        "fastsafetensors": Program(partial(_fastsafetensors, path), loads.TORCH, PEER_PYTHON),
        "runai-model-streamer": Program(partial(_runai, path), loads.TORCH, PEER_PYTHON),
    }


def _load_line(root: Path, gb: int, suffix: str) -> Line:
    path = corpus.sized_path(root, gb, suffix)
    return Line(
        name=f".{suffix} of {gb} GB to a device",
        unit="GB/s",
        work=gb,
        ours=Program(partial(_ours, path), ("penstock",)),
        peers=_peers(path),
        floor=Floor(["device", str(gb * 10**9)], "bytes_per_second", 1e9),
        goal_peer=5,
        goal_floor=0.95,
        prepare=partial(corpus.sized, root, gb, suffix),
    )


def _instanttensor_line(root: Path, gb: int) -> Line:
    """Apart from the other peers, as its goal is another."""
    path = corpus.sized_path(root, gb, "safetensors")
    return Line(
        name=f".safetensors of {gb} GB to a device, beside InstantTensor",
        unit="GB/s",
        work=gb,
        ours=Program(partial(_ours, path), ("penstock",)),
        peers={"InstantTensor": Program(partial(_instanttensor, path), loads.TORCH, PEER_PYTHON)},
        floor=Floor(["device", str(gb * 10**9)], "bytes_per_second", 1e9),
        goal_peer=1,
        prepare=partial(corpus.sized, root, gb, "safetensors"),
    )


def _sweep_line(root: Path, ring: int | None = None, threads: int | None = None) -> Line:
    """What the size of the ring and the number of threads make of one load."""
    path = corpus.sized_path(root, SWEPT_GB, "safetensors")
    how = f"a ring of {ring} MiB" if ring is not None else f"{threads} threads"
    return Line(
        name=f".safetensors of {SWEPT_GB} GB to a device, {how}",
        unit="GB/s",
        work=SWEPT_GB,
        ours=Program(partial(_ours, path, ring, threads)),
        peers={},
        floor=Floor(["device", str(SWEPT_GB * 10**9)], "bytes_per_second", 1e9),
        prepare=partial(corpus.sized, root, SWEPT_GB, "safetensors"),
    )


def _our_move(to: str) -> Call:
    import penstock

    source = penstock.zeros(MOVED_GB * 10**9, dtype="uint8").to("cpu" if to == "cuda:0" else "cuda:0")

    def run() -> object:
        moved = source.to(to)
        penstock.device.synchronize("cuda:0")
        return moved

    return run


def _torch_move(to: str) -> Call:
    import torch

    source = torch.zeros(MOVED_GB * 10**9, dtype=torch.uint8).to("cpu" if to == "cuda:0" else "cuda:0")
    return _finished(lambda: source.to(to))


def _move_line(to: str) -> Line:
    """Pageable memory at the host's end. The floor is pinned memory's to the device."""
    return Line(
        name=f"tensor of {MOVED_GB} GB to {'the device' if to == 'cuda:0' else 'the host'}, pageable",
        unit="GB/s",
        work=MOVED_GB,
        ours=Program(partial(_our_move, to), ("penstock",)),
        peers={"torch's to": Program(partial(_torch_move, to), loads.TORCH)},
        floor=Floor(["device", str(MOVED_GB * 10**9)], "bytes_per_second", 1e9),
        goal_peer=1,
    )


def _our_product(size: int) -> Call:
    import penstock

    a, b = (penstock.randn(size, size, device="cuda:0") for _ in range(2))

    def run() -> object:
        product = a @ b
        penstock.device.synchronize("cuda:0")
        return product

    return run


def _torch_product(size: int) -> Call:
    import torch

    a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
    return _finished(lambda: a @ b)


def _product_line(size: int) -> Line:
    return Line(
        name=f"product of two {size} x {size} float32 matrices",
        unit="GFLOP/s",
        work=2 * size**3 / 1e9,
        ours=Program(partial(_our_product, size), ("penstock",)),
        peers={"torch (cuBLAS)": Program(partial(_torch_product, size), loads.TORCH)},
        goal_peer=0.9,
    )


def _images(root: Path) -> Path:
    """One file of uint8 images, as many as fit into the page cache anywhere."""
    import numpy as np

    path = root / "images_uint8.npy"
    if not path.exists():
        images = np.random.default_rng(0).integers(0, 256, (IMAGES, *IMAGE), dtype=np.uint8)
        np.save(path, images)
    return path


def _our_images(path: Path) -> Call:
    import penstock

    floats = penstock.rows(path).cast("float32").scale(1 / 255).normalize(MEAN, STD)
    loader = penstock.DataLoader(floats, batch_size=256, shuffle=True, num_workers=IMAGE_WORKERS, device="cuda:0")

    def run() -> object:
        batch = None
        for each in loader:
            batch = each
        penstock.device.synchronize("cuda:0")
        return batch

    return run


def _torch_images(path: Path) -> Call:
    import numpy as np
    import torch

    class Images(torch.utils.data.Dataset):
        def __init__(self) -> None:
            self.all = np.load(path, mmap_mode="r")

        def __len__(self) -> int:
            return len(self.all)

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.from_numpy(self.all[index].copy())

    mean, std = (torch.tensor(values, device="cuda").reshape(1, -1, 1, 1) for values in (MEAN, STD))
    loader = torch.utils.data.DataLoader(
        Images(), batch_size=256, shuffle=True, num_workers=IMAGE_WORKERS, pin_memory=True, persistent_workers=True
    )

    def run() -> object:
        batch = None
        for images in loader:
            batch = images.to("cuda", non_blocking=True).float().mul_(1 / 255).sub_(mean).div_(std)
        return batch

    return _finished(run)


def _images_line(root: Path) -> Line:
    """Shuffled batches of images, float32 and normalized, in the device's memory. The floor is a copy of the bytes of
    one epoch as they are stored, from pinned memory."""
    path = root / "images_uint8.npy"
    image_bytes = IMAGE[0] * IMAGE[1] * IMAGE[2]
    return Line(
        name="uint8 images to normalized float32 batches on the device",
        unit="images/s",
        work=IMAGES,
        ours=Program(partial(_our_images, path), ("penstock",)),
        peers={"torch DataLoader, computed on the device": Program(partial(_torch_images, path), loads.TORCH)},
        floor=Floor(["device", str(IMAGES * image_bytes)], "bytes_per_second", image_bytes),
        prepare=partial(_images, root),
        goal_peer=3,
    )


def lines(root: Path) -> list[Line]:
    import penstock

    if not penstock.device.is_available():
        raise Absent("no CUDA device here; run it on a machine with one")
    loads = [_load_line(root, gb, suffix) for gb in GB for suffix in FORMATS]
    moves = [_move_line(to) for to in ("cuda:0", "cpu")]
    sweeps = [_sweep_line(root, ring=ring) for ring in RINGS] + [_sweep_line(root, threads=count) for count in THREADS]
    loads += [_instanttensor_line(root, gb) for gb in GB]
    return loads + sweeps + moves + [_images_line(root)] + [_product_line(size) for size in MATRICES]
