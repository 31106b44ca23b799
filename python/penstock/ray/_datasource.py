"""Tensor files as a dataset of Ray."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Iterable
from typing import Any

import ray
from ray.data import Dataset, Datasource, ReadTask
from ray.data.block import BlockMetadata
from ray.data.context import DataContext

import penstock
from penstock.ray._layout import EACH, Request, expanded, is_mixed, layout_of, together
from penstock.ray._pieces import Piece, pieces_of, tasks_of
from penstock.ray._read import blocks_of

_BLOCK = 128 << 20
# A task costs Ray some milliseconds, in which this much is read.
_WORTH_A_TASK = 8 << 20


class TensorDatasource(Datasource):
    """Tensor files for `ray.data.read_datasource`; `read_tensors` takes the same arguments and reads them.

    The headers of all files are read when it is made, by the process that makes it: sizes and rows are exact, and files
    that do not go together are refused before a task is started. 10,000 headers take 0.3 s.
    """

    def __init__(
        self,
        paths: Any,
        *,
        each: str | None = None,
        keys: str | Iterable[str] | None = None,
        cast: str | dict[str, str] | None = None,
        include_paths: bool = False,
    ) -> None:
        super().__init__()
        if each is not None and each not in EACH:
            raise ValueError(f"found each={each!r}, expected one of {EACH}")
        for dtype in cast.values() if isinstance(cast, dict) else [cast] if cast is not None else []:
            penstock.DType(dtype)
        chosen = None if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
        request = Request(each, chosen, cast, include_paths)
        self._layouts = [layout_of(path, request) for path in expanded(paths)]
        together(self._layouts)
        if include_paths and any("path" in file.columns for file in self._layouts):
            raise ValueError("the files have a column 'path' themselves; leave out include_paths")
        self._request = dataclasses.replace(request, mixed=is_mixed(self._layouts))

    def estimate_inmemory_data_size(self) -> int:
        return sum(file.nbytes for file in self._layouts)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: DataContext | None = None
    ) -> list[ReadTask]:
        context = data_context or DataContext.get_current()
        wanted = math.ceil(self.estimate_inmemory_data_size() / max(1, parallelism))
        pieces = list(pieces_of(self._layouts, max(1, min(context.target_max_block_size or _BLOCK, wanted))))
        return [self._task(task, per_task_row_limit) for task in tasks_of(pieces, parallelism)]

    def _task(self, pieces: list[Piece], row_limit: int | None) -> ReadTask:
        rows = sum(piece.rows for piece in pieces)
        metadata = BlockMetadata(
            num_rows=rows if row_limit is None else min(rows, row_limit),
            size_bytes=sum(piece.nbytes for piece in pieces),
            input_files=[file.path for piece in pieces for file in piece.files],
            exec_stats=None,
        )
        read = functools.partial(blocks_of, self._request, pieces)
        return ReadTask(read, metadata, per_task_row_limit=row_limit)

    def get_name(self) -> str:
        return "Tensors"


def read_tensors(
    paths: str | bytes | os.PathLike[Any] | Iterable[str | bytes | os.PathLike[Any]],
    *,
    each: str | None = None,
    keys: str | Iterable[str] | None = None,
    cast: str | dict[str, str] | None = None,
    include_paths: bool = False,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
) -> Dataset:
    """Tensor files as a dataset of Ray: `.npy`, `.npz`, `.pt`, `.safetensors`, tar shards, packed shards, and folders
    of torch.distributed.checkpoint.

        ds = penstock.ray.read_tensors("train/*.npy")        # column "data", a row for each row of each file

    All files need the same columns, of one type and one number of dimensions. Blocks stay within Ray's
    `target_max_block_size`, also those of files that are larger. A worker that dies costs its tasks, which Ray starts
    again elsewhere.

    Parameters
    ----------
    paths
        A file, a folder, a glob, or a list of them. All nodes need to see them under the same path.
    each
        What a row of the dataset is. "row": a row of dimension 0 of all tensors of a file, or a sample of a shard,
        which `.npy`, `.npz`, tars and packed samples get by default. Fields of a tar that are texts, bytes or JSON are
        columns of objects. "file": a file, with a column for each tensor and number in it; the default of
        `.pt` and `.safetensors`. "tensor": a tensor, with the columns `name`, `shape` and `tensor`; the default of
        checkpoint folders, whose numbers and texts are left out. Tensors of different numbers of dimensions are objects
        to Arrow and are copied once more.
    keys
        Take only these columns, and those below them: "image" takes "image.left" too.
    cast
        The type that tensors get, or a dict of types by column. Needed for what Arrow has no type for, such as
        bfloat16.
    include_paths
        Adds a column `path`.
    override_num_blocks
        How many blocks there are. Without it, two for each processor of the cluster, and more where they would be
        larger than Ray wants them.
    concurrency, ray_remote_args
        What `ray.data.read_datasource` takes.

    Returns
    -------
    ray.data.Dataset
        Rows in the order of the files, where Ray keeps orders (`execution_options.preserve_order`).

    Raises
    ------
    penstock.Error
        For a file that cannot be read; it names the file. Of a file that is damaged after its header, the task
        raises it.
    ValueError
        For files that do not go together. It names both.
    """
    source = TensorDatasource(paths, each=each, keys=keys, cast=cast, include_paths=include_paths)
    return ray.data.read_datasource(
        source,
        override_num_blocks=override_num_blocks or _blocks_for(source.estimate_inmemory_data_size()),
        concurrency=concurrency,
        ray_remote_args=ray_remote_args,
    )


def _blocks_for(nbytes: int) -> int:
    if not ray.is_initialized():
        ray.init()
    processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
    most = DataContext.get_current().target_max_block_size or _BLOCK
    return max(1, math.ceil(nbytes / most), min(2 * processors, math.ceil(nbytes / _WORTH_A_TASK)))
