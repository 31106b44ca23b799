"""`torch.load` without running anything from the file.

C++ reads the index and the pickle and describes each object by name and parts (`_assemble`). `_storages.py` gives the
tensors (`_typed.py` where they become another type), `_rebuild.py` makes torch's objects of the rest, and here is how
they come together. `_opening.py` has what may be given to read, and `_refusals.py` what a file may not name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch.utils.serialization import config

import penstock
from penstock._core import _assemble, _part
from penstock._wrong_argument import names_arguments
from penstock.errors import _renamed, _within
from penstock.torch._errors import torch_errors
from penstock.torch.loading._data import left_over
from penstock.torch.loading._opening import FileLike, decoder_of, is_path, named_as_given, opened_by_all
from penstock.torch.loading._ranks import telling
from penstock.torch.loading._rebuild import Rebuilder, Use
from penstock.torch.loading._refusals import refuse_code, refused_globals, unfit_parts, unknown_globals
from penstock.torch.loading._storages import MapLocation, check_map_location, read_tensors
from penstock.torch.loading._together import Together, kind_of_place, together_of
from penstock.torch.loading._typed import Conversion, conversion_of, read_converted


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
        Several `ranks` tell nothing.
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
        refuse_code(weights_only, pickle_module)
        if unknown not in {"error", "keep", "data"}:
            raise ValueError(f"unknown is {unknown!r}; it must be 'error', 'keep' or 'data'")
        decode = decoder_of(encoding)
        check_map_location(map_location)
        conversion = conversion_of(dtype, strict, mmap)
        mmap = (conversion is None and config.load.mmap) if mmap is None else mmap
        if mmap and not is_path(f):
            raise ValueError("f must be a file path in order to use the mmap argument")
        alike = f"{conversion} {kind_of_place(map_location, ranks)}"
        together = together_of(ranks, report, shared=shared, pinned=pinned, alike=alike, mmap=bool(mmap))
    with named_as_given(f), opened_by_all(f, key, prefix, together, verify=verify, decode=decode) as part:
        return load_archive(
            part,
            map_location,
            unknown=unknown,
            mmap=bool(mmap),
            progress=progress,
            conversion=conversion,
            together=together,
        )


@torch_errors()
def load_given(given: Any, name: str, keys: Sequence[str | int]) -> Any:
    """What `load` gives for the file of that name, or a dict of what it gives for each key. `given`: what opens it, a
    path or what a function of the program gave for the name: bytes, a source, a path or an open file."""
    archive = penstock.open(given)
    try:
        parts = {key: load_archive(_part(archive, key, None), None) for key in keys}
        return parts if keys else load_archive(archive, None)
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
        raise unfit_parts(archive, rebuilder.unfit)
    if unknown == "data" and (names := left_over(value)):
        raise unknown_globals(archive, dict.fromkeys(names, Use.OBJECT))
    if unknown == "error" and rebuilder.unknown:
        raise unknown_globals(archive, rebuilder.unknown)
    if unknown == "error" and rebuilder.refused:
        raise refused_globals(archive, rebuilder.refused)
    return value


def _name_of(archive: penstock.Archive, leaves: list[Any], parts: Any) -> str | None:
    """The name of the tensor that these parts belong to; their own names begin with it."""
    values = parts[0].values() if isinstance(parts, tuple) and parts and isinstance(parts[0], dict) else parts
    found = [i for value in values or () for i, leaf in enumerate(leaves) if leaf is value and leaf is not None]
    return archive.keys()[found[0]].rpartition(".")[0] or None if found else None
