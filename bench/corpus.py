"""The files that the benchmarks read, made once under a folder and kept. Where they are there, nothing is imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SMALL_FILES = 10_000
SMALL_SHAPE = (64, 64)  # 16 KB of float32
SMALL_BYTES_IN_TAR = 128 + 16_384 + 384  # a .npy of it, padded to whole blocks
ROWS = 200_000
ROW_SHAPE = (3, 16, 16)  # 3 KB of float32; 614 MB in all
IMAGES = 100_000
IMAGE_SHAPE = (3, 32, 32)  # 3 KB of uint8; 307 MB in all
PICTURES = 2_000
PICTURE_SHAPE = (256, 256, 3)  # 197 KB of uint8; 393 MB in all
TOKENS = 1_000_000_000  # of uint16; 2 GB
DOCUMENTS = 1_000_000
STATE_TENSORS = 132
STATE_SHAPE = (2048, 2048)  # 16.8 MB of float32; 2.2 GB in all


def _folder(root: Path, name: str, sample_of: Callable) -> Path:
    """A folder of SMALL_FILES files, .npy where a sample is an array; a stamp beside it says that it is whole."""
    folder, stamp = root / name, root / f"{name}.done"
    if not stamp.exists():
        import numpy as np
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        generator = torch.Generator().manual_seed(1)
        for i in range(SMALL_FILES):
            sample = sample_of(torch, generator, i)
            if isinstance(sample, np.ndarray):
                np.save(folder / f"{i:05d}.npy", sample)
            else:
                torch.save(sample, folder / f"{i:05d}.pt")
        stamp.touch()
    return folder


def small_pt(root: Path) -> Path:
    return _folder(root, "small_pt", lambda torch, generator, i: torch.randn(SMALL_SHAPE, generator=generator))


def small_dict(root: Path) -> Path:
    def sample(torch, generator, i):
        return {"x": torch.randn(SMALL_SHAPE, generator=generator), "y": i % 10}

    return _folder(root, "small_dict", sample)


def small_ragged(root: Path) -> Path:
    def sample(torch, generator, i):
        length = int(torch.randint(100, 401, (), generator=generator))
        return torch.randn((length, 16), generator=generator)

    return _folder(root, "small_ragged", sample)


def small_npy(root: Path) -> Path:
    return _folder(root, "small_npy", lambda torch, generator, i: torch.randn(SMALL_SHAPE, generator=generator).numpy())


def small_double(root: Path) -> Path:
    def sample(torch, generator, i):
        return torch.randn((32, 64), generator=generator, dtype=torch.float64).numpy()

    return _folder(root, "small_double", sample)


def picture_files(root: Path) -> Path:
    """150 KB of uint8 each; 1.5 GB in all."""

    def sample(torch, generator, i):
        return torch.randint(0, 256, (224, 224, 3), generator=generator, dtype=torch.uint8).numpy()

    return _folder(root, "picture_files", sample)


def _bytes(path: Path, shape: tuple[int, ...]) -> Path:
    """An .npy of random uint8."""
    if not path.exists():
        import numpy as np

        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npy")
        np.save(part, np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8))
        part.rename(path)
    return path


def images(root: Path) -> Path:
    return _bytes(root / "images.npy", (IMAGES, *IMAGE_SHAPE))


def pictures(root: Path) -> Path:
    return _bytes(root / "pictures.npy", (PICTURES, *PICTURE_SHAPE))


def rows(root: Path) -> tuple[Path, Path]:
    images, labels = root / "rows_images.npy", root / "rows_labels.npy"
    if not labels.exists():
        import numpy as np

        root.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(1)
        np.save(images, rng.standard_normal((ROWS, *ROW_SHAPE), dtype=np.float32))
        np.save(labels, rng.integers(0, 10, ROWS))
    return images, labels


def tokens(root: Path) -> Path:
    """An .npy of random tokens."""
    path = root / "tokens.npy"
    if not path.exists():
        import numpy as np

        root.mkdir(parents=True, exist_ok=True)
        part, piece, rng = path.with_suffix(".part.npy"), 10_000_000, np.random.default_rng(1)
        array = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint16, shape=(TOKENS,))
        for first in range(0, TOKENS, piece):
            array[first : first + piece] = rng.integers(0, 50_257, piece, dtype=np.uint16)
        array.flush()
        part.rename(path)
    return path


def documents(root: Path) -> Path:
    """An .npy of the lengths of documents that the tokens are: log-normal, most of them short."""
    path = root / "documents.npy"
    if not path.exists():
        import numpy as np

        root.mkdir(parents=True, exist_ok=True)
        lengths = np.random.default_rng(2).lognormal(6.3, 1.1, DOCUMENTS).astype(np.int64) + 1
        lengths = (lengths * (TOKENS / lengths.sum())).astype(np.int64).clip(1)
        lengths[-1] += TOKENS - lengths.sum()
        np.save(path, lengths)
    return path


def state(root: Path) -> tuple[Path, Path]:
    pt, st = root / "state.pt", root / "state.safetensors"
    if not st.exists():
        import torch
        from safetensors.torch import save_file

        root.mkdir(parents=True, exist_ok=True)
        tensors = {f"layer.{i}.weight": torch.randn(STATE_SHAPE) for i in range(STATE_TENSORS)}
        torch.save(tensors, pt)
        save_file(tensors, st)
    return pt, st


def sized_path(root: Path, gb: int, suffix: str) -> Path:
    return root / f"sized_{gb}.{suffix}"


def sized(root: Path, gb: int, suffix: str) -> None:
    """A file with so many GB (10^9 bytes) of float32: one array in `.npy`, tensors of 50 MB in the others. Of the
    largest only one is kept, since disks are small."""
    path = sized_path(root, gb, suffix)
    if path.exists():
        return
    import numpy as np
    import torch
    from safetensors.torch import save_file

    for other in root.glob("sized_16.*"):
        other.unlink()
    piece = 12_500_000
    count = gb * 10**9 // (4 * piece)
    part = path.with_suffix(".part")
    if suffix == "npy":
        array = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=(count, piece))
        array[:] = np.arange(piece, dtype=np.float32)
        array.flush()
    else:
        tensors = {f"layer.{i}": torch.full((piece,), float(i)) for i in range(count)}
        torch.save(tensors, part) if suffix == "pt" else save_file(tensors, part)
    part.rename(path)


def single(root: Path, times: int) -> tuple[Path, Path]:
    """An array of 1 KB in both formats; a list beside each (`listing_of`) names it that many times."""
    npy, pt = root / "single.npy", root / "single.pt"
    if not listing_of(pt).exists():
        import numpy as np
        import torch

        array = np.arange(256, dtype=np.float32)
        np.save(npy, array)
        torch.save(torch.from_numpy(array), pt)
        for path in (npy, pt):
            listing_of(path).write_text(f"{path}\n" * times)
    return npy, pt


def listing_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.txt")
