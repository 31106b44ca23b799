"""`torch.load` without running anything from the file.

C++ reads the index and the pickle and describes each object by name and parts (`_assemble`). `_storages.py` gives the
tensors (`_typed.py` where they become another type), `_rebuild.py` makes torch's objects of the rest, and here is what
torch.load has around that: open files, torch's settings, its errors.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Literal

import torch

import penstock
from penstock._core import (
    Source,
    _assemble,
    _is_legacy,
    _legacy_end,
    _numpy_facts,
    _open_bytes,
    _open_file,
    _open_memory,
    _part,
)
from penstock._files.opened import number_of, read_up_to
from penstock._text import listed, plural
from penstock._wrong_argument import names_arguments
from penstock.errors import _renamed, _twin, _within
from penstock.torch._devices import present, reachable
from penstock.torch._errors import EmptyFileError, UnknownFileError, torch_errors
from penstock.torch.loading._data import left_over
from penstock.torch.loading._ranks import agreed, plan_of, telling
from penstock.torch.loading._rebuild import Rebuilder, Use
from penstock.torch.loading._storages import MapLocation, check_map_location, read_tensors
from penstock.torch.loading._together import Together, together_of
from penstock.torch.loading._typed import Conversion, conversion_of, read_converted

__all__ = [
    "FileLike",
    "UnknownGlobalsError",
    "kind_of_place",
    "load",
    "load_archive",
    "load_given",
    "opened",
    "opened_by_all",
    "together_of",
]

FileLike = str | os.PathLike[str] | IO[bytes] | Source


class UnknownGlobalsError(penstock.UnsafeError, pickle.UnpicklingError):
    """The file names classes or functions that torch.load(weights_only=True) does not know either.

    `names` has all of them; the text says the first twenty.
    """

    names: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"names": self.names}


@names_arguments
@torch_errors()
def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: None = None,
    *,
    weights_only: Literal[True] | None = None,
    mmap: bool | None = None,
    encoding: str = "utf-8",
    unknown: Literal["error", "keep", "data"] = "error",
    verify: bool = True,
    key: str | int | Sequence[str | int] | None = None,
    prefix: str | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    dtype: torch.dtype | str | None = None,
    strict: bool = False,
    shared: bool = False,
    pinned: bool = False,
    ranks: Any = None,
    report: dict[str, Any] | None = None,
) -> Any:
    """What `torch.load(f, weights_only=True)` gives: the same types, values, strides, sharing and flags.

    Tensors are torch's own, over memory that Penstock read the file into. Nothing in the file is run,
    whatever it holds. Every format that Penstock reads is taken: `.npy`, `.npz` and `.safetensors`
    too. NumPy's arrays, scalars and dtypes, for which torch wants its add_safe_globals, come without
    it: none of NumPy's own code rebuilds them.

    What torch.load takes from its surroundings is taken: skip_data and set_default_load_endianness of
    torch.serialization, and a FakeTensorMode, under which no payload is read and tensors are fake.

    Parameters
    ----------
    f
        A path or URL, what `penstock.remote` makes, or a file opened in binary mode, or any other
        object with `read`, `seek` and `tell`, which is read from where it stands.
    map_location
        None, a device, its name, a dict from recorded to wanted names, or a function of a storage and
        its recorded name, as for torch.load. A device that the file records is torch's to find, with
        torch's errors.
    pickle_module
        Must be None: another one would run code found in the file.
    weights_only
        True or None: False would run code found in the file, and is refused.
    mmap
        Map the file instead of reading it, private to this process unless set_default_mmap_options of
        torch.serialization says otherwise; a path is needed. Checksums are not looked at, and tensors
        that lie where their type cannot be used, or in the other byte order, are copied. None is what
        torch.utils.serialization.config.load.mmap says, and False with a `dtype`.
    encoding
        Of byte strings that Python 2 wrote: any that Python has, or "bytes" to keep them as bytes. What
        is no UTF-8 stays bytes with "utf-8", and is UnicodeDecodeError's with others.
    unknown
        What becomes of names that torch does not know: "error"; "keep" for `penstock.Opaque` objects
        that hold the name, the arguments and the state; or "data" for what plain objects hold, without
        their classes. Objects that are their attributes (argparse.Namespace, SimpleNamespace,
        dataclasses) and dicts of classes of their own (EasyDict, OmegaConf's) become dicts whose items
        are attributes too: `args["lr"]`, `args.lr` and `vars(args)`. Lists of classes of their own
        become lists, and paths, dates and other plain values of Python's are made. References to
        classes become Opaque; anything else that only code could make stays an error.

        Classes that torch.serialization.add_safe_globals allows come to life where their parts are only
        set down: objects that are their attributes, members of enumerations, named tuples, tensors of a
        subclass or of a wrapper class, the graphs of torch_geometric, and paths, dates and other plain
        values of Python's. Functions, and classes with a way of their own, are not called.
    verify
        Whether recorded checksums are checked.
    key
        A part of the content, which alone is read and made: a key, several with dots between them
        ("optimizer.state.0", where a key that has dots itself is found first), or a list of keys and
        positions.
    prefix
        Of a dict the items whose keys begin with it, without it: "module." takes the state dict of a
        module out of what its wrapper saved.
    progress
        True for a bar on a terminal and in a notebook, or a function (bytes done, total), called in
        this thread while the payload is read, which a map does not do. What it raises stops the load.
    dtype
        The type that floating-point and complex tensors get while they are read, as by
        Module.to(dtype): a torch.dtype or its name. Others keep theirs, and so do quantized tensors,
        storages, NumPy's arrays and the parts of wrapper tensors. Tensors that are one view of the same
        memory stay one, other views of it part. Not together with `mmap`.
    strict
        Raise for a value that the type has no number for, such as 1e300 as float32; the error names
        the tensor.
    shared
        Read into one block of host memory that other processes map too: they get tensors by
        torch.multiprocessing without a copy, or by the name that `penstock.sharing.share` gives. All
        are views of one storage, which is there until the last of them is gone. With `pinned` too they
        are page-locked, and go to others by name alone. Write them by
        `penstock.torch.save` or `save_file`: `torch.save` writes that storage whole, or refuses it.
    pinned
        Read into one block of page-locked host memory. It takes what the tensors take, below 1 GiB up
        to an eighth more; `pin_memory()` takes up to twice that, and copies. All are views of one
        storage, as by `shared`.
    ranks
        Read the file once for several processes: a process group of torch.distributed, or "auto" for
        all of its processes where a program has initialised it. Each rank reads a share of the bytes,
        and all get the same result; all of them must make this call. Ranks of one machine share the
        pages of host memory until one writes to them (with `shared`, also after that); others send
        each other what they have read. An error of one rank is raised on all and says which.
    report
        A dict to fill with how `ranks` have read: "way", "why", and how many bytes this rank has read.

    Returns
    -------
    object
        What was saved.

    Raises
    ------
    UnknownGlobalsError
        For classes and functions that torch does not know, all of them named in `names`.
    penstock.Error
        With path, offset and tensor, for files that are damaged, cut or no tensor files.
    """
    with telling(ranks):
        _refuse_code(weights_only, pickle_module)
        if unknown not in {"error", "keep", "data"}:
            raise ValueError(f"unknown is {unknown!r}; it must be 'error', 'keep' or 'data'")
        decode = _decoder(encoding)
        check_map_location(map_location)
        conversion = conversion_of(dtype, strict, mmap)
        mmap = (conversion is None and _mmap_by_default()) if mmap is None else mmap
        if mmap and not _is_path(f):
            raise ValueError("f must be a file path in order to use the mmap argument")
        alike = f"{conversion} {kind_of_place(map_location, ranks)}"
        together = together_of(ranks, report, shared=shared, pinned=pinned, alike=alike, mmap=bool(mmap))
    with _named_as_given(f), opened_by_all(f, key, prefix, together, verify=verify, decode=decode) as part:
        return load_archive(
            part,
            map_location,
            unknown=unknown,
            mmap=bool(mmap),
            progress=progress,
            conversion=conversion,
            together=together,
        )


def kind_of_place(map_location: MapLocation, ranks: Any) -> str:
    """What ranks compare of it: each may have a device of its own, which has to be there and be filled the same way."""
    if ranks is None or not isinstance(map_location, (str, torch.device)):
        return type(map_location).__name__
    return f"{present(map_location).type} {reachable(map_location) is None}"


@contextlib.contextmanager
def opened_by_all(
    f: FileLike, key: Any, prefix: str | None, together: Together | None, *, verify: bool, decode: Any = None
) -> Iterator[penstock.Archive]:
    """The part of a file that is asked for; where ranks read it together, the same on all of them."""

    def open_part() -> penstock.Archive:
        archive = opened(f, verify, decode)
        return archive if key is None and prefix is None else _part(archive, key, prefix)

    ranks = None if together is None else together.ranks
    if ranks is None or together is None:
        part = open_part()
    else:
        part = agreed(ranks, open_part, lambda archive: plan_of([archive], together.alike))
    with part:
        yield part


@torch_errors()
def load_given(given: Any, name: str) -> Any:
    """What `load` gives for a file, of what a function of the program gave for its name: bytes, a
    source, a path or an open file."""
    archive = penstock.open(given)
    try:
        return load_archive(archive, None)
    except penstock.Error as error:
        _renamed(error, archive.path, name)
        raise


def load_archive(
    archive: penstock.Archive,
    map_location: MapLocation,
    *,
    unknown: Literal["error", "keep", "data"] = "error",
    mmap: bool = False,
    progress: Any = None,
    conversion: Conversion | None = None,
    together: Together | None = None,
) -> Any:
    """The whole content of an archive as torch's objects."""
    rebuilder = Rebuilder(conversion, map_location, as_data=unknown == "data")
    if conversion is None:
        leaves = read_tensors(archive, map_location, mmap=mmap, progress=progress, together=together)
    else:
        leaves = read_converted(archive, map_location, conversion, progress=progress, together=together)
    try:
        value = _assemble(archive, leaves, rebuilder)
    except penstock.Error as error:
        raise _within(error, archive.path, _name_of(archive, leaves, rebuilder.broken)) from error
    rebuilder.finish()
    if rebuilder.unfit and unknown != "keep":
        raise _unfit(archive, rebuilder.unfit)
    if unknown == "data" and (names := left_over(value)):
        raise _unknown_globals(archive, dict.fromkeys(names, Use.OBJECT))
    if unknown == "error" and rebuilder.unknown:
        raise _unknown_globals(archive, rebuilder.unknown)
    if unknown == "error" and rebuilder.refused:
        raise _refused(archive, rebuilder.refused)
    return value


def _decoder(encoding: object) -> Callable[[bytes], str | None] | None:
    """What turns byte strings of Python 2 into text; None for the usual way, which gives text where they are UTF-8."""
    if not isinstance(encoding, str):
        raise penstock.DTypeMismatchError(f"encoding is of type {type(encoding).__name__}; it must be a name, 'utf-8'")
    if encoding == "bytes":
        return lambda data: None
    if encoding.lower().replace("_", "-") in {"utf-8", "utf8"}:
        return None
    return lambda data: data.decode(encoding)


def _mmap_by_default() -> bool:
    try:
        from torch.utils.serialization import config
    except ImportError:  # torch before 2.6
        return False
    return bool(config.load.mmap)


def _is_big_endian_by_default() -> bool:
    """Whether torch takes files that record no byte order for big-endian."""
    order = torch.serialization.get_default_load_endianness()
    kinds = torch.serialization.LoadEndianness
    return order == kinds.BIG or (order == kinds.NATIVE and sys.byteorder == "big")


def _name_of(archive: penstock.Archive, leaves: list[Any], parts: Any) -> str | None:
    """The name of the tensor that these parts belong to; their own names begin with it."""
    values = parts[0].values() if isinstance(parts, tuple) and parts and isinstance(parts[0], dict) else parts
    found = [i for value in values or () for i, leaf in enumerate(leaves) if leaf is value and leaf is not None]
    return archive.keys()[found[0]].rpartition(".")[0] or None if found else None


def _refuse_code(weights_only: object, pickle_module: object) -> None:
    if weights_only is not None and not weights_only and not _is_asked_by_torch():
        raise penstock.UnsafeError(
            "weights_only=False would run code found in the file, which Penstock never does; leave it out, and "
            "use unknown='keep' for objects of other classes"
        )
    if pickle_module is not None:
        raise penstock.UnsafeError(
            "pickle_module would run code found in the file, which Penstock never does; leave it out"
        )


def _is_asked_by_torch() -> bool:
    """Whether torch itself calls torch.load, which a program has set to `load`. torch asks for weights_only=False where
    it unpickles storages and reads its own distributed checkpoints, and needs it for neither."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        if module not in {"penstock", "contextlib"}:
            return module == "torch"
    return False


def _unknown_globals(archive: penstock.Archive, unknown: dict[str, Use]) -> UnknownGlobalsError:
    found = sorted(unknown)
    if archive.metadata.get("kind") == "torchscript":  # whose classes are code in the file: nobody can allow them
        message = (
            "the file is a TorchScript archive, whose module only torch.jit.load makes, because it runs the file's "
            "code; nothing of it was run. Its tensors are there by penstock.open, under their names, and "
            "unknown='data' gives the module's attributes without its classes"
        )
    elif any(name.startswith("torch.nn.modules.") and use > Use.NAME for name, use in unknown.items()):
        message = (
            f"the file holds a whole module, of the classes {listed(found)}, which only running code could make; "
            "nothing of the file was run. Its tensors are there by penstock.open, under their names. Where you trust "
            "the file, load it once with torch.load(weights_only=False) and save module.state_dict() instead. To get "
            "the objects as inert penstock.Opaque ones, load it with unknown='keep'"
        )
    else:
        message = (
            f"the file names {listed(found)}, which torch.load(weights_only=True) does not know either; nothing of the "
            f"file was run. {_way(unknown)}Take a part of the file that is without them by key=, or load it with "
            "unknown='keep' to get them as inert penstock.Opaque objects"
        )
    message += _about_distributed(found)
    error = UnknownGlobalsError(f"{archive.path}: {message}", message, archive.path)
    error.names = tuple(found)
    return error


def _way(unknown: dict[str, Use]) -> str:
    """How the names come to be read, where the file has no more of them than classes and their plain objects."""
    if max(unknown.values()) is Use.OBJECT:
        return ""
    names = listed([name.removeprefix("__main__.") for name in sorted(unknown)])
    way = f"If you know the classes, allow them: torch.serialization.add_safe_globals([{names}]). "
    if Use.DATA in unknown.values():
        way = "Their objects are plain ones: unknown='data' gives their attributes without the classes. " + way
    return way


def _unfit(archive: penstock.Archive, unfit: list[str]) -> penstock.UnsupportedError:
    message = (
        f"the file holds NumPy's objects of parts that do not make one: {listed(unfit, most_characters=400)}. Load it "
        "with unknown='keep' to get the parts as penstock.Opaque objects"
    )
    return penstock.UnsupportedError(f"{archive.path}: {message}", message, archive.path)


def _refused(archive: penstock.Archive, refused: dict[str, str]) -> UnknownGlobalsError:
    reasons = listed(sorted(set(refused.values())), separator="; ", most_characters=400)
    message = (
        f"the file names what add_safe_globals allows, but loading it would run code: {reasons}. "
        "Load it with unknown='keep' to get the parts as penstock.Opaque objects"
    )
    message += _about_distributed(list(refused))
    error = UnknownGlobalsError(f"{archive.path}: {message}", message, archive.path)
    error.names = tuple(sorted(refused))
    return error


def _about_distributed(names: list[str]) -> str:
    if not any(name.startswith("torch.distributed.") for name in names):
        return ""
    if "torch.distributed.tensor" not in sys.modules:
        return ", or import torch.distributed.tensor first, which distributed tensors (DTensor) are made by"
    return ", or save distributed tensors (DTensor) as plain ones: tensor.full_tensor()"


def _is_path(f: object) -> bool:
    return isinstance(f, (str, bytes, os.PathLike))


def opened(f: FileLike, verify: bool, decode: Callable[[bytes], str | None] | None = None) -> penstock.Archive:
    """The archive in a file, or in what can be read of an object from where it stands.

    A file of before torch 1.6 may have others behind it, so that the object then stands at its end,
    where torch leaves it.
    """
    start = 0 if _is_path(f) or not hasattr(f, "tell") else f.tell()
    try:
        archive = _opened(f, verify, decode)
    except EmptyFileError:
        raise
    except penstock.UnknownFormatError as error:
        if not _is_empty(f, start):
            raise
        raise _twin(error, EmptyFileError) from error
    if archive.format == "npz" and not _numpy_facts(archive)[0]:
        path = archive.path
        archive.close()
        message = (
            "the file is a zip archive without members, with nothing in it to load; penstock.load gives an empty dict"
        )
        raise UnknownFileError(f"{path}: {message}", message, path)
    return archive


def _is_empty(f: Any, start: int) -> bool:
    """Whether there is nothing in a file, or in an object behind where it stood."""
    if _is_path(f):
        return _open_bytes(f).size == 0
    if isinstance(f, Source):
        return f.size == 0
    at = f.tell()
    f.seek(start)
    content = f.read(1)
    f.seek(at)
    return not content


def _opened(f: FileLike, verify: bool, decode: Callable[[bytes], str | None] | None) -> penstock.Archive:
    options = (verify, decode, _is_big_endian_by_default())
    given: Any = f
    if isinstance(given, bytes) and b"\0" in given:
        raise penstock.DTypeMismatchError(
            f"found {plural(len(given), 'byte')} of a file's content, expected a path or a file; put them into an "
            "io.BytesIO"
        )
    if isinstance(f, (str, bytes, os.PathLike, Source)):
        return _open_file(f, *options)
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"f: found an object of type {type(f).__name__} without .{method}(), expected a path or a file that "
                "can be read; put its bytes into an io.BytesIO"
            )
    name = str(getattr(f, "name", "<memory>"))
    if isinstance(f, io.TextIOBase):
        raise _opened_as_text(name)
    start, number = f.tell(), number_of(f)
    if start == 0 and number is not None and not _is_legacy(os.pread(number, 64, start)):
        with contextlib.suppress(penstock.PermissionDeniedError, penstock.NotFoundError):  # to open it once more
            return _open_file(_path_of(number), *options)
    data: Any = f.getbuffer()[start:] if type(f) is io.BytesIO else _rest_of(f, name)
    if start > 0 and len(data) == 0:
        message = f"the file object stands at its end, byte {start}, and nothing follows; call its seek(0) first"
        raise EmptyFileError(f"{name}: {message}", message, name, start)
    if _is_legacy(data[:64]):  # others may follow, and the next call goes on there
        end = _legacy_end(data, name)
        f.seek(start + end)
        data = memoryview(data)[:end]
    return _open_memory(data, name, *options)


def _rest_of(f: Any, name: str) -> bytearray:
    """Everything that `f` still gives. One call of its `read` may give less than there is."""

    def refuse(part: object) -> Exception:
        if isinstance(part, str):
            return _opened_as_text(name)
        message = f"the file gives an object of type {type(part).__name__}, where bytes were expected"
        return penstock.DTypeMismatchError(f"{name}: {message}", message, name)

    return read_up_to(f, None, refuse)


def _path_of(number: int) -> str:
    return f"/proc/self/fd/{number}"


@contextlib.contextmanager
def _named_as_given(f: FileLike) -> Iterator[None]:
    """Gives errors about an open file, which is read by its number, the name that the program knows."""
    try:
        yield
    except penstock.Error as error:
        number = None if _is_path(f) else number_of(f)
        if number is not None:
            _renamed(error, _path_of(number), str(getattr(f, "name", "<memory>")))
        raise


def _opened_as_text(name: str) -> penstock.InvalidArgumentError:
    message = "the file is opened as text; open it in binary mode: open(path, 'rb')"
    return penstock.InvalidArgumentError(f"{name}: {message}", message, name)
