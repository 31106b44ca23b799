"""Files that torch.load reads, written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import IO, Any

import torch

import penstock
from penstock._core import _save_with

__all__ = ["save"]


def save(obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Writes a `.pt` that `torch.load` reads and finds equal, with shared storages shared.

    Takes tensors, parameters, state dicts and nested dicts, lists, tuples and sets of them with numbers, strings,
    sizes, dtypes and devices. A file at a path appears whole or not at all. Tensors on other devices are
    written as they are in host memory; attributes that were set on tensors are not written. UnsupportedError or
    DTypeMismatchError names what torch.load(weights_only=True) would not read back, such as an object of a class of
    one's own, and what only torch.save writes: quantized, nested and
    meta tensors, and layouts.
    """
    if isinstance(f, (str, os.PathLike)):
        _write(obj, os.fspath(f))
        return
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        path = os.path.join(folder, "x.pt")
        _write(obj, path)
        with open(path, "rb") as written:
            shutil.copyfileobj(written, f, 1 << 20)


def _write(obj: Any, path: str) -> None:
    _save_with(obj, path, _described)


def _described(obj: Any) -> Any:
    """An object that only torch has, as what a `.pt` calls it: a tensor with a type name, or penstock.Opaque."""
    if isinstance(obj, torch.nn.Parameter) and type(obj) is torch.nn.Parameter:
        return (_plain(obj.detach()), "torch.nn.parameter.Parameter", obj.requires_grad)
    if isinstance(obj, torch.Tensor):
        return _tensor(obj)
    if isinstance(obj, torch.device):
        index = () if obj.index is None else (obj.index,)
        return penstock.Opaque("torch.device", (obj.type, *index))
    return None


def _tensor(tensor: torch.Tensor) -> Any:
    if tensor.layout == torch.sparse_coo:
        return penstock.Opaque(
            "torch.sparse_coo_tensor",
            (tensor._indices(), tensor._values(), torch.Size(tensor.shape), tensor.is_coalesced()),
        )
    if tensor.layout in {torch.sparse_csr, torch.sparse_bsr}:
        return penstock.Opaque(
            f"{tensor.layout}_tensor",
            (tensor.crow_indices(), tensor.col_indices(), tensor.values(), torch.Size(tensor.shape)),
        )
    if tensor.layout in {torch.sparse_csc, torch.sparse_bsc}:
        return penstock.Opaque(
            f"{tensor.layout}_tensor",
            (tensor.ccol_indices(), tensor.row_indices(), tensor.values(), torch.Size(tensor.shape)),
        )
    if tensor.is_nested or tensor.is_quantized or tensor.is_meta:
        kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else "meta"
        raise penstock.UnsupportedError(
            f"found a {kind} tensor, which only torch.save writes; use that for this object"
        )
    return (_plain(tensor.detach()), "", tensor.requires_grad)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """In host memory, without flags that stand for an operation yet to be done."""
    return tensor.cpu().resolve_conj().resolve_neg()
