"""Loads whose storages lie in one block: what `shared`, `pinned` and `ranks` ask for, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

import penstock
from penstock.torch._devices import present, reachable
from penstock.torch.loading._once import BlockLayout, Kind, Loaded, read_once, read_pinned, read_shared
from penstock.torch.loading._parts_once import read_parts
from penstock.torch.loading._ranks import Ranks, agreed, plan_of, ranks_of


@dataclass(frozen=True)
class Together:
    """That other processes map the block (`shared`), that it is page-locked (`pinned`), or that `ranks` read it.
    `alike`: the arguments that all ranks give alike."""

    shared: bool
    pinned: bool
    ranks: Ranks | None
    report: dict[str, Any] | None
    alike: str

    def read(
        self, archive: penstock.Archive, device: torch.device, layout: BlockLayout, progress: Any, *, stays: bool
    ) -> Loaded:
        """The archive's storages, as they are laid out. `stays`: the host is where they belong."""
        if (self.shared or self.pinned) and not stays:
            asked = "shared" if self.shared else "pinned"
            raise penstock.UnsupportedError(
                f"{asked}=True gives memory of the host, and map_location or the file names another device: give "
                "map_location='cpu'"
            )
        if self.ranks is not None:
            kind = Kind(self.shared, self.pinned)
            return read_once(archive, self.ranks, device, layout, kind, self.report)
        if self.shared:
            return read_shared(archive, layout, progress, pinned=self.pinned)
        return read_pinned(archive, layout, progress)

    def open(self, make: Callable[[], penstock.Archive]) -> None:
        """Has all ranks open the same file."""
        assert self.ranks is not None
        agreed(self.ranks, make, lambda archive: plan_of([archive], self.alike))

    def parts(
        self, make: Callable[[], tuple[penstock.Archive, Any, Mapping[str, slice | None]]]
    ) -> dict[str, torch.Tensor]:
        """The rows of tensors that this rank's plan names. `make` gives the file, the device and the plan; its errors
        are told to all ranks."""
        assert self.ranks is not None

        def made() -> tuple[penstock.Archive, torch.device, Mapping[str, slice | None]]:
            archive, device, plan = make()
            return archive, present(device), plan

        return read_parts(self.ranks, made, self.report)


def together_of(
    ranks: Any, report: Any = None, *, shared: bool = False, pinned: bool = False, alike: str = "", **others: Any
) -> Together | None:
    """What these arguments ask for; None where it is nothing, also of ranks where there is one. `others` do not go with
    any of them."""
    found = ranks_of(ranks)
    for name, value in (("shared", shared), ("pinned", pinned)):
        if type(value) is not bool:
            raise penstock.DTypeMismatchError(f"found {name}={value!r}, expected True or False")
    if report is not None and ranks is None:
        raise penstock.InvalidArgumentError("report tells how ranks have read: give it beside ranks")
    if pinned and not shared:
        others = {"ranks": ranks, **others}
    asked = "pinned" if pinned else "shared" if shared else "ranks"
    for name, value in others.items():
        if (shared or pinned or ranks is not None) and value:
            raise penstock.UnsupportedError(f"{asked} reads a file as it is: leave out one of {asked} and {name}")
    if report is not None and found is None:
        report.clear()
        report.update(way="alone", why="there is one rank", ranks=1)
    if not shared and not pinned and found is None:
        return None
    return Together(shared, pinned, found, report, f"{shared} {pinned} {alike}")


def kind_of_place(map_location: Any, ranks: Any) -> str:
    """What ranks compare of it: each may have a device of its own, which has to be there and be filled the same way."""
    if ranks is None or not isinstance(map_location, (str, torch.device)):
        return type(map_location).__name__
    return f"{present(map_location).type} {reachable(map_location) is None}"
