"""The error of a batch that is not there in time."""

from __future__ import annotations

import penstock


class LoaderTimeoutError(penstock.TimedOutError, RuntimeError):
    """A batch took longer than the loader's `timeout`; a RuntimeError too, as from torch's own loader."""


def timed_out(timeout: float | None) -> LoaderTimeoutError:
    return LoaderTimeoutError(f"DataLoader timed out after {timeout} seconds")
