"""Checkpoints of Python values: 30 million integers in nested lists, as caches of tokens have them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from line import Call, Line, Program

LISTS, LENGTH, VOCABULARY = 50_000, 600, 50_000
VALUES = LISTS * LENGTH


def _tokens() -> dict[str, list[list[int]]]:
    return {"ids": [[i % VOCABULARY for i in range(LENGTH * n, LENGTH * (n + 1))] for n in range(LISTS)]}


def _save(package: str, path: Path) -> Call:
    import importlib

    value, save = _tokens(), importlib.import_module(package).save
    return lambda: save(value, path)


def _load(package: str, path: Path) -> Call:
    import importlib

    load = importlib.import_module(package).load
    return lambda: load(path)


def lines(root: Path) -> list[Line]:
    path = root / "values.pt"
    if not path.exists():
        import torch

        torch.save(_tokens(), path)
    out = []
    for name, work, where in (("save", _save, root / "values.out.pt"), ("load", _load, path)):
        ours = Program(partial(work, "penstock.torch", where), ("penstock.torch",))
        peers = {f"torch.{name}": Program(partial(work, "torch", where), ("torch",))}
        common = {"ours": ours, "peers": peers, "fresh": True, "repeats": 3}
        of = "30 million Python values"
        out.append(Line(name=f"{name} of {of}", unit="M values/s", work=VALUES / 1e6, goal_peer=1, **common))
        out.append(Line(name=f"memory: {name} of {of}", unit="MB", kind="memory", **common))
    return out
