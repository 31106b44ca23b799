"""Measures a line: its programs and its floor in turn, so that a slow moment of the machine hits all of them."""

from __future__ import annotations

import json
import statistics
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import line
import process


@dataclass
class Options:
    data: Path
    floor: str
    repeats: int
    peer_repeats: int


class Programs:
    """The programs of a line: one process each, or a new one for every measurement where the line is `fresh`."""

    def __init__(self, module: str, one: line.Line, options: Options):
        self.module, self.line, self.options = module, one, options
        self.unavailable: dict[str, str] = {}
        self.values: dict[str, list[float]] = {name: [] for name in one.programs}
        self.memory: dict[str, dict[str, float]] = {}
        self._running: dict[str, process.Process] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, name: str, warming: bool) -> None:
        """The run that warms up gives the memory, the others the figure."""
        if name in self.unavailable:
            return
        prepare(self.line, self.options)
        try:
            measured = self._measure(name, watch=warming or self.line.kind == "memory")
        except process.UnavailableError as error:
            self.unavailable[name] = str(error)
            return
        self.memory.setdefault(name, {"peak_mb": measured.peak_mb, "mapped_mb": measured.mapped_mb})
        if not warming:
            self.values[name].append(self.line.value(measured.seconds, measured.peak_mb))

    def _measure(self, name: str, watch: bool) -> process.Measured:
        if self.line.fresh:
            with process.start(self.module, self.line, name, self.options.data) as once:
                return once.measure(watch)
        if name not in self._running:
            started = process.start(self.module, self.line, name, self.options.data)
            self._running[name] = self._stack.enter_context(started)
        return self._running[name].measure(watch)


def prepare(one: line.Line, options: Options) -> None:
    if one.prepare:
        one.prepare()
    if one.floor_first:
        floor_value(options.floor, one, one.floors[0])


def floor_value(program: str, one: line.Line, floor: line.Floor) -> float:
    answer = subprocess.run([program, *floor.arguments], check=True, capture_output=True, text=True)
    rate = json.loads(answer.stdout)[floor.key] / floor.scale
    return one.value(one.work / rate, 0)


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": len(values)}


def measure(module: str, one: line.Line, options: Options) -> dict:
    """Slow peers run fewer times."""
    floors: dict[str, list[float]] = {floor.name: [] for floor in one.floors}
    with Programs(module, one, options) as programs:
        for repeat in range(min(options.repeats, one.repeats or options.repeats) + 1):
            warming = repeat == 0
            programs.run(line.OURS, warming)
            for floor in one.floors:
                prepare(one, options)
                floors[floor.name] += [floor_value(options.floor, one, floor)][warming:]
            if repeat <= options.peer_repeats:
                for name in one.peers:
                    programs.run(name, warming)
        return report(one, programs, floors)


def report(one: line.Line, programs: Programs, floors: dict[str, list[float]]) -> dict:
    if line.OURS in programs.unavailable:
        raise RuntimeError(f"{one.name}: {programs.unavailable[line.OURS]}")
    ours = spread(programs.values[line.OURS])
    peers = {name: spread(values) for name, values in programs.values.items() if name in one.peers and values}
    result = {
        "name": one.name,
        "unit": one.unit,
        "kind": one.kind,
        "fresh_processes": one.fresh,
        "penstock": ours,
        "peers": peers,
        "memory": programs.memory,
        "unavailable": programs.unavailable,
        "goals": {"peer": one.goal_peer, "floor": one.goal_floor, "value": one.goal},
        "notes": one.notes,
    }
    if peers:
        best = one.best({name: figures["median"] for name, figures in peers.items()})
        result["best_peer"] = best
        result["ratio_to_peer"] = one.ratio(ours["median"], peers[best]["median"])
    if floors:
        spreads = {name: spread(values) for name, values in floors.items()}
        result["floors"] = spreads
        result["floor_command"] = one.best({name: figures["median"] for name, figures in spreads.items()})
        result["floor"] = spreads[result["floor_command"]]
        result["ratio_to_floor"] = one.ratio(ours["median"], result["floor"]["median"])
    return result
