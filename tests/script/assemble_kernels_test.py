#!/usr/bin/env python3
"""Assembles the device kernels' PTX text with NVIDIA's assembler where there is one, as a driver will.

tests/script/assemble_kernels_test.py [--record] [--one]

Each text for each kind of processor below, or, with --one, for the newest alone. Registers, spilled bytes and stack of
each entry are compared with those in bench/results/kernels.json, where the same ptxas made them: spills and stack may
not grow. --record writes them anew.
Exits 77, skipped, where no ptxas is found: in build/cuda (script/cuda_packages), on PATH or in /usr/local/cuda*/bin.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "src/ops/kernels/ptx"
RECORDED = ROOT / "bench/results/kernels.json"
# What CUDA 13 knows of Turing and later; an older ptxas, of which those that it knows are asked for, leaves some out.
PROCESSORS = [f"sm_{n}" for n in (75, 80, 86, 89, 90, 100, 103, 110, 120, 121)]
SKIPPED = 77

Use = dict[str, int]  # registers, spilled, stack
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def find_ptxas() -> str | None:
    folders = [*sorted(ROOT.glob("build/cuda/cu*/bin"), reverse=True), *sorted(Path("/usr/local").glob("cuda*/bin"))]
    found = next((str(f / "ptxas") for f in folders if (f / "ptxas").exists()), None)
    return found or shutil.which("ptxas")


def ask(ptxas: str, option: str) -> str:
    return subprocess.run([ptxas, option], capture_output=True, text=True, check=True).stdout


def read_uses(told: str) -> dict[str, Use]:
    """What `ptxas -v` says of each entry."""
    uses: dict[str, Use] = {}
    entry = ""
    for line in told.splitlines():
        if match := ENTRY.search(line):
            entry = match[1]
            uses[entry] = {}
        elif match := STACK.search(line):
            uses[entry].update(stack=int(match[1]), spilled=int(match[2]) + int(match[3]))
        elif match := REGISTERS.search(line):
            uses[entry]["registers"] = int(match[1])
    return uses


def assemble(ptxas: str, processor: str, folder: str) -> tuple[dict[str, Use], list[str]]:
    """The uses of all entries, and what went wrong."""
    uses: dict[str, Use] = {}
    wrong = []
    for text in sorted(KERNELS.glob("*.ptx")):
        command = [ptxas, "-v", f"--gpu-name={processor}", str(text), "--output-file", f"{folder}/kernels"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        told = ended.stdout + ended.stderr
        if ended.returncode != 0 or "warning" in told:
            wrong.append(f"{text.name} for {processor}:\n{told}")
        uses.update(read_uses(told))
    return uses, wrong


def compare(processor: str, uses: dict[str, Use], recorded: dict[str, Use]) -> list[str]:
    wrong = []
    if sorted(uses) != sorted(recorded):
        return [f"{processor}: the entries are others than those recorded (--record)"]
    for entry, use in uses.items():
        for what in ("spilled", "stack"):
            if use[what] > recorded[entry][what]:
                wrong.append(f"{processor} {entry}: {use[what]} bytes {what}, recorded are {recorded[entry][what]}")
    return wrong


def main() -> int:
    ptxas = find_ptxas()
    if ptxas is None:
        print("skipped: there is no ptxas in build/cuda, on PATH or in /usr/local/cuda*/bin (script/cuda_packages)")
        return SKIPPED
    version = re.findall(r"V(\S+)", ask(ptxas, "--version"))[0]
    known = ask(ptxas, "--help")
    processors = [processor for processor in PROCESSORS if f"'{processor}'" in known]
    if "--one" in sys.argv:
        processors = processors[-1:]
    all_uses: dict[str, dict[str, Use]] = {}
    wrong = [] if processors else ["this ptxas knows none of the processors"]
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {"ptxas": ""}
    with tempfile.TemporaryDirectory() as folder:
        for processor in processors:
            uses, failed = assemble(ptxas, processor, folder)
            all_uses[processor] = uses
            wrong += failed
            if recorded["ptxas"] == version and "--record" not in sys.argv:
                wrong += compare(processor, uses, recorded["processors"][processor])
            most = max((use.get("registers", 0), entry) for entry, use in uses.items())
            spilled = sum(use.get("spilled", 0) for use in uses.values())
            print(f"{processor}: {len(uses)} entries, at most {most[0]} registers ({most[1]}), {spilled} bytes spilled")
    if "--record" in sys.argv and not wrong:
        RECORDED.write_text(json.dumps({"ptxas": version, "processors": all_uses}, indent=1) + "\n")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
