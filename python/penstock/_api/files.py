"""Tensor files: what opens, reads and writes them."""

from __future__ import annotations

import penstock._core as _core
from penstock._api import methods_of, overload

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from penstock._core import Archive, LazyTensor, Tensor, WritableArchive


def load(
    path: Any,
    device: object = "cpu",
    mmap: bool | None = None,
    *,
    verify: bool = True,
    direct: bool | None = None,
    gds: bool | None = None,
    threads: int | None = None,
    key: str | int | Sequence[str | int] | None = None,
    prefix: str | None = None,
    report: dict[str, Any] | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    dtype: object | None = None,
    strict: bool = False,
    shape: int | Sequence[int] | None = None,
    offset: int | None = None,
    order: str | None = None,
    shared: bool = False,
    pinned: bool = False,
    ranks: None = None,
) -> Any:
    """Everything in a tensor file.

    Nothing in the file is run: objects of unknown classes become penstock.Opaque.

    Parameters
    ----------
    path
        The file's path, or its content: bytes, a memoryview, a memory map, or a file opened in mode
        "rb", which is read from its current position. `bytes` without a zero byte are taken for a
        path, because every tensor file has a zero byte and no path has one.
    device
        Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
    mmap
        Map the file instead of reading it. The tensors are read-only. Nothing is read, so checksums are
        not checked.
    verify
        Check recorded checksums of what is read.
    direct
        Read past the page cache with O_DIRECT (True, where the file system can) or through it (False).
        By default, cached bytes come from the cache and all others are read past it. What is in memory,
        or behind a URL, has no such choice. True is refused together with mmap.
    gds
        Fill a device by GPUDirect Storage. By default as PENSTOCK_GDS says. It changes nothing on the
        host. True is refused together with mmap.
    threads
        How many threads read; 0, and by default, chosen for the file and the machine.
    key
        The part of the content to read: a key, several keys with dots between them
        ("optimizer.state.0"), or a list of keys and positions. Nothing else is read.
    prefix
        Take only the keys of a dict that begin with this, and remove it from them.
    report
        A dict to fill with how the file was read: "route", "why" in a sentence, bytes and seconds;
        "depth" requests in flight at once, where reads waited, and what kept them from being more
        ("depth_limit"); by URL also "remote_requests" and other counts.
    progress
        True for a bar on a terminal and in a notebook, or a function (bytes done, total). It is called
        in this thread, and what it raises stops the load.
    dtype
        What floating-point and complex tensors become while they are read, as by torch's
        Module.to(dtype); integers and bools stay. A load needs little more memory than its result.
        Not together with mmap.
    strict
        Raise where a value does not fit into `dtype` (1e300 into float32). By default it becomes
        infinite, as with NumPy.
    shape, offset, order
        One of them says that the file has no header, as `raw` has them. Then `dtype` is what the
        elements in the file are, and nothing is converted. A file that has a header is refused here.
    shared
        Read into one block of host memory that other processes map too: `sharing.share` gives its name.
        The block is there until the last tensor in it is gone. With `dtype` different views of the same
        bytes become tensors of their own. With `pinned` too it is page-locked for this process.
    pinned
        Read into one block of page-locked host memory, from which devices copy without the processor.
        It takes what the tensors take, below 1 GiB up to an eighth more, and is there until the last of
        them is gone.
    ranks
        Not here: ranks of a process group read a file once by `penstock.torch.load(ranks=)`. Other
        processes of a machine get what one of them has loaded with `shared`.

    Returns
    -------
    A Tensor for a file of one bare array, a dict for `.npz` and `.safetensors`; for `.pt` whatever
    was saved.

    Raises
    ------
    penstock.Error
        It is also the built-in exception of the same kind: FileNotFoundError, ValueError, ...

    Examples
    --------
    >>> state = penstock.load("model.pt")
    >>> state = penstock.load(response.content)
    >>> with open("model.pt", "rb") as file:
    ...     state = penstock.load(file)
    """
    if ranks is not None:
        raise _no_ranks()
    return _core.load(
        path,
        device,
        mmap,
        verify,
        direct,
        gds,
        threads,
        key,
        prefix,
        report,
        progress,
        dtype,
        strict,
        shape,
        offset,
        order,
        shared,
        pinned,
    )


def _no_ranks() -> Exception:
    from penstock.errors import UnsupportedError

    return UnsupportedError(
        "found ranks= in penstock.load, which knows no process groups: use penstock.torch.load(ranks=), or load with "
        "shared=True in one process and give the others the name from penstock.sharing.share"
    )


def save(
    obj: object,
    path: str | bytes | os.PathLike[str],
    *,
    format: str | None = None,
    compress: bool = False,
    metadata: dict[str, str] | None = None,
    sync: bool = True,
    progress: bool | Callable[[int, int], object] | None = None,
) -> None:
    """Writes tensors to a file that NumPy, PyTorch and safetensors read.

    The file, or the object of a store, appears whole or not at all.

    Parameters
    ----------
    obj
        A Tensor or an array of any library; dicts of them; for `.pt` nested dicts, lists, tuples,
        numbers and strings too.
    path
        Where the file goes: a path, or a URL of a store (s3://, gs://, az://). What is there already is
        replaced. With "/" at its end it is the folder of a distributed checkpoint, which
        torch.distributed.checkpoint loads.
    format
        "npy", "npz", "pt", "safetensors", "tar" (one sample), or "dcp", such a folder. By default
        chosen by the extension of `path`.
    compress
        Deflate an `.npz`.
    metadata
        A dict of texts to keep in a `.safetensors`.
    sync
        Wait until the file is on the disk. Without it, saving is as fast as numpy.save and torch.save,
        but the file may be lost when the machine loses power. Changes nothing for a URL.
    progress
        True for a bar on a terminal and in a notebook, or a function (bytes done, total). It is called
        in this thread, and what it raises stops the save, so that no file appears.
    """
    _core.save(obj, path, format, compress, metadata, sync, progress)


@overload
def open(path: Any, mode: Literal["r"] = "r", *, verify: bool = True) -> Archive: ...
@overload
def open(path: str | bytes | os.PathLike[str], mode: Literal["r+"], *, verify: bool = True) -> WritableArchive: ...
def open(path: Any, mode: str = "r", *, verify: bool = True) -> Archive | WritableArchive:
    """Opens a tensor file and reads its index, whatever its size and extension.

    Payload is not read, except in a file of up to 64 KiB, which is read whole.

    Parameters
    ----------
    path
        A path, bytes in memory or an open file, as `load` takes them. Bytes are shared, not copied,
        and stay alive with the archive and its entries.
    mode
        "r" reads. "r+" gives a WritableArchive, whose tensors are changed in place.
    verify
        Check recorded checksums when entries are loaded.

    Examples
    --------
    >>> with penstock.open("model.pt") as archive:
    ...     rows = archive["encoder.weight"][:128].load()
    """
    return _core.open(path, mode, verify)


def raw(
    path: Any, dtype: object, shape: int | Sequence[int] | None = None, offset: int = 0, order: str = "C"
) -> LazyTensor:
    """The array in a file without a header, not loaded: what numpy.memmap opens.

    Nothing of the file is read, so its content is not looked at either: a `.npy` is bytes here, its
    header too. Slice it, load it, or give it to `rows`.

    Parameters
    ----------
    path
        The file's path or URL, a Source of penstock.remote, an open file, or bytes, which are the
        content in any case: a path in bytes is for os.fsdecode.
    dtype
        What the elements are: a name ("uint16", "bfloat16"), a type of NumPy or torch, or NumPy's
        text, which may say the byte order (">u2").
    shape
        One size may be -1: as many as the rest of the file has. None: one dimension, to the end. The
        file may be longer than an array whose sizes are all given.
    offset
        Bytes in front of the first element.
    order
        "C", or "F" where the elements of the first dimension lie together.

    Raises
    ------
    ShapeMismatchError
        Where -1 does not divide the rest of the file; it says how many bytes are left over.
    TruncatedError
        Where the file is shorter than the array.

    Examples
    --------
    >>> tokens = penstock.raw("train.bin", "uint16")
    >>> samples = penstock.rows(penstock.raw("train.bin", "uint16", (-1, 1024)))
    """
    return _core.raw(path, dtype, shape, offset, order)


def doctor(path: str | bytes | os.PathLike[str] | None = None) -> dict[str, Any]:
    """What `penstock doctor --json` prints; it takes a few seconds.

    Devices with measured copy speeds, reading of a file, memory, limits and what the kernel offers;
    under "advice" what slows loading down and how to change it. Bytes, and bytes a second.

    Parameters
    ----------
    path
        The file that is read, or a folder, in which one is made for a moment.

    Returns
    -------
    dict
    """
    return _core.doctor(path)


@methods_of(_core.LazyTensor)
class LazyTensorMethods:
    """A tensor of an archive, or a slice of one, that is not loaded.

    Slicing reads nothing, and `load` reads only the bytes of the slice. A lazy tensor keeps the file
    open.
    """

    def _repr_html_(self) -> str:
        from penstock._html import shown

        return shown(self)

    def load(
        self: LazyTensor,
        device: object = "cpu",
        mmap: bool | None = None,
        *,
        direct: bool | None = None,
        gds: bool | None = None,
        threads: int | None = None,
        report: dict[str, Any] | None = None,
        dtype: object | None = None,
        strict: bool = False,
    ) -> Tensor:
        """The tensor, or the slice of it.

        Parameters
        ----------
        device
            Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
        mmap
            Map the file instead of reading it. The tensors are read-only, and checksums are not checked.
        direct
            Read past the page cache with O_DIRECT (True) or through it (False). By default, cached bytes
            come from the cache and all others are read past it.
        gds
            Fill a device by GPUDirect Storage. By default as PENSTOCK_GDS says. It changes nothing on the
            host.
        threads
            How many threads read. By default chosen for the file and the machine.
        report
            A dict to fill with how the file was read.
        dtype
            What floating-point and complex tensors become while they are read, as by torch's
            Module.to(dtype); integers and bools stay. A load needs little more memory than its result.
            Not together with mmap.
        strict
            Raise where a value does not fit into `dtype` (1e300 into float32). By default it becomes
            infinite, as with NumPy.
        """
        return self._load(device, mmap, direct, gds, threads, report, dtype, strict)


@methods_of(_core.Archive)
class ArchiveMethods:
    """An opened file: its index, and none of its payload.

    A mapping from names to lazy tensors, which load on request. Made by `penstock.open`. Any number of
    threads may use it.
    """

    def _repr_html_(self) -> str:
        from penstock._html import shown

        return shown(self)

    def keys(self: Archive) -> list[str]:
        """The tensors' names, in the file's order."""
        return self._keys()

    def values(self: Archive) -> list[LazyTensor]:
        """The tensors, not loaded, in the file's order."""
        return self._values()

    def items(self: Archive) -> list[tuple[str, LazyTensor]]:
        """Pairs of a name and its tensor, in the file's order."""
        return self._items()

    def get(self: Archive, name: object, default: Any = None) -> Any:
        """The tensor of that name, not loaded, or `default` where the file has none."""
        return self._get(name, default)

    def load(
        self: Archive,
        device: object = "cpu",
        mmap: bool | None = None,
        *,
        direct: bool | None = None,
        gds: bool | None = None,
        threads: int | None = None,
        report: dict[str, Any] | None = None,
        progress: bool | Callable[[int, int], object] | None = None,
        dtype: object | None = None,
        strict: bool = False,
        shared: bool = False,
        pinned: bool = False,
    ) -> Any:
        """Everything, nested as in the file.

        Parameters
        ----------
        device
            Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
        mmap
            Map the file instead of reading it. The tensors are read-only, and checksums are not checked.
        direct
            Read past the page cache with O_DIRECT (True) or through it (False). By default, cached bytes
            come from the cache and all others are read past it.
        gds
            Fill a device by GPUDirect Storage. By default as PENSTOCK_GDS says. It changes nothing on the
            host.
        threads
            How many threads read. By default chosen for the file and the machine.
        report
            A dict to fill with how the file was read.
        progress
            True for a bar on a terminal and in a notebook, or a function (bytes done, total), called in
            this thread. What it raises stops the load.
        dtype
            What floating-point and complex tensors become while they are read, as by torch's
            Module.to(dtype); integers and bools stay. A load needs little more memory than its result.
            Not together with mmap.
        strict
            Raise where a value does not fit into `dtype` (1e300 into float32). By default it becomes
            infinite, as with NumPy.
        shared
            Read into one block of host memory that other processes map too: `penstock.sharing.share`
            gives its name. With `dtype` different views of the same bytes become tensors of their own.
        pinned
            Read into one block of page-locked host memory, from which devices copy without the processor.

        Returns
        -------
        What `penstock.load` gives for the file.
        """
        return self._load(device, mmap, direct, gds, threads, report, progress, dtype, strict, shared, pinned)

    def close(self: Archive) -> None:
        """Lets go of the file; entries taken before still work."""
        self._close()


@methods_of(_core.WritableArchive)
class WritableArchiveMethods:
    """A file whose tensors are changed in place. Made by `penstock.open(path, mode="r+")`.

        with penstock.open("model.safetensors", mode="r+") as model:
            numpy.asarray(model["bias"])[:] = 0

    A mapping from names to tensors that are views of the file: what is written to them is written to
    it. For tensors that lie in the file as their values are, in an `.npy` (which has `tensor` alone), a
    `.safetensors` or a zipped `.pt`. The file is not changed whole or not at all: readers see each
    change at once. The checksums of a `.pt` are compared when a tensor is first asked for. Those of
    tensors that were changed are mended by `flush`, `close` and the end of the block, and are wrong
    before. Tensors must not be written to after that.
    """

    def keys(self: WritableArchive) -> list[str]:
        """The names of the tensors, in the file's order."""
        return self._keys()

    def flush(self: WritableArchive) -> None:
        """Mends the checksums and waits until everything is on the disk."""
        self._flush()

    def close(self: WritableArchive) -> None:
        """`flush`, and the end of this archive: it gives no tensors after that."""
        self._close()


class Writer(_core.Writer):
    """A file that is written piece by piece.

        with penstock.Writer("features.npy") as writer:
            for block in blocks:
                writer.append(block)

        with penstock.Writer("model.safetensors") as writer:
            writer.add("weight", weight)

        with penstock.Writer("train-000.tar") as writer:
            writer.add_sample({"__key__": "0001", "npy": image, "cls": 3})

    An `.npy` grows along its first dimension and may be larger than memory; `.npz`, `.safetensors` and
    `.pt` are written tensor by tensor, a `.tar` sample by sample. The file appears whole at the end of
    the block, or not at all where an exception left it; a file that was there before then stays as it
    was. Without a block, call `finish`.

    Arrays of any library are taken, on any device and in any order of elements and bytes; elements are
    written in C order. An error in an argument leaves the writer as it was, and it can go on. After an
    error of the system, such as a full disk, it has dropped its file. Threads may share a writer; their
    calls follow each other.

    Parameters
    ----------
    path
        Where the file goes; a URL (`s3://`, `gs://`, `az://`) for an object that is sent in parts.
    format
        "npy", "npz", "pt", "safetensors" or "tar". By default chosen by the extension of `path`.
    resume
        `.npy` only: go on behind the rows of the file that is there, or begin a new one where there is
        none. The file itself is appended to. Until the new rows are whole, and after a process that was
        killed, readers see the old ones. Objects in stores cannot be appended to.
    dtype, row_shape
        `.npy` only: what the rows are. By default as the first rows are, or those of the file that is
        resumed.
    compress
        Deflate the members of an `.npz`.
    metadata
        A dict of texts to keep in a `.safetensors`.
    sync
        Wait until the file is on the disk.

    Raises
    ------
    InvalidArgumentError
        For an extension that names no format.
    UnsupportedError
        For options that the format does not have, and to resume an array in Fortran order, one without
        dimensions, a file with several arrays, or one that another writer appends to.
    DTypeMismatchError, ShapeMismatchError
        Where the file that is resumed has other rows than were declared.
    OSError
        Errors of the file system.
    """

    __slots__ = ()

    def __init__(
        self,
        path: str | bytes | os.PathLike[str],
        *,
        format: str | None = None,
        resume: bool = False,
        dtype: object = None,
        row_shape: int | Sequence[int] | None = None,
        compress: bool = False,
        metadata: dict[str, str] | None = None,
        sync: bool = True,
    ) -> None:
        super().__init__(path, format, resume, dtype, row_shape, compress, metadata, sync)

    def append(self, rows: object) -> None:
        """Adds rows to the `.npy`, or to the tensor that `begin` began.

        Parameters
        ----------
        rows
            An array of shape (n, ...). The first rows of an `.npy` fix dtype and shape.

        Raises
        ------
        DTypeMismatchError, ShapeMismatchError
            For rows of another dtype or shape, and for a scalar.
        """
        super().append(rows)

    def append_row(self, row: object) -> None:
        """Adds one row: `append` of a block of one.

        Parameters
        ----------
        row
            An array of the shape that a row has.

        Raises
        ------
        DTypeMismatchError, ShapeMismatchError
            For a row of another dtype or shape.
        """
        super().append_row(row)

    def add(self, name: str, tensor: object) -> None:
        """Adds a whole tensor to an `.npz`, `.safetensors` or `.pt`.

        Parameters
        ----------
        name
            The tensor's name in the file.
        tensor
            An array.

        Raises
        ------
        InvalidArgumentError
            For a name that is there already.
        UnsupportedError
            For a dtype that the format does not have, and for an `.npy`.
        """
        super().add(name, tensor)

    def add_sample(self, sample: object) -> None:
        """Adds a sample to a `.tar`, which `shards` reads.

        Parameters
        ----------
        sample
            A dict by field, or an array (the field "npy"). "__key__" is its name; samples without one are
            numbered. A field is written as its last extension says ("mask.npy", "cls", "meta.json"); one
            without a known extension gets that of its value: npy for arrays, cls for integers, txt for
            texts, json for lists, dicts and other numbers, bin for bytes.

        Raises
        ------
        InvalidArgumentError
            For a key with a dot behind its last "/", or the one of the sample before.
        UnsupportedError
            For a file that is no `.tar`, and for what a field of that name does not hold.
        """
        super().add_sample(sample)

    def begin(self, name: str, dtype: object, shape: int | Sequence[int]) -> None:
        """Begins a tensor that need not fit in memory; `append` gives its rows.

        Parameters
        ----------
        name
            The tensor's name in the file.
        dtype
            Its dtype.
        shape
            Its shape: shape[0] rows in all.

        Raises
        ------
        InvalidArgumentError
            For a name that is there already.
        ShapeMismatchError
            For a scalar, and where the tensor before lacks rows.
        UnsupportedError
            For a dtype that the format does not have, and for an `.npy`.
        """
        super().begin(name, dtype, shape)

    def finish(self) -> None:
        """Completes the file, which then appears, and closes the writer.

        The end of the `with` block does this too.

        Raises
        ------
        InvalidArgumentError
            For an `.npy` that got no rows and was not told what they are.
        ShapeMismatchError
            Where the tensor that was begun lacks rows.
        """
        super().finish()

    def discard(self) -> None:
        """Closes the writer without the file.

        A file that was there before stays as it was. May be called at any time.
        """
        super().discard()
