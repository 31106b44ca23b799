"""Devices: which there are, the memory and the streams of each, and what was copied to and from them.

    if penstock.device.is_available():
        with penstock.device.transfers() as copies:
            t = penstock.load("data.npy", device="cuda:1")
        copies.host_to_device, penstock.device.memory_stats("cuda:1")["in_use_bytes"]

Wherever a call takes a device, it takes a text too: "cuda", "cuda:1", "cpu".
"""

from __future__ import annotations

import penstock._core as _core
from penstock._api import methods_of
from penstock._core import Device, Event, Stream, Transfers

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Device",
    "Event",
    "Stream",
    "Transfers",
    "current_device",
    "device_count",
    "device_properties",
    "empty_cache",
    "is_available",
    "memory_stats",
    "set_current_device",
    "set_memory_cap",
    "synchronize",
    "transfer_stats",
    "transfers",
]


def is_available() -> bool:
    """Whether this process can use a device besides the CPU. Makes no context on any."""
    return _core.is_available()


def device_count() -> int:
    """Devices besides the CPU that this process can use."""
    return _core.device_count()


def current_device() -> Device:
    """What "cuda" stands for in this thread."""
    return _core.current_device()


def set_current_device(device: object) -> None:
    """Changes the current device of this thread.

    Parameters
    ----------
    device
        A Device, its text or its index.
    """
    _core.set_current_device(device)


def device_properties(device: object = None) -> dict[str, Any]:
    """What the driver says of a device.

    Parameters
    ----------
    device
        A Device, its text or its index; the current one unless given.

    Returns
    -------
    dict
    """
    return _core.device_properties(device)


def memory_stats(device: object = None) -> dict[str, Any]:
    """What Penstock holds of a device's memory, in bytes.

    Parameters
    ----------
    device
        A Device, its text or its index; the current one unless given.

    Returns
    -------
    dict
    """
    return _core.memory_stats(device)


def set_memory_cap(device: object, bytes: int | None) -> None:
    """Sets the most that Penstock may hold of a device at once.

    Parameters
    ----------
    device
        A Device, its text or its index; the current one unless given.
    bytes
        How many; None for no cap.
    """
    _core.set_memory_cap(device, bytes)


def empty_cache(device: object = None) -> None:
    """Returns cached memory to the driver.

    Parameters
    ----------
    device
        A Device, its text or its index; the current one unless given.
    """
    _core.empty_cache(device)


def synchronize(device: object = None) -> None:
    """Waits for all work of a device.

    Parameters
    ----------
    device
        A Device, its text or its index; the current one unless given.
    """
    _core.synchronize(device)


def transfer_stats() -> dict[str, dict[str, float]]:
    """Copies of this process so far, by direction.

    The directions are host_to_device, device_to_host, device_to_device and peer_to_peer; of each
    there are `copies` and `bytes`, `submit_seconds` that threads spent starting them, `waits`, how
    often a thread was blocked until copies were done, and `wait_seconds`, how long. Seconds of
    several threads add up.

    Returns
    -------
    dict of dicts
    """
    return _core.transfer_stats()


def transfers(*, threads: str = "all") -> Transfers:
    """Counts the transfers of a `with` block.

    Parameters
    ----------
    threads
        "all" counts those of every thread of the process, loaders' and other people's included;
        "current" what this thread submits and waits for itself.
    """
    return _core.transfers(threads)


@methods_of(_core.Device)
class DeviceMethods:
    """Where memory lies: an immutable value that equals its own text.

    Parameters
    ----------
    device
        "cpu", "cuda" (the current device), "cuda:1", or a device of torch's.
    """

    def __init__(self, device: object) -> None: ...


@methods_of(_core.Event)
class EventMethods:
    """A point in the work of a stream; `Stream.record` makes it."""

    def done(self: Event) -> bool:
        """Whether all work before it is done."""
        return self._done()

    def synchronize(self: Event) -> None:
        """Waits until it is."""
        self._synchronize()


@methods_of(_core.Stream)
class StreamMethods:
    """An ordered queue of work on a device.

    In a `with` block it is the thread's current one.

    Parameters
    ----------
    device
        A Device, its text or its index; the current one unless given.
    priority
        Lower numbers go first; 0 unless given.
    """

    def __init__(self, device: object = None, priority: int = 0) -> None: ...

    @staticmethod
    def current(device: object = None) -> Stream:
        """Where this thread's work goes.

        Parameters
        ----------
        device
            A Device, its text or its index; the current one unless given.
        """
        return Stream._current(device)

    @staticmethod
    def wrap(device: object, pointer: int) -> Stream:
        """A stream of another library; it is never destroyed here.

        Parameters
        ----------
        device
            A Device, its text or its index; the current one unless given.
        pointer
            Its handle as a number, such as `torch.cuda.Stream.cuda_stream`.
        """
        return Stream._wrap(device, pointer)

    def record(self: Stream) -> Event:
        """An event behind its work so far."""
        return self._record()

    def wait(self: Stream, event: Event | Stream) -> None:
        """Later work starts after an event, or after what another stream has to do now.

        Parameters
        ----------
        event
            What is waited for.
        """
        self._wait(event)

    def done(self: Stream) -> bool:
        """Whether all its work is done."""
        return self._done()

    def synchronize(self: Stream) -> None:
        """Waits for its work."""
        self._synchronize()


@methods_of(_core.Transfers)
class TransfersMethods:
    """What was transferred in a `with` block; `transfers()` makes one."""

    def stats(self: Transfers) -> dict[str, dict[str, float]]:
        """As `transfer_stats()`, of the block alone; inside it, so far."""
        return self._stats()


# Users know these classes by the module they import them from; tracebacks and pickles should too.
for _class in (Device, Event, Stream, Transfers):
    _class.__module__ = "penstock.device"
del _class
