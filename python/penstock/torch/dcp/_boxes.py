"""The bytes of a plan's items, read from their files: what is beneath StorageReader.read_data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import ReadItem

from penstock._core import Archive, _dcp_open, _dcp_read
from penstock.errors import CorruptError, UnsupportedError
from penstock.torch._private import StorageInfo
from penstock.torch.dcp._metadata import failed


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
    return tensor.detach().as_strided((tensor.numel(),), (1,)).view(torch.uint8)


class Boxes:
    """The streams of some items, opened: their indexes are read and compared with `.metadata`."""

    def __init__(self, items: Sequence[ReadItem], metadata: Metadata, path: str, verify: bool) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._metadata, self._path = metadata, path
        streams: list[tuple[str, int, int, str, str, Sequence[int]]] = []
        for item in items:
            place = place_of(item, metadata, path)
            if self._numbers.setdefault((place.relative_path, place.offset), len(streams)) == len(streams):
                name = item.storage_index.fqn
                streams.append((place.relative_path, place.offset, place.length, name, *self._said(item)))
        self._archive: Archive | None = _dcp_open(path, streams, verify) if streams else None

    def _said(self, item: ReadItem) -> tuple[str, Sequence[int]]:
        """The dtype and shape that `.metadata` has for the item's chunk."""
        name, offset, hint = item.storage_index.fqn, item.storage_index.offset, item.storage_index.index
        dtype = saved_dtype(item, self._metadata, self._path)
        described = self._metadata.state_dict_metadata[name]
        assert isinstance(described, TensorStorageMetadata)
        likely = described.chunks[hint : hint + 1] if hint is not None and hint >= 0 else []
        chunk = next((c for c in (*likely, *described.chunks) if offset is None or c.offsets == offset), None)
        if chunk is None:
            message = f"it does not say what the chunk at {offset} is; copy the checkpoint again"
            raise failed(CorruptError, message, self._path, name)
        return str(dtype).removeprefix("torch."), tuple(chunk.sizes)

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
