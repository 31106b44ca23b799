"""`StorageWriter`: `dcp.save` and `dcp.async_save`, whole or not at all.

A checkpoint is what `.metadata` names. So a save writes files of new names, each of which appears when it is complete,
and the coordinator puts `.metadata` in place last, in one step. Up to then an earlier checkpoint
in the folder is untouched and loads; behind it the new one does. Files that no `.metadata` names any more are removed
after that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pickle
import re
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.distributed.checkpoint import storage
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from penstock._pool import Pool
from penstock.errors import Error, InvalidArgumentError, UnsupportedError
from penstock.torch._private import StorageInfo
from penstock.torch.dcp._folders import folder_at
from penstock.torch.dcp._metadata import failed
from penstock.torch.dcp._objects import require_readable
from penstock.torch.dcp._places import can_be_written, folder_of, metadata_path

_VERSION = "1.0.0"  # of the format, as torch counts it
_save = torch.save  # as it is now: programs put penstock.torch.save in its place


class StorageWriter(storage.StorageWriter, BlockingAsyncStager):
    """Writes a folder of torch.distributed.checkpoint for `dcp.save` and `dcp.async_save`, here or in a store.

    The folder is that of `dcp.FileSystemWriter`: torch's reader, ours and `penstock.open` read it. It
    becomes the new checkpoint in one step at the end of the save. A save that fails or is killed
    leaves an earlier checkpoint in it as it was; what it leaves behind is removed by the next one.

    Use it from one thread at a time. It may be given to `async_save` again when the save before is done.

    Parameters
    ----------
    path
        The folder, which is made where it is missing, or a URL (`s3://`, `gs://`, `az://`). All ranks need the same.
    single_file_per_rank
        False writes a file for each tensor.
    sync_files
        Whether files are on the disk, and not only with the operating system, when the save is done.
    thread_count
        How many files each rank writes at once.
    overwrite
        Whether a checkpoint that is there is replaced; otherwise it is an error.
    weights_only
        Whether objects are refused that StorageReader would not read, with what to do. False writes
        them, for readers with `weights_only=False`.

    Raises
    ------
    penstock.InvalidArgumentError
        For a URL of another kind or a `thread_count` below 1; UnsupportedError for http(s) and hf.
        `dcp.save` raises `CheckpointException`, which holds the error of each rank that failed: a
        penstock.Error that names the file.

    Examples
    --------
    >>> dcp.save(state, storage_writer=penstock.torch.dcp.StorageWriter("ckpt"))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        overwrite: bool = True,
        weights_only: bool = True,
    ) -> None:
        BlockingAsyncStager.__init__(self)
        if thread_count < 1:
            raise failed(InvalidArgumentError, f"thread_count is {thread_count}, and a file needs a thread")
        self._folder = folder_of(path)
        self._place = folder_at(self._folder, sync_files)
        self._single = single_file_per_rank
        self._sync = sync_files
        self._threads = thread_count
        self._overwrite = overwrite
        self._weights_only = weights_only
        self._save_id = str(uuid.uuid4())
        self._rank: int | None = None  # of ranks that save each for itself

    @property
    def checkpoint_id(self) -> str:
        """The folder."""
        return self._folder

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it can be the path of a folder, or a URL of a store."""
        return can_be_written(checkpoint_id)

    def storage_meta(self) -> StorageMeta:
        """What is kept in `.metadata` about this save."""
        return StorageMeta(checkpoint_id=self._folder, save_id=self._save_id)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins another save, into another folder if one is given."""
        if checkpoint_id:
            self._folder = folder_of(checkpoint_id)
            self._place = folder_at(self._folder, self._sync)
        self._save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Takes over whether each rank saves for itself."""
        self._rank = kwargs.get("rank") if kwargs.get("use_collectives", True) is False else None

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Makes the folder and looks for a checkpoint that is there."""
        place = self._place
        place.make()
        path = metadata_path(self._folder, self._rank)
        if not self._overwrite and os.path.basename(path) in place.names():
            message = "the folder has a checkpoint already; save into another one, or with overwrite=True"
            raise failed(InvalidArgumentError, message, path)
        if self._rank is None:
            return plan
        return dataclasses.replace(plan, storage_data=self._rank)

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Tells each rank its number, which its files are called by."""
        if self._rank is not None:
            return plans
        return [dataclasses.replace(plan, storage_data=rank) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes what the plan says; the future is done."""
        if not isinstance(plan.storage_data, int):
            message = "the planner has dropped the plan's storage_data; change plans by dataclasses.replace"
            raise failed(InvalidArgumentError, message, self._folder)
        bins = _split(plan.items, self._threads) if self._single else [[item] for item in plan.items]
        files = list(zip(self._names(plan.storage_data, len(bins)), bins, strict=True))
        results: list[WriteResult] = []
        written: list[str] = []
        try:
            with Pool(self._threads, thread_name_prefix="penstock-save") as threads:
                try:
                    write = functools.partial(self._write, planner=planner)
                    for (name, _), found in zip(files, threads.map(write, files), strict=True):
                        written.append(name)
                        results += found
                except BaseException:
                    self._place.cancel()  # the threads of the other files, which the block waits for
                    raise
        except BaseException:
            for name in written:
                with contextlib.suppress(OSError, Error):
                    self._place.remove(name)
            raise
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Makes what was written the folder's checkpoint."""
        metadata.version = _VERSION
        metadata.storage_data = {result.index: result.storage_data for rank in results for result in rank}
        metadata.storage_meta = self.storage_meta()
        path = metadata_path(self._folder, self._rank)
        with self._place.writing(os.path.basename(path)) as file:
            pickle.dump(metadata, file)
        self._remove_others({place.relative_path for place in metadata.storage_data.values()})

    def _names(self, rank: int, count: int) -> Iterator[str]:
        """Names of files that are not there."""
        taken = set(self._place.names())
        number = 0
        for _ in range(count):
            while f"__{rank}_{number}.distcp" in taken:
                number += 1
            yield f"__{rank}_{number}.distcp"
            number += 1

    def _write(self, told: tuple[str, list[WriteItem]], planner: SavePlanner) -> list[WriteResult]:
        name, items = told
        path = os.path.join(self._folder, name)
        out = []
        with self._place.writing(name) as file:
            for item in sorted(items, key=lambda item: item.type != WriteItemType.BYTE_IO):
                begin = file.tell()
                _write_item(file, item, planner.resolve_data(item), path, safe=self._weights_only)
                length = file.tell() - begin
                out.append(WriteResult(item.index, length, StorageInfo(name, begin, length)))
        return out

    def _remove_others(self, used: set[str]) -> None:
        """Removes files of earlier saves."""
        mine = r"__\d+_\d+\.distcp" if self._rank is None else rf"__{self._rank}_\d+\.distcp"
        # The last two are of processes that were killed: temporary files where a file system has none without names.
        earlier = re.compile(rf"{mine}|\.{mine}\.[a-z2-7]{{8}}\.tmp|\.{mine}\.[0-9a-f-]+\.partial")
        # The new checkpoint is there, so the save has not failed, whatever fails here.
        try:
            names = [name for name in self._place.names() if earlier.fullmatch(name) and name not in used]
        except Error as error:
            warnings.warn(f"files of earlier saves could not be removed: {error}", stacklevel=2)
            return
        for name in names:
            try:
                self._place.remove(name)
            except (OSError, Error) as error:
                warnings.warn(f"{name} of an earlier save could not be removed: {error}", stacklevel=2)


def _split(items: list[WriteItem], count: int) -> list[list[WriteItem]]:
    """Items for `count` files of about one size."""
    bins: list[list[WriteItem]] = [[] for _ in range(count)]
    sizes = [0] * count
    for nbytes, number in sorted(((_nbytes(item), -i) for i, item in enumerate(items)), reverse=True):
        at = sizes.index(min(sizes))
        bins[at].append(items[-number])
        sizes[at] += nbytes
    return [some for some in bins if some]


def _nbytes(item: WriteItem) -> int:
    data = item.tensor_data
    return 1 if data is None else data.chunk.sizes.numel() * data.properties.dtype.itemsize


def _write_item(file: Any, item: WriteItem, data: Any, path: str, *, safe: bool) -> None:
    if item.type == WriteItemType.BYTE_IO:
        if safe:
            require_readable(data.getvalue(), path, item.index.fqn)
        file.write(data.getbuffer())
        return
    if not isinstance(data, torch.Tensor) or data.layout != torch.strided:
        message = "only dense tensors can be saved in chunks; save it as an object of its own"
        raise failed(UnsupportedError, message, path, item.index.fqn)
    if data.is_meta:
        message = "it has no values: it lies on torch's meta device; make it with `to_empty` and fill it"
        raise failed(UnsupportedError, message, path, item.index.fqn)
    tensor = data.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.untyped_storage().nbytes() != tensor.nbytes:
        tensor = tensor.clone()
    _save(tensor, file)
