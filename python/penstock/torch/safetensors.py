"""`safetensors.torch`, and `safe_open`, read and written by Penstock: the same names, arguments, results and errors.

    from penstock.torch.safetensors import load_file, safe_open, save_file

    with safe_open("model.safetensors", framework="pt", device="cuda") as f:
        rows = f.get_slice("embedding")[:128]

Tensors are torch's own over memory that Penstock read into. Every path may also be that of a sharded model's
`*.safetensors.index.json`.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from penstock._core import _entry_parts, _storage_parts
from penstock._weights.prefetch import PrefetchLoader, TensorMeta
from penstock._weights.safetensors import (
    CODES,
    SafetensorError,
    bytes_opened,
    require_backend,
    safe_open,
    save_bytes,
    save_to,
    translated,
)
from penstock._weights.shards import Shards
from penstock._wrong_argument import names_arguments
from penstock.torch._arrays import Arrays
from penstock.torch._devices import present
from penstock.torch._memory import require_memory
from penstock.torch._shared import duplicate_names, shared_names
from penstock.torch.loading._checkpoint import load_archive
from penstock.torch.loading._opening import opened_by_all
from penstock.torch.loading._ranks import telling
from penstock.torch.loading._together import kind_of_place, together_of

__all__ = [
    "PrefetchLoader",
    "SafetensorError",
    "TensorMeta",
    "load",
    "load_file",
    "load_model",
    "safe_open",
    "save",
    "save_file",
    "save_model",
]

Path = str | os.PathLike[str]


@names_arguments
def load_file(
    filename: Path, device: str | int = "cpu", *, backend: str = "mmap", shared: bool = False, ranks: Any = None
) -> dict[str, torch.Tensor]:
    """All tensors of a file by name, in the order of their bytes.

    Parameters
    ----------
    filename
        A `.safetensors`, or the `*.safetensors.index.json` of a sharded model.
    device
        Where the tensors go: "cpu", "cuda:1", the number of a device.
    backend
        "mmap" or "pread", as for `safe_open`. With `shared` and `ranks` the file is read in any case.
    shared
        Read into one block of host memory that other processes map too, as `penstock.torch.load` does.
    ranks
        Read the file once for several processes, as `penstock.torch.load` does: a process group of
        torch.distributed, or "auto".

    Returns
    -------
    dict

    Raises
    ------
    SafetensorError
        For what is no such file.
    """
    if shared or ranks is not None:
        require_backend(backend)
        return _load_together(filename, device, shared, ranks)
    with safe_open(filename, "pt", device, backend=backend) as file:
        return file.get_tensors()


def _load_together(filename: Path, device: str | int, shared: bool, ranks: Any) -> dict[str, torch.Tensor]:
    with telling(ranks):
        place = present(device)
        together = together_of(ranks, shared=shared, alike=kind_of_place(place, ranks))
    with translated(os.fspath(filename)), opened_by_all(filename, None, None, together, verify=True) as archive:
        names = list(Shards(archive).entries)
        loaded = load_archive(archive, place, together=together)
        return {name: loaded[name] for name in names}


def load(data: bytes) -> dict[str, torch.Tensor]:
    """All tensors of a file's bytes by name.

    Parameters
    ----------
    data
        The content of a `.safetensors`. The tensors do not share its memory.

    Returns
    -------
    dict

    Raises
    ------
    SafetensorError
        For what is no such content.
    """
    with translated():
        archive = bytes_opened(data)
        if archive.format != "safetensors":
            arrays = Arrays("cpu")
            return {name: arrays.whole(tensor, name) for name, tensor in Shards(archive).load().items()}
        parts = []
        for number, name in enumerate(archive.keys()):
            storage, dtype, shape, *_ = _entry_parts(archive, number)
            size, _, _, begin = _storage_parts(archive, storage)
            parts.append((begin or 0, size, number, name, dtype, shape))
        parts.sort()
        whole = memoryview(data)
        return {
            name: _copied(whole[begin : begin + size], _DTYPES[dtype], shape)
            if size > 0 and dtype in _DTYPES
            else Arrays("cpu").whole(archive[name].load(), name)
            for begin, size, _, name, dtype, shape in parts
        }


def _copied(data: memoryview, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """In memory of Python's, which its allocator keeps for the next tensor. Ours goes back to the system."""
    flat = torch.frombuffer(bytearray(data), dtype=dtype)
    return flat if len(shape) == 1 else flat.view(shape)


# Those whose elements are whole bytes, of which torch makes tensors as they lie.
_DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8")
}


@names_arguments
def save_file(tensors: dict[str, torch.Tensor], filename: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes dense, contiguous tensors that share no memory; the file appears whole or not at all.

    Parameters
    ----------
    tensors
        Tensors by name. Those on other devices are written as they are in host memory.
    filename
        The path.
    metadata
        Text by text, kept in the file's header.

    Raises
    ------
    ValueError
        For tensors that are sparse or not contiguous, and for those without memory (freed, fake).
    RuntimeError
        For tensors that share memory; `save_model` leaves duplicates out.
    KeyError
        For dtypes that the format has not.
    TypeError
        For metadata that is no text.
    """
    save_to(_checked(tensors), filename, metadata)


def save(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that `save_file` writes.

    Parameters
    ----------
    tensors
        Tensors by name.
    metadata
        Text by text, kept in the header.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        For tensors that are sparse or not contiguous, and for those without memory (freed, fake).
    RuntimeError
        For tensors that share memory; `save_model` leaves duplicates out.
    KeyError
        For dtypes that the format has not.
    TypeError
        For metadata that is no text.
    """
    return save_bytes(_checked(tensors), metadata)


@names_arguments
def save_model(
    model: torch.nn.Module, filename: Path, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Writes a module's tensors, each memory once.

    Parameters
    ----------
    model
        The module. Of tensors that share memory one is written.
    filename
        The path.
    metadata
        Text by text, kept in the header; the names of tensors that were left out are added, each with
        the name under which its memory was written.
    force_contiguous
        Make contiguous copies of tensors that are not.

    Raises
    ------
    ValueError
        For tensors that are sparse, that are not contiguous (without `force_contiguous`) or whose
        memory is not there.
    """
    state: dict[str, torch.Tensor] = model.state_dict()
    require_memory(state.items(), wrappers=False)
    notes = dict(metadata or {})
    for kept, dropped in duplicate_names(state).items():
        for name in dropped:
            notes.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(state, filename, notes if notes or metadata is not None else None)
    except ValueError as error:
        if force_contiguous:
            raise
        raise ValueError(f"{error}; or use save_model(..., force_contiguous=True)") from error


@names_arguments
def load_model(
    model: torch.nn.Module, filename: Path, strict: bool = True, device: str | int = "cpu", *, backend: str = "mmap"
) -> tuple[set[str], list[str]]:
    """Loads what `save_model` wrote into a module.

    Parameters
    ----------
    model
        The module, whose tensors are filled.
    filename
        A `.safetensors`, or the `*.safetensors.index.json` of a sharded model.
    strict
        Whether missing and unexpected names are an error.
    device
        Where the file's tensors are read to before they are copied.
    backend
        "mmap" or "pread", as for `safe_open`.

    Returns
    -------
    tuple
        The set of missing names, and the list of unexpected ones.

    Raises
    ------
    RuntimeError
        With `strict`, for names that are missing or unexpected; for shapes that differ.
    SafetensorError
        For what is no such file.
    """
    loaded = load_file(filename, device, backend=backend)
    state: dict[str, torch.Tensor] = model.state_dict()
    require_memory(state.items())
    duplicates = duplicate_names(state, preferred=set(loaded))
    result = model.load_state_dict(loaded, strict=False)
    missing, unexpected = set(result.missing_keys), list(result.unexpected_keys)
    for name in (name for dropped in duplicates.values() for name in dropped):
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for title, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                listed = ", ".join(f'"{name}"' for name in sorted(names))
                lines.append(f"    {title} key(s) in state_dict: {listed}")
        raise RuntimeError("\n".join(lines))
    return missing, unexpected


def _checked(tensors: Any) -> dict[str, torch.Tensor]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    sparse = [name for name, tensor in tensors.items() if tensor.layout != torch.strided]
    if sparse:
        raise ValueError(
            f"You are trying to save a sparse tensors: `{sparse}` which the format does not hold; `.to_dense()` makes "
            "dense ones of them, which may take much more room"
        )
    require_memory(tensors.items(), wrappers=False)
    shared = [sorted(names) for names in shared_names(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, so that each would be written on its own and come back apart: {shared}. "
            "Use `save_model`, or clone() those that are to be separate"
        )
    return {name: _plain(name, tensor) for name, tensor in tensors.items()}


def _plain(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values in memory of the CPU, without gradient."""
    if not tensor.is_contiguous():
        raise ValueError(
            f"You are trying to save a non contiguous tensor: `{name}` which is not allowed; call `.contiguous()` on "
            "it, or save the full tensor that it is a part of and slice that when loading"
        )
    if tensor.is_meta:
        raise NotImplementedError(f"Cannot copy out of meta tensor `{name}`; no data!")
    if tensor.dtype not in _WRITTEN:
        raise KeyError(tensor.dtype)
    if type(tensor) is not torch.Tensor or tensor.requires_grad:
        tensor = tensor.detach()
    return (tensor if tensor.is_cpu else tensor.cpu()).resolve_conj().resolve_neg()


_WRITTEN = {dtype for name, dtype in vars(torch).items() if isinstance(dtype, torch.dtype) and name in CODES}
