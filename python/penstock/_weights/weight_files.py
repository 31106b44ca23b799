"""Which files of a model hold its weights: what engines for inference ask of a folder.

A folder of this machine and a bucket are listed. Of other URLs (`hf://`, `https://`) nothing lists the names, so that
the usual ones are tried.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Iterable, Sequence

import penstock
from penstock._core import _is_in_store, _names_in, _require_all_parts
from penstock._files.paths import absolute

# Each kind's files and index; the first of which there is a file holds the weights.
KINDS = {"safetensors": "*.safetensors", "bin": "*.bin", "pt": "*.pt"}

# Files of trainers, which lie beside weights.
_OF_TRAINING = ("training_args.bin", "optimizer*", "scheduler*", "scaler*", "rng_state*", "random_states*")
_RANKS = "metadata.pkl"  # of torch_checkpointing, whose other files are parts
_USUAL = (".metadata", "model.safetensors.index.json", "model.safetensors", "pytorch_model.bin")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def weight_files(path: str, kinds: Sequence[str] = tuple(KINDS.values()), ignore: Iterable[str] = ()) -> list[str]:
    """The files to read for a model, in their order.

    Parameters
    ----------
    path
        A folder or its URL, or a file, which is the answer then.
    kinds
        Patterns of names; the first that finds a file decides.
    ignore
        Patterns of names below the folder that are left out.

    Returns
    -------
    list
        Paths. A folder of `torch.distributed.checkpoint`, and the index of a sharded model, are one.

    Raises
    ------
    NotFoundError
        Where no weights are there, or files that an index, or the names of others, tell of are missing.
    """
    if path.startswith("file:"):
        path = absolute(path)
    if _URL.match(path):
        return _in_store(path, kinds, ignore) if _is_in_store(path) else _tried(path)
    if not os.path.isdir(path):
        return [path]
    return _chosen(path, sorted(os.listdir(path)), kinds, ignore)


def _in_store(url: str, kinds: Sequence[str], ignore: Iterable[str]) -> list[str]:
    if _is_file(url):
        return [url]
    try:
        names = sorted(_names_in(url))
    except (
        penstock.NotFoundError,
        penstock.PermissionDeniedError,
    ):  # keys that may read need not be those that may list
        return _tried(url)
    return _chosen(url, names, kinds, ignore)


def _is_file(url: str) -> bool:
    name = url.rstrip("/").rpartition("/")[2]
    return not url.endswith("/") and name.endswith((".safetensors", ".bin", ".pt", ".pth", ".json", ".npz"))


def _tried(url: str) -> list[str]:
    if _is_file(url):
        return [url]
    for name in _USUAL:
        whole = f"{url.rstrip('/')}/{name}"
        try:
            penstock.open(whole)
        except penstock.NotFoundError as error:
            if error.path != whole:  # a file that this one names
                raise
            continue
        return [url.rstrip("/") if name == ".metadata" else whole]
    raise _missing(url, f"none of {', '.join(_USUAL)} is there, and such URLs cannot be listed; name the files")


def _chosen(folder: str, names: list[str], kinds: Sequence[str], ignore: Iterable[str]) -> list[str]:
    left_out = list(ignore)
    if ".metadata" in names:
        return [folder]
    if _RANKS in names and _describes_ranks(_joined(folder, _RANKS)):
        return [_joined(folder, _RANKS)]
    for pattern in kinds:
        found = [name for name in fnmatch.filter(names, pattern) if not _is_one_of(name, (*left_out, *_OF_TRAINING))]
        if pattern.endswith(".safetensors"):
            index = _index_of(names, pattern)
            if index is not None:
                return [_joined(folder, index)]
            found = _without_consolidated(found)
        elif found and pattern == KINDS["bin"]:
            found = _of_bin_index(folder, names, found)
        if found:
            _require_all_parts(found, folder)
            return [_joined(folder, name) for name in found]
    shown = ", ".join(kinds)
    raise _missing(folder, f"no weights are there: neither {shown} nor a .metadata; name the folder that has them")


def _describes_ranks(path: str) -> bool:
    try:
        return penstock.open(path).format == "torch_checkpointing"
    except penstock.UnknownFormatError:
        return False


def _index_of(names: list[str], pattern: str) -> str | None:
    """The index for the files of a pattern: what it does not name is no part of the model. "consolidated" is the name
    that Mistral's own format gives the same weights."""
    found = [name for name in names if fnmatch.fnmatch(name, f"{pattern}.index.json")]
    if pattern == KINDS["safetensors"]:
        found = [name for name in found if not name.startswith("consolidated")] or found
    usual = "model.safetensors.index.json"
    return usual if usual in found else found[0] if found else None


def _without_consolidated(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("consolidated")] or names


def _of_bin_index(folder: str, names: list[str], found: list[str]) -> list[str]:
    index = "pytorch_model.bin.index.json"
    usual = fnmatch.filter(found, "pytorch_model*.bin")
    if index not in names or _URL.match(folder):
        return usual or found
    path = os.path.join(folder, index)
    try:
        with open(path, encoding="utf-8") as file:
            named = sorted({str(name) for name in json.load(file)["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"it is no index of a sharded model ({error!r}); fetch it again"
        raise penstock.CorruptError(f"{path}: {message}", message, path) from error
    missing = [name for name in named if name not in names]
    if missing:
        raise _missing(path, f"{len(missing)} of the {len(named)} files of the index are missing: {missing[0]!r}")
    return named


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if _URL.match(folder) else os.path.join(folder, name)


def _missing(path: str, message: str) -> penstock.NotFoundError:
    return penstock.NotFoundError(f"{path}: {message}", message, path)
