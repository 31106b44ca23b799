"""`StorageReader`: `dcp.load` by Penstock."""

from __future__ import annotations

import dataclasses
import os
import pickle
import uuid
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import storage
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from torch.futures import Future

from penstock._core import _open_bytes
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.torch.dcp._complete import require_apart, require_cover, require_filled
from penstock.torch.dcp._metadata import failed, metadata_in
from penstock.torch.dcp._places import folder_of, is_folder, is_on_network, metadata_path
from penstock.torch.dcp._reading import Reading
from penstock.torch.dcp._sharing import Assignment, assign, offer


class StorageReader(storage.StorageReader):
    """Reads a folder of torch.distributed.checkpoint for `dcp.load`, in place of `dcp.FileSystemReader`.

    What a plan wants is read in the order of the files, neighbours together and by several threads,
    straight into the tensors of the state dict where these are contiguous, on the host and of the
    saved dtype; other targets are filled from memory in between, of 64 MiB. Checksums are compared of
    each saved chunk that is read whole, and of each object.

    Each tensor that torch's planner is asked for is filled as a whole, or an error names it: the chunks
    that `.metadata` lists of a tensor must be all of it, each element once.

    Nothing in `.metadata` is run. Objects that are no tensors are given to the planner as torch's
    reader gives them, and torch's planner unpickles them with `weights_only=False`; so they are looked
    through before, and refused if they hold anything that `torch.load(weights_only=True)` would refuse.

    It keeps no file open. Use it from one thread at a time.

    Parameters
    ----------
    path
        The folder, or its URL.
    broadcast
        Whether bytes that several ranks want alike are read by one of them and sent to the others by
        `torch.distributed`: "on", "off", or "auto", which does it for URLs and folders on a network
        file system. All ranks need the same value. The group needs a backend for the host, such as
        gloo; without one, "on" is an error and "auto" is "off".
    process_group
        The group that is given to `dcp.load`.
    verify
        Whether recorded checksums are compared.
    weights_only
        False unpickles `.metadata` and objects as torch's reader does, which runs what they say: for
        files that you trust.

    Raises
    ------
    penstock.InvalidArgumentError
        For another `broadcast`. `dcp.load` raises `CheckpointException`, which holds the penstock.Error
        of each rank that failed: `NotFoundError` for a missing file, `TruncatedError` for a cut one,
        `CorruptError` for a file of another save or ranks that read different checkpoints,
        `ChecksumError`, `UnsafeError`, `UnsupportedError`.

    Examples
    --------
    >>> state = {"model": model.state_dict()}
    >>> dcp.load(state, storage_reader=penstock.torch.dcp.StorageReader("ckpt"))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        broadcast: Literal["auto", "on", "off"] = "auto",
        process_group: dist.ProcessGroup | None = None,
        verify: bool = True,
        weights_only: bool = True,
    ) -> None:
        super().__init__()
        if broadcast not in ("auto", "on", "off"):
            raise failed(InvalidArgumentError, f'broadcast is "auto", "on" or "off", not {broadcast!r}')
        self._folder = folder_of(path)
        self._broadcast = broadcast
        self._group = process_group
        self._verify = verify
        self._weights_only = weights_only
        self._metadata: Metadata | None = None
        self._path = metadata_path(self._folder)
        self._load_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> str:
        """The folder."""
        return self._folder

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it can be the path of a folder, or a URL that can be read."""
        return is_folder(checkpoint_id)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins another load, of another folder if one is given."""
        if checkpoint_id:
            self._folder = folder_of(checkpoint_id)
        self._metadata = None
        self._load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """`.metadata`, or with `rank=` that of a rank which saved by itself. Each rank reads it."""
        path = metadata_path(self._folder, kwargs.get("rank"))
        try:
            file = _open_bytes(path)
        except NotFoundError as error:
            told = "" if error.http_status is None else f" ({error.message})"  # it may be the bucket that is not there
            message = f"there is no such file{told}: the folder is no checkpoint, or saving it did not come to its end"
            if _has_safetensors(self._folder):
                message = (
                    "there is no such file, but the folder has .safetensors: read them with penstock.open or "
                    "penstock.torch.load_into, or with torch's HuggingFaceStorageReader"
                )
            raise failed(NotFoundError, message, path) from None
        metadata = metadata_in(file, path) if self._weights_only else pickle.loads(file.read(0, file.size))
        if kwargs.get("rank") is None:  # a rank that saved by itself has its own chunks alone
            require_cover(metadata, path)
        require_apart(metadata, path)
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self._load_id  # type: ignore[union-attr]
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Takes over what `read_metadata` gave."""
        self._metadata = metadata
        alone = kwargs.get("use_collectives", True) is False
        self._path = metadata_path(self._folder, kwargs.get("rank") if alone else None)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Adds what the coordinator compares among the ranks."""
        return dataclasses.replace(plan, storage_data=offer(plan, self._known(), self._broadcast))

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Checks that the ranks read one checkpoint, and decides who reads what several of them want."""
        return assign(plans, self._known(), self._path, len(plans) > 1 and self._shares(len(plans)))

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads all items of the plan; the future is done."""
        told = plan.storage_data
        assignment = told if isinstance(told, Assignment) else Assignment(0)
        require_filled(plan, planner, self._known(), self._path)
        reading = Reading(plan, planner, self._known(), self._path, verify=self._verify, safe=self._weights_only)
        if assignment.parcels:
            reading.run_shared(assignment, self._group)
        else:
            reading.run()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _known(self) -> Metadata:
        if self._metadata is None:
            raise failed(InvalidArgumentError, "read_metadata and set_up_storage_reader come first", self._path)
        return self._metadata

    def _shares(self, ranks: int) -> bool:
        if self._broadcast == "off":
            return False
        message = ""
        if torch.device("cpu") not in getattr(self._group or dist.group.WORLD, "_device_types", []):
            message = 'sends memory of the host, for which the group has no backend; it needs "cpu:gloo,cuda:nccl"'
        elif ranks != dist.get_world_size(self._group):
            message = f"needs the process group of dcp.load, which has {ranks} ranks; give it as process_group"
        if self._broadcast == "auto":
            return not message and is_on_network(self._folder)
        if message:
            raise failed(InvalidArgumentError, f'broadcast="on" {message}', self._path)
        return True


def _has_safetensors(folder: str) -> bool:
    try:
        return any(name.endswith(".safetensors") for name in os.listdir(folder))
    except OSError:  # a URL, or it is not there
        return False
