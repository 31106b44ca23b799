"""Blocks of host memory that hold all storages of a load, and the tensors that other processes have in them.

torch takes the descriptor of a shared block for its own shared memory. So its tensors go to other processes through
torch.multiprocessing without a copy, and the block ends with the last storage over it.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._load.shared_memory import mapped
from penstock.sharing import _found, _made
from penstock.torch._private import new_shared_storage


def shared_storage(descriptor: int, nbytes: int, *, pinned: bool = False) -> torch.UntypedStorage:
    """A file in memory as a storage that processes share. A page-locked one is not torch's own shared memory, because
    the lock has to end before the mapping does."""
    if pinned:
        return from_dlpack(mapped(descriptor, max(nbytes, 1), pinned=True).__dlpack__()).untyped_storage()
    try:
        storage: torch.UntypedStorage = new_shared_storage(descriptor, max(nbytes, 1))
    except RuntimeError as error:
        message = f"{nbytes} bytes of shared memory cannot be mapped: {str(error).partition(chr(10))[0]}"
        raise penstock.OutOfMemoryError(message) from error
    return storage


def private_storage(descriptor: int, nbytes: int) -> torch.UntypedStorage:
    """The same file as a storage of this process alone: its pages are everybody's until they are written to, and then
    a copy."""
    try:
        path = f"/proc/self/fd/{descriptor}"
        storage: Any = torch.UntypedStorage.from_file(path, False, max(nbytes, 1))
    except RuntimeError as error:
        message = f"{nbytes} bytes of memory cannot be mapped: {str(error).partition(chr(10))[0]}"
        raise penstock.OutOfMemoryError(message) from error
    return storage  # type: ignore[no-any-return]


def attach(name: str) -> Any:
    """The tensors that another process has shared under this name, as torch's, in the same memory.

    `penstock.sharing.share` makes the name, of what `load(shared=True)` gave. Between processes that
    torch.multiprocessing starts, tensors may be sent themselves instead.

    Parameters
    ----------
    name
        What `penstock.sharing.share` gave.

    Returns
    -------
    object
        The value that was shared.

    Raises
    ------
    penstock.NotFoundError
        Where the process that shared has ended, or let go of the memory.

    Examples
    --------
    >>> name = penstock.sharing.share(penstock.torch.load("model.pt", shared=True))
    >>> state = penstock.torch.attach(name)  # in another process
    """
    descriptor, told = _found(name)
    try:
        storage = shared_storage(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)

    def tensor(offset: int, dtype: str, shape: list[int], strides: list[int], grad: bool) -> torch.Tensor:
        kind = getattr(torch, dtype)
        if 0 in shape:
            return torch.empty(shape, dtype=kind).requires_grad_(grad)
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if min(offset, *shape, *strides, 0) < 0 or offset + (last + 1) * kind.itemsize > storage.nbytes():
            raise penstock.CorruptError(f"{name}: a tensor reaches behind the memory; share it again")
        out = torch.empty(0, dtype=kind).set_(storage, offset // kind.itemsize, shape, strides)
        return out.requires_grad_(grad)

    return _made(told, tensor)
