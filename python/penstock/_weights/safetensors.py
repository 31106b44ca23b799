"""The API of the package safetensors, for any library of arrays: what penstock.torch and penstock.numpy share."""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any

import penstock
from penstock._core import _entry_parts, _open_memory, _safetensors_dtypes, _saved, _storage_parts
from penstock._files.identity import identity
from penstock._translating import Translating
from penstock._weights.prefetch import PrefetchLoader, TensorMeta, rows_of
from penstock._weights.shards import Shards
from penstock._wrong_argument import names_arguments
from penstock.errors import _twin, _within


def _peer_error() -> type[Exception]:
    try:
        error: type[Exception] = importlib.import_module("safetensors").SafetensorError
    except ImportError:
        return Exception
    return error


_PeerError: Any = _peer_error()


class SafetensorError(penstock.Error, _PeerError):  # type: ignore[misc]
    """What safetensors' own functions raise. Where that package is installed, it is also that
    package's error of the same name.

    It has the attributes of the penstock.Error that is its `__cause__`, where there is one.
    """


_DTYPES = _safetensors_dtypes()
CODES = {ours: name for ours, name, _ in _DTYPES}
_PACKED = {ours: values for ours, _, values in _DTYPES}


class Framework(ABC):
    """How one library of arrays takes what Penstock read. The constructor has checked `device`."""

    @abstractmethod
    def whole(self, tensor: penstock.Tensor, name: str) -> Any:
        """An array over the tensor's own memory, or on the wanted device. `name` is for errors."""

    @abstractmethod
    def map(self, path: str, unchanged: Callable[[], bool]) -> None:
        """Called before anything is asked for, because whole arrays may come from a private mapping of the archive's
        file.

        The mapping is used only if `unchanged()` says, once it is there, that `path` is still the archive's file.
        """

    def one(self, archive: penstock.Archive, entry: penstock.LazyTensor) -> Any:
        """The array of an entry of the archive."""
        return self.whole(entry.load(), entry.name)

    def every(self, shards: Shards) -> dict[str, Any]:
        """All arrays by name."""
        return {name: self.whole(tensor, name) for name, tensor in shards.load().items()}

    @abstractmethod
    def part(self, entry: penstock.LazyTensor, key: Any) -> Any:
        """`entry[key]` by the library's rules of indexing, reading no more than that needs."""


def translated(path: str | None = None) -> Translating:
    """Turns Penstock's errors about content into SafetensorError; errors of the system stay what
    they are. An error that names no file gets `path`."""

    def translate(error: BaseException) -> BaseException | None:
        if isinstance(error, SafetensorError):
            named = _within(error, path)
            named.__cause__ = error.__cause__
            return named
        system = (OSError, MemoryError, TypeError, IndexError, penstock.CancelledError, penstock.NoDeviceError)
        if not isinstance(error, penstock.Error) or isinstance(error, system):
            return None
        twin = _twin(error, SafetensorError)
        twin.__cause__ = error
        return twin

    return Translating(translate)


def require_text(argument: str, value: Any) -> None:
    """TypeError, in the reference's words."""
    if not isinstance(value, str):
        raise TypeError(f"argument '{argument}': '{type(value).__name__}' object is not an instance of 'str'")


def require_backend(backend: Any) -> None:
    """SafetensorError for a name of none."""
    require_text("backend", backend)
    if backend not in {"mmap", "pread"}:
        raise SafetensorError(f'backend "{backend}" is invalid (expected one of: "mmap", "pread")')


class SafeSlice:
    """A tensor in a file; indexing it reads only that part. It works after its file was closed."""

    __slots__ = ("_entry", "_framework")

    def __init__(self, entry: penstock.LazyTensor, framework: Framework) -> None:
        self._entry = entry
        self._framework = framework

    def get_shape(self) -> list[int]:
        """The shape; of types that lie packed, that of the single elements."""
        shape = list(self._entry.shape)
        if shape:
            shape[-1] *= _PACKED.get(self._entry.dtype.name, 1)
        return shape

    def get_dtype(self) -> str:
        """safetensors' name for it, "F32"."""
        return CODES.get(self._entry.dtype.name, self._entry.dtype.name)

    def __getitem__(self, key: Any) -> Any:
        with translated():
            return self._framework.part(self._entry, key)


class safe_open:  # noqa: N801 - named like the class it stands for
    """A `.safetensors` file, or a sharded model's index, whose tensors load on request.

    Any number of threads may use it. It is a context manager; after its block the file is closed.

    Parameters
    ----------
    filename
        A `.safetensors`, or the `*.safetensors.index.json` of a sharded model.
    framework
        "pt", "torch" or "pytorch" for torch tensors, "np" or "numpy" for arrays.
    device
        Where tensors go: "cpu", "cuda:1", the number of a device. NumPy has the CPU alone.
    backend
        "mmap" or "pread", as safetensors has them. With "mmap" torch's tensors on the CPU lie in a
        mapping of the file that is private to the process: nothing is read until it is touched, writing
        to them leaves the file alone, and it must not be cut while they are used. All others have
        memory of their own.
    ranks
        Open the file on several processes alike, before `prefetch(ranks=)` reads it: a process group
        of torch.distributed, or "auto". A rank that cannot open it is an error on all of them, and so
        are other versions of the file.

    Raises
    ------
    SafetensorError
        For what is no such file or has no such tensor, and after the block.
    OSError
        FileNotFoundError and the other errors of the system, as they are.
    """

    @names_arguments
    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str,
        device: Any = "cpu",
        *,
        backend: str = "mmap",
        ranks: Any = None,
    ) -> None:
        together = _ranks_of(ranks, None)
        if together is None:
            self._begin(filename, framework, device, backend)
        else:
            together.open(lambda: self._begin(filename, framework, device, backend))

    def _begin(self, filename: Any, framework: str, device: Any, backend: str) -> penstock.Archive:
        require_text("framework", framework)
        require_backend(backend)
        self._framework = _framework_of(framework, device)
        self._kind = framework
        self._device = device
        self._open: Shards | None
        path = _path_of(filename)
        before = identity(path)
        with translated():
            self._open = Shards(penstock.open(path))
        if backend == "mmap" and self._open.archive.format == "safetensors":
            self._framework.map(path, lambda: before is not None and identity(path) == before)
        return self._open.archive

    @property
    def _shards(self) -> Shards:
        if self._open is None:
            raise SafetensorError("File is closed")
        return self._open

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *args: object) -> None:
        self._open = None

    def keys(self) -> list[str]:
        """The tensors' names, sorted."""
        return sorted(self._shards.entries)

    def offset_keys(self) -> list[str]:
        """The tensors' names in the order in which their bytes lie: the order to read all of them in."""
        return list(self._shards.entries)

    def metadata(self) -> dict[str, str] | None:
        """What the file says about itself; None where it has no place for that, {} where that is empty."""
        return None if self._shards.metadata is None else dict(self._shards.metadata)

    def get_tensor(self, name: str) -> Any:
        """The whole tensor of a name.

        Parameters
        ----------
        name
            One of `keys`.

        Returns
        -------
        torch.Tensor or numpy.ndarray

        Raises
        ------
        SafetensorError
            Where there is no such tensor.
        """
        entry = self._named(name)
        with translated(self._shards.archive.path):
            return self._framework.one(self._shards.archive, entry)

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name."""
        with translated(self._shards.archive.path):
            return self._framework.every(self._shards)

    def get_slice(self, name: str) -> SafeSlice:
        """The tensor of a name, to be indexed before it is read: only the bytes of the part are.

        Parameters
        ----------
        name
            One of `keys`.

        Returns
        -------
        SafeSlice

        Raises
        ------
        SafetensorError
            Where there is no such tensor.
        """
        return SafeSlice(self._named(name), self._framework)

    def get_tensor_meta(self, name: str) -> TensorMeta:
        """What the header says about a tensor; nothing is read.

        Parameters
        ----------
        name
            One of `keys`.

        Returns
        -------
        TensorMeta

        Raises
        ------
        SafetensorError
            Where there is no such tensor.
        """
        entry = self._named(name)
        found = SafeSlice(entry, self._framework)
        begin = self._begins[name]
        return TensorMeta(found.get_dtype(), found.get_shape(), (begin, begin + entry.nbytes))

    @functools.cached_property
    def _begins(self) -> dict[str, int]:
        """Of each tensor its first byte, counted from where the header of its file ends: the data has no gaps."""
        archive = self._shards.archive
        places: dict[str, tuple[str, int]] = {}
        first: dict[str, int] = {}
        for number, name in enumerate(archive.keys()):
            storage, *_, within, _, _, _ = _entry_parts(archive, number)
            _, _, source, begin = _storage_parts(archive, storage)
            places[name] = source, (begin or 0) + within
            first[source] = min(first.get(source, places[name][1]), places[name][1])
        return {name: at - first[source] for name, (source, at) in places.items()}

    @names_arguments
    def prefetch(
        self,
        plan: dict[str, slice | None] | None = None,
        *,
        device: Any = None,
        threads: int = 8,
        ranks: Any = None,
        report: dict[str, Any] | None = None,
    ) -> PrefetchLoader:
        """Begins to load tensors in the background, in the order of the file.

        Parameters
        ----------
        plan
            Which: names, with None for all of a tensor or a slice of its rows. None: all tensors.
        device
            Where they go; by default that of this file. safetensors takes CUDA devices alone.
        threads
            How many tensors are loaded at once.
        ranks
            Read each byte once for several processes that each have a plan of their own, such as whole
            tensors and slices of a rank's own rows: a process group of torch.distributed, or "auto".
            All ranks make the same call with the same file, opened with `ranks` too, and everything is
            read when it returns.
        report
            A dict to fill with how `ranks` have read: "way", "why", and the bytes this rank has read.

        Returns
        -------
        PrefetchLoader

        Raises
        ------
        SafetensorError
            For another framework than torch, and for plans that do not fit the file.
        """
        place = self._device if device is None else device
        if (together := _ranks_of(ranks, report)) is not None:
            return self._prefetched(plan, place, threads, together)
        wanted, framework = self._asked_for(plan, place, threads)
        shards = self._shards

        def read(name: str) -> Any:
            rows = wanted[name]
            with translated(shards.archive.path):
                if rows is None:
                    return framework.one(shards.archive, shards.entries[name])
                return framework.part(shards.entries[name], rows)

        return self._loader(wanted, read, threads)

    def _asked_for(self, plan: Any, place: Any, threads: Any) -> tuple[dict[str, slice | None], Framework]:
        if self._kind not in ("pt", "torch", "pytorch"):
            raise SafetensorError('prefetch is only compatible with framework="pt"')
        if plan is not None and not isinstance(plan, dict):
            raise TypeError(f"argument 'plan': '{type(plan).__name__}' object is not an instance of 'dict'")
        if not hasattr(type(threads), "__index__") or threads < 1:
            raise SafetensorError(f"prefetch reads with at least one thread, not {threads}")
        return self._wanted(plan), _framework_of(self._kind, place)

    def _wanted(self, plan: dict[str, slice | None] | None) -> dict[str, slice | None]:
        wanted: dict[str, slice | None] = {}
        try:
            for name, part in (plan if plan is not None else dict.fromkeys(self._shards.entries)).items():
                wanted[name] = rows_of(part, self._named(name).shape, name)
        except ValueError as error:
            raise SafetensorError(str(error)) from None
        if not wanted:
            raise SafetensorError("prefetch plan selects no tensors")
        return wanted

    def _prefetched(self, plan: Any, place: Any, threads: Any, together: Any) -> PrefetchLoader:
        """What ranks read together."""

        def asked() -> tuple[penstock.Archive, Any, dict[str, slice | None]]:
            wanted, _ = self._asked_for(plan, place, threads)
            return self._shards.archive, place, wanted

        with translated(None if self._open is None else self._open.archive.path):
            read = together.parts(asked)
        return self._loader(read, read.pop, 1)

    def _loader(self, wanted: Collection[str], read: Callable[[str], Any], threads: int) -> PrefetchLoader:
        names = [name for name in self._shards.entries if name in wanted]
        return PrefetchLoader(names, read, threads, lambda text, name: SafetensorError(text, tensor=name or None))

    def _named(self, name: str) -> penstock.LazyTensor:
        if not isinstance(name, str):
            raise TypeError(f"argument 'name': '{type(name).__name__}' is not an instance of 'str'")
        entry = self._shards.entries.get(name)
        if entry is None:
            raise SafetensorError(f"File does not contain tensor {name}", tensor=name)
        return entry


def _ranks_of(ranks: Any, report: Any) -> Any:
    """Who reads together, where somebody does. Only torch's processes have groups."""
    if ranks is None and report is None:
        return None
    return importlib.import_module("penstock.torch.loading._together").together_of(ranks, report)


def _path_of(filename: Any) -> str:
    path = os.fspath(filename)
    if not isinstance(path, str):
        raise TypeError(f"argument 'filename': '{type(path).__name__}' object is not an instance of 'str'")
    return path


def _framework_of(name: str, device: Any) -> Framework:
    """The library's side. Its module is imported here, because only that module needs the library."""
    module = _MODULES.get(name)
    if module is None:
        raise SafetensorError(f"framework {name} is invalid; Penstock has pt (torch, pytorch) and np (numpy)")
    known = isinstance(device, int) and device >= 0
    if not known and device is not None and not re.fullmatch(_DEVICES, str(device)):
        raise SafetensorError(f"device {device} is invalid")
    make: Callable[[Any], Framework] = importlib.import_module(module).Arrays
    return make("cpu" if device is None else device)


_MODULES = dict.fromkeys(("pt", "torch", "pytorch"), "penstock.torch._arrays")
_MODULES.update(dict.fromkeys(("np", "numpy"), "penstock.numpy._arrays"))
_DEVICES = r"cpu|mps|(cuda|npu|xpu|xla|mlu|musa|hpu)(:\d+)?|\d+"


def load_bytes(data: bytes) -> dict[str, penstock.Tensor]:
    """The tensors of a `.safetensors` file that is in memory; each lies in memory of its own."""
    with translated():
        return Shards(bytes_opened(data)).load()


def bytes_opened(data: bytes) -> penstock.Archive:
    """The archive of a file that is in memory. Within `translated`."""
    if not isinstance(data, bytes):
        raise TypeError(f"argument 'bytes': '{type(data).__name__}' object is not an instance of 'bytes'")
    return _open_memory(data, "<bytes>")


def save_to(tensors: dict[str, Any], filename: Any, metadata: dict[str, str] | None) -> None:
    """Writes arrays that have passed their library's checks. TypeError for names and metadata that are no text."""
    path = _path_of(filename)
    _require_texts(tensors, metadata)
    try:
        with translated():
            # As the library itself, it leaves the flush to the system.
            penstock.save(tensors, path, format="safetensors", metadata=metadata, sync=False)
    except (penstock.NotFoundError, penstock.IsDirectoryError, penstock.NotDirectoryError) as error:
        raise _twin(error, SafetensorError) from error


def _require_texts(tensors: dict[str, Any], metadata: dict[str, str] | None) -> None:
    for name in tensors:
        if not isinstance(name, str):
            raise TypeError(f"argument 'tensor_dict': '{type(name).__name__}' object is not an instance of 'str'")
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise TypeError(f"argument 'metadata': '{type(metadata).__name__}' object is not an instance of 'dict'")
        for text in (*metadata, *metadata.values()):
            if not isinstance(text, str):
                raise TypeError(f"argument 'metadata': '{type(text).__name__}' object is not an instance of 'str'")


def save_bytes(tensors: dict[str, Any], metadata: dict[str, str] | None) -> bytes:
    """The bytes of the file that `save_to` writes."""
    _require_texts(tensors, metadata)
    with translated():
        data = _saved(tensors, "<bytes>", "safetensors", None, metadata, None, sys.maxsize)
        assert data is not None  # there is no such large memory
        return data
