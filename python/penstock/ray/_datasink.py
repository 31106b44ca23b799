"""A dataset of Ray as a folder of tensor files, whole or not at all: what tasks write, and where (_places.py)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from ray.data import Dataset, Datasink
from ray.data.block import Block, BlockAccessor

import penstock
from penstock.ray._layout import ALONE, PACKED
from penstock.ray._places import Written, place_at

EXTENSIONS = {"packed": ".safetensors", "safetensors": ".safetensors", "npz": ".npz", "npy": ".npy", "pt": ".pt"}


class TensorDatasink(Datasink[list[Written]]):
    """Where `write_tensors` writes, for `ray.data.Dataset.write_datasink`. One object writes one dataset."""

    def __init__(
        self, folder: str | bytes | os.PathLike[Any], *, format: str = "packed", rows_per_file: int | None = None
    ) -> None:
        if format not in EXTENSIONS:
            raise ValueError(f"found format={format!r}, expected one of {sorted(EXTENSIONS)}")
        if rows_per_file is not None and (isinstance(rows_per_file, bool) or rows_per_file < 1):
            raise ValueError(f"found rows_per_file={rows_per_file!r}, expected 1 or more")
        self._format = format
        self._rows = rows_per_file
        self._place = place_at(os.fsdecode(folder), EXTENSIONS[format])
        self._place.require_free()

    @property
    def min_rows_per_write(self) -> int | None:
        return self._rows

    def get_name(self) -> str:
        return "Tensors"

    def on_write_start(self, schema: pa.Schema | None = None) -> None:
        self._place.begin()

    def write(self, blocks: Iterable[Block], ctx: Any) -> list[Written]:
        tables = [table for block in blocks if (table := BlockAccessor.for_block(block).to_arrow()).num_rows]
        if not tables:
            return []
        names = tables[0].column_names
        columns = {name: _column(name, [table.column(name) for table in tables]) for name in names}
        return [self._place.write(*_content(columns, self._format), ctx.task_idx)]

    def on_write_complete(self, write_result: Any) -> None:
        written = sorted(Written(*file) for task in write_result.write_returns for file in task)
        if not written:
            raise ValueError(f"the dataset has no rows, so that there is nothing to write to {self._place.name}")
        self._place.complete(written)

    def on_write_failed(self, error: BaseException) -> None:
        self._place.drop()


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


def _content(columns: dict[str, np.ndarray[Any, Any]], format: str) -> tuple[Any, dict[str, str] | None]:
    """What a file holds, and its metadata."""
    if format == "packed":
        arrays, form = _packed(columns)
        return arrays, {PACKED: json.dumps(form)}
    ragged = next((name for name, column in columns.items() if column.dtype == object), None)
    if ragged is not None:
        raise penstock.UnsupportedError(f'rows of column {ragged!r} have several shapes; format="packed" takes them')
    tensors = {name: penstock.asarray(column) for name, column in columns.items()}
    if format != "npy":
        return tensors, None
    if len(tensors) != 1:
        raise penstock.UnsupportedError(
            f'an .npy has one array, and the dataset has {list(columns)}; take format="npz"'
        )
    return next(iter(tensors.values())), None


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
    error of the whole leaves no folder. In a store (`s3://`, `gs://`, `az://`) tasks send parts of objects, and the
    driver has all objects appear at the end, one right after the other.

    Parameters
    ----------
    dataset
        Its columns are tensors and numbers.
    folder
        Must not exist, or be empty. All nodes need to share it; or its URL in a store.
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
