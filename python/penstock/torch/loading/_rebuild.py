"""What objects of named types in a `.pt` become: the table of everything that torch.load(weights_only=True) knows.

C++ reads the pickle and calls `Rebuilder` for each object with its name and its parts. Whatever the parts say is
checked against the storage first, because torch does not look.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

import penstock
from penstock._objects.plain_values import plain_of
from penstock._text import plural
from penstock.torch._errors import DeviceMemoryError, UnmadeError
from penstock.torch._private import detect_fake_mode, make_wrapper_subclass, nested_view_from_buffer, rebuild_qtensor
from penstock.torch.loading import _distributed
from penstock.torch.loading._allowed import Allowed, RefusedError
from penstock.torch.loading._attributes import require_plain_class, set_attributes
from penstock.torch.loading._data import NOT_DATA, Fields, Items, begun_data, data_of, without_marks
from penstock.torch.loading._globals import DATA_TYPES, full_name
from penstock.torch.loading._sparse import has_values, sparse_compressed, sparse_coo
from penstock.torch.loading._storages import MapLocation, Packed
from penstock.torch.loading._typed import Conversion

_WRAPPER = "torch.wrapper_subclass"
_SUBCLASS = "torch.tensor_subclass"
# What makes tensors of a type that it is told.
_WITH_TYPES = (
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_xla_tensor",
    "torch.meta_tensor",
)
_CONSTANTS = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)


class Rebuilder:
    """Called with the name of a type or function, its arguments (None for a bare name) and the state given to it; where
    that leads back to the object, with `...` for it first, and then with what that gave.

    `unknown` collects the names that are none of torch's, with what the file says of them, `unfit` what could not be
    made of its parts, `refused` the reasons by names that the program allows and that would have to be run; `broken`
    has the arguments that an error was about. Dicts with keys that have parts are filled only when everything is there,
    so that attributes are set by `finish`. `as_data`: plain objects of unknown classes become their attributes.
    `conversion` is that of the entries, for tensors whose type is an argument; `map_location` as of the load, for
    wrappers, which have a device and no storage.
    """

    def __init__(
        self, conversion: Conversion | None = None, map_location: MapLocation = None, *, as_data: bool = False
    ) -> None:
        self._conversion = conversion
        self._map_location = map_location
        self._as_data = as_data
        self._fields: dict[int, tuple[Fields, Any, Any]] = {}
        self.unknown: dict[str, Use] = {}
        self.unfit: list[str] = []
        self.refused: dict[str, str] = {}
        self.broken: Any = None
        self._states: list[tuple[torch.Tensor, Any]] = []

    def __call__(self, name: str, args: Any, state: Any, begun: Any = None) -> Any:
        try:
            return self._made(name, args, state, begun)
        except penstock.Error:
            self.broken = args
            raise
        except Exception as error:  # whatever a file makes torch raise
            self.broken = args
            raise _as_ours(name, error) from error

    def _made(self, name: str, args: Any, state: Any, begun: Any) -> Any:
        if state is ...:
            return self._begin(name, args)
        if begun is not None:
            return self._completed(name, begun, state)
        if args is None or name == "torch.dtype":
            constant = _constant(f"torch.{args[0]}" if args else name)
            return self._foreign(name, args, state) if constant is None else constant
        build, _ = _BUILDERS.get(name, _NONE)
        if name == _WRAPPER:
            distributed = _distributed.wrapper(args, state, self._conversion)
            return self._of_class(name, args, state) if distributed is None else distributed
        if name == _SUBCLASS:
            return self._of_class(name, args, state)
        if build is None:
            return self._foreign(name, args, state)
        built = self._built(name, build, args)
        if state is not None and isinstance(built, penstock.Opaque):
            built.state = state
        return self._noted(built, state)

    def _built(self, name: str, build: Callable[[Any], Any], args: Any) -> Any:
        if build not in (_plain, _items) and _has_opaque(args):
            return penstock.Opaque(name, args)  # what it lacks has been noted
        built = build(args)
        if self._conversion is None or name not in _WITH_TYPES:
            return built
        return self._conversion.converted(built)

    def _of_class(self, name: str, args: Any, state: Any) -> Any:
        """A composite tensor of a class of its own, or a wrapper, which is its class and its attributes. The class is
        an argument; where it is not allowed it has been noted as unknown."""
        kind = args[0] if name == _WRAPPER else args[1]
        if isinstance(kind, penstock.Opaque) or (name == _SUBCLASS and isinstance(args[0], penstock.Opaque)):
            return penstock.Opaque(name, args, state)
        try:
            require_plain_class(kind, state)
            if name == _SUBCLASS:
                return self._noted(args[0].as_subclass(kind), state)
            return self._noted(_wrapper(args, self._map_location), state)
        except RefusedError as error:
            return self._refused(full_name(kind), args, state, error)

    def _noted(self, built: Any, state: Any) -> Any:
        if state is not None and isinstance(built, torch.Tensor):
            self._states.append((built, state))
        return built

    def finish(self) -> None:
        """Sets the attributes of tensors, when everything is there that they refer to."""
        for tensor, state in self._states:
            set_attributes(tensor, state)
        for fields, args, state in self._fields.values():
            data_of("", args, state, fields)

    def _begin(self, name: str, args: Any) -> Any:
        build, _ = _BUILDERS.get(name, _NONE)
        if build is not None:
            return self._built(name, build, args)
        if name in (_WRAPPER, _SUBCLASS):
            return self._of_class(name, args, None)
        if name.startswith("numpy."):
            return None
        if name in self._allowed:
            try:
                return self._allowed.begun(name, args)
            except RefusedError as error:
                return self._refused(name, args, None, error)
        if self._as_data and (begun := begun_data(name, args)) is not NOT_DATA:
            if args and isinstance(begun, Fields):
                self._fields[id(begun)] = begun, args, None
            return begun
        return self._keep(name, args, None)

    def _refused(self, name: str, args: Any, state: Any, error: RefusedError) -> Any:
        if self._as_data:
            return self._keep(name, args, state)
        self.refused[name] = str(error)
        return _opaque(name, args, state)

    def _completed(self, name: str, begun: Any, state: Any) -> Any:
        if isinstance(begun, penstock.Opaque):
            begun.state = state
        elif isinstance(begun, (Fields, list)):
            _, args, _ = self._fields.get(id(begun), (begun, (), None))
            return self._data(name, args, state, begun)
        elif isinstance(begun, torch.Tensor) and name in (_WRAPPER, _SUBCLASS):
            try:
                require_plain_class(type(begun), state)
            except RefusedError as error:
                raise penstock.UnsupportedError(str(error)) from None
        elif name in self._allowed:
            try:
                self._allowed.complete(name, begun, state)
            except RefusedError as error:
                raise penstock.UnsupportedError(str(error)) from None
        return self._noted(begun, state)

    @cached_property
    def _allowed(self) -> Allowed:
        return Allowed()

    def _foreign(self, name: str, args: Any, state: Any) -> Any:
        if name.startswith("numpy."):
            from penstock._objects import numpy_objects as _numpy_objects

            try:
                built = _numpy_objects.rebuilt(name, args, state)
            except _numpy_objects.Unfit as error:
                self.unfit.append(str(error))
                return penstock.Opaque(name, args, state)
            if built is not None:
                return built
        if name in self._allowed:
            try:
                return self._noted(self._allowed.made(name, args, state), state)
            except RefusedError as error:
                return self._refused(name, args, state, error)
        return self._keep(name, args, state)

    def _keep(self, name: str, args: Any, state: Any) -> Any:
        if self._as_data:
            return self._data(name, args, state)
        if args is None or (len(args) == 1 and type(args[0]) is torch.Tensor):
            use = Use.NAME  # of a class that tensors are of, too
        else:
            use = Use.OBJECT if data_of(name, args, state) is NOT_DATA else Use.DATA
        self.unknown[name] = max(use, self.unknown.get(name, use))
        return _opaque(name, args, state)

    def _data(self, name: str, args: Any, state: Any, begun: Any = None) -> Any:
        found = plain_of(name, args, state)
        if found is None:
            found = data_of(name, args, state, begun)
        if found is NOT_DATA:
            return _opaque(name, args, state)
        if isinstance(found, Fields) and args:
            self._fields[id(found)] = found, args, state  # whose items may not be there yet
        return found


class Trial(Rebuilder):
    """Makes what the file says of names, and no tensor: what `load` would refuse is in `unknown` and `refused`."""

    leaf = torch.empty(0, device="meta")
    """In the place of each tensor."""

    def _built(self, name: str, build: Callable[[Any], Any], args: Any) -> Any:
        return super()._built(name, build, args) if build in (_plain, _items, _size, _device) else self.leaf


def _has_opaque(parts: Any) -> bool:
    return any(
        isinstance(part, penstock.Opaque) or (isinstance(part, dict) and _has_opaque(part.values())) for part in parts
    )


class Use(enum.IntEnum):
    """What a file has of a name that nothing here knows."""

    NAME = 0  # a mere reference
    DATA = 1  # objects that are their attributes
    OBJECT = 2  # what only code could make


def _opaque(name: str, args: Any, state: Any) -> penstock.Opaque:
    return penstock.Opaque(name, without_marks(args), state)


def _as_ours(name: str, error: Exception) -> penstock.Error:
    kind, reason = _BUILDERS.get(name, _NONE)[1] or name, str(error).partition("\n")[0]
    if isinstance(error, torch.OutOfMemoryError):
        return DeviceMemoryError(f"there is no memory left for a {kind}: {reason}")
    if isinstance(error, NotImplementedError) or detect_fake_mode(None) is not None:
        return UnmadeError(f"torch has no way to make a {kind} of these parts: {reason}")
    return penstock.CorruptError(f"the parts of a {kind} do not make one: {reason}")


def _constant(name: str) -> Any:
    """torch.float32, torch.strided, torch.per_tensor_affine and other constants, and types of data; None for other
    names."""
    if name in DATA_TYPES:
        return DATA_TYPES[name]
    module, _, attribute = name.rpartition(".")
    value = vars(torch).get(attribute) if module == "torch" else None  # getattr would import modules by that name
    return value if isinstance(value, _CONSTANTS) else None


def _parameter(args: Any) -> torch.Tensor:
    data, *flag = args  # a flag where the data is no strided tensor
    return torch.nn.Parameter(data.detach(), requires_grad=flag[0] if flag else data.requires_grad)


def _of_device(args: Any) -> torch.Tensor:
    data, dtype, _, requires_grad = args
    return torch.as_tensor(data).to(dtype).requires_grad_(requires_grad)


def _buffer(args: Any) -> torch.Tensor:
    return torch.nn.Buffer(args[0])


def _typed_storage(args: Any) -> torch.storage.TypedStorage:
    part = args[0]
    if isinstance(part, Packed):
        dtype = part.storage.dtype
        storage = _part(part.storage._untyped_storage, part.offset, part.shape[0], dtype.itemsize)
    else:
        dtype, storage = part.dtype, _untyped_storage(args)
    return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _untyped_storage(args: Any) -> torch.UntypedStorage:
    tensor = args[0]
    return _part(tensor.untyped_storage(), tensor.storage_offset(), tensor.numel(), tensor.itemsize)


def _part(storage: torch.UntypedStorage, offset: int, numel: int, itemsize: int) -> torch.UntypedStorage:
    """The whole storage, or the part of it that the file saves as a storage of its own."""
    begin, end = offset * itemsize, (offset + numel) * itemsize
    return storage if (begin, end) == (0, storage.nbytes()) else storage[begin:end]


def _size(args: Any) -> torch.Size:
    return torch.Size(args)


def _device(args: Any) -> torch.device:
    return torch.device(*(part for part in args if part is not None))


def _quantized(args: Any) -> torch.Tensor:
    values, scheme, scales, zero_points, axis, size = args
    if not isinstance(values, Packed):
        raise penstock.CorruptError("a quantized tensor's values are of a type that is not quantized")
    kind = vars(torch).get(scheme)
    if not isinstance(kind, torch.qscheme):
        raise penstock.CorruptError(f"a quantized tensor has the scheme {scheme!r}, which torch does not have")
    parameters: tuple[Any, ...] = (kind, scales, zero_points)
    strides = values.strides
    if axis is not None:
        parameters = (*parameters, axis)
    if len(values.shape) != len(size):  # packed: the file's strides are those of the contiguous whole
        strides = torch.empty(tuple(size), device="meta").stride()
    tensor: torch.Tensor = rebuild_qtensor(
        values.storage, values.offset, tuple(size), strides, parameters, values.requires_grad, None
    )
    return tensor


def _nested(args: Any) -> torch.Tensor:
    buffer, sizes, strides, offsets = args
    _check_nested(buffer, sizes, strides, offsets)
    tensor: torch.Tensor = nested_view_from_buffer(buffer, sizes, strides, offsets)
    return tensor


def _check_nested(buffer: torch.Tensor, sizes: torch.Tensor, strides: torch.Tensor, offsets: torch.Tensor) -> None:
    """Every part lies inside the buffer: torch does not look."""
    if sizes.numel() == 0 or not has_values(buffer, sizes, strides, offsets):
        return
    if bool((sizes < 0).any()) or bool((strides < 0).any()) or bool((offsets < 0).any()):
        raise penstock.CorruptError("a nested tensor has a negative size, stride or offset")
    for size, stride, offset in zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True):
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if 0 not in size and last >= buffer.numel():
            raise penstock.CorruptError(
                f"a part of a nested tensor ends at element {last} of a buffer of {plural(buffer.numel(), 'element')}"
            )


def _jagged(args: Any) -> torch.Tensor:
    parts = args[0]
    values, offsets, lengths, dim = (parts[name] for name in ("values", "offsets", "lengths", "_ragged_idx"))
    sizes = _check_jagged(values, offsets, lengths, dim)
    known = _known_lengths(parts.get("_metadata_cache"), sizes)
    tensor: torch.Tensor = torch.nested.nested_tensor_from_jagged(
        values.detach(), offsets, lengths, jagged_dim=dim, **known
    )
    bounds: dict[str, torch.Tensor] = vars(tensor)["_metadata_cache"]
    bounds.update({name: bound.to(values.device) for name, bound in bounds.items()})
    return tensor.requires_grad_(bool(parts["requires_grad"]))


def _check_jagged(
    values: torch.Tensor, offsets: torch.Tensor, lengths: torch.Tensor | None, dim: int
) -> torch.Tensor | None:
    """Every row lies inside the values: torch does not look. Gives their lengths, where there are any to see."""
    if not 1 <= dim <= values.dim() or offsets.dim() != 1 or len(offsets) == 0:
        raise penstock.CorruptError(f"a jagged tensor has no dimension {dim}, or no offsets")
    if not has_values(values, offsets, lengths):
        return None
    starts = offsets.to(torch.int64)
    sizes = starts.diff() if lengths is None else lengths.to(torch.int64)
    room = values.shape[dim - 1] - starts[:-1]
    fits = sizes.shape == room.shape and int(starts.min()) >= 0 and not bool(((sizes < 0) | (sizes > room)).any())
    if not fits:
        raise penstock.CorruptError(f"the rows of a jagged tensor do not lie in its values of shape {values.shape}")
    return sizes


def _known_lengths(cache: Any, sizes: torch.Tensor | None) -> dict[str, int]:
    """The bounds of the rows' lengths that torch keeps beside them, each as the size of an empty tensor."""
    kept = {name: cache[name] for name in ("min_seqlen", "max_seqlen") if isinstance(cache, dict) and name in cache}
    bounds = {name: int(part.shape[0]) for name, part in kept.items() if part is not None}
    if sizes is not None and sizes.numel():
        least, most = int(sizes.min()), int(sizes.max())
        if bounds.get("min_seqlen", 0) > least or bounds.get("max_seqlen", most) < most:
            raise penstock.CorruptError(f"a jagged tensor of rows from {least} to {most} elements has bounds {bounds}")
    return bounds


def _meta(args: Any) -> torch.Tensor:
    dtype, size, strides, requires_grad = args
    return torch.empty_strided(tuple(size), tuple(strides), dtype=dtype, device="meta", requires_grad=requires_grad)


def _wrapper(args: Any, map_location: MapLocation) -> torch.Tensor:
    """What torch makes of a wrapper's class: sizes and a type, and no memory."""
    kind, dtype, size, strides, offset, layout, device, requires_grad = args
    if isinstance(map_location, dict):
        device = map_location.get(device, map_location.get(str(device), device))
    elif isinstance(map_location, (str, torch.device)):
        device = map_location
    tensor: torch.Tensor = make_wrapper_subclass(
        kind,
        tuple(size),
        strides=tuple(strides),
        dtype=dtype,
        storage_offset=offset,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
    return tensor


def _lazy(kind: Any) -> Callable[[Any], torch.Tensor]:
    """A parameter or buffer of a lazy module: it has no shape yet."""

    def build(args: Any) -> torch.Tensor:
        (requires_grad,) = args
        if type(requires_grad) is not bool:
            raise TypeError("its flag is no bool")
        made: torch.Tensor = kind(requires_grad)
        return made

    return build


def _plain(args: Any) -> Any:
    return args[0]


def _items(args: Any) -> Items:
    return Items(args[0])


# What makes an object of a name, and what errors call it, where that is not its name. The last two have a class.
_BUILDERS: dict[str, tuple[Callable[[Any], Any] | None, str]] = {
    "": (_plain, ""),
    "items": (_items, ""),
    "torch.Size": (_size, ""),
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": (_of_device, ""),
    "torch._utils._rebuild_device_tensor_from_numpy": (_of_device, ""),
    "torch._utils._rebuild_xla_tensor": (_of_device, ""),
    "torch.device": (_device, "device"),
    "torch.nested._internal.nested_tensor._rebuild_njt": (_jagged, "jagged tensor"),
    "torch.meta_tensor": (_meta, "meta tensor"),
    "torch.nested_tensor": (_nested, "nested tensor"),
    "torch.nn.parameter.Buffer": (_buffer, ""),
    "torch.nn.parameter.Parameter": (_parameter, "parameter"),
    "torch.nn.parameter.UninitializedBuffer": (_lazy(torch.nn.parameter.UninitializedBuffer), ""),
    "torch.nn.parameter.UninitializedParameter": (_lazy(torch.nn.parameter.UninitializedParameter), ""),
    "torch.quantized": (_quantized, "quantized tensor"),
    "torch.sparse_bsc_tensor": (sparse_compressed(torch.sparse_bsc), "sparse BSC tensor"),
    "torch.sparse_bsr_tensor": (sparse_compressed(torch.sparse_bsr), "sparse BSR tensor"),
    "torch.sparse_coo_tensor": (sparse_coo, "sparse COO tensor"),
    "torch.sparse_csc_tensor": (sparse_compressed(torch.sparse_csc), "sparse CSC tensor"),
    "torch.sparse_csr_tensor": (sparse_compressed(torch.sparse_csr), "sparse CSR tensor"),
    "torch.storage.TypedStorage": (_typed_storage, ""),
    _SUBCLASS: (None, "tensor of a class of its own"),
    _WRAPPER: (None, "wrapper tensor"),
}
_NONE = (None, "")
