"""What torch and Python keep for each thread, carried to the threads that call a program's functions.

Python cannot call what torch has for this (`at::ThreadLocalState`). So its parts are copied one by one here, and the
settings of autocast, which torch keeps elsewhere. What belongs to the whole process (default dtype, deterministic
algorithms, anomaly detection) needs no copy. Not carried is how many threads torch computes with: it is one, as in
torch's worker processes, because each of several threads that wants all processors waits for the others. The transforms
of `torch.func` are left out, because their layers belong to one thread. So is a profiler, which torch enables for one
thread and cannot share from Python.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from penstock.torch import _private


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
    getattr(_private.DispatchKey, name)
    for name in ("Python", "PythonTLSSnapshot", "FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode")
)


# The flags of autograd, in the order in which they are set.
_FLAGS = (
    (torch.is_grad_enabled, _private.set_grad_enabled),
    (_private.is_fwd_grad_enabled, _private.set_fwd_grad_enabled),
    (_private.is_view_replay_enabled, _private.set_view_replay_enabled),
    (_private.is_multithreading_enabled, _private.set_multithreading_enabled),
)


def _flags() -> tuple[bool, ...]:
    return tuple([is_set() for is_set, _ in _FLAGS])


def _set_flags(wanted: tuple[bool, ...]) -> None:
    for (_, set_to), value in zip(_FLAGS, wanted, strict=True):
        set_to(value)


def _autocast() -> tuple[bool, tuple[torch.dtype, ...]]:
    """Whether autocast caches, and its types. Whether it is on is one of the dispatcher's keys."""
    return torch.is_autocast_cache_enabled(), tuple(map(torch.get_autocast_dtype, _AUTOCAST_TYPES))


def _set_autocast(wanted: tuple[bool, tuple[torch.dtype, ...]]) -> None:
    torch.set_autocast_cache_enabled(wanted[0])
    for name, dtype in zip(_AUTOCAST_TYPES, wanted[1], strict=True):
        torch.set_autocast_dtype(name, dtype)


def _keys() -> tuple[int, int]:
    """The dispatcher's keys: the included and the excluded ones."""
    return _private.included_keys().raw_repr(), _private.excluded_keys().raw_repr()


def _key_set(raw: int) -> Any:
    keys = _private.key_set_of(raw)
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


def settings_now() -> tuple[object, ...]:
    """What a function can set of this thread without a block that takes it back."""
    device = getattr(_private.global_device_context, "device_context", None)
    modes = _private.function_mode_stack(), _private.dispatch_mode_stack()
    return torch.get_num_threads(), _flags(), _keys(), _autocast(), device, modes, _streams()


class ThreadState:
    """The state of the thread that makes it, for calls in other threads."""

    def __init__(self) -> None:
        self._context = contextvars.copy_context()
        self._thread = threading.get_ident()
        self._flags = _flags()
        self._inference = torch.is_inference_mode_enabled()
        self._keys = _keys()
        self._autocast = _autocast()
        self._function_state = _private.function_state()
        self._function_modes = _private.function_mode_stack()
        self._default_device = getattr(_private.global_device_context, "device_context", None)
        self._dispatch_modes = _private.dispatch_mode_stack()
        self._no_hooks = _private.saved_hooks_disabled()
        self._hooks = _private.top_saved_hooks(True)
        self._streams = _streams()

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls `function(*args)` as the thread that made this would have called it. It may be used once."""
        return self._context.run(self._call, function, *args)

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        with ExitStack() as undo:
            self._enter(undo)
            return function(*args)

    def _enter(self, undo: ExitStack) -> None:
        """Sets the state of this thread. Modes come last, because they would see everything that is set after them."""
        if threading.get_ident() != self._thread:
            _compute_with_one_thread()
        if self._streams is not None:
            _enter_streams(*self._streams, undo)
        if self._inference:
            undo.enter_context(_private.InferenceMode(True))
        if _keys() != self._keys:
            undo.enter_context(_private.ForceDispatchKeyGuard(*map(_key_set, self._keys)))
        _exchange(undo, _flags(), self._flags, _set_flags)
        _exchange(undo, _autocast(), self._autocast, _set_autocast)
        if _private.is_any_autocast_enabled():
            undo.enter_context(_cached_casts())
        self._enter_hooks(undo)
        for mode in self._dispatch_modes:
            undo.enter_context(_pushed(mode))
        _exchange(
            undo,
            getattr(_private.global_device_context, "device_context", None),
            self._default_device,
            _set_default_device,
        )
        for mode in self._function_modes:
            _private.push_function_mode(mode)
            undo.callback(_private.pop_function_mode)
        _exchange(undo, _private.function_state(), self._function_state, _private.set_function_state)

    def _enter_hooks(self, undo: ExitStack) -> None:
        """Sets the hooks for tensors that autograd saves. The newest pair is the one in use, so that it is set last."""
        if self._hooks is not None:
            _private.push_saved_hooks(*self._hooks)
            undo.callback(_private.pop_saved_hooks)
        if self._no_hooks is not None:
            _private.disable_saved_hooks(self._no_hooks, fail_if_non_empty=False)
            undo.callback(_private.enable_saved_hooks)


def _compute_with_one_thread() -> None:
    """Has torch's operations in this thread use one thread. torch also keeps the number that was set last for threads
    that begin later, so that another thread puts that back."""
    others = torch.get_num_threads()  # before anything is set: a thread's first call overwrites its number
    if others == 1:
        return
    torch.set_num_threads(1)
    puts_back = threading.Thread(target=torch.set_num_threads, args=(others,), daemon=True)
    try:
        puts_back.start()
    except RuntimeError:  # no more threads to be had
        return
    puts_back.join()


def _exchange(undo: ExitStack, before: Any, wanted: Any, set_to: Callable[[Any], None]) -> None:
    if wanted != before:
        undo.callback(set_to, before)
        set_to(wanted)


def _set_default_device(context: Any) -> None:
    _private.global_device_context.device_context = context


@contextmanager
def _pushed(mode: Any) -> Iterator[None]:
    _private.push_dispatch_mode(mode)
    try:
        yield
    finally:
        _private.pop_dispatch_mode(getattr(mode, "_dispatch_key", None) or getattr(mode, "_mode_key", None))


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
