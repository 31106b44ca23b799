"""Tensors: what makes them, and what they do."""

from __future__ import annotations

import penstock._core as _core
from penstock._api import methods_of, overload

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import EllipsisType
    from typing import Any

    from penstock._core import Collate, DType, Generator, Tensor


def asarray(data: object, dtype: object = None, *, device: object = None) -> Tensor:
    """A tensor over the memory of an array; a Tensor is itself.

    It is a copy only where `dtype` or `device` change something, and of nested lists.

    Parameters
    ----------
    data
        What speaks __array_interface__, DLPack, __cuda_array_interface__ or the buffer protocol;
        nested lists of numbers.
    dtype
        The dtype of the result.
    device
        Where the result lies.
    """
    return _core.asarray(data, dtype, device)


def tensor(data: object, dtype: object = None, *, device: object = None) -> Tensor:
    """A new tensor of nested lists of numbers and arrays, or a copy of an array or buffer.

    As in torch, Python numbers become bool, int64, float32 or complex64 and arrays keep their type,
    promoted to one.

    Parameters
    ----------
    data
        Numbers, nested lists of them, arrays, or an object with a buffer.
    dtype
        The dtype of the result.
    device
        Where the result lies; the CPU unless given.
    """
    return _core.tensor(data, dtype, device)


def from_dlpack(object: object) -> Tensor:
    """A tensor over the memory of an object that speaks DLPack; nothing is copied.

    The memory lives as long as either side uses it. Read-only memory stays read-only.

    Parameters
    ----------
    object
        An array of NumPy, PyTorch, JAX, ...
    """
    return _core.from_dlpack(object)


def empty(*size: Any, dtype: object = None, device: object = None) -> Tensor:
    """A tensor whose elements are whatever the memory held.

    Parameters
    ----------
    size
        The sizes of the dimensions, each by itself or all in one sequence.
    dtype
        The dtype of the elements; float32 unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.empty(size, dtype, device)


def zeros(*size: Any, dtype: object = None, device: object = None) -> Tensor:
    """A tensor of zeros.

    Parameters
    ----------
    size
        The sizes of the dimensions, each by itself or all in one sequence.
    dtype
        The dtype of the elements; float32 unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.zeros(size, dtype, device)


def ones(*size: Any, dtype: object = None, device: object = None) -> Tensor:
    """A tensor of ones.

    Parameters
    ----------
    size
        The sizes of the dimensions, each by itself or all in one sequence.
    dtype
        The dtype of the elements; float32 unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.ones(size, dtype, device)


def full(size: int | Iterable[int], fill_value: complex, *, dtype: object = None, device: object = None) -> Tensor:
    """A tensor of one value.

    Parameters
    ----------
    size
        The sizes of the dimensions, in one sequence.
    fill_value
        A bool or a number.
    dtype
        The dtype of the elements; bool, int64, float32 or complex64, by the value, unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.full(size, fill_value, dtype, device)


def arange(*args: float, dtype: object = None, device: object = None) -> Tensor:
    """Numbers from start to before end.

    Parameters
    ----------
    args
        (end), (start, end) or (start, end, step); start is 0 and step 1 unless given.
    dtype
        The dtype of the elements; of integers int64, else float32, unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.arange(args, dtype, device)


def rand(*size: Any, generator: Generator | None = None, dtype: object = None, device: object = None) -> Tensor:
    """Uniform random numbers in [0, 1).

    Parameters
    ----------
    size
        The sizes of the dimensions, each by itself or all in one sequence.
    generator
        Where the random bits come from. Without one the numbers are other ones at each call.
    dtype
        The dtype of the elements; float32 unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.rand(size, generator, dtype, device)


def randn(*size: Any, generator: Generator | None = None, dtype: object = None, device: object = None) -> Tensor:
    """Normal random numbers, of mean 0 and variance 1.

    Parameters
    ----------
    size
        The sizes of the dimensions, each by itself or all in one sequence.
    generator
        Where the random bits come from. Without one the numbers are other ones at each call.
    dtype
        The dtype of the elements; float32 unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.randn(size, generator, dtype, device)


def randint(*args: Any, generator: Generator | None = None, dtype: object = None, device: object = None) -> Tensor:
    """Random integers in [low, high).

    Parameters
    ----------
    args
        (high, size), or (low, high, size); low is 0 unless given, and size a sequence of sizes.
    generator
        Where the random bits come from. Without one the numbers are other ones at each call.
    dtype
        The dtype of the elements; int64 unless given.
    device
        Where the memory is taken; the CPU unless given.
    """
    return _core.randint(args, generator, dtype, device)


def cat(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """Tensors behind each other along a dimension, in their promoted dtype.

    Parameters
    ----------
    tensors
        An iterable of Tensors.
    dim
        Along which dimension; negative ones count from the last.
    """
    return _core.cat(tensors, dim)


@overload
def stack() -> Collate: ...
@overload
def stack(tensors: Iterable[Tensor], dim: int = 0) -> Tensor: ...
def stack(tensors: Iterable[Tensor] | EllipsisType = ..., dim: int = 0) -> Tensor | Collate:
    """Tensors of one shape along a new dimension, in their promoted dtype.

    Without arguments it is the rule for a DataLoader that makes one tensor of tensors of equal
    dtype and shape, with a new dimension 0.

    Parameters
    ----------
    tensors
        An iterable of Tensors.
    dim
        Along which dimension; negative ones count from the last.
    """
    if tensors is ...:
        if dim != 0:
            from penstock.errors import InvalidArgumentError

            raise InvalidArgumentError(f"found dim={dim!r} without tensors: the rule of a DataLoader stacks along 0")
        return _core.stack()
    return _core.stack(tensors, dim)


def promote_types(type1: object, type2: object) -> DType:
    """The dtype that holds the values of both, by PyTorch's table.

    Parameters
    ----------
    type1
        A DType or its name.
    type2
        A DType or its name.
    """
    return _core.promote_types(type1, type2)


def result_type(tensor1: Tensor | complex, tensor2: Tensor | complex) -> DType:
    """The dtype that two operands are computed in.

    Parameters
    ----------
    tensor1
        A Tensor or a number.
    tensor2
        A Tensor or a number.
    """
    return _core.result_type(tensor1, tensor2)


@methods_of(_core.DType)
class DTypeMethods:
    """The element type of a tensor: a small immutable value.

    It equals every other spelling of the same type, such as "float32" or torch.float32.

    Parameters
    ----------
    name
        A name of NumPy's or PyTorch's, such as "float32", or their dtype.
    """

    def __init__(self, name: object) -> None: ...


@methods_of(_core.Tensor)
class TensorMethods:
    """A typed, strided view of memory on one device.

    `==` compares element by element, `equal` whole tensors. Slices share memory, which
    lives as long as any tensor, array or capsule made from it. load(), tensor(), zeros() and others
    make it.
    """

    def _repr_html_(self) -> str:
        from penstock._html import shown

        return shown(self)

    def is_pinned(self: Tensor) -> bool:
        """Whether devices copy from the memory without staging."""
        return self._is_pinned()

    def numel(self: Tensor) -> int:
        """Number of elements."""
        return self._numel()

    def is_contiguous(self: Tensor) -> bool:
        """Whether the elements lie in C order without gaps."""
        return self._is_contiguous()

    def numpy(self: Tensor) -> Any:
        """A NumPy array over the same memory, never a copy; not writeable where `read_only`.

        Bfloat16 and float8 need the package ml_dtypes.
        """
        return self._numpy()

    def tobytes(self: Tensor) -> bytes:
        """The elements' bytes in C order."""
        return self._tobytes()

    def tolist(self: Tensor) -> Any:
        """Nested lists of Python numbers, strings or bytes; the element itself for a 0-d tensor.

        Dates give the integers they are stored as.
        """
        return self._tolist()

    def item(self: Tensor) -> Any:
        """The only element of a tensor that has one."""
        return self._item()

    def view_bytes(self: Tensor) -> Tensor:
        """The same memory as uint8, with a last dimension for the bytes of an element."""
        return self._view_bytes()

    def reshape(self: Tensor, *shape: Any) -> Tensor:
        """The same elements under another shape; a view where strides allow it.

        Parameters
        ----------
        shape
            Sizes, each by itself or all in one sequence; one may be -1, which is inferred.
        """
        return self._reshape(shape)

    def permute(self: Tensor, *dims: int) -> Tensor:
        """A view with the dimensions in another order.

        Parameters
        ----------
        dims
            All dimensions, in their new order.
        """
        return self._permute(dims)

    def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
        """A view with two dimensions exchanged.

        Parameters
        ----------
        dim0
            One of them.
        dim1
            The other one.
        """
        return self._transpose(dim0, dim1)

    def to(
        self: Tensor,
        target: object = None,
        dtype: object = None,
        *,
        device: object = None,
        non_blocking: bool = False,
        copy: bool = False,
    ) -> Tensor:
        """This tensor as another dtype, on another device, or both; itself where nothing changes.

        Values are converted as PyTorch converts them.

        Parameters
        ----------
        target
            A dtype, a device, or a tensor that has both.
        dtype
            The dtype of the result.
        device
            Where the result lies.
        non_blocking
            Do not wait for a copy from pinned memory to a device; copies to the CPU are always waited
            for.
        copy
            Make a new tensor also where nothing changes.
        """
        return self._to(target, dtype, device, non_blocking, copy)

    def cuda(self: Tensor, device: object = None, non_blocking: bool = False) -> Tensor:
        """The tensor on a CUDA device.

        Parameters
        ----------
        device
            An index, "cuda:1" or a Device; the current one unless given.
        non_blocking
            As in `to`.
        """
        return self._cuda(device, non_blocking)

    def pin_memory(self: Tensor) -> Tensor:
        """A tensor in page-locked memory, from which devices copy faster; itself where it is."""
        return self._pin_memory()

    def cpu(self: Tensor) -> Tensor:
        """The tensor in memory of the CPU."""
        return self._cpu()

    def contiguous(self: Tensor) -> Tensor:
        """This tensor if its elements lie in C order, else a copy where they do."""
        return self._contiguous()

    def clone(self: Tensor) -> Tensor:
        """A contiguous copy, always."""
        return self._clone()

    def equal(self: Tensor, other: object) -> bool:
        """Whether dtype, shape and the bytes of all elements agree.

        NaNs of equal bits are equal.

        Parameters
        ----------
        other
            A Tensor or an array of any library.
        """
        return self._equal(other)

    def neg(self: Tensor) -> Tensor:
        """The negative of each element."""
        return self._neg()

    def exp(self: Tensor) -> Tensor:
        """e to the power of each element; of integers, in float32."""
        return self._exp()

    def log(self: Tensor) -> Tensor:
        """The natural logarithm of each element; of integers, in float32."""
        return self._log()

    def sqrt(self: Tensor) -> Tensor:
        """The square root of each element; of integers, in float32."""
        return self._sqrt()

    def tanh(self: Tensor) -> Tensor:
        """The hyperbolic tangent of each element; of integers, in float32."""
        return self._tanh()

    def relu(self: Tensor) -> Tensor:
        """Each element, 0 where it is negative."""
        return self._relu()

    def abs(self: Tensor) -> Tensor:
        """The absolute value of each element."""
        return self._abs()

    def sum(
        self: Tensor, dim: int | Iterable[int] | None = None, keepdim: bool = False, *, dtype: object = None
    ) -> Tensor:
        """The sum over dimensions.

        Of integers and bool it is int64. The order of summation is fixed: the same bits on every
        device.

        Parameters
        ----------
        dim
            The dimension or dimensions that are reduced; None for all of them.
        keepdim
            Keep reduced dimensions, with size 1.
        dtype
            The dtype of the result, in which the elements are added.
        """
        return self._sum(dim, keepdim, dtype)

    def mean(
        self: Tensor, dim: int | Iterable[int] | None = None, keepdim: bool = False, *, dtype: object = None
    ) -> Tensor:
        """The mean over dimensions, of floats and complex numbers.

        Parameters
        ----------
        dim
            The dimension or dimensions that are reduced; None for all of them.
        keepdim
            Keep reduced dimensions, with size 1.
        dtype
            The dtype of the result, in which the elements are added.
        """
        return self._mean(dim, keepdim, dtype)

    def max(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        """The greatest element; along a dimension, the pair (values, indices).

        NaN counts as the greatest.

        Parameters
        ----------
        dim
            The dimension that is reduced; None for all of them together.
        keepdim
            Keep reduced dimensions, with size 1.

        Returns
        -------
        Tensor, or Extremum
        """
        return self._max(dim, keepdim)

    def min(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        """The least element; along a dimension, the pair (values, indices).

        NaN counts as the least.

        Parameters
        ----------
        dim
            The dimension that is reduced; None for all of them together.
        keepdim
            Keep reduced dimensions, with size 1.

        Returns
        -------
        Tensor, or Extremum
        """
        return self._min(dim, keepdim)

    def argmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """The index of the greatest element in C order, or along a dimension.

        Of equal ones it is that of the first.

        Parameters
        ----------
        dim
            The dimension that is reduced; None for all of them together.
        keepdim
            Keep reduced dimensions, with size 1.
        """
        return self._argmax(dim, keepdim)

    def matmul(self: Tensor, other: Tensor) -> Tensor:
        """The product of vectors, matrices or batches of them.

        Leading dimensions are broadcast. Both have one dtype; halves are accumulated in float32.

        Parameters
        ----------
        other
            A Tensor of the same dtype.
        """
        return self._matmul(other)

    def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
        """The entries of a dimension that `index` names.

        Parameters
        ----------
        dim
            The dimension; negative ones count from the last.
        index
            A vector of int32 or int64.
        """
        return self._index_select(dim, index)


@methods_of(_core.Generator)
class GeneratorMethods:
    """A stream of random bits (Philox4x32-10).

    The same seed and calls give the same values on every device.

    Parameters
    ----------
    seed
        An integer; the operating system chooses one unless given.
    """

    def __init__(self, seed: int | None = None) -> None: ...

    def manual_seed(self: Generator, seed: int) -> Generator:
        """Starts anew; returns itself.

        Parameters
        ----------
        seed
            An integer.
        """
        return self._manual_seed(seed)

    def initial_seed(self: Generator) -> int:
        """The seed."""
        return self._initial_seed()

    def get_state(self: Generator) -> tuple[int, int]:
        """Seed and blocks taken: the whole state."""
        return self._get_state()

    def set_state(self: Generator, state: tuple[int, int]) -> Generator:
        """Goes on where `get_state` was called; returns itself.

        Parameters
        ----------
        state
            What get_state() gave.
        """
        return self._set_state(state)
