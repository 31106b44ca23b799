"""Ranks that agree: what each of them has found, and whether each has done its part.

Everything that ranks do together goes through `Ranks.gather`, in the same order on all of them. So an error of one rank
is told to all before anyone waits for bytes that never come, and a rank that has died ends the others: by the broken
connection, or by the time-out of the process group.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

import penstock
from penstock._core import _entry_parts, _file_versions, _storage_count, _storage_parts

__all__ = ["Ranks", "agreed", "ranks_of"]


@dataclass(frozen=True)
class _Told:
    """What a rank says of the file that it has opened."""

    error: str | None
    host: str
    plan: str = ""
    versions: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()


class Ranks:
    """The processes that read together."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        self.hosts: list[str] = []

    def gather(self, told: Any) -> list[Any]:
        """What each rank tells, by rank."""
        out: list[Any] = [None] * self.size
        with self.answering():
            dist.all_gather_object(out, told, group=self.group)
        return out

    @contextlib.contextmanager
    def answering(self) -> Any:
        """InputOutputError where another rank has died, or does not answer within the time-out of the group."""
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, penstock.Error):
                raise
            reason = str(error).strip().partition("\n")[0]
            raise penstock.InputOutputError(
                f"rank {self.rank} of {self.size} waited for the others in vain: one has ended, or does not answer "
                f"within the time-out of the process group ({reason})"
            ) from error

    def require(self, error: BaseException | None, doing: str) -> None:
        """Raises on all ranks where one of them has failed: there its own error, elsewhere one that says which rank."""
        try:
            all_told = self.gather(None if error is None else f"{type(error).__name__}: {error}")
        except penstock.Error:
            if error is not None:
                raise error from None
            raise
        if error is not None:
            raise error
        for rank, text in enumerate(all_told):
            if text is not None:
                raise penstock.InputOutputError(f"rank {rank} could not {doing}: {text}")

    def source(self, rank: int) -> int:
        """Its number in the world, which collectives ask for."""
        return dist.get_global_rank(self.group, rank)

    def on_this_host(self) -> list[int]:
        return [rank for rank, host in enumerate(self.hosts) if host == self.hosts[self.rank]]


def ranks_of(given: Any) -> Ranks | None:
    """The argument `ranks` of a load; None where this process reads for itself."""
    if given is None:
        return None
    if isinstance(given, str) and given == "auto":
        given = dist.group.WORLD if dist.is_available() and dist.is_initialized() else None
        return None if given is None or dist.get_world_size(given) == 1 else Ranks(given)
    if not dist.is_available() or not isinstance(given, dist.ProcessGroup):
        message = f'found ranks={given!r}, expected "auto" or a process group of torch.distributed'
        raise penstock.DTypeMismatchError(message)
    return Ranks(given)


def agreed(ranks: Ranks, open_file: Callable[[], penstock.Archive], options: str) -> penstock.Archive:
    """What `open_file` gives, when it has given the same on all ranks, and the options are the same."""
    host = _host()
    error: Exception | None = None
    try:
        opened = open_file()
        own = _told(host, opened, options)
    except Exception as failure:
        error = failure
        own = _Told(f"{type(failure).__name__}: {failure}", host)
    try:
        told: list[_Told] = ranks.gather(own)
    except penstock.Error:
        if error is not None:
            raise error from None
        raise
    if error is not None:
        raise error
    ranks.hosts = [each.host for each in told]
    for rank, each in enumerate(told):
        if each.error is not None:
            raise penstock.InputOutputError(
                f"rank {rank} could not open what this rank was to read with it: {each.error}"
            )
    _require_alike(told, own)
    return opened


def _require_alike(told: list[_Told], own: _Told) -> None:
    first = told[0]
    for rank, each in enumerate(told):
        if each.plan == first.plan and (each.versions == first.versions or each.host != first.host):
            continue
        what = "other tensors, or other arguments," if each.plan != first.plan else "another version of the file"
        name = own.names[0] if own.names else ""
        message = (
            f"rank {rank} has {what} ({each.names[0]}) than rank 0 ({first.names[0]}); give all ranks the "
            "same file and the same arguments"
        )
        raise penstock.InvalidArgumentError(f"{name}: {message}", message, name)


def _told(host: str, archive: penstock.Archive, options: str) -> _Told:
    plan = hashlib.sha256(f"{archive.format} {options}".encode())
    for name, index in zip(archive.keys(), range(len(archive)), strict=True):
        plan.update(repr((name, _entry_parts(archive, index))).encode())
    sources: dict[str, None] = {}
    for number in range(_storage_count(archive)):
        nbytes, location, source, offset = _storage_parts(archive, number)
        plan.update(repr((nbytes, location, offset)).encode())
        sources[source] = None
    return _Told(None, host, plan.hexdigest(), tuple(_file_versions(archive)), (archive.path,))


def _host() -> str:
    """The same for processes that can share memory."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()} {os.stat('/proc/self/ns/pid').st_ino}"
