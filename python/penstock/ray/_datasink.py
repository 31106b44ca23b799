"""A dataset of Ray as a folder of tensor files, whole or not at all.

Each task writes files of its own into a folder beside the one that was asked for, under names that nobody else uses, so
that a task that is started again cannot meet what a dead worker left. When all tasks are done, the driver gives the
files their names, drops what no task said it wrote, and renames the folder. Until then there is nothing under its name.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from ray.data import Dataset, Datasink
from ray.data.block import Block, BlockAccessor

import penstock
from penstock._core import _goes_to_store
from penstock.ray._layout import ALONE, PACKED

__all__ = ["TensorDatasink", "write_tensors"]

EXTENSIONS = {"packed": ".safetensors", "safetensors": ".safetensors", "npz": ".npz", "npy": ".npy", "pt": ".pt"}


class Written(NamedTuple):
    """A file of a task."""

    task: int
    name: str
    nbytes: int


class TensorDatasink(Datasink[list[Written]]):
    """Where `write_tensors` writes, for `ray.data.Dataset.write_datasink`. One object writes one dataset."""

    def __init__(
        self, folder: str | bytes | os.PathLike[Any], *, format: str = "packed", rows_per_file: int | None = None
    ) -> None:
        if format not in EXTENSIONS:
            raise ValueError(f"found format={format!r}, expected one of {sorted(EXTENSIONS)}")
        if rows_per_file is not None and (isinstance(rows_per_file, bool) or rows_per_file < 1):
            raise ValueError(f"found rows_per_file={rows_per_file!r}, expected 1 or more")
        if _goes_to_store(folder):
            message = (
                "files are written to a folder that all nodes share, and not to a URL; name one, and copy it there"
            )
            raise penstock.UnsupportedError(message, message, os.fsdecode(folder))
        self._folder = os.path.abspath(os.fsdecode(folder))
        self._format = format
        self._rows = rows_per_file
        parent, name = os.path.split(self._folder)
        self._temporary = os.path.join(parent, f".{name}.{uuid.uuid4().hex[:12]}")
        self._require_free()

    @property
    def min_rows_per_write(self) -> int | None:
        return self._rows

    def get_name(self) -> str:
        return "Tensors"

    def on_write_start(self, schema: pa.Schema | None = None) -> None:
        os.mkdir(self._temporary)

    def write(self, blocks: Iterable[Block], ctx: Any) -> list[Written]:
        tables = [table for block in blocks if (table := BlockAccessor.for_block(block).to_arrow()).num_rows]
        if not tables:
            return []
        names = tables[0].column_names
        columns = {name: _column(name, [table.column(name) for table in tables]) for name in names}
        name = uuid.uuid4().hex + EXTENSIONS[self._format]
        path = os.path.join(self._temporary, name)
        try:
            _save(columns, path, self._format)
        except penstock.NotFoundError as error:
            message = f"this node does not see {self._temporary}; all nodes need to share the folder that is written to"
            raise penstock.NotFoundError(message, message, self._temporary) from error
        return [Written(ctx.task_idx, name, os.path.getsize(path))]

    def on_write_complete(self, write_result: Any) -> None:
        written = sorted(Written(*file) for task in write_result.write_returns for file in task)
        if not written:
            raise ValueError(f"the dataset has no rows, so that there is nothing to write to {self._folder}")
        self._require_there(written)
        for name in set(os.listdir(self._temporary)) - {file.name for file in written}:
            os.unlink(os.path.join(self._temporary, name))
        digits = max(5, len(str(len(written) - 1)))
        for i, file in enumerate(written):
            place = os.path.join(self._temporary, f"{i:0{digits}d}{EXTENSIONS[self._format]}")
            os.rename(os.path.join(self._temporary, file.name), place)
        self._require_free()
        os.rename(self._temporary, self._folder)

    def on_write_failed(self, error: BaseException) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _require_free(self) -> None:
        if os.path.lexists(self._folder) and not (os.path.isdir(self._folder) and not os.listdir(self._folder)):
            message = "the path exists and is not an empty folder; name a new folder or an empty one"
            raise penstock.InvalidArgumentError(f"{self._folder}: {message}", message, self._folder)
        parent = os.path.dirname(self._folder)
        if not os.path.isdir(parent):
            message = f"there is no folder {parent} to write into; make it first"
            raise penstock.NotFoundError(f"{self._folder}: {message}", message, self._folder)

    def _require_there(self, written: list[Written]) -> None:
        for file in written:
            path = os.path.join(self._temporary, file.name)
            if not os.path.exists(path) or os.path.getsize(path) != file.nbytes:
                message = (
                    "a worker wrote this file, and this process does not see it; all nodes need to share the folder"
                )
                raise penstock.NotFoundError(f"{path}: {message}", message, path)


def _column(name: str, parts: list[pa.ChunkedArray]) -> np.ndarray[Any, Any]:
    """The values of a column; an array of objects where rows differ in shape. UnsupportedError for no tensors."""
    arrays: list[np.ndarray[Any, Any]] = []
    for part in parts:
        if part.null_count:
            raise penstock.UnsupportedError(f"column {name!r} has rows without a value, for which tensors have no form")
        for chunk in part.chunks:
            is_tensor = isinstance(chunk, pa.ExtensionArray) and hasattr(chunk.type, "shape")
            if not is_tensor and not pa.types.is_primitive(chunk.type):
                raise penstock.UnsupportedError(
                    f"column {name!r} is of {chunk.type}, which is no tensor; leave it out by drop_columns"
                )
            arrays.append(BlockAccessor.for_block(pa.table({name: chunk})).to_numpy([name])[name])
    shapes = {row.shape for array in arrays for row in (array if array.dtype == object else array[:1])}
    if len(shapes) == 1:
        return np.concatenate([np.stack(list(array)) if array.dtype == object else array for array in arrays])
    rows = [row for array in arrays for row in array]
    out = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def _save(columns: dict[str, np.ndarray[Any, Any]], path: str, format: str) -> None:
    if format == "packed":
        arrays, form = _packed(columns)
        penstock.save(arrays, path, metadata={PACKED: json.dumps(form)})
        return
    ragged = next((name for name, column in columns.items() if column.dtype == object), None)
    if ragged is not None:
        raise penstock.UnsupportedError(f'rows of column {ragged!r} have several shapes; format="packed" takes them')
    tensors = {name: penstock.asarray(column) for name, column in columns.items()}
    if format != "npy":
        penstock.save(tensors, path)
    elif len(tensors) == 1:
        penstock.save(next(iter(tensors.values())), path)
    else:
        raise penstock.UnsupportedError(
            f'an .npy has one array, and the dataset has {list(columns)}; take format="npz"'
        )


def _packed(columns: dict[str, np.ndarray[Any, Any]]) -> tuple[dict[str, penstock.Tensor], Any]:
    """The arrays of a shard, and how samples lie in them; docs/formats/packed.md."""
    arrays: dict[str, penstock.Tensor] = {}
    form: dict[str, dict[str, str]] = {}
    for name, column in columns.items():
        form[name] = {"values": name}
        if column.dtype == object:
            if len({(row.ndim, row.shape[1:]) for row in column}) > 1 or column[0].ndim == 0:
                raise penstock.UnsupportedError(f"rows of column {name!r} differ in more than their first dimension")
            offsets = f"{name}.offsets"
            while offsets in columns:
                offsets += "_"
            form[name]["offsets"] = offsets
            arrays[offsets] = penstock.asarray(np.cumsum([0, *map(len, column)]).astype(np.int64))
            column = np.concatenate(list(column))
        arrays[name] = penstock.asarray(column)
    alone = list(form) == [ALONE]
    return arrays, form[ALONE] if alone else {"dict": [[name, part] for name, part in form.items()]}


def write_tensors(
    dataset: Dataset,
    folder: str | bytes | os.PathLike[Any],
    *,
    format: str = "packed",
    rows_per_file: int | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
) -> None:
    """Writes a dataset of Ray as a folder of tensor files, whole or not at all.

        penstock.ray.write_tensors(ds, "packed")        # penstock.packed("packed"), or read_tensors

    The folder appears when all tasks are done. A task that fails, or a worker that dies, leaves nothing in it, and an
    error of the whole leaves no folder.

    Parameters
    ----------
    dataset
        Its columns are tensors and numbers.
    folder
        Must not exist, or be empty. All nodes need to share it.
    format
        "packed": samples packed into `.safetensors`, also of several lengths, as penstock.pack writes them. "npz",
        "safetensors", "pt": the columns of some rows in each file; "npy": the one column.
    rows_per_file
        At least so many rows in a file but the last. Without it, each block becomes a file.
    concurrency, ray_remote_args
        What `ray.data.Dataset.write_datasink` takes.

    Raises
    ------
    penstock.Error
        For columns that the format does not take, and where the folder cannot be written; also behind Ray's own error
        of a task.
    """
    sink = TensorDatasink(folder, format=format, rows_per_file=rows_per_file)
    try:
        dataset.write_datasink(sink, concurrency=concurrency, ray_remote_args=ray_remote_args)
    except BaseException as error:  # Ray tells the sink of its own errors, and not of Ctrl-C
        sink.on_write_failed(error)
        raise
