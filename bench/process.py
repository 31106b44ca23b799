"""One process that repeats a program of a line (child.py), and what it and its children take."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import line

SAMPLE_SECONDS = 0.02


class UnavailableError(Exception):
    """The program does not run on this machine; the message says why."""


@dataclass
class Measured:
    seconds: float
    peak_mb: float
    mapped_mb: float


def descendants(pid: int) -> list[int]:
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            pids = [int(child) for child in children.read_text().split()]
        except OSError:
            continue
        for child in pids:
            found += [child, *descendants(child)]
    return found


def private_kb(pid: int) -> int:
    """What this process alone holds; 0 when it has ended."""
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private_"))


class Process:
    def __init__(self, module: str, name: str, program: str, python: Path, data: Path):
        self.command = [str(python), "bench/child.py", module, name, program, str(data)]
        if not python.exists():
            raise UnavailableError(f"{python} is missing: {line.HOW_TO_GET[python]}")
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - close() does
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )

    def measure(self, watch_children: bool = False) -> Measured:
        """One run. Watching the children's memory takes processor time: not where the seconds count."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its answer or its end says why
            print(file=self.process.stdin, flush=True)
        children_kb = self._children_peak() if watch_children else 0
        return self._answer(children_kb / 1024)

    def _children_peak(self) -> int:
        peak: dict[int, int] = {}
        while not select.select([self.process.stdout], [], [], SAMPLE_SECONDS)[0]:
            for pid in descendants(self.process.pid):
                peak[pid] = max(peak.get(pid, 0), private_kb(pid))
        return sum(peak.values())

    def _answer(self, children_mb: float) -> Measured:
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        if not text:
            self.process.communicate()
            self.errors.seek(0)
            raise RuntimeError(f"{' '.join(self.command)} ended without an answer:\n{self.errors.read()[-3000:]}")
        answer = json.loads(text)
        if "unavailable" in answer:
            self.close()
            raise UnavailableError(answer["unavailable"])
        return Measured(answer["seconds"], answer["peak_mb"] + children_mb, answer["mapped_mb"])

    def close(self) -> None:
        self.process.communicate()
        self.errors.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(module: str, one: line.Line, program: str, data: Path) -> Process:
    return Process(module, one.name, program, one.programs[program].python, data)
