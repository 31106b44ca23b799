"""`save`: files that torch.load reads. A file is written whole, or not at all."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from typing import IO, Any

from torch.utils.serialization import config

import penstock
from penstock._asked import attribute, has
from penstock._core import _assemble, _open_file, _save_with, _saved
from penstock._files.replace import replaced
from penstock._files.temporary import copied, temporary_path, written
from penstock._wrong_argument import names_arguments
from penstock.torch.loading._rebuild import Trial
from penstock.torch.loading._storages import skips_data
from penstock.torch.saving._describe import described
from penstock.torch.saving._native import is_native, is_small_of_numpy
from penstock.torch.saving._pickling import save_pickled, unmade

_PROTOCOL = 2
_IN_MEMORY = 64 << 20  # bytes of tensors up to which a file is made in memory before it goes to an open file


@names_arguments
def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = _PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    progress: bool | Callable[[int, int], object] | None = None,
    sync: bool = False,
) -> None:
    """Writes a `.pt` that `torch.load` reads and finds equal, with shared storages shared.

    Takes everything that torch.load(weights_only=True) reads back: tensors of every kind (sparse,
    quantized, nested, meta, conjugate by a flag, with attributes), parameters, storages, state dicts
    and nested dicts, lists, tuples and sets of them with numbers, strings, sizes, dtypes, layouts and
    devices, and objects of classes that torch.serialization.add_safe_globals allows, where they are
    their parts and nothing else, which is what `load` makes. Beyond these, what `load` reads and
    torch.load(weights_only=True) wants add_safe_globals for: NumPy's arrays, scalars and dtypes as
    those, frozensets, defaultdicts and references to Python's own data types. Nothing is written as
    another type than it is, but for classes of torch.nn.Parameter, which torch does not name either: a
    warning says so. Tensors on other devices are written as they are in host memory.

    compute_crc32, storage_alignment and use_pinned_memory_for_d2h of
    torch.utils.serialization.config.save count, and skip_data of torch.serialization. Where those or
    the last three parameters are not as torch has them by default, and for objects that Penstock's own
    writer has no form for (NumPy's, defaultdicts, bytearrays, classes that are allowed), torch.save
    writes the file, with whole storages, and tensors' devices on record.

    Parameters
    ----------
    obj
        What to write.
    f
        A path or a URL (s3://, gs://, az://), whose file appears whole or not at all, or an open file,
        which is written to where it stands, flushed, and left open.
    pickle_module
        Must be None, or Python's own module.
    pickle_protocol
        As torch.save has it.
    _use_new_zipfile_serialization
        As torch.save has it: False writes the format of before torch 1.6.
    _disable_byteorder_record
        As torch.save has it.
    progress
        True for a bar on a terminal and in a notebook, or a function (bytes done, total), called in
        this thread. What it raises stops the save, so that no file appears. A file that torch.save
        writes tells nothing.
    sync
        Whether the file of a path is on the disk before it appears. Without it, as with torch.save, the
        system writes it a while later. A program that is killed leaves the old file or the new one,
        whole, in either case; a machine that loses power within that while may leave neither.

    Raises
    ------
    penstock.DTypeMismatchError
        A TypeError, for objects that `load` would not read: where they lie, and what to save instead.
    penstock.UnsupportedError
        For a tensor whose memory is not there (its storage freed or shortened, zero, fake), by its
        name, and for another `pickle_module`.
    """
    if pickle_module not in (None, pickle):
        raise penstock.UnsupportedError(
            "Penstock writes pickles as Python's own module does, and in no other way; leave out pickle_module, or use "
            "torch.save"
        )
    if not isinstance(f, (str, os.PathLike)) and not has(f, "write"):
        raise AttributeError(
            f"f: found an object of type {type(f).__name__} to write into, expected a path, or a file with a 'write' "
            "attribute"
        )
    plain = pickle_protocol == _PROTOCOL and _use_new_zipfile_serialization and not _disable_byteorder_record
    if plain and _is_as_by_default() and is_native(obj):
        _save_native(obj, f, progress, sync)
        return

    known = is_small_of_numpy(obj)

    def write(out: Any) -> None:
        options = {"zipped": _use_new_zipfile_serialization, "byteorder": not _disable_byteorder_record}
        save_pickled(obj, out, pickle_protocol, **options, known=known)
        if not known:
            _require_readable(obj, out)

    if isinstance(f, (str, os.PathLike)):
        replaced(os.fspath(f), write, sync=sync)
        return
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as whole:
        write(whole)
        whole.seek(0)
        copied(whole, f)


def _require_readable(obj: Any, file: Any) -> None:
    """What torch has written is what `load` reads: within its bounds on integers, nesting and the like, and of objects
    that are their parts."""
    file.flush()
    trial = Trial()
    try:
        archive = _open_file(f"/proc/self/fd/{file.fileno()}", False)
        _assemble(archive, [trial.leaf] * len(archive), trial)
    except (penstock.LimitError, penstock.UnsupportedError, penstock.CorruptError) as error:
        raise penstock.UnsupportedError(
            f"penstock.torch.load would not read what torch.save makes of this: {error.message}; leave that part out"
        ) from None
    for name, reason in trial.refused.items():
        raise unmade(obj, name, reason)
    for name in trial.unknown:
        raise unmade(obj, name, "nothing says how it is made")


def _save_native(obj: Any, f: str | os.PathLike[str] | IO[bytes], progress: Any, sync: bool) -> None:
    if isinstance(f, (str, os.PathLike)):
        _save_with(obj, os.fspath(f), described, progress, sync)
        return
    name = str(attribute(f, "name", "<memory>"))
    data = _saved(obj, name, "pt", described, None, progress, _IN_MEMORY)
    if data is not None:
        written(data, f)
        return
    with temporary_path(".pt", name) as path:
        _save_with(obj, path, described, progress)
        with open(path, "rb") as whole:
            copied(whole, f)


def _is_as_by_default() -> bool:
    """Whether torch's settings for torch.save are as torch has them."""
    if skips_data():
        return False
    settings = config.save
    alignment = getattr(settings, "storage_alignment", 64)
    return bool(settings.compute_crc32) and not settings.use_pinned_memory_for_d2h and alignment == 64
