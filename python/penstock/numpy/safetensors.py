"""`safetensors.numpy`, and `safe_open`, read and written by Penstock: the same names, arguments, results and errors.

Every path may also be that of a sharded model's `*.safetensors.index.json`. Arrays lie in memory of their own.
bfloat16 and float8 need the package ml_dtypes; TypeError without it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from penstock._weights.safetensors import CODES, SafetensorError, load_bytes, safe_open, save_bytes, save_to
from penstock._wrong_argument import names_arguments
from penstock.numpy._arrays import Array, Arrays

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]

Path = str | os.PathLike[str]


@names_arguments
def load_file(filename: Path, *, backend: str = "mmap") -> dict[str, Array]:
    """All arrays of a file by name, in the order of their bytes.

    Parameters
    ----------
    filename
        A `.safetensors`, or the `*.safetensors.index.json` of a sharded model.
    backend
        "mmap" or "pread", as for `safe_open`.

    Returns
    -------
    dict
        Arrays in memory of their own. bfloat16 and float8 need the package ml_dtypes.

    Raises
    ------
    SafetensorError
        For what is no such file.
    TypeError
        For bfloat16 and float8 without ml_dtypes.
    """
    with safe_open(filename, "np", backend=backend) as file:
        return file.get_tensors()


def load(data: bytes) -> dict[str, Array]:
    """All arrays of a file's bytes by name.

    Parameters
    ----------
    data
        The content of a `.safetensors`. The arrays do not share its memory.

    Returns
    -------
    dict

    Raises
    ------
    SafetensorError
        For what is no such content.
    """
    arrays = Arrays("cpu")
    return {name: arrays.whole(tensor, name) for name, tensor in load_bytes(data).items()}


@names_arguments
def save_file(tensor_dict: dict[str, Array], filename: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes arrays, in native byte order and C order; the file appears whole or not at all.

    Parameters
    ----------
    tensor_dict
        Arrays by name. Those that share memory are each written in full.
    filename
        The path.
    metadata
        Text by text, kept in the file's header.

    Raises
    ------
    SafetensorError
        For dtypes that the format has not.
    TypeError
        For metadata that is no text.
    """
    save_to(_checked(tensor_dict), filename, metadata)


def save(tensor_dict: dict[str, Array], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that `save_file` writes.

    Parameters
    ----------
    tensor_dict
        Arrays by name. Those that share memory are each written in full.
    metadata
        Text by text, kept in the header.

    Returns
    -------
    bytes

    Raises
    ------
    SafetensorError
        For dtypes that the format has not.
    TypeError
        For metadata that is no text.
    """
    return save_bytes(_checked(tensor_dict), metadata)


def _checked(tensors: dict[str, Any]) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for name, array in tensors.items():
        if array.dtype.name not in CODES:
            raise SafetensorError(f'Unknown dtype "{array.dtype.name}". Supported dtypes: {", ".join(CODES)}')
        out[name] = np.require(array, requirements="C")
    return _apart(out)


def _apart(arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays, copied where they overlap one before them in memory: a file of arrays holds each by itself."""
    begins = {name: array.__array_interface__["data"][0] for name, array in arrays.items() if array.nbytes}
    reached = 0
    for name in sorted(begins, key=begins.__getitem__):
        end = begins[name] + arrays[name].nbytes
        if begins[name] < reached:
            arrays[name] = arrays[name].copy()
        reached = max(reached, end)
    return arrays
