"""What a task of Ray does: reads its pieces and gives each as a block.

Files that are alike are read by one call of Penstock's loader, straight into the memory that becomes the block's
columns. Rows of a large file are read as a slice. The files may have changed since their headers were looked at, so
what comes is compared with what was planned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from ray.data.block import Block, BlockAccessor
from ray.data.extensions import ArrowPythonObjectArray

import penstock
from penstock.ray._layout import ALONE, OBJECT, FileLayout, Request, fields_of, flattened
from penstock.ray._pieces import Piece

Columns = dict[str, Any]


def blocks_of(request: Request, pieces: list[Piece]) -> Iterator[Block]:
    """The blocks of some pieces, in order. Runs on a worker; penstock.Error names the file that cannot be read."""
    for piece in pieces:
        columns = _columns_of(request, piece)
        rows = next(len(column) for column in columns.values())
        for begin in range(0, rows, piece.step):
            yield _block({name: column[begin : begin + piece.step] for name, column in columns.items()})


def _block(columns: Columns) -> Block:
    arrays = {name: column for name, column in columns.items() if not isinstance(column, list)}
    block = BlockAccessor.batch_to_block(arrays)
    for name, column in columns.items():
        if isinstance(column, list):
            block = block.append_column(name, ArrowPythonObjectArray.from_objects(column))
    return block


def _columns_of(request: Request, piece: Piece) -> Columns:
    file = piece.files[0]
    if file.each == "tensor":
        columns = _tensors(request, piece)
    elif file.tar:
        columns = _tar_rows(request, piece)
    elif file.packed:
        columns = _packed_rows(request, piece)
    elif len(piece.files) == 1 and file.each == "row":
        columns = _rows(request, piece)
    else:
        columns = _whole_files(request, piece.files)
    _require_planned(piece, columns)
    if request.include_paths:
        counts = [each.rows for each in piece.files] if len(piece.files) > 1 else [piece.rows]
        columns["path"] = np.repeat(np.array([each.path for each in piece.files], object), counts)
    return columns


def _array(tensor: penstock.Tensor, request: Request, name: str) -> np.ndarray[Any, Any]:
    cast = request.cast_of(name)
    out: np.ndarray[Any, Any] = (tensor.to(penstock.DType(cast)) if cast else tensor).numpy()
    return out


def _leaves(path: str) -> dict[str, Any]:
    return dict(flattened(penstock.open(path).structure))


def _lazy(leaves: dict[str, Any], file: FileLayout, name: str) -> Any:
    found = leaves.get(name)
    if not isinstance(found, penstock.LazyTensor):
        raise _changed(file.path, f"there is no tensor {name!r} any more")
    if found.shape != file.columns[name].shape:
        raise _changed(file.path, f"{name!r} had the shape {file.columns[name].shape} and has {found.shape}")
    return found


def _rows(request: Request, piece: Piece) -> Columns:
    file = piece.files[0]
    leaves = _leaves(file.path)
    return {
        name: _array(_lazy(leaves, file, name)[piece.begin : piece.end].load(), request, name) for name in file.columns
    }


def _tensors(request: Request, piece: Piece) -> Columns:
    """A row for each tensor: a list of them where their numbers of dimensions differ, in this block or another."""
    names, shapes, arrays = [], [], []
    for file in piece.files:
        leaves = _leaves(file.path)
        chosen = list(file.columns)[piece.begin : piece.end] if len(piece.files) == 1 else list(file.columns)
        for name in chosen:
            arrays.append(_array(_lazy(leaves, file, name).load(), request, name))
            names.append(name)
            shapes.append(list(file.columns[name].shape))
    return {
        "name": np.array(names, object),
        "shape": _objects(shapes),
        "tensor": arrays if request.mixed else _stacked(arrays),
    }


def _packed_rows(request: Request, piece: Piece) -> Columns:
    file = piece.files[0]
    samples = penstock.packed(file.path)
    if len(samples) != file.rows:
        raise _changed(file.path, f"it had {file.rows} samples and has {len(samples)}")
    try:
        stacked = dict(flattened(samples[piece.begin : piece.end]))
    except penstock.ShapeMismatchError:  # samples of different lengths
        each = [dict(flattened(samples[i])) for i in range(piece.begin, piece.end)]
        stacked = {name: [one[name] for one in each] for name in each[0]}
    return {name: _column(stacked[name], request, name) for name in file.columns}


def _tar_rows(request: Request, piece: Piece) -> Columns:
    file = piece.files[0]
    samples = penstock.shards([file.path], None if request.keys is None else _fields_wanted(file))
    if len(samples) != file.rows:
        raise _changed(file.path, f"it had {file.rows} samples and has {len(samples)}")
    each = [dict(fields_of(samples[i])) for i in range(piece.begin, piece.end)]
    columns: Columns = {}
    for name, column in file.columns.items():
        missing = next((i for i, sample in enumerate(each) if name not in sample), None)
        if missing is not None:
            raise penstock.KeyNotFoundError(*_missing(file.path, piece.begin + missing, name, each[missing]))
        values = [sample[name] for sample in each]
        if column.dtype == OBJECT:
            columns[name] = _objects(values)
        elif isinstance(values[0], penstock.Tensor):
            columns[name] = _stacked([_array(tensor, request, name) for tensor in values])
        else:
            columns[name] = np.array(values, column.dtype)
    return columns


def _fields_wanted(file: FileLayout) -> list[str]:
    """The fields of a tar that these columns lie in."""
    first = penstock.shards([file.path])[0]
    return [name for name in first if any(column == name or column.startswith(f"{name}.") for column in file.columns)]


def _missing(path: str, row: int, name: str, sample: Columns) -> tuple[str, str, str]:
    found = list(sample)[:20]
    message = f"sample {row} has no {name!r}, which the first one has; it has {found}: take what all have by keys="
    return f"{path}: {message}", message, path


def _whole_files(request: Request, files: list[FileLayout]) -> Columns:
    """All of some files that are alike, as one batch of a loader."""
    batch = _batch([file.path for file in files], files[0].columns, request)
    columns: Columns = {}
    for name, value in batch.items():
        if not request.wants(name):
            continue
        column = _column(value, request, name)
        if files[0].each == "row":
            alike = isinstance(column, np.ndarray) and column.dtype != object
            column = column.reshape(-1, *column.shape[2:]) if alike else np.concatenate(list(column))
        columns[name] = column
    return columns


def _batch(paths: list[str], columns: Columns, request: Request) -> Columns:
    keys = None if request.keys is None or ALONE in columns else _top_keys(paths[0], request)
    dataset = penstock.files(paths, keys=keys)
    for collate in (penstock.stack(), penstock.ragged()):
        try:
            with penstock.DataLoader(dataset, len(paths), num_workers=0, collate=collate) as loader:
                return dict(flattened(next(iter(loader))))
        except penstock.ShapeMismatchError:
            continue
    raise AssertionError("ragged takes every shape")


def _top_keys(path: str, request: Request) -> list[str]:
    content = penstock.open(path).structure
    tops = content.items() if isinstance(content, dict) else ()
    return [key for key, value in tops if any(request.wants(name) for name, _ in flattened(value, str(key)))]


def _column(value: Any, request: Request, name: str) -> Any:
    if isinstance(value, penstock.Tensor):
        return _array(value, request, name)
    if value and isinstance(value[0], penstock.Tensor):
        return _stacked([_array(tensor, request, name) for tensor in value])
    return _objects(value)


def _stacked(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    return _objects(arrays)


def _objects(values: Any) -> np.ndarray[Any, Any]:
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def _require_planned(piece: Piece, columns: Columns) -> None:
    where = piece.files[0].path + (f" and {len(piece.files) - 1} more" if len(piece.files) > 1 else "")
    planned = {"name", "shape", "tensor"} if piece.files[0].each == "tensor" else set(piece.files[0].columns)
    for name, column in columns.items():
        if len(column) != piece.rows:
            raise _changed(where, f"{name!r} had {piece.rows} rows and has {len(column)}")
        if isinstance(column, list):
            continue
        dtype = getattr(piece.files[0].columns.get(name), "dtype", None)
        found = column.dtype if column.dtype != object or not isinstance(column[0], np.ndarray) else column[0].dtype
        if dtype is not None and str(found) != dtype:
            raise _changed(where, f"{name!r} had the type {dtype} and has {found}")
    if missing := planned - columns.keys():
        raise _changed(where, f"there is no {sorted(missing)[0]!r} any more")


def _changed(where: str, what: str) -> penstock.ChangedError:
    message = f"the file changed since the dataset was made: {what}; make the dataset again"
    return penstock.ChangedError(f"{where}: {message}", message, os.fspath(where))
