"""Samples that are changed on their way into batches: casts, arithmetic, crops and a function of the program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import corpus
import small
from line import PEER_PYTHON, VISION_PYTHON, WORKERS, Call, Floor, Line, Program, drain, write_listing

BATCH = 256
CROP_BATCH = 64
CROP = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Rows:
    """Rows of an array as the guides to PyTorch write it, each behind `change`."""

    def __init__(self, path: Path, change: Callable | None = None):
        import numpy as np

        self.images, self.change = np.load(path, mmap_mode="r"), change

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int):
        import torch

        image = torch.from_numpy(self.images[index].copy())
        return image if self.change is None else self.change(image)


def normalized(batch: list):
    """The arithmetic once for the batch, in place where it can be."""
    import torch

    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    return torch.stack(batch).float().mul_(1 / 255).sub_(mean).div_(std)


def _torch_loader(data: Callable[[], object], batch: int, workers: int, collate: Callable | None) -> Call:
    from torch.utils.data import DataLoader

    loader = DataLoader(data(), batch_size=batch, shuffle=True, num_workers=workers, collate_fn=collate)
    return lambda: drain(loader)


def _torch_peers(data: Callable[[], object], batch: int, collate: Callable | None) -> dict[str, Program]:
    return {
        f"torch DataLoader, {workers} workers": Program(
            partial(_torch_loader, data, batch, workers, collate), ("torch", "numpy")
        )
        for workers in (0, WORKERS)
    }


def _normalized_rows(path: Path) -> Call:
    import penstock

    data = penstock.rows(path).cast("float32").scale(1 / 255).normalize(MEAN, STD)
    return lambda: drain(penstock.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=WORKERS))


def _spdl_normalized(path: Path) -> Call:
    import numpy as np
    import torch

    images = np.load(path, mmap_mode="r")
    make = lambda chosen: normalized([torch.from_numpy(images[i]) for i in chosen])  # noqa: E731
    return small.spdl_epochs(list(range(len(images))), BATCH, make)


def normalized_line(root: Path) -> Line:
    path = corpus.images(root)
    return Line(
        name="uint8 rows of 3 KB to normalized float32, batches of 256",
        unit="rows/s",
        work=corpus.IMAGES,
        ours=Program(partial(_normalized_rows, path), ("penstock",)),
        peers={
            **_torch_peers(partial(Rows, path), BATCH, normalized),
            "SPDL, 2 threads": Program(partial(_spdl_normalized, path), ("torch", "numpy"), PEER_PYTHON),
        },
        floor=Floor(["normalized", str(WORKERS), str(path)]),
        goal_peer=10,
        goal_floor=0.8,
    )


def narrowed(batch: list):
    import torch

    return torch.stack(batch).float()


def _narrowed_files(folder: Path) -> Call:
    import penstock

    data = penstock.files(folder).cast("float32")
    return lambda: drain(penstock.DataLoader(data, batch_size=small.BATCH, shuffle=True, num_workers=WORKERS))


def _files(folder: Path) -> small.TorchFiles:
    return small.TorchFiles(sorted(folder.iterdir()), small.load_npy)


def _spdl_narrowed(folder: Path) -> Call:
    make = lambda chosen: narrowed([small.load_npy(path) for path in chosen])  # noqa: E731
    return small.spdl_epochs(sorted(folder.iterdir()), small.BATCH, make)


def narrowed_line(root: Path) -> Line:
    folder = corpus.small_double(root)
    return Line(
        name="10,000 .npy of 16 KB of float64 to float32",
        unit="files/s",
        work=corpus.SMALL_FILES,
        ours=Program(partial(_narrowed_files, folder), ("penstock",)),
        peers={
            **_torch_peers(partial(_files, folder), small.BATCH, narrowed),
            "SPDL, 2 threads": Program(partial(_spdl_narrowed, folder), ("torch", "numpy"), PEER_PYTHON),
        },
        floor=Floor(["narrowed", write_listing(root, folder), str(WORKERS)]),
        goal_peer=10,
        goal_floor=0.7,
    )


def random_crop(image):
    """What torchvision's RandomCrop does with a tensor, without its checks; height and width come first."""
    import torch

    top, left = torch.randint(0, image.shape[0] - CROP + 1, (2,)).tolist()
    return image[top : top + CROP, left : left + CROP]


class VisionCrop:
    """torchvision's own, on tensors whose channels come first in shape and last in memory."""

    def __init__(self) -> None:
        from torchvision.transforms import v2

        self.crop = v2.RandomCrop(CROP)

    def __call__(self, image):
        return self.crop(image.permute(2, 0, 1)).permute(1, 2, 0)


def _vision_rows(path: Path) -> Rows:
    return Rows(path, VisionCrop())


def _cropped_rows(path: Path) -> Call:
    import penstock

    data = penstock.rows(path).random_crop((CROP, CROP), dims=(0, 1))
    return lambda: drain(penstock.DataLoader(data, batch_size=CROP_BATCH, shuffle=True, num_workers=WORKERS))


def cropped_line(root: Path) -> Line:
    path = corpus.pictures(root)
    vision = {
        f"torchvision v2.RandomCrop, {workers} workers": Program(
            partial(_torch_loader, partial(_vision_rows, path), CROP_BATCH, workers, None),
            ("torch", "numpy"),
            VISION_PYTHON,
        )
        for workers in (0, WORKERS)
    }
    return Line(
        name="random crops of 224 from 256 x 256 x 3 uint8, batches of 64",
        unit="images/s",
        work=corpus.PICTURES,
        ours=Program(partial(_cropped_rows, path), ("penstock",)),
        peers={**_torch_peers(partial(Rows, path, random_crop), CROP_BATCH, None), **vision},
        goal_peer=3,
    )


def standardized(batch):
    """A function of the program in torch, of a batch."""
    flat = batch.flatten(1)
    return (flat - flat.mean(1, keepdim=True)) / flat.std(1, keepdim=True)


def stacked_and_standardized(batch: list):
    import torch

    return standardized(torch.stack(batch))


def _mapped_files(folder: Path) -> Call:
    import torch

    import penstock.torch as pt

    torch.set_num_threads(1)  # as in each process of torch's loader
    data = pt.Files(folder).map(standardized, batched=True)
    return lambda: drain(pt.DataLoader(data, batch_size=small.BATCH, shuffle=True, num_workers=WORKERS))


def mapped_line(root: Path) -> Line:
    folder = corpus.small_npy(root)
    return Line(
        name="10,000 .npy of 16 KB, a torch function of each batch",
        unit="files/s",
        work=corpus.SMALL_FILES,
        ours=Program(partial(_mapped_files, folder), ("torch", "penstock.torch")),
        peers=_torch_peers(partial(_files, folder), small.BATCH, stacked_and_standardized),
        goal_peer=2,
    )


def lines(root: Path) -> list[Line]:
    return [normalized_line(root), narrowed_line(root), cropped_line(root), mapped_line(root)]
