"""The bytes of a plan's items, read from their files: what is beneath StorageReader.read_data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import ReadItem

from penstock._core import Archive, _Bytes, _dcp_check, _dcp_open, _dcp_path, _dcp_read, _entry_parts, _open_bytes
from penstock.errors import CorruptError, NotFoundError, TruncatedError, UnsupportedError
from penstock.torch._private import StorageInfo
from penstock.torch.dcp._metadata import failed

__all__ = ["Boxes", "as_bytes", "is_direct", "place_of", "read_object", "saved_dtype"]

_ZIP_BEGIN = b"PK"
_ZIP_END = 22  # bytes of the record that ends what torch.save writes
_ADVICE = "the file and .metadata are not of one save: copy both again"


def place_of(item: ReadItem, metadata: Metadata, path: str) -> StorageInfo:
    """Where the stream lies that an item wants. CorruptError, UnsupportedError."""
    name = item.storage_index.fqn
    place = metadata.storage_data.get(item.storage_index)
    if not isinstance(place, StorageInfo):
        message = f"it does not say where the chunk at {item.storage_index.offset} lies; copy the checkpoint again"
        raise failed(CorruptError, message, path, name)
    if place.transform_descriptors:
        message = (
            f"its bytes were transformed ({', '.join(place.transform_descriptors)}) when they were written; load them "
            "with torch's FileSystemReader"
        )
        raise failed(UnsupportedError, message, path, name)
    return place


def read_object(place: StorageInfo, path: str, name: str, files: dict[str, _Bytes], verify: bool) -> bytes:
    """The stream of an object that is no tensor. `files` keeps what was opened. `verify`: its recorded checksums are
    compared."""
    file = _dcp_path(path, place.relative_path)
    if not file:
        message = f"the file '{place.relative_path}' beside it is missing; copy it from where the checkpoint was saved"
        raise failed(NotFoundError, message, path, name)
    opened = files.get(file)
    if opened is None:
        opened = files[file] = _open_bytes(file)
    if place.offset + place.length > opened.size:
        message = f"it should take {place.length} bytes here, and the file ends before; {_ADVICE}"
        raise failed(TruncatedError, message, file, name, place.offset)
    stream = opened.read(place.offset, place.length)
    if _is_zip(stream):
        if verify:
            _dcp_check(stream, file, name, place.offset)
    elif stream.startswith(_ZIP_BEGIN):
        message = "another stream lies where .metadata says: its file is of another save, or damaged; copy both again"
        raise failed(CorruptError, message, file, name, place.offset)
    return stream


def _is_zip(stream: bytes) -> bool:
    """Whether it begins and ends as what torch.save writes."""
    return stream.startswith(_ZIP_BEGIN) and stream[-_ZIP_END:].startswith(b"PK\x05\x06")


def saved_dtype(item: ReadItem, metadata: Metadata, path: str) -> torch.dtype:
    described = metadata.state_dict_metadata.get(item.storage_index.fqn)
    if isinstance(described, TensorStorageMetadata):
        return described.properties.dtype
    message = "a tensor is wanted where the checkpoint has another object; the state dict and it do not fit"
    raise failed(CorruptError, message, path, item.storage_index.fqn)


def is_direct(target: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether the bytes of a file are those of the target's memory."""
    return (
        target.device.type == "cpu"
        and target.layout == torch.strided
        and target.dtype == dtype
        and target.is_contiguous()
        and not target.is_conj()
        and not target.is_neg()
    )


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor."""
    return tensor.detach().reshape(-1).view(torch.uint8)


class Boxes:
    """The streams of some items, opened: their indexes are read and compared with `.metadata`."""

    def __init__(self, items: Sequence[ReadItem], metadata: Metadata, path: str, verify: bool) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        streams: list[tuple[str, int, int, str]] = []
        first: list[ReadItem] = []
        for item in items:
            place = place_of(item, metadata, path)
            if self._numbers.setdefault((place.relative_path, place.offset), len(streams)) == len(streams):
                streams.append((place.relative_path, place.offset, place.length, item.storage_index.fqn))
                first.append(item)
        self._archive: Archive | None = _dcp_open(path, streams, verify) if streams else None
        self._metadata = metadata
        self._path = path
        for number, item in enumerate(first):
            self._require_as_said(number, item)

    def _require_as_said(self, number: int, item: ReadItem) -> None:
        assert self._archive is not None
        _, dtype, shape, *_ = _entry_parts(self._archive, number)
        name, offset, hint = item.storage_index.fqn, item.storage_index.offset, item.storage_index.index
        said = saved_dtype(item, self._metadata, self._path)
        described = self._metadata.state_dict_metadata[name]
        assert isinstance(described, TensorStorageMetadata)
        likely = described.chunks[hint : hint + 1] if hint is not None and hint >= 0 else []
        chunk = next((c for c in (*likely, *described.chunks) if offset is None or c.offsets == offset), None)
        expected = None if chunk is None else tuple(chunk.sizes)
        if dtype == str(said).removeprefix("torch.") and tuple(shape) == expected:
            return
        place = place_of(item, self._metadata, self._path)
        message = f"a chunk is of {dtype} and shape {shape}, where .metadata says {said} and {expected}; {_ADVICE}"
        raise failed(CorruptError, message, _dcp_path(self._path, place.relative_path), name, place.offset)

    def read(self, wanted: Sequence[tuple[ReadItem, torch.Tensor]]) -> None:
        """Fills contiguous tensors of the host, of the saved dtypes, by one pass through the files."""
        boxes: list[tuple[int, Sequence[int], Sequence[int], Any]] = []
        for item, tensor in wanted:
            place = place_of(item, self._metadata, self._path)
            number = self._numbers[place.relative_path, place.offset]
            if tensor.numel():
                boxes.append((number, item.storage_offsets, item.lengths, as_bytes(tensor)))
        if boxes:
            assert self._archive is not None
            _dcp_read(self._archive, boxes)
