"""What torch and Python keep for each thread, carried to the threads that call a program's functions.

Python cannot call what torch has for this (`at::ThreadLocalState`). So its parts are copied one by one here, and the
settings of autocast, which torch keeps elsewhere. What belongs to the whole process (default dtype, deterministic
algorithms, anomaly detection) needs no copy. The transforms of `torch.func` are left out, because their layers belong
to one thread. So is a profiler, which torch enables for one thread and cannot share from Python.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _python_dispatch

__all__ = ["ThreadState"]

_C: Any = torch._C


def _types_with_autocast() -> tuple[str, ...]:
    names = ("cpu", "cuda", "mps", "xpu", "hpu", "xla", "mtia", "ipu", "maia")
    found = []
    for name in names:
        try:
            torch.get_autocast_dtype(name)
        except RuntimeError:
            continue
        found.append(name)
    return tuple(found)


_AUTOCAST_TYPES = _types_with_autocast()
# What pushing a mode sets by itself, and what stands for layers of torch.func.
_NOT_CARRIED = tuple(
    getattr(_C.DispatchKey, name)
    for name in ("Python", "PythonTLSSnapshot", "FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode")
)


class _Flags(NamedTuple):
    """The flags of autograd, in the order in which they are set."""

    grad: bool
    forward_grad: bool
    view_replay: bool
    multithreading: bool


_SETTERS = (_C._set_grad_enabled, _C._set_fwd_grad_enabled, _C._set_view_replay_enabled, _C._set_multithreading_enabled)


def _flags() -> _Flags:
    return _Flags(
        torch.is_grad_enabled(),
        _C._is_fwd_grad_enabled(),
        _C._is_view_replay_enabled(),
        _C._is_multithreading_enabled(),
    )


class _Autocast(NamedTuple):
    """The settings of autocast. Whether it is on is one of the dispatcher's keys."""

    cache: bool
    dtypes: tuple[torch.dtype, ...]


def _autocast() -> _Autocast:
    return _Autocast(torch.is_autocast_cache_enabled(), tuple(map(torch.get_autocast_dtype, _AUTOCAST_TYPES)))


def _set_autocast(wanted: _Autocast) -> None:
    torch.set_autocast_cache_enabled(wanted.cache)
    for name, dtype in zip(_AUTOCAST_TYPES, wanted.dtypes, strict=True):
        torch.set_autocast_dtype(name, dtype)


def _keys() -> tuple[int, int]:
    """The dispatcher's keys: the included and the excluded ones."""
    return _C._dispatch_tls_local_include_set().raw_repr(), _C._dispatch_tls_local_exclude_set().raw_repr()


def _key_set(raw: int) -> Any:
    keys = _C.DispatchKeySet.from_raw_repr(raw)
    for key in _NOT_CARRIED:
        keys = keys.remove(key)
    return keys


def _streams() -> tuple[int, Any] | None:
    """The accelerator's current device and stream; nothing before something has used one."""
    if torch.cuda.is_available() and not torch.cuda.is_initialized():
        return None
    accelerator = torch.accelerator
    if not accelerator.is_available():
        return None
    index = accelerator.current_device_index()
    return index, accelerator.current_stream(index)


class ThreadState:
    """The state of the thread that makes it, for calls in other threads."""

    def __init__(self) -> None:
        self._context = contextvars.copy_context()
        self._threads = torch.get_num_threads()
        self._flags = _flags()
        self._inference = torch.is_inference_mode_enabled()
        self._keys = _keys()
        self._autocast = _autocast()
        self._function_state = _C._get_torch_function_state()
        self._function_modes = _get_current_function_mode_stack()
        self._default_device = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
        self._dispatch_modes = _python_dispatch._get_current_dispatch_mode_stack()
        self._no_hooks = _C._autograd._saved_tensors_hooks_get_disabled_error_message()
        self._hooks = _C._autograd._top_saved_tensors_default_hooks(True)
        self._streams = _streams()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls `function(*args)` as the thread that made this would have called it. It may be used
        once."""
        return self._context.run(self._call, function, *args)

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        with ExitStack() as undo:
            self._enter(undo)
            return function(*args)

    def _enter(self, undo: ExitStack) -> None:
        """Sets the state of this thread. Modes come last, because they would see everything that is set after them."""
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)  # which is OpenMP's number for this thread
        if self._streams is not None:
            _enter_streams(*self._streams, undo)
        if self._inference:
            undo.enter_context(_C._InferenceMode(True))
        if _keys() != self._keys:
            undo.enter_context(_C._ForceDispatchKeyGuard(*map(_key_set, self._keys)))
        _exchange(undo, _flags(), self._flags, _set_flags)
        _exchange(undo, _autocast(), self._autocast, _set_autocast)
        if _C._is_any_autocast_enabled():
            undo.enter_context(_cached_casts())
        self._enter_hooks(undo)
        for mode in self._dispatch_modes:
            undo.enter_context(_pushed(mode))
        _exchange(
            undo,
            getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None),
            self._default_device,
            _set_default_device,
        )
        for mode in self._function_modes:
            _C._push_on_torch_function_stack(mode)
            undo.callback(_C._pop_torch_function_stack)
        _exchange(undo, _C._get_torch_function_state(), self._function_state, _C._set_torch_function_state)

    def _enter_hooks(self, undo: ExitStack) -> None:
        """Sets the hooks for tensors that autograd saves. The newest pair is the one in use, so that it is set last."""
        autograd = _C._autograd
        if self._hooks is not None:
            autograd._push_saved_tensors_default_hooks(*self._hooks)
            undo.callback(autograd._pop_saved_tensors_default_hooks)
        if self._no_hooks is not None:
            autograd._saved_tensors_hooks_disable(self._no_hooks, fail_if_non_empty=False)
            undo.callback(autograd._saved_tensors_hooks_enable)


def _exchange(undo: ExitStack, before: Any, wanted: Any, set_to: Callable[[Any], None]) -> None:
    if wanted != before:
        undo.callback(set_to, before)
        set_to(wanted)


def _set_flags(wanted: _Flags) -> None:
    for set_to, value in zip(_SETTERS, wanted, strict=True):
        set_to(value)


def _set_default_device(context: Any) -> None:
    torch._GLOBAL_DEVICE_CONTEXT.device_context = context


@contextmanager
def _pushed(mode: Any) -> Iterator[None]:
    _python_dispatch._push_mode(mode)
    try:
        yield
    finally:
        _python_dispatch._pop_mode(getattr(mode, "_dispatch_key", None) or getattr(mode, "_mode_key", None))


@contextmanager
def _cached_casts() -> Iterator[None]:
    """Clears the cached casts afterwards, as the end of torch.autocast does: a cast that is kept longer would outlive
    changes of its weights."""
    torch.autocast_increment_nesting()
    try:
        yield
    finally:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()


def _enter_streams(index: int, stream: Any, undo: ExitStack) -> None:
    accelerator = torch.accelerator
    undo.callback(accelerator.set_device_index, accelerator.current_device_index())
    accelerator.set_device_index(index)
    undo.callback(accelerator.set_stream, accelerator.current_stream(index))
    accelerator.set_stream(stream)
