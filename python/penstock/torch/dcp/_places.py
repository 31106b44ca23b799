"""Folders of checkpoints: their names, and on what they lie."""

from __future__ import annotations

import os
from typing import Any

from penstock._core import _goes_to_store, _store_schemes
from penstock._core import _is_url as is_url
from penstock.errors import Error, InvalidArgumentError
from penstock.torch.dcp._metadata import failed

__all__ = ["can_be_written", "folder_of", "is_folder", "is_on_network", "is_url", "metadata_path"]

_NETWORK = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs"),
    *("pvfs2", "smb3", "smbfs", "virtiofs", "wekafs"),
}


def is_folder(checkpoint_id: Any) -> bool:
    try:
        name = os.fsdecode(checkpoint_id)
    except TypeError:
        return False
    return "://" not in name or is_url(name)


def can_be_written(checkpoint_id: Any) -> bool:
    if not is_folder(checkpoint_id):
        return False
    try:
        _goes_to_store(checkpoint_id)
    except Error:  # a URL that is only read
        return False
    return True


def folder_of(checkpoint_id: Any) -> str:
    """The folder as text. InvalidArgumentError for other URLs than ours and what is no path."""
    if not is_folder(checkpoint_id):
        stores = _store_schemes("or")
        message = f"a checkpoint is read and written in a folder, or in {stores}, not in {checkpoint_id!r}"
        raise failed(InvalidArgumentError, message)
    return os.fsdecode(checkpoint_id)


def metadata_path(folder: str, rank: int | None = None) -> str:
    return os.path.join(folder, ".metadata" if rank is None else f"__{rank}.metadata")


def is_on_network(folder: str) -> bool:
    """Whether it is a URL, or the folder's file system is one of another machine, as far as the kernel says."""
    if is_url(folder):
        return True
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split() for line in mounts]
    except OSError:
        return False
    kinds = {_unescaped(fields[4]): fields[fields.index("-") + 1] for fields in lines if "-" in fields}
    path = os.path.realpath(folder)
    while path not in kinds and path != os.path.dirname(path):
        path = os.path.dirname(path)
    kind = kinds.get(path, "")
    return kind in _NETWORK or kind.startswith("fuse")


def _unescaped(path: str) -> str:
    for code, text in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, text)
    return path
