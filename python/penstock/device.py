"""Devices: which there are, the memory and the streams of each, and what was copied to and from them.

    if penstock.device.is_available():
        with penstock.device.transfers() as copies:
            t = penstock.load("data.npy", device="cuda:1")
        copies.host_to_device, penstock.device.memory_stats("cuda:1")["in_use_bytes"]

Wherever a call takes a device, it takes a text too: "cuda", "cuda:1", "cpu".
"""

from penstock._core import (
    Device,
    Event,
    Stream,
    Transfers,
    current_device,
    device_count,
    device_properties,
    empty_cache,
    is_available,
    memory_stats,
    set_current_device,
    set_memory_cap,
    synchronize,
    transfer_stats,
    transfers,
)

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

# Users know these classes by the module they import them from; tracebacks and pickles should too.
for _class in (Device, Event, Stream, Transfers):
    _class.__module__ = "penstock.device"
del _class
