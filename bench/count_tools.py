"""Takes the counts: instructions by valgrind's callgrind, system calls by strace."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

#: Only what this function does is counted.
FUNCTION = "penstock_counted_work"
BEGIN, END = '"counts: begin"', '"counts: end"'

#: The C library chooses its copies by what the processor knows, which valgrind takes from the machine it runs on: these
#: leave it the ones that every x86-64 has. (`rep movsb` would count each byte as an instruction.)
TUNABLES = "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3,-SSE4_1,-SSE4_2"

#: Versions of the C library differ in which call of the kind they make.
SAME = {"fstat": "stat", "lstat": "stat", "newfstatat": "stat", "fstatat64": "stat", "statx": "stat", "openat": "open"}

_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)$")
_RESULT = re.compile(r" = (\d+)")
_OF_MACHINE = re.compile(r'"/(proc|sys)/')


class CannotRunError(Exception):
    """A tool that is missing, or that this place does not let run."""


def run(command: list[str], folder: str | None = None, environment: dict | None = None) -> str:
    """What the program prints. Nothing of this process's environment reaches it."""
    done = subprocess.run(command, cwd=folder, env=environment or {"LC_ALL": "C"}, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise CannotRunError(f"{Path(command[0]).name}: {lines[-1]}")
    return done.stdout


def count_calls(trace: Iterable[str]) -> dict[str, int]:
    """System calls between the marks, by name, but for those that come with the machine or its clock and not with the
    work: looks at /proc and /sys (control groups are nested as deep as it pleases the system, and the kernel's account
    of a thread is looked at every so many milliseconds), and times of day, which mostly are no system calls."""
    calls: Counter[str] = Counter()
    counting = False
    of_machine: set[str] = set()  # descriptors
    for line in trace:
        call = _CALL.match(line)
        if call is None:
            continue
        name, rest = call.groups()
        if BEGIN in rest or END in rest:
            counting = BEGIN in rest
        elif _OF_MACHINE.search(rest):
            of_machine.update(_RESULT.findall(rest)[-1:])
        elif (descriptor := re.split("[,)]", rest)[0]) in of_machine:
            if name == "close":
                of_machine.remove(descriptor)
        elif counting and (name not in ("clock_gettime", "gettimeofday") or "CLOCK_THREAD" in rest):
            calls[SAME.get(name, name)] += 1
    return dict(sorted(calls.items()))


def instructions_in(profile: str) -> int:
    found = re.search(r"^(?:summary|totals): (\d+)", profile, re.MULTILINE)
    if found is None:
        raise CannotRunError("valgrind: its file has no sum")
    return int(found[1])


class Tools:
    """What of the two runs here."""

    def __init__(self, program: Path, keep: Path | None = None):
        self.program, self.keep, self.missing = program, keep, []
        self._valgrind = self._find("valgrind", lambda tool: self._instructions(tool, ["list"], None))
        self._strace = self._find("strace", lambda tool: self._calls(tool, ["list"], None))

    def usable(self) -> bool:
        return bool(self._valgrind or self._strace)

    def versions(self) -> dict[str, str]:
        found = {"valgrind": self._valgrind, "strace": self._strace}
        text = {name: run([tool, "--version"]) for name, tool in found.items() if tool}
        return {name: f"{name} {re.search(r'[0-9][0-9.]*', version)[0]}" for name, version in text.items()}

    def count(self, workload: str, folder: str) -> dict:
        arguments = ["run", workload, "data"]
        out: dict = {"items": int(run([str(self.program), *arguments], folder))}
        if self._valgrind:
            out["instructions"] = self._instructions(self._valgrind, arguments, folder)
        if self._strace:
            out["calls"] = self._calls(self._strace, arguments, folder)
        return out

    def _find(self, name: str, attempt) -> str | None:
        tool = shutil.which(name)
        if tool is None:
            self.missing.append(f"{name} is not installed (script/bootstrap --counts)")
            return None
        try:
            attempt(tool)
        except CannotRunError as reason:
            self.missing.append(f"{name} cannot run here: {reason}")
            return None
        return tool

    def _instructions(self, tool: str, arguments: list[str], folder: str | None) -> int:
        with tempfile.TemporaryDirectory() as own:
            out = Path(own) / "callgrind.out"
            command = [tool, "-q", "--tool=callgrind", f"--toggle-collect={FUNCTION}", f"--callgrind-out-file={out}"]
            environment = {"LC_ALL": "C", "GLIBC_TUNABLES": TUNABLES}
            run([*command, str(self.program), *arguments], folder, environment)
            if self.keep and len(arguments) > 1:
                self.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(out, self.keep / f"{re.sub('[^a-z0-9]+', '_', arguments[1].lower())}.callgrind")
            return instructions_in(out.read_text())

    def _calls(self, tool: str, arguments: list[str], folder: str | None) -> dict:
        with tempfile.TemporaryDirectory() as own:
            out = Path(own) / "trace"
            run([tool, "-f", "-o", str(out), str(self.program), *arguments], folder)
            return count_calls(out.read_text().splitlines())
