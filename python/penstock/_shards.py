"""The tensors of one `.safetensors` file, or of all that a `*.safetensors.index.json` names."""

from __future__ import annotations

import json
import os
from typing import Any, NoReturn

import penstock

__all__ = ["Shards", "open_shards"]


class Shards:
    """Opened files as one mapping: `entries` by name, in the order of files and of offsets in them."""

    def __init__(self, archives: list[penstock.Archive], metadata: dict[str, str] | None = None) -> None:
        self._archives = archives
        self.metadata = dict(archives[0].metadata) if metadata is None else metadata
        self.entries: dict[str, penstock.Entry] = {}
        for archive in archives:
            if archive.format != "safetensors":
                raise penstock.UnknownFormatError(
                    f"{archive.path}: found a {archive.format} file, expected safetensors; load it with penstock.load",
                    path=archive.path,
                )
            entries = [archive[name] for name in archive]
            entries.sort(key=lambda entry: (entry.offset or 0, entry.nbytes))
            self.entries.update((entry.name, entry) for entry in entries)

    def load(self) -> dict[str, penstock.Tensor]:
        """All tensors, file by file, each file read in one go."""
        loaded: dict[str, penstock.Tensor] = {}
        for archive in self._archives:
            loaded.update(archive.load())
        return {name: loaded[name] for name in self.entries}


def open_shards(path: str) -> Shards:
    """CorruptError for an index that does not fit its files; UnsafeError for one that names files elsewhere."""
    if not path.endswith(".index.json"):
        return Shards([penstock.open(path)])
    files, metadata = _read_index(path)
    folder = os.path.dirname(path)
    archives = {file: penstock.open(os.path.join(folder, file)) for file in dict.fromkeys(files.values())}
    for name, file in files.items():
        if name not in archives[file]:
            _refuse(path, f"the index says that {file} holds {name!r}, but it does not; fetch the files again", name)
    shards = Shards(list(archives.values()), metadata)
    for name in shards.entries:
        if name not in files:
            _refuse(path, f"the files hold {name!r}, which the index does not name; fetch the files again", name)
    return shards


def _read_index(path: str) -> tuple[dict[str, str], dict[str, str]]:
    """What lies in which file, and the metadata as text. Only plain names of files in the index's own folder."""
    try:
        with open(path, encoding="utf-8") as file:
            index: Any = json.load(file)
    except FileNotFoundError as error:
        raise penstock.NotFoundError(f"{path}: no such file", "no such file", path) from error
    except (ValueError, RecursionError) as error:
        _refuse(path, f"the index is no JSON ({error}); fetch it again")
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict) or not files or not all(isinstance(file, str) for file in files.values()):
        _refuse(path, "found no weight_map from names of tensors to names of files; fetch the index again")
    for file in files.values():
        if file in {"", ".", ".."} or "/" in file or "\\" in file or "\0" in file:
            message = f"the index names {file!r}, expected a plain name of a file in its own folder"
            raise penstock.UnsafeError(f"{path}: {message}", message, path)
    said = index.get("metadata")
    items = said.items() if isinstance(said, dict) else ()
    return files, {name: value if isinstance(value, str) else json.dumps(value) for name, value in items}


def _refuse(path: str, message: str, tensor: str | None = None) -> NoReturn:
    raise penstock.CorruptError(f"{path}: {message}", message, path, tensor=tensor)
