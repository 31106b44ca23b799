"""Files that torch.load reads, written whole or not at all."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from typing import IO, Any

import penstock
from penstock._core import _save_with
from penstock.torch._describe import described

__all__ = ["save"]


def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes a `.pt` that `torch.load` reads and finds equal, with shared storages shared.

    Takes everything that torch.load(weights_only=True) reads back: tensors of every kind (sparse, quantized, nested,
    meta, conjugate by a flag, with attributes), parameters, storages, state dicts and nested dicts, lists, tuples and
    sets of them with numbers, strings, sizes, dtypes, layouts and devices. A file at a path appears whole or not at
    all. Tensors on other devices are written as they are in host memory. UnsupportedError or DTypeMismatchError names
    what torch.load(weights_only=True) would not read back, such as an object of a class of one's own.

    pickle_module, pickle_protocol and _use_new_zipfile_serialization are torch's; UnsupportedError for what is not
    torch's default, the only format that is written.
    """
    if pickle_module not in (None, pickle) or pickle_protocol != 2 or not _use_new_zipfile_serialization:
        raise penstock.UnsupportedError(
            "Penstock writes a .pt as torch.save does by default, and in no other way; leave out pickle_module, "
            "pickle_protocol and _use_new_zipfile_serialization, or use torch.save"
        )
    if isinstance(f, (str, os.PathLike)):
        _save_with(obj, os.fspath(f), described)
        return
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        path = os.path.join(folder, "x.pt")
        _save_with(obj, path, described)
        with open(path, "rb") as written:
            shutil.copyfileobj(written, f, 1 << 20)
