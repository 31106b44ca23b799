"""`.metadata` as torch's own objects, of which nothing is run.

`.metadata` is a pickle, and a pickle can call anything and ask for any memory. It is read by Penstock's own machine, as
`.pt` is. The objects in it become records, which are checked and put into torch's classes. So no name in the file is
imported, and no function of it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import Any, NoReturn, TypeVar

import torch
from torch.distributed.checkpoint import metadata as tm

from penstock._core import _unpickled
from penstock._text import abbreviated
from penstock.errors import CorruptError, Error, LimitError, TruncatedError, UnsafeError, _within
from penstock.torch._private import StorageInfo

T = TypeVar("T")

_FIRST = 16 << 20  # bytes; nearly every `.metadata` has fewer
_LONGEST_TEXT = 32 << 20

_OF_METADATA = "torch.distributed.checkpoint.metadata."
_MEMORY_FORMAT = f"{_OF_METADATA}_MEM_FORMAT_ENCODING"
_RECORDS = frozenset(
    (
        *(f"{_OF_METADATA}{name}" for name in ("Metadata", "TensorStorageMetadata", "BytesStorageMetadata")),
        *(f"{_OF_METADATA}{name}" for name in ("ChunkStorageMetadata", "MetadataIndex", "TensorProperties")),
        f"{_OF_METADATA}StorageMeta",
        "torch.distributed.checkpoint.filesystem._StorageInfo",
        *(f"{module}.{name}" for module in ("pathlib", "pathlib._local") for name in ("PosixPath", "WindowsPath")),
    )
)
_LAYOUTS = {str(layout): layout for layout in vars(torch).values() if isinstance(layout, torch.layout)}
_MEMORY_FORMATS = (torch.contiguous_format, torch.channels_last, torch.preserve_format)
# The first releases of Python 3.11, Debian 12's among them, pickle a member of an enumeration as a call of getattr.
_MEMORY_FORMATS_BY_NAME = [
    (_MEMORY_FORMAT, name) for name in ("TORCH_CONTIGUOUS_FORMAT", "TORCH_CHANNELS_LAST", "TORCH_PRESERVE_FORMAT")
]


def failed(
    kind: type[Error],
    message: str,
    path: str | None = None,
    tensor: str | None = None,
    offset: int | None = None,
) -> Error:
    """An error whose text says where."""
    return _within(kind(message, message, None, offset), path, tensor)


class _Record:
    """What a pickle says of an object."""

    def __init__(self, kind: str, arguments: Any, state: Any) -> None:
        self.kind = kind
        self.arguments = arguments
        self.state = {} if state is None else state


def _made(name: str, arguments: Any, state: Any, begun: Any) -> Any:
    """The object of that name; one that contains itself is none of these."""
    if state is ...:
        return None
    if arguments is None and (name in _LAYOUTS or name == _MEMORY_FORMAT):
        return name
    if arguments is not None:
        if name in _RECORDS:
            return _Record(name.rpartition(".")[2], arguments, state)
        if name == "torch.Size":
            return arguments
        if name == "torch.dtype":
            return vars(torch).get(arguments[0])  # getattr would import modules by that name
        if name == _MEMORY_FORMAT and len(arguments) == 1:
            return arguments[0]
        if name == "builtins.getattr" and arguments in _MEMORY_FORMATS_BY_NAME:
            return _MEMORY_FORMATS_BY_NAME.index(arguments)
    raise UnsafeError(
        f"it names {abbreviated(name)}, which is no part of the description of a checkpoint; nothing was run. If you "
        "trust the file, read it with StorageReader(..., weights_only=False)"
    )


def metadata_of(data: bytes, path: str) -> tm.Metadata:
    """The `Metadata` that torch's reader would give.

    CorruptError where it is none, UnsafeError where it has objects of other classes.
    """
    try:
        return _Reading(path).metadata(_unpickled(data, _made))
    except TruncatedError as error:
        raise failed(CorruptError, f"it ends too early ({error.message}); copy it again", path) from error
    except Error as error:
        raise _within(error, path, None) from error.__cause__
    except (RecursionError, MemoryError):
        raise failed(CorruptError, "it is nested without end or larger than memory", path) from None
    except Exception as error:  # whatever an unpickler raises for bytes that are no pickle
        raise failed(CorruptError, f"it is no description of a checkpoint ({error}); copy it again", path) from error


def metadata_in(file: Any, path: str) -> tm.Metadata:
    """As `metadata_of`, of an open file. It is read as far as the pickle goes, so that memory is not filled with what a
    file only claims to have."""
    wanted = _FIRST
    while True:
        data = file.read(0, min(wanted, file.size))
        try:
            return metadata_of(data, path)
        except CorruptError as error:
            early = error.__cause__
            if len(data) == file.size or not isinstance(early, TruncatedError):
                raise
            if len(data) - (early.offset or 0) >= _LONGEST_TEXT:
                raise failed(LimitError, "a text in it is longer than any name", path, None, early.offset) from None
        wanted *= 4


class _Reading:
    """Puts records into torch's classes."""

    def __init__(self, path: str) -> None:
        self._path = path

    def _refuse(self, what: str, found: object) -> NoReturn:
        kind = found.kind if isinstance(found, _Record) else type(found).__name__
        raise failed(CorruptError, f"{what} is of type {kind}: it is damaged; copy it again", self._path)

    def _record(self, found: object, kind: str) -> dict[str, Any]:
        if not isinstance(found, _Record) or found.kind != kind or not isinstance(found.state, dict):
            self._refuse(f"what should be {kind}", found)
        return found.state

    def _typed(self, found: object, kind: type[T], what: str) -> T:
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            self._refuse(what, found)
        return found

    def metadata(self, found: object) -> tm.Metadata:
        state = self._record(found, "Metadata")
        items = self._typed(state.get("state_dict_metadata"), dict, "state_dict_metadata")
        places = self._typed(state.get("storage_data"), dict, "storage_data")
        version = state.get("version")
        return tm.Metadata(
            state_dict_metadata={self._typed(k, str, "a name"): self._item(v) for k, v in items.items()},
            planner_data=self._plain(state.get("planner_data")),
            storage_data={self._index(key): self._place(value) for key, value in places.items()},
            storage_meta=self._meta(state.get("storage_meta")),
            version=None if version is None else self._typed(version, str, "version"),
        )

    def _item(self, found: object) -> tm.STORAGE_TYPES:
        if isinstance(found, _Record) and found.kind == "BytesStorageMetadata":
            return tm.BytesStorageMetadata()
        state = self._record(found, "TensorStorageMetadata")
        chunks = self._typed(state.get("chunks"), list, "chunks")
        return tm.TensorStorageMetadata(
            properties=self._properties(state.get("properties")),
            size=self._size(state.get("size")),
            chunks=[self._chunk(self._record(chunk, "ChunkStorageMetadata")) for chunk in chunks],
        )

    def _chunk(self, state: dict[str, Any]) -> tm.ChunkStorageMetadata:
        return tm.ChunkStorageMetadata(self._size(state.get("offsets")), self._size(state.get("sizes")))

    def _properties(self, found: object) -> tm.TensorProperties:
        state = getattr(found, "state", None) if isinstance(found, _Record) else None
        if not isinstance(state, tuple) or len(state) != 5:
            self._refuse("what should be TensorProperties", found)
        dtype, layout, requires_grad, memory_format, pinned = state
        return tm.TensorProperties(
            dtype=self._typed(dtype, torch.dtype, "a dtype"),
            layout=_LAYOUTS[self._typed(layout, str, "a layout")],
            requires_grad=self._typed(requires_grad, bool, "requires_grad"),
            memory_format=_MEMORY_FORMATS[self._typed(memory_format, int, "a memory format")],
            pin_memory=self._typed(pinned, bool, "pin_memory"),
        )

    def _size(self, found: object) -> torch.Size:
        sizes = self._typed(found, tuple, "a shape")
        if not all(type(size) is int and 0 <= size < 1 << 63 for size in sizes):
            raise failed(CorruptError, f"{sizes} is no shape: it is damaged; copy it again", self._path)
        return torch.Size(sizes)

    def _index(self, found: object) -> tm.MetadataIndex:
        state = self._record(found, "MetadataIndex")
        offset, index = state.get("offset"), state.get("index")
        return tm.MetadataIndex(
            self._typed(state.get("fqn"), str, "a name"),
            None if offset is None else self._size(offset),
            None if index is None else self._typed(index, int, "an index"),
        )

    def _place(self, found: object) -> StorageInfo:
        state = self._record(found, "_StorageInfo")
        transforms = state.get("transform_descriptors")
        offset, length = (self._typed(state.get(name), int, name) for name in ("offset", "length"))
        if offset < 0 or length < 0 or offset + length >= 1 << 63:
            raise failed(CorruptError, f"{length} bytes at {offset} are no place in a file; copy it again", self._path)
        return StorageInfo(
            self._typed(state.get("relative_path"), str, "the name of a file"),
            offset,
            length,
            None if transforms is None else [self._typed(t, str, "a transform") for t in transforms],
        )

    def _meta(self, found: object) -> tm.StorageMeta | None:
        if found is None:
            return None
        state = self._record(found, "StorageMeta")
        ids = {name: self._plain(state.get(name)) for name in ("checkpoint_id", "save_id", "load_id")}
        return tm.StorageMeta(**ids, modules=self._plain(state.get("modules", [])))

    def _plain(self, found: Any) -> Any:
        """The same data, or CorruptError for what is more than data."""
        if found is None or isinstance(found, (bool, int, float, str, bytes)):
            return found
        if isinstance(found, dict):
            return {self._plain(key): self._plain(value) for key, value in found.items()}
        if isinstance(found, (list, tuple)):
            return type(found)(map(self._plain, found))
        make: dict[str, Callable[..., Any]] = {"PosixPath": Path, "WindowsPath": PureWindowsPath}
        if isinstance(found, _Record) and found.kind in make:
            return make[found.kind](*(self._typed(part, str, "part of a path") for part in found.arguments))
        self._refuse("what the planner kept", found)
