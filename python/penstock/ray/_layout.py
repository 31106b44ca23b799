"""What the files of a Ray dataset hold, by their headers: which columns, how many rows, how many bytes.

A column is a tensor of a file, by the keys that lead to it: `{"image": {"left": t}}` has the column `image.left`. What
a row is differs with the kind of file (`DEFAULT_EACH`), and `each` says otherwise.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import penstock
from penstock._files.paths import absolute

PathLike = str | bytes | os.PathLike[Any]

EACH = ("row", "file", "tensor")
# By format: a row is a row of dimension 0 of the file's tensors, or a sample, or the file, or a tensor of it.
DEFAULT_EACH = {"npy": "row", "npz": "row", "tar": "row", "pt": "file", "safetensors": "file"}
PACKED = "penstock.samples"
TAR = "tar"
# The column of a file that is one tensor; Ray's read_numpy calls it so.
ALONE = "data"
IN_ARROW = {
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64)),
}


@dataclass(frozen=True)
class Request:
    """What the caller of `read_tensors` asked for; goes to the workers with each task."""

    each: str | None
    keys: tuple[str, ...] | None = None
    cast: str | dict[str, str] | None = None
    include_paths: bool = False
    # Whether tensors of different numbers of dimensions are in one column, which Arrow has a form for as objects only.
    mixed: bool = False

    def cast_of(self, column: str) -> str | None:
        return self.cast.get(column) if isinstance(self.cast, dict) else self.cast

    def wants(self, column: str) -> bool:
        return self.keys is None or any(column == key or column.startswith(f"{key}.") for key in self.keys)


@dataclass(frozen=True)
class Column:
    """A tensor of a file. `shape` is that of the file's tensor."""

    dtype: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass
class FileLayout:
    """A file, or the folder of a checkpoint."""

    path: str
    each: str
    # Whether its rows are samples: those of a packed shard or of a tar.
    packed: bool
    # Whether a part of its tensors can be read without the rest, which deflated ones cannot.
    sliceable: bool
    # Of each row; for packed samples of which some differ in length, on average.
    rows: int
    nbytes: int
    columns: dict[str, Column] = field(default_factory=dict)
    tar: bool = False


# The type of a column whose values are texts, bytes or what JSON holds.
OBJECT = "object"


def fields_of(sample: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The columns of a sample of a tar: its fields, and tensors in a field by the keys that lead to them."""
    for field_name, value in sample.items():
        leaves = list(flattened(value, field_name)) if isinstance(value, dict) else []
        if leaves and all(isinstance(leaf, penstock.Tensor) for _, leaf in leaves):
            yield from leaves
        else:
            yield field_name, value


def flattened(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested dicts, lists and tuples, by the keys that lead to them, joined with dots."""
    if isinstance(value, dict):
        items: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, (list, tuple)) and not (value and all(isinstance(item, str) for item in value)):
        items = enumerate(value)
    else:
        yield name or ALONE, value
        return
    for key, item in items:
        yield from flattened(item, f"{name}.{key}" if name else str(key))


def expanded(paths: PathLike | Iterable[PathLike]) -> list[str]:
    """The files and checkpoints that the paths name: globs and folders of files are listed, in the order of names."""
    alone = isinstance(paths, (str, bytes, os.PathLike))
    given: list[Any] = [paths] if alone else list(paths)  # type: ignore[arg-type]
    if not given:
        raise ValueError("found no paths, expected one path or more")
    out: list[str] = []
    for path in given:
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise TypeError(f"found a path of type {type(path).__name__}, expected text or an os.PathLike")
        text = absolute(os.fsdecode(path))
        is_listed = os.path.isdir(text) and not _is_checkpoint(text)
        is_glob = glob.has_magic(text) and not os.path.exists(text)
        out += penstock.files(text).paths if is_listed or is_glob else [text]
    return out


def _is_checkpoint(folder: str) -> bool:
    """Whether a folder opens as one: that of torch.distributed.checkpoint, or shards with an index."""
    try:
        penstock.open(folder).close()
    except penstock.IsDirectoryError:
        return False
    return True


def layout_of(path: str, request: Request) -> FileLayout:
    """Reads a file's header. penstock.Error where it cannot, ValueError where it does not go with the request."""
    with penstock.open(path) as archive:
        packed = PACKED in archive.metadata
        is_folder = archive.format not in DEFAULT_EACH or path.endswith(".index.json") or os.path.isdir(path)
        each = request.each or ("row" if packed else "tensor" if is_folder else DEFAULT_EACH[archive.format])
        if each == "row" and (packed or archive.format == TAR):
            return _layout_of_samples(path, request, tar=not packed)
        leaves = dict(_distinct(path, flattened(archive.structure)))
        _require_keys(path, request, leaves)
        chosen = {name: leaf for name, leaf in leaves.items() if request.wants(name)}
        tensors = {name: leaf for name, leaf in chosen.items() if isinstance(leaf, penstock.LazyTensor)}
        columns = {name: _column(path, name, lazy, request) for name, lazy in tensors.items()}
        deflated = archive.format in ("npz", "pt") and any(lazy.offset is None for lazy in tensors.values())
    if each == "row" and len(columns) < len(chosen):
        other = next(name for name in chosen if name not in columns)
        raise ValueError(f'{path}: {other!r} is no tensor; leave it out by keys=, or take each="file"')
    rows = 1 if each == "file" else len(columns) if each == "tensor" else _common_rows(path, columns)
    nbytes = sum(column.nbytes for column in columns.values())
    return FileLayout(path, each, False, not deflated, rows, nbytes, columns)


def _require_keys(path: str, request: Request, names: Iterable[str]) -> None:
    """ValueError for a key, or a column to cast, that the file does not have."""
    named = [*(request.keys or ()), *(request.cast if isinstance(request.cast, dict) else ())]
    for key in named:
        if not any(Request(None, (key,)).wants(name) for name in names):
            raise ValueError(f"{path}: there is no {key!r} among its columns {list(names)[:20]}")


def _distinct(path: str, leaves: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    seen = set()
    for name, leaf in leaves:
        if name in seen:
            raise ValueError(f"{path}: two tensors would be the column {name!r}; take one of them by keys=")
        seen.add(name)
        yield name, leaf


def _layout_of_samples(path: str, request: Request, *, tar: bool) -> FileLayout:
    """Of a packed shard, or of a tar; columns are those of the first sample."""
    samples = penstock.shards([path]) if tar else penstock.packed(path)
    rows = len(samples)
    first = dict(_distinct(path, fields_of(samples[0]) if tar else flattened(samples[0]))) if rows else {}
    if rows:
        _require_keys(path, request, first)
    columns = {}
    for name, value in first.items():
        if not request.wants(name):
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not isinstance(value, penstock.Tensor) and (is_number or not tar):
            value = penstock.tensor(value)
        is_tensor = isinstance(value, penstock.Tensor)
        columns[name] = _column(path, name, value, request) if is_tensor else Column(OBJECT, (), 0)
    size = os.path.getsize(path) if "://" not in path else sum(column.nbytes for column in columns.values()) * rows
    return FileLayout(path, "row", True, True, rows, size, columns, tar=tar)


def _column(path: str, name: str, tensor: penstock.LazyTensor | penstock.Tensor, request: Request) -> Column:
    cast, dtype = request.cast_of(name), tensor.dtype.name
    if cast is not None:
        dtype = penstock.DType(cast).name
    if dtype not in IN_ARROW:
        how = "" if cast else '; cast="float32" converts it'
        raise penstock.UnsupportedError(f"{path}: {name!r}: Arrow, which Ray's blocks are of, has no {dtype}{how}")
    count = 1
    for length in tensor.shape:
        count *= length
    return Column(dtype, tensor.shape, count * penstock.DType(dtype).itemsize)


def _common_rows(path: str, columns: dict[str, Column]) -> int:
    lengths = {name: column.shape[0] if column.shape else None for name, column in columns.items()}
    if len(set(lengths.values())) == 1 and None not in lengths.values():
        return int(next(iter(lengths.values())) or 0)
    shown = ", ".join(f"{name!r} has {length}" for name, length in list(lengths.items())[:4])
    raise ValueError(
        f"{path}: the tensors of a file are read row by row together, and have different numbers of rows: {shown}; "
        'take some of them by keys=, or each="file", or each="tensor"'
    )


def is_mixed(layouts: list[FileLayout]) -> bool:
    """Whether a row is a tensor, and they differ in the number of dimensions."""
    found = {len(column.shape) for file in layouts if file.each == "tensor" for column in file.columns.values()}
    return len(found) > 1


def together(layouts: list[FileLayout]) -> None:
    """ValueError where the files have no columns in common, because their rows would be no dataset."""
    first = layouts[0]
    for one in layouts[1:]:
        if one.each != first.each:
            raise ValueError(
                f"{first.path} has a row for each {first.each}, and {one.path} one for each {one.each}; say each="
            )
        if first.each == "tensor":
            continue
        if one.columns.keys() != first.columns.keys():
            raise ValueError(
                f"{one.path} has {list(one.columns)}, and {first.path} has {list(first.columns)}; take what they share "
                "by keys="
            )
        for name, column in one.columns.items():
            _require_alike(name, (first.path, first.columns[name]), (one.path, column))
    if first.each == "tensor":
        found = [(file.path, name, column) for file in layouts for name, column in file.columns.items()]
        for path, name, column in found[1:]:
            if column.dtype != found[0][2].dtype:
                raise ValueError(
                    f"{path}: {name!r} is {column.dtype}, and {found[0][1]!r} is {found[0][2].dtype}; a column of Ray "
                    "has one type: take some by keys=, or say cast="
                )


def _require_alike(name: str, first: tuple[str, Column], other: tuple[str, Column]) -> None:
    for what, a, b in (
        ("type", first[1].dtype, other[1].dtype),
        ("number of dimensions", len(first[1].shape), len(other[1].shape)),
    ):
        if a != b:
            raise ValueError(
                f"the files disagree on the {what} of {name!r}: {first[0]} has {a}, and {other[0]} has {b}"
                + ("; cast= makes them one" if what == "type" else "")
            )
