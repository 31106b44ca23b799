"""Files of 100 GB with nothing in them: heads and tables of contents are real, payloads are holes."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import BinaryIO

TENSORS = 100
ELEMENTS = 250_000_000  # 1 GB of float32 each
NBYTES = 4 * ELEMENTS


def _npy_head(file: BinaryIO, elements: int) -> None:
    from numpy.lib import format as npy

    npy.write_array_header_2_0(file, {"descr": "<f4", "fortran_order": False, "shape": (elements,)})


def npy(path: Path) -> None:
    with path.open("wb") as file:
        _npy_head(file, TENSORS * ELEMENTS)
        file.truncate(file.tell() + TENSORS * NBYTES)


def npz(path: Path) -> None:
    import numpy as np

    with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        for i in range(TENSORS):
            head = io.BytesIO()
            _npy_head(head, ELEMENTS)
            info = zipfile.ZipInfo(f"layer{i}.npy")
            info.header_offset, info.CRC = file.tell(), 0  # a listing checks no checksum
            info.file_size = info.compress_size = len(head.getvalue()) + NBYTES
            file.write(info.FileHeader(zip64=True) + head.getvalue())
            archive.start_dir = file.seek(NBYTES, 1)
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
        with archive.open("step.npy", "w") as member:
            np.save(member, np.int64(1))


def pt(path: Path) -> None:
    import torch

    # Memory that nothing touches is not there.
    tensors = {f"layer.{i}.weight": torch.empty(ELEMENTS) for i in range(TENSORS)}
    with torch.serialization.skip_data():
        torch.save(tensors, path)


def safetensors(path: Path) -> None:
    entries = {
        f"layer.{i}.weight": {"dtype": "F32", "shape": [ELEMENTS], "data_offsets": [i * NBYTES, (i + 1) * NBYTES]}
        for i in range(TENSORS)
    }
    head = json.dumps(entries).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(file.tell() + TENSORS * NBYTES)


WRITERS = {".npy": npy, ".npz": npz, ".pt": pt, ".safetensors": safetensors}


def file(root: Path, extension: str) -> Path:
    path, partial = root / f"sparse{extension}", root / f"sparse.partial{extension}"
    if not path.exists():
        WRITERS[extension](partial)
        partial.rename(path)
    return path
