"""Checkpoints read straight into the memory of a module's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn.modules.batchnorm import _NormBase

import penstock
from penstock._core import _assemble, _entry_parts, _load_into
from penstock.torch._convert import to_torch
from penstock.torch._devices import reachable
from penstock.torch._errors import torch_errors
from penstock.torch._storages import MapLocation
from penstock.torch.serialization import FileLike, load, opened

__all__ = ["IncompatibleKeys", "load_into"]


@dataclass(frozen=True)
class _EntryAt:
    """Which of an archive's entries a tensor is, where the file's own integers lie beside it."""

    number: int


class IncompatibleKeys(NamedTuple):
    """What `load_into(strict=False)` did not find in the file, and what it found there and did not need."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"{type(self).__name__}(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"


@torch_errors()
def load_into(
    target: torch.nn.Module | MutableMapping[str, Any],
    path: FileLike,
    *,
    strict: bool = True,
    assign: bool = False,
    device: MapLocation = None,
    dtype: torch.dtype | None = None,
) -> IncompatibleKeys:
    """`module.load_state_dict(torch.load(path))`, without a second copy of the parameters in memory.

    Tensors are read from the file into the memory of the module's parameters and buffers (or of the tensors of a state
    dict), on the CPU and on CUDA devices, and converted on the way where their types differ. Keys and shapes are
    checked first: missing, unexpected and misshapen ones are reported as `load_state_dict` reports them, and then
    nothing has been touched. Modules that load in a way of their own (hooks, extra state, old versions) get
    `load_state_dict` itself.

    With `assign` the module takes the file's tensors instead of filling its own; `device` says where they go (as
    map_location of `load`) and `dtype` which type the floating-point ones get. Both need `assign`.
    """
    if not assign and (device is not None or dtype is not None):
        raise ValueError("device and dtype are those of the tensors that the target has; they need assign=True")
    if assign:
        return _assign(target, _converted(load(path, map_location=device), dtype), strict)
    module = target if isinstance(target, torch.nn.Module) else None
    with opened(path, verify=True) as archive:
        entries = _flat_entries(archive)
        if entries is None or (module is not None and _has_own_ways(module)):
            return _assign(target, load(path), strict, copy=True)
        wanted = _tensors_in(target) if not isinstance(target, torch.nn.Module) else dict(_tensors_of(target))
        if module is not None:
            for key in _keys_of_later(module, entries):
                del wanted[key]
        shapes = {key: _entry_parts(archive, entry)[2] for key, entry in entries.items()}
        keys = _check(target, wanted, shapes, strict)
        _fill(archive, entries, {key: tensor for key, tensor in wanted.items() if key in entries})
    return keys


# What the file has.


def _flat_entries(archive: penstock.Archive) -> dict[str, int] | None:
    """The entry of each key, when the file is a plain dict of tensors; None when only loading it all can tell."""
    strange = []

    def named(name: str, args: Any, state: Any, begun: Any) -> Any:
        if name in {"", "torch.nn.parameter.Parameter"} and state is None:
            return args[0]
        strange.append(name)
        return name

    content = _assemble(archive, [_EntryAt(number) for number in range(len(archive))], named)
    if strange or not isinstance(content, dict):
        return None
    if not all(isinstance(key, str) and isinstance(entry, _EntryAt) for key, entry in content.items()):
        return None
    for key, entry in content.items():  # in place: the dict may carry `_metadata`
        content[key] = entry.number
    return content


# What the target has.


def _has_own_ways(module: torch.nn.Module) -> bool:
    """Whether loading means more than copying: what torch's load_state_dict calls for it is not torch's own default.

    Of a meta tensor only torch can say that nothing is copied into it.
    """
    if torch.__future__.get_swap_module_params_on_conversion() or any(t.is_meta for _, t in _tensors_of(module)):
        return True
    plain = torch.nn.Module._load_from_state_dict
    norm = _NormBase._load_from_state_dict  # differs where its counter is not in the file
    for part in module.modules():
        kind = type(part)
        if (
            kind._load_from_state_dict not in (plain, norm)
            or kind.load_state_dict is not torch.nn.Module.load_state_dict
        ):
            return True
        if kind.get_extra_state is not torch.nn.Module.get_extra_state:
            return True
        if part._load_state_dict_pre_hooks or part._load_state_dict_post_hooks:
            return True
    return False


def _keys_of_later(module: torch.nn.Module, state: Mapping[str, Any]) -> Iterator[str]:
    """Counters of batches that a state dict of before their time lacks, and which then stay as they are."""
    versions = getattr(state, "_metadata", {})
    for name, part in module.named_modules(remove_duplicate=False):
        if isinstance(part, _NormBase) and part.num_batches_tracked is not None:
            key = f"{name}.num_batches_tracked".lstrip(".")
            if key not in state and (versions.get(name, {}).get("version") or 0) < 2:
                yield key


def _tensors_of(module: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and persistent buffers in the order in which load_state_dict visits them."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield prefix + name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield prefix + name, buffer
    for name, child in module._modules.items():
        if child is not None:
            yield from _tensors_of(child, f"{prefix}{name}.")


def _tensors_in(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}


def _check(
    target: object, wanted: Mapping[str, torch.Tensor], shapes: Mapping[str, tuple[int, ...]], strict: bool
) -> IncompatibleKeys:
    keys = IncompatibleKeys([key for key in wanted if key not in shapes], [key for key in shapes if key not in wanted])
    messages = []
    if strict and keys.unexpected_keys:
        messages.append(f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}. ")
    if strict and keys.missing_keys:
        messages.insert(0, f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}. ")
    messages += [
        f"size mismatch for {key}: copying a param with shape {torch.Size(shapes[key])} from checkpoint, the shape in "
        f"current model is {tensor.shape}."
        for key, tensor in wanted.items()
        if key in shapes and not _fits(tensor, shapes[key])
    ]
    if messages:
        raise RuntimeError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(type(target).__name__, "\n\t".join(messages))
        )
    return keys


def _fits(tensor: torch.Tensor, shape: tuple[int, ...]) -> bool:
    """torch lets one element of shape (1,) stand for a scalar, as files before 0.4 have it."""
    return tuple(tensor.shape) == shape or (tensor.dim() == 0 and shape == (1,))


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


# Moving.


def _fill(archive: penstock.Archive, entries: dict[str, int], places: dict[str, torch.Tensor]) -> None:
    """Reads into place where the memory is there for it, and the place's own; else tensor by tensor and then over, in
    order. The last of tied keys counts."""
    last = {_memory_of(tensor): key for key, tensor in places.items()}
    direct: list[tuple[int, torch.Tensor]] = []
    copied: list[tuple[int, torch.Tensor]] = []
    own = _with_memory_of_their_own([places[key] for key in last.values()])
    with torch.no_grad():
        for key, is_alone in zip(last.values(), own, strict=True):
            place, number = places[key].detach(), entries[key]
            if not is_alone or not _can_be_read_into(place) or _loses_parts(archive, number, place):
                copied.append((number, place))
            elif place.numel():
                direct.append((number, place.reshape(_entry_parts(archive, number)[2])))
        _load_into(archive, [number for number, _ in direct], [place for _, place in direct])
        for number, place in copied:
            place.copy_(_one(archive, number))
    # As torch's copies would: a backward pass through what was there before must not go on.
    for _, place in direct:
        if not place.is_inference():
            torch.autograd.graph.increment_version(place)


def _memory_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What two names of the same elements have in common, and nothing else has."""
    if not _has_span(tensor):
        return (id(tensor),)
    return (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.is_conj())


def _has_span(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_meta and tensor.numel() > 0


def _with_memory_of_their_own(tensors: list[torch.Tensor]) -> list[bool]:
    """For each tensor whether neither another one nor an element of its own lies where it does."""
    alone = [not _has_span(tensor) or torch._debug_has_internal_overlap(tensor) == 0 for tensor in tensors]
    spans = []
    for number, tensor in enumerate(tensors):
        if _has_span(tensor):
            steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            begin = tensor.data_ptr()
            spans.append((str(tensor.device), begin, begin + (steps + 1) * tensor.itemsize, number))
    reach: tuple[str, int, int] = ("", 0, -1)  # device, end, and whose that is
    for device, begin, end, number in sorted(spans):
        if device == reach[0] and begin < reach[1]:
            alone[number] = alone[reach[2]] = False
        if device != reach[0] or end > reach[1]:
            reach = (device, end, number)
    return alone


def _can_be_read_into(place: torch.Tensor) -> bool:
    if place.is_conj() or place.is_neg() or place.is_quantized or place.layout != torch.strided:
        return False
    return place.device.type == "cpu" or reachable(place.device) is not None


def _loses_parts(archive: penstock.Archive, number: int, place: torch.Tensor) -> bool:
    """Whether imaginary parts are left out, of which torch warns."""
    return _entry_parts(archive, number)[1].startswith("complex") and not place.is_complex()


def _one(archive: penstock.Archive, number: int) -> torch.Tensor:
    name = archive.keys()[number]
    return to_torch(archive[name].load())


def _assign(target: Any, state: Any, strict: bool, *, copy: bool = False) -> IncompatibleKeys:
    if not isinstance(state, Mapping):
        raise penstock.DTypeMismatchError(
            f"the file holds a {type(state).__name__}, where a state dict was expected: load it and take the state "
            "dict out of it"
        )
    if isinstance(target, torch.nn.Module):
        result = target.load_state_dict(state, strict=strict, assign=not copy)
        return IncompatibleKeys(list(result.missing_keys), list(result.unexpected_keys))
    wanted = _tensors_in(target)
    shapes = {key: tuple(value.shape) for key, value in state.items() if isinstance(value, torch.Tensor)}
    keys = _check(target, wanted, shapes, strict)
    for key in wanted:
        if key not in shapes:
            continue
        if copy:
            with torch.no_grad():
                wanted[key].copy_(state[key])
        else:
            target[key] = state[key]
    return keys


def _converted(state: Any, dtype: torch.dtype | None) -> Any:
    if dtype is None or not isinstance(state, MutableMapping):
        return state
    for key, value in state.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            state[key] = value.to(dtype)
    return state
