"""States of random generators as plain text and numbers, which any way of saving takes, JSON too."""

from __future__ import annotations

import base64
import binascii
import random
import sys
from typing import Any

import torch


def text_of(state: torch.Tensor) -> str:
    return base64.b64encode(bytes(state.tolist())).decode("ascii")


def generator_state(text: Any) -> torch.Tensor:
    """ValueError for what `text_of` did not write."""
    try:
        content = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        content = b""
    if not content:
        raise ValueError("it is no state of a random generator")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def process_state() -> dict[str, Any]:
    """Of torch's, Python's and NumPy's global generators: those that torch seeds in each worker."""
    version, numbers, gauss = random.getstate()
    out: dict[str, Any] = {"torch": text_of(torch.get_rng_state()), "python": [version, list(numbers), gauss]}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        out["numpy"] = [kind, keys.tolist(), *rest]
    return out


def put_process_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(generator_state(state["torch"]))
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        numpy.random.set_state(tuple(state["numpy"]))
