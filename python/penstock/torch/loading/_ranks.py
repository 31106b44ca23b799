"""Ranks that agree: what each of them has found, and whether each has done its part.

Everything that ranks do together goes through `Ranks.gather`, in the same order on all of them. So an error of one rank
is told to all before anyone waits for bytes that never come, and a rank that has died ends the others: by the broken
connection, or by the time-out of the process group.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist

import penstock
from penstock._core import _entry_parts, _file_versions, _storage_count, _storage_parts

Result = TypeVar("Result")


@dataclass(frozen=True)
class Plan:
    """What ranks compare: a digest of what is to be read, the versions of the files, and the name of the first."""

    digest: str
    versions: tuple[Any, ...]
    name: str


@dataclass(frozen=True)
class _Told:
    """What a rank says of the file that it has opened."""

    error: str | None
    host: str
    plan: Plan


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
            reason = str(error).strip().partition("\n")[0].partition(". ")[0]
            raise penstock.InputOutputError(
                f"rank {self.rank} of {self.size} waited for the others in vain: one has ended, or does not answer "
                f"within the time-out of the process group ({reason})"
            ) from error

    def told_by_all(self, told: Any, error: BaseException | None) -> list[Any]:
        """What each rank tells, by rank. Raises `error` once all know of it, whatever became of the others."""
        try:
            all_told = self.gather(told)
        except penstock.Error:
            if error is not None:
                raise error from None
            raise
        if error is not None:
            raise error
        return all_told

    def require(self, error: BaseException | None, doing: str) -> None:
        """Raises on all ranks where one of them has failed: there its own error, elsewhere one that says which rank."""
        told = None if error is None else f"could not {doing}: {type(error).__name__}: {error}"
        all_told = self.told_by_all(told, error)
        for rank, text in enumerate(all_told):
            if text is not None:
                raise penstock.InputOutputError(f"rank {rank} {text}")

    def require_backend(self, device: torch.device) -> None:
        """UnsupportedError, on all ranks alike, where the group does not send memory of such a device."""
        kinds = getattr(self.group, "_device_types", [])
        if kinds and device.type not in {kind.type for kind in kinds}:
            raise penstock.UnsupportedError(
                f"the process group sends no memory of {device.type!r}, which ranks= has to send here; it needs "
                '"cpu:gloo,cuda:nccl"'
            )

    def send(self, block: torch.Tensor, shares: Iterable[tuple[int, int, int]]) -> None:
        """Parts of a block, (begin, end, rank), each from the rank that has read it to all others."""
        with self.answering():
            works = []
            for begin, end, rank in shares:
                source = dist.get_global_rank(self.group, rank)  # collectives ask for its number in the world
                works.append(dist.broadcast(block[begin:end], source, group=self.group, async_op=True))
            for work in works:
                work.wait()

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


@contextlib.contextmanager
def telling(given: Any) -> Iterator[None]:
    """For what comes before `agreed`, such as a look at the arguments: the others wait there, so that an error of this
    rank has to be told to them. `given`: the argument `ranks`."""
    ranks = ranks_of(given)
    try:
        yield
    except Exception as error:
        if ranks is not None:
            ranks.told_by_all(_failed(error), error)
        raise


def agreed(ranks: Ranks, make: Callable[[], Result], describe: Callable[[Result], Plan]) -> Result:
    """What `make` gives, when it has given the same on all ranks: files of the same version and the same plan."""
    error: Exception | None = None
    try:
        made = make()
        own = _Told(None, _host(), describe(made))
    except Exception as failure:
        error = failure
        own = _failed(failure)
    told: list[_Told] = ranks.told_by_all(own, error)
    for rank, each in enumerate(told):
        if not isinstance(each, _Told):  # it is in another call, or has stopped
            raise penstock.InputOutputError(f"rank {rank} {each or 'is in another call of the program'}")
        if each.error is not None:
            raise penstock.InputOutputError(
                f"rank {rank} could not open what this rank was to read with it: {each.error}"
            )
    ranks.hosts = [each.host for each in told]
    _require_alike(told, own)
    return made


def _failed(error: Exception) -> _Told:
    return _Told(f"{type(error).__name__}: {error}", _host(), Plan("", (), ""))


def _require_alike(told: list[_Told], own: _Told) -> None:
    first = told[0]
    for rank, each in enumerate(told):
        same_plan = each.plan.digest == first.plan.digest
        if same_plan and (each.plan.versions == first.plan.versions or each.host != first.host):
            continue
        what = "another version of the file" if same_plan else "other tensors, or other arguments,"
        name = own.plan.name
        message = (
            f"rank {rank} has {what} ({each.plan.name}) than rank 0 ({first.plan.name}); give all ranks the same file "
            "and the same arguments"
        )
        raise penstock.InvalidArgumentError(f"{name}: {message}", message, name)


def plan_of(archives: Sequence[penstock.Archive], options: str) -> Plan:
    """Of all that is in some files."""
    digest = hashlib.sha256(options.encode())
    versions: list[Any] = []
    for archive in archives:
        digest.update(archive.format.encode())
        for index, name in enumerate(archive.keys()):
            digest.update(repr((name, _entry_parts(archive, index))).encode())
        for number in range(_storage_count(archive)):
            nbytes, location, _, offset = _storage_parts(archive, number)
            digest.update(repr((nbytes, location, offset)).encode())
        versions += _file_versions(archive)
    return Plan(digest.hexdigest(), tuple(versions), archives[0].path if archives else "")


def _host() -> str:
    """The same for processes that can share memory, as far as the system tells; they try it."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:  # a sandbox may have neither
        return os.uname().nodename
