"""`torch.load` without running anything from the file."""

from __future__ import annotations

import io
import os
import pickle
from typing import IO, Any, Literal

import penstock
from penstock._core import _assemble, _is_legacy, _legacy_end, _open_memory
from penstock.torch._rebuild import Rebuilder
from penstock.torch._storages import MapLocation, read_tensors

__all__ = ["FileLike", "UnknownGlobalsError", "load", "opened"]

FileLike = str | os.PathLike[str] | IO[bytes]


class UnknownGlobalsError(penstock.UnsafeError, pickle.UnpicklingError):
    """The file names classes or functions that torch.load(weights_only=True) does not know either."""


def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: None = None,
    *,
    weights_only: Literal[True] | None = None,
    mmap: bool | None = None,
    unknown: Literal["error", "keep"] = "error",
    verify: bool = True,
) -> Any:
    """What `torch.load(f, weights_only=True)` gives: the same types, values, strides, sharing and flags.

    Tensors are torch's own, over memory that Penstock read the file into. Nothing in the file is run, whatever it
    holds. Every format that Penstock reads is taken: `.npy`, `.npz` and `.safetensors` too. NumPy's arrays, scalars and
    dtypes, for which torch wants its add_safe_globals, come without it: none of NumPy's own code rebuilds them.

    - f: a path, or an object with `read` and, for a file on disk, `fileno`; it is read from where it stands.
    - map_location: None, a device, its name, a dict from recorded to wanted names, or a function of a storage and its
      recorded name, as for torch.load. A device that the file records is torch's to find, with torch's errors.
    - mmap: map the file, private to this process, instead of reading it; a path is needed. Checksums are not looked at,
      and tensors that lie where their type cannot be used are copied.
    - unknown: what names do that torch does not know. "error": UnknownGlobalsError lists them all. "keep": they become
      `penstock.Opaque` objects, which hold the name, the arguments and the state.
      Classes that torch.serialization.add_safe_globals allows come to life where their parts are only set down:
      objects that are their attributes, members of enumerations, named tuples, tensors of a subclass. Functions and
      classes with a way of their own are not called; UnknownGlobalsError says which.
    - verify: look at recorded checksums.

    `weights_only=False` and `pickle_module` would run code found in the file, and are refused.
    """
    _refuse_code(weights_only, pickle_module)
    if unknown not in {"error", "keep"}:
        raise ValueError(f"unknown is {unknown!r}; it must be 'error' or 'keep'")
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with opened(f, verify) as archive:
        rebuilder = Rebuilder()
        leaves = read_tensors(archive, map_location, mmap=bool(mmap))
        value = _assemble(archive, leaves, rebuilder)
        rebuilder.finish()
        if rebuilder.unknown and unknown == "error":
            raise _unknown_globals(archive, rebuilder.unknown)
        if rebuilder.unfit and unknown == "error":
            raise _unfit(archive, rebuilder.unfit)
        if rebuilder.refused and unknown == "error":
            raise _refused(archive, rebuilder.refused)
    return value


def _refuse_code(weights_only: object, pickle_module: object) -> None:
    if weights_only is not None and not weights_only:
        raise penstock.UnsafeError(
            "weights_only=False would run code found in the file, which Penstock never does; leave it out, and "
            "use unknown='keep' for objects of other classes"
        )
    if pickle_module is not None:
        raise penstock.UnsafeError(
            "pickle_module would run code found in the file, which Penstock never does; leave it out"
        )


def _unknown_globals(archive: penstock.Archive, names: set[str]) -> UnknownGlobalsError:
    listed = ", ".join(sorted(names))
    message = (
        f"the file names {listed}, which are none of torch's own types; nothing of the file was run. Load it with "
        "unknown='keep' to get them as inert penstock.Opaque objects"
    )
    return UnknownGlobalsError(f"{archive.path}: {message}", message, archive.path)


def _unfit(archive: penstock.Archive, unfit: list[str]) -> penstock.UnsupportedError:
    message = (
        f"the file holds NumPy's objects of parts that do not make one: {', '.join(unfit)}. Load it with "
        "unknown='keep' to get the parts as penstock.Opaque objects"
    )
    return penstock.UnsupportedError(f"{archive.path}: {message}", message, archive.path)


def _refused(archive: penstock.Archive, refused: list[str]) -> UnknownGlobalsError:
    reasons = "; ".join(sorted(set(refused)))
    message = (
        f"the file names what add_safe_globals allows, but loading it would run code: {reasons}. "
        "Load it with unknown='keep' to get the parts as penstock.Opaque objects"
    )
    return UnknownGlobalsError(f"{archive.path}: {message}", message, archive.path)


def _is_path(f: object) -> bool:
    return isinstance(f, (str, bytes, os.PathLike))


def opened(f: FileLike, verify: bool) -> penstock.Archive:
    """The archive in a file, or in what can be read of an object from where it stands.

    Behind a file of before torch 1.6 the object stands where that ended, as torch leaves it.
    """
    if isinstance(f, (str, bytes, os.PathLike)):
        return penstock.open(f, verify=verify)
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"found an object of type {type(f).__name__} without .{method}(), expected a path or a file that can "
                "be read; put its bytes into an io.BytesIO"
            )
    start, path = f.tell(), _path_of(f)
    legacy = path is None or _is_legacy(os.pread(f.fileno(), 64, start))
    if start == 0 and path is not None and not legacy:
        return penstock.open(path, verify=verify)
    name = str(getattr(f, "name", "<memory>"))
    data: Any = f.getbuffer()[start:] if isinstance(f, io.BytesIO) else f.read()
    if _is_legacy(data[:64]):  # others may follow, and the next call goes on there
        end = _legacy_end(data, name)
        f.seek(start + end)
        data = memoryview(data)[:end]
    return _open_memory(data, name, verify)


def _path_of(f: IO[bytes]) -> str | None:
    """A path to the open file itself, whatever its name has become; None where there is no file on disk."""
    try:
        path = f"/proc/self/fd/{f.fileno()}"
    except (AttributeError, OSError):
        return None
    return path if os.path.isfile(path) else None
