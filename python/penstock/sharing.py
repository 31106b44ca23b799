"""Tensors of a load that other processes of this machine map, without a copy.

    state = penstock.load("model.safetensors", shared=True)
    name = penstock.sharing.share(state)

    state = penstock.sharing.attach(name)  # in another process

`penstock.torch.attach` gives torch's tensors. What lies where is written behind the tensors, as JSON, so that the name
is all that has to be sent.
"""

from __future__ import annotations

import json
import os
import re

from penstock import _whole as _whole  # it tells of a package that is not whole
from penstock._asked import has
from penstock._core import Tensor, _span, _tensor_in
from penstock._load.shared_memory import descriptor_of, mapped, mapping_at, opened, path_of
from penstock.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["attach", "share"]


def share(value: Any) -> str:
    """A name by which other processes of this machine get tensors, without a copy.

    The tensors are those of one load with `shared=True`, of `penstock` or of `penstock.torch`, all or
    some of them, in dicts, lists and tuples with numbers and texts. Whoever has the name calls
    `attach`. All see the same memory: what one writes, the others read.

    The name holds while this process keeps a tensor of the load. Processes that have attached keep the
    memory by themselves. It ends with the last of them, and nothing has to be removed. Only the same
    user can attach, and root.

    Parameters
    ----------
    value
        The tensors.

    Returns
    -------
    str
        A short text, which may be sent in any way: an argument, a queue, a variable of the environment.

    Raises
    ------
    InvalidArgumentError
        For a tensor in memory of this process alone, and for tensors of several loads.

    Examples
    --------
    >>> state = penstock.load("model.safetensors", shared=True)
    >>> name = penstock.sharing.share(state)
    >>> state = penstock.sharing.attach(name)  # in another process
    """
    begin, end, inode = 0, 0, 0

    def placed(tensor: Any, shape: Any, strides: Any, dtype: str, grad: bool) -> list[Any]:
        nonlocal begin, end, inode
        _, first, last = _span(tensor)
        if first == last:
            return ["tensor", 0, dtype, [*shape], [*strides], grad]
        if not begin:
            begin, end, inode = mapping_at(first)
        if not begin <= first < end:
            mapping_at(first)  # says it of memory that is not shared
            raise InvalidArgumentError("the tensors are of several loads; share those of each by themselves")
        return ["tensor", first - begin, dtype, [*shape], [*strides], grad]

    try:
        told = json.dumps(_described(value, placed)).encode()
    except RecursionError:
        raise InvalidArgumentError("the value holds itself, or is nested too deep to be shared") from None
    if not begin:
        raise InvalidArgumentError("there is no tensor with elements in what is to be shared")
    descriptor = descriptor_of(inode)
    writer = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(writer, told)  # at the end, whoever else shares at this moment
        at = os.lseek(writer, 0, os.SEEK_CUR) - len(told)
    finally:
        os.close(writer)
    return f"{path_of(descriptor)}:{inode}:{at}:{len(told)}"


def attach(name: str) -> Any:
    """The tensors that another process has shared under this name, in the same memory.

    `penstock.torch.attach` gives torch's tensors of it.

    Parameters
    ----------
    name
        What `share` gave.

    Returns
    -------
    The value that was shared, with Tensors.

    Raises
    ------
    NotFoundError
        Where the process that shared has ended, or let go of the memory.
    """
    descriptor, told = _found(name)
    try:
        size = os.fstat(descriptor).st_size
        memory = mapped(descriptor, size)
    finally:
        os.close(descriptor)

    return _made(told, lambda *layout: _tensor_in(memory, *layout))


def _found(name: str) -> tuple[int, Any]:
    """The descriptor of what a name means, and the description of the value."""
    match = re.fullmatch(r"(/proc/\d+/fd/\d+):(\d+):(\d+):(\d+)", name) if isinstance(name, str) else None
    if match is None:
        raise InvalidArgumentError(f"found {name!r}, expected the name that penstock.sharing.share gave")
    try:
        descriptor = opened(match[1])
    except PermissionError as error:
        message = "it belongs to another user, or to a process that lets nobody look"
        raise PermissionDeniedError(f"{match[1]}: {message}", message, match[1]) from error
    except OSError as error:
        message = "the process that shared it has ended or let go of the memory; keep the tensors there meanwhile"
        raise NotFoundError(f"{match[1]}: {message}", message, match[1]) from error
    if os.fstat(descriptor).st_ino != int(match[2]):
        os.close(descriptor)
        message = "it is other memory by now: the process that shared it has let go of it"
        raise NotFoundError(f"{match[1]}: {message}", message, match[1])
    return descriptor, json.loads(os.pread(descriptor, int(match[4]), int(match[3])))


def _described(value: Any, placed: Callable[..., list[Any]]) -> list[Any]:
    if isinstance(value, Tensor):
        return placed(value, value.shape, value.strides, value.dtype.name, value.requires_grad)
    if has(value, "untyped_storage") and has(value, "stride"):  # torch's, which need not be there
        if value.is_conj() or value.is_neg():
            raise InvalidArgumentError(
                "the tensor is a lazy conjugate or negative, which only this process knows of; share the tensor of "
                "which it is one"
            )
        dtype = str(value.dtype).removeprefix("torch.")
        return placed(value.detach(), value.shape, value.stride(), dtype, value.requires_grad)
    if isinstance(value, dict):
        return ["dict", [[_described(key, placed), _described(item, placed)] for key, item in value.items()]]
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, [_described(item, placed) for item in value]]
    if value is None or type(value) in (bool, int, float, str):
        return ["plain", value]
    raise InvalidArgumentError(
        f"found an object of type {type(value).__name__}, expected tensors, numbers and texts in dicts, lists and "
        "tuples"
    )


def _made(told: Any, tensor: Callable[..., Any]) -> Any:
    """The value of a description; `tensor(offset, dtype, shape, strides, requires_grad)` makes those."""
    kind, *parts = told
    if kind == "tensor":
        return tensor(*parts)
    if kind == "dict":
        return {_made(key, tensor): _made(item, tensor) for key, item in parts[0]}
    if kind in ("list", "tuple"):
        items = [_made(item, tensor) for item in parts[0]]
        return items if kind == "list" else tuple(items)
    return parts[0]
