"""`torch.load` without running anything from the file."""

from __future__ import annotations

import io
import os
import pickle
from typing import IO, Any, Literal

import penstock
from penstock._core import _assemble, _is_legacy, _legacy_end, _open_memory
from penstock._files import number_of
from penstock._text import abbreviated, listed
from penstock.errors import _within
from penstock.torch._rebuild import Rebuilder
from penstock.torch._storages import MapLocation, check_map_location, read_tensors

__all__ = ["FileLike", "UnknownGlobalsError", "load", "opened"]

FileLike = str | os.PathLike[str] | IO[bytes]


class UnknownGlobalsError(penstock.UnsafeError, pickle.UnpicklingError):
    """The file names classes or functions that torch.load(weights_only=True) does not know either.

    `names` has all of them; the text says the first twenty.
    """

    names: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"names": self.names}


class EmptyFileError(penstock.UnknownFormatError, EOFError):
    """There is nothing in the file; torch raises the second of its types."""


def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: None = None,
    *,
    weights_only: Literal[True] | None = None,
    mmap: bool | None = None,
    encoding: str = "utf-8",
    unknown: Literal["error", "keep"] = "error",
    verify: bool = True,
) -> Any:
    """What `torch.load(f, weights_only=True)` gives: the same types, values, strides, sharing and flags.

    Tensors are torch's own, over memory that Penstock read the file into. Nothing in the file is run, whatever it
    holds. Every format that Penstock reads is taken: `.npy`, `.npz` and `.safetensors` too. NumPy's arrays, scalars and
    dtypes, for which torch wants its add_safe_globals, come without it: none of NumPy's own code rebuilds them.

    - f: a path, or a file opened in binary mode or any other object with `read`, `seek` and `tell`; it is read from
      where it stands.
    - map_location: None, a device, its name, a dict from recorded to wanted names, or a function of a storage and its
      recorded name, as for torch.load. A device that the file records is torch's to find, with torch's errors.
    - mmap: map the file, private to this process, instead of reading it; a path is needed. Checksums are not looked at,
      and tensors that lie where their type cannot be used are copied.
    - encoding: of byte strings that Python 2 wrote; "utf-8" and "ascii" are taken, and "latin1" for files whose text
      is ASCII. What is no UTF-8 stays bytes.
    - unknown: what names do that torch does not know. "error": UnknownGlobalsError has them all. "keep": they become
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
    as_latin1 = _is_latin1(encoding)
    check_map_location(map_location)
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with opened(f, verify) as archive:
        if as_latin1 and not _is_ascii(archive.structure):
            raise _encoding_matters(encoding, archive.path)
        rebuilder = Rebuilder()
        leaves = read_tensors(archive, map_location, mmap=bool(mmap))
        try:
            value = _assemble(archive, leaves, rebuilder)
        except penstock.Error as error:
            raise _within(error, archive.path, _name_of(archive, leaves, rebuilder.broken)) from error
        rebuilder.finish()
        if rebuilder.unknown and unknown == "error":
            raise _unknown_globals(archive, rebuilder.unknown)
        if rebuilder.unfit and unknown == "error":
            raise _unfit(archive, rebuilder.unfit)
        if rebuilder.refused and unknown == "error":
            raise _refused(archive, rebuilder.refused)
    return value


def _is_latin1(encoding: object) -> bool:
    if not isinstance(encoding, str):
        raise penstock.DTypeMismatchError(f"encoding is of type {type(encoding).__name__}; it must be a name, 'utf-8'")
    name = encoding.lower().replace("_", "-")
    if name in {"latin1", "latin-1", "iso-8859-1"}:
        return True
    if name not in {"utf-8", "utf8", "ascii"}:
        raise _encoding_matters(encoding)
    return False


def _is_ascii(structure: Any) -> bool:
    """Whether all text in it is the same whichever encoding Python 2's strings are read by."""
    seen: set[int] = set()
    left = [structure]
    while left:
        part = left.pop()
        if isinstance(part, bytes) or (isinstance(part, str) and not part.isascii()):
            return False
        if isinstance(part, (dict, list, tuple, set, frozenset, penstock.Opaque)) and id(part) not in seen:
            seen.add(id(part))
            if isinstance(part, penstock.Opaque):
                left += [part.args, part.state]
            else:
                left += part
                left += part.values() if isinstance(part, dict) else ()
    return True


def _encoding_matters(encoding: str, path: str | None = None) -> penstock.UnsupportedError:
    message = (
        f"encoding is '{abbreviated(encoding)}', and Penstock reads Python 2's strings as UTF-8; leave it out, and "
        "decode the bytes that strings of another encoding come as"
    )
    return penstock.UnsupportedError(message if path is None else f"{path}: {message}", message, path)


def _name_of(archive: penstock.Archive, leaves: list[Any], parts: Any) -> str | None:
    """The name of the tensor of these parts, whose own names begin with it."""
    values = parts[0].values() if isinstance(parts, tuple) and parts and isinstance(parts[0], dict) else parts
    found = [i for value in values or () for i, leaf in enumerate(leaves) if leaf is value and leaf is not None]
    return archive.keys()[found[0]].rpartition(".")[0] or None if found else None


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
    found = sorted(names)
    message = (
        f"the file names {listed(found)}, which are none of torch's own types; nothing of the file was run. Load it "
        "with unknown='keep' to get them as inert penstock.Opaque objects"
    )
    message += _about_distributed(found)
    error = UnknownGlobalsError(f"{archive.path}: {message}", message, archive.path)
    error.names = tuple(found)
    return error


def _unfit(archive: penstock.Archive, unfit: list[str]) -> penstock.UnsupportedError:
    message = (
        f"the file holds NumPy's objects of parts that do not make one: {listed(unfit, most_characters=400)}. Load it "
        "with unknown='keep' to get the parts as penstock.Opaque objects"
    )
    return penstock.UnsupportedError(f"{archive.path}: {message}", message, archive.path)


def _refused(archive: penstock.Archive, refused: list[str]) -> UnknownGlobalsError:
    reasons = listed(sorted(set(refused)), separator="; ", most_characters=400)
    message = (
        f"the file names what add_safe_globals allows, but loading it would run code: {reasons}. "
        "Load it with unknown='keep' to get the parts as penstock.Opaque objects"
    )
    message += _about_distributed(refused)
    return UnknownGlobalsError(f"{archive.path}: {message}", message, archive.path)


def _about_distributed(names: list[str]) -> str:
    if not any(name.startswith("torch.distributed.") for name in names):
        return ""
    return ", or save distributed tensors (DTensor) as plain ones: tensor.full_tensor()"


def _is_path(f: object) -> bool:
    return isinstance(f, (str, bytes, os.PathLike))


def opened(f: FileLike, verify: bool) -> penstock.Archive:
    """The archive in a file, or in what can be read of an object from where it stands.

    Behind a file of before torch 1.6 the object stands where that ended, as torch leaves it.
    """
    try:
        return _opened(f, verify)
    except penstock.UnknownFormatError as error:
        if "empty" not in error.message:
            raise
        raise EmptyFileError(str(error), error.message, error.path) from error


def _opened(f: FileLike, verify: bool) -> penstock.Archive:
    if isinstance(f, (str, bytes, os.PathLike)):
        return penstock.open(f, verify=verify)
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"found an object of type {type(f).__name__} without .{method}(), expected a path or a file that can "
                "be read; put its bytes into an io.BytesIO"
            )
    name = str(getattr(f, "name", "<memory>"))
    if isinstance(f, io.TextIOBase):
        raise _opened_as_text(name)
    start, number = f.tell(), number_of(f)
    if start == 0 and number is not None and not _is_legacy(os.pread(number, 64, start)):
        return penstock.open(f"/proc/self/fd/{number}", verify=verify)
    data: Any = f.getbuffer()[start:] if type(f) is io.BytesIO else f.read()
    if isinstance(data, str):
        raise _opened_as_text(name)
    if _is_legacy(data[:64]):  # others may follow, and the next call goes on there
        end = _legacy_end(data, name)
        f.seek(start + end)
        data = memoryview(data)[:end]
    return _open_memory(data, name, verify)


def _opened_as_text(name: str) -> penstock.InvalidArgumentError:
    message = "the file is opened as text; open it in binary mode: open(path, 'rb')"
    return penstock.InvalidArgumentError(f"{name}: {message}", message, name)
