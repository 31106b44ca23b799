"""torch's memory on CUDA devices, which Penstock reads into through its pinned ring."""

from __future__ import annotations

from typing import Any

import torch

import penstock
from penstock._core import _load_storages_into, _load_typed_into


def device_of(device: str | int | torch.device) -> torch.device:
    """The device that an argument names, also as the text of a number; InvalidArgumentError where it names none."""
    text = str(device)
    try:
        return torch.device(int(text) if text.isdigit() else text)
    except RuntimeError as error:
        if text.isdigit():  # of the accelerator that there is
            raise _absent(device, _first_line(error)) from error
        raise penstock.InvalidArgumentError(
            f"found device={device!r}, expected a device of torch, such as 'cuda:0'; {_first_line(error)}"
        ) from error


def present(device: str | int | torch.device) -> torch.device:
    """The device that an argument names; NoDeviceError where this machine has none of that name, for which torch has
    other errors in each of its builds."""
    place = device_of(device)
    if why := _why_absent(place):
        raise _absent(str(place), why)
    return place


def _absent(device: object, why: str) -> penstock.NoDeviceError:
    return penstock.NoDeviceError(
        f"found device={device!r}, expected a device of this machine: {why}; give one that is here, or 'cpu'"
    )


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


def _why_absent(place: torch.device) -> str:
    if place.type == "cuda":  # asked without starting CUDA, which a process that forks must not
        if not torch.cuda.is_available():
            return "torch finds no CUDA device"
        count = torch.cuda.device_count()
        return "" if (place.index or 0) < count else f"torch finds {count} CUDA device{'s' if count != 1 else ''}"
    if place.type in ("cpu", "meta"):
        return ""
    try:
        torch.empty(0, device=place)
    except Exception as error:  # of whoever makes that kind of device
        return _first_line(error)
    return ""


def reachable(location: str | int | torch.device) -> torch.device | None:
    """The CUDA device of that name, with its number, where both torch and Penstock can use it; otherwise None."""
    try:
        device = torch.device(location)
    except RuntimeError:
        return None
    if device.type != "cuda" or not (torch.cuda.is_available() and penstock.device.is_available()):
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    count = min(torch.cuda.device_count(), penstock.device.device_count())
    return torch.device("cuda", index) if index < count else None


def filled(
    archive: penstock.Archive, places: dict[int, tuple[int, torch.device]], progress: Any = None
) -> dict[int, Any]:
    """Reads the bytes of storages into torch's memory: {storage: (nbytes, device)}; each device has its number.

    torch allocates the memory, so that it is counted, cached and ordered with its streams like all of torch's memory.
    """
    memory = {number: _memory(nbytes, device) for number, (nbytes, device) in places.items()}
    _load_storages_into(archive, memory, progress)
    return memory


def filled_typed(
    archive: penstock.Archive,
    converted: dict[int, tuple[int, torch.device, tuple[int, ...]]],
    places: dict[int, tuple[int, torch.device]],
    dtype: penstock.DType,
    strict: bool,
    progress: Any = None,
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Reads entries as `dtype`, {entry: (nbytes, device, strides)}, and storages as they are, as `filled` does."""
    typed = {number: (_memory(nbytes, device), strides) for number, (nbytes, device, strides) in converted.items()}
    memory = {number: _memory(nbytes, device) for number, (nbytes, device) in places.items()}
    _load_typed_into(archive, typed, memory, dtype, strict, progress)
    return {number: bytes_ for number, (bytes_, _) in typed.items()}, memory


def _memory(nbytes: int, device: torch.device) -> Any:
    return torch.empty(nbytes, dtype=torch.uint8, device=device)
