"""Objects that only torch has, described as a `.pt` writes them. It is the inverse of `loading/_rebuild.py`."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.hooks import warn_if_has_hooks

import penstock
from penstock._core import _memory_fault
from penstock.torch import _private

_QUANTIZED = {
    torch.quint8: torch.uint8,
    torch.qint8: torch.int8,
    torch.qint32: torch.int32,
    torch.quint4x2: torch.uint8,
    torch.quint2x4: torch.uint8,
}
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_PER_BYTE = {torch.quint4x2: 2, torch.quint2x4: 4}

# Type name, requires_grad, (dtype, strides) where they are others than DLPack gives, attributes.
_Dense = tuple[torch.Tensor, str, bool, tuple[str | None, tuple[int, ...]] | None, dict[str, Any] | None]
_Described = _Dense | penstock.Opaque | str


class _Integers:
    """The elements of a quantized tensor as integers, a part of its description."""

    __slots__ = ("described",)

    def __init__(self, elements: torch.Tensor, dtype: torch.dtype) -> None:
        self.described: _Dense = (elements, "", False, (_name(dtype), elements.stride()), None)


def described(obj: Any) -> _Described | None:
    """The dense tensor that an object is, or its type's name and parts; or why it cannot be saved;
    None for other objects."""
    if isinstance(obj, torch.Tensor):
        if type(obj) is torch.nn.Parameter:
            return _parameter(obj)
        if type(obj) is torch.Tensor:
            warn_if_has_hooks(obj)
            return _tensor(obj)
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
        if kind == "torch.nested._internal.nested_tensor.NestedTensor":
            return _jagged(obj)
        return _memory_fault(obj) or (
            f"found a tensor of class {kind}, which torch.load(weights_only=True) does not read; save "
            "tensor.as_subclass(torch.Tensor)"
        )
    if isinstance(obj, _Integers):
        return obj.described
    if isinstance(obj, torch.device):
        return penstock.Opaque("torch.device", (obj.type,) if obj.index is None else (obj.type, obj.index))
    if isinstance(obj, (torch.storage.TypedStorage, torch.UntypedStorage)):
        return _storage(obj)
    if isinstance(obj, (torch.layout, torch.qscheme)):
        return penstock.Opaque(str(obj), None)
    return None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _attributes(tensor: torch.Tensor) -> dict[str, Any] | None:
    return vars(tensor) or None


def _parameter(parameter: torch.nn.Parameter) -> _Described:
    name = "torch.nn.parameter.Parameter"
    data = _tensor(parameter.data)
    if isinstance(data, str):
        return data
    if isinstance(data, penstock.Opaque):
        return penstock.Opaque(name, (parameter.data, parameter.requires_grad), _attributes(parameter))
    return (data[0], name, parameter.requires_grad, data[3], _attributes(parameter))


def _tensor(tensor: torch.Tensor) -> _Described:
    if tensor.is_nested:
        if _nested_reach(tensor) > tensor.values().numel():
            return "found a nested tensor whose storage is shorter than it reaches; it was freed or resized"
        return _composite("torch.nested_tensor", tensor, *_nested_parts(tensor))
    if tensor.is_meta:
        parts = (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
        return _composite("torch.meta_tensor", tensor, *parts)
    if (fault := _memory_fault(tensor)) is not None:
        return fault
    if tensor.is_quantized:
        return _quantized(tensor)
    if tensor.layout != torch.strided:
        return _sparse(tensor)
    if tensor.is_conj() or tensor.is_neg():
        return _marked(tensor)
    out = tensor.detach().cpu()
    # DLPack makes the strides of dimensions of one element, and of empty tensors, what it likes.
    layout = (None, out.stride()) if 1 in out.shape or 0 in out.shape else None
    return (out, "", tensor.requires_grad, layout, _attributes(tensor))


def _composite(name: str, tensor: torch.Tensor, *parts: Any) -> penstock.Opaque:
    return penstock.Opaque(name, parts, _attributes(tensor))


def _sparse(tensor: torch.Tensor) -> _Described:
    whole = tensor.detach()
    size = torch.Size(tensor.shape)
    # As torch.save does it, which says of compressed ones alone, by their values, whether they want a gradient.
    values = tensor.values() if tensor.layout in _COMPRESSED else None
    parts: tuple[Any, ...]
    if tensor.layout == torch.sparse_coo:
        parts = (whole._indices(), whole._values(), size, tensor.is_coalesced())
    elif tensor.layout in {torch.sparse_csr, torch.sparse_bsr}:
        parts = (whole.crow_indices(), whole.col_indices(), values, size)
    elif tensor.layout in {torch.sparse_csc, torch.sparse_bsc}:
        parts = (whole.ccol_indices(), whole.row_indices(), values, size)
    else:
        return f"found a tensor of layout {tensor.layout}, which torch does not save either; make it strided"
    return _composite(f"{tensor.layout}_tensor", tensor, *parts)


def _nested_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    whole = tensor.detach()
    return (
        tensor.values(),  # which says whether a gradient is wanted
        whole._nested_tensor_size(),
        whole._nested_tensor_strides(),
        whole._nested_tensor_storage_offsets(),
    )


def _nested_reach(tensor: torch.Tensor) -> int:
    """The number of elements from the first one of the memory to the last one of the parts."""
    parts = (tensor._nested_tensor_size(), tensor._nested_tensor_strides(), tensor._nested_tensor_storage_offsets())
    reach = 0
    for sizes, strides, offset in zip(*(part.tolist() for part in parts), strict=True) if parts[0].dim() else ():
        if 0 not in sizes:
            steps = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
            reach = max(reach, offset + steps + 1)
    return reach


def _jagged(tensor: Any) -> penstock.Opaque:
    """What the constructor takes. The bounds of lengths that it keeps are marked anew by it."""
    own = ("_ragged_idx", "_size", "_strides", "_values", "_offsets", "_lengths", "_metadata_cache")
    parts = {
        "values": tensor._values.detach(),
        "offsets": tensor._offsets.detach(),
        "lengths": tensor._lengths,
        "_ragged_idx": tensor._ragged_idx,
        "_metadata_cache": {
            name: None if bound is None else bound.detach() for name, bound in tensor._metadata_cache.items()
        },
        "requires_grad": tensor.requires_grad,
    }
    attributes = {
        name: value for name, value in vars(tensor).items() if name not in own and not name.startswith("_dynamo_")
    }
    return penstock.Opaque("torch.nested._internal.nested_tensor._rebuild_njt", (parts,), attributes)


def _quantized(tensor: torch.Tensor) -> _Described:
    scheme = str(tensor.qscheme()).removeprefix("torch.")
    parameters: tuple[Any, ...]
    if scheme == "per_tensor_affine":
        parameters = (tensor.q_scale(), tensor.q_zero_point(), None)
    elif scheme in {"per_channel_affine", "per_channel_affine_float_qparams"}:
        scales, zero_points = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
        parameters = (scales, zero_points, tensor.q_per_channel_axis())
    else:
        return f"found a tensor quantized {scheme}, which torch does not save either; dequantize it"
    return _composite("torch.quantized", tensor, _integers(tensor), scheme, *parameters, torch.Size(tensor.shape))


def _integers(tensor: torch.Tensor) -> _Integers:
    per_byte = _PER_BYTE.get(tensor.dtype)
    if per_byte is None:
        return _Integers(
            _over(tensor, int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride()), tensor.dtype
        )
    rows = tensor.shape[-1] // per_byte + (tensor.shape[-1] % per_byte != 0)
    return _Integers(_over(tensor, 0, (tensor.shape[:-1].numel() * rows,), (1,)), tensor.dtype)


def _over(tensor: torch.Tensor, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
    """The memory of a quantized tensor as integers."""
    elements = torch.empty(0, dtype=_QUANTIZED[tensor.dtype], device=tensor.device)
    return elements.set_(tensor.untyped_storage(), offset, shape, strides).cpu()


def _marked(tensor: torch.Tensor) -> penstock.Opaque:
    """A tensor that is conjugate or negative by a flag: its memory as it is, and the flags."""
    conj, neg = tensor.is_conj(), tensor.is_neg()
    plain = tensor.detach()
    if conj:
        plain = _private.conj(plain)
    if neg:
        plain = _private.neg_view(plain)
    plain.requires_grad_(tensor.requires_grad)
    return _composite("torch.marked_tensor", tensor, plain, conj, neg)


def _storage(storage: torch.storage.TypedStorage | torch.UntypedStorage) -> _Dense:
    name = "torch.storage.TypedStorage"
    dtype = torch.uint8 if isinstance(storage, torch.UntypedStorage) else storage.dtype
    if dtype in _QUANTIZED:
        untyped = storage if isinstance(storage, torch.UntypedStorage) else storage._untyped_storage
        integers = torch.empty(0, dtype=_QUANTIZED[dtype], device=storage.device).set_(untyped).cpu()
        return (integers, name, False, (_name(dtype), integers.stride()), None)
    whole = torch.empty(0, dtype=dtype, device=storage.device).set_(storage).cpu()
    return (whole, name, False, None, None)
