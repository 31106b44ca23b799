"""How a batch gets from a worker process to its parent: its tensors as memory, and around them a pickle.

In the pickle a number stands for each plain tensor or array. C++ carries the memory (`python/src/worker/message.h`), so
that only the structure and small values are pickled. What `default_collate` stacks is stacked in the memory of the
answer at once, which the parent's batch lies in.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

from penstock._core import _answer_memory
from penstock.torch import _private
from penstock.torch._convert import to_torch
from penstock.torch.saving._native import NUMBERS


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.memory: list[Any] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, given: Any) -> Any:
        if type(given) is torch.Tensor:
            return self._of_tensor(given)
        if type(given).__module__ == "numpy" and type(given).__name__ == "ndarray":
            plain = given.dtype.char in NUMBERS and given.dtype.isnative and given.ndim > 0
            # Gaps are closed, as pickle does.
            return ("array", self._number(given, given if given.flags.forc else given.copy())) if plain else None
        return None

    def _of_tensor(self, tensor: torch.Tensor) -> Any:
        if not _is_plain(tensor):
            return None
        memory, dtype = tensor.detach(), None
        if tensor.dtype not in _DTYPES:
            memory, dtype = memory.view(_OF_SIZE[tensor.dtype.itemsize]), tensor.dtype
        return "tensor", self._number(tensor, memory), tensor.requires_grad, dtype

    def _number(self, key: Any, memory: Any) -> int:
        number = self._numbers.setdefault(id(key), len(self.memory))
        if number == len(self.memory):
            self.memory.append(memory)
        return number


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout == torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
        and tensor.grad_fn is None
        and not (tensor.is_nested or tensor.__dict__)
        and (tensor.dtype in _DTYPES or tensor.dtype.itemsize in _OF_SIZE)
    )


_DTYPES = {
    torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32,
    torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
}  # fmt: skip
# What the elements of other types (float8, complex32) travel as: pickle has no way for most of them.
_OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, memory: Any) -> None:
        super().__init__(file)
        self._memory = memory
        self._tensors: dict[int, torch.Tensor] = {}

    def persistent_load(self, given: Any) -> Any:
        kind, number = given[0], given[1]
        if kind == "array":
            return self._memory[number].numpy()
        tensor = self._tensors.get(number)
        if tensor is None:
            tensor = to_torch(self._memory[number])
            tensor = tensor if given[3] is None else tensor.view(given[3])
            self._tensors[number] = tensor.requires_grad_(given[2])
        return tensor


def packed(batch: Any) -> Any:
    """The batch as a value that C++ takes."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(batch)
    return file.getvalue(), pickler.memory


def unpacked(value: Any) -> Any:
    """The batch over the memory that came."""
    content, memory = value
    assert isinstance(memory, list)
    return _Unpickler(io.BytesIO(content), memory).load()


def stacked_in_answer(samples: Any) -> Any:
    """`default_collate` in a worker process."""
    return _private.collate(samples, collate_fn_map={**_private.default_collate_fn_map, torch.Tensor: _stacked})


def _stacked(samples: Any, *, collate_fn_map: Any = None) -> torch.Tensor:
    """The tensors as torch stacks them."""
    first = samples[0]
    out = _memory_for(samples) if type(first) is torch.Tensor and _is_plain(first) else None
    if out is None:
        return _private.default_collate_fn_map[torch.Tensor](samples, collate_fn_map=collate_fn_map)  # type: ignore[no-any-return]
    return torch.stack(samples, 0, out=out)


def _memory_for(samples: Any) -> torch.Tensor | None:
    shape, dtype = samples[0].shape, samples[0].dtype
    for one in samples:
        if type(one) is not torch.Tensor or one.dtype is not dtype or one.shape != shape or one.requires_grad:
            return None
    memory = _answer_memory(len(samples) * samples[0].numel() * dtype.itemsize)
    return None if memory is None else to_torch(memory).view(dtype).view(len(samples), *shape)
