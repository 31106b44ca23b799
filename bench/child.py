"""Runs one program of one line, once for each line on standard input, and answers each with a line of JSON.

    bench/child.py MODULE LINE PROGRAM DATA

The answer has the seconds it took, the MB by which the process has grown at its peak since its imports, and how many
of those are pages of mapped files; or in "unavailable" why the program does not run here.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import IO

import line


def memory_kb(name: str) -> int:
    """VmRSS, VmHWM or RssFile of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(row for row in status if row.startswith(name)).split()[1])


def limit_threads() -> None:
    """The peers compute with as many threads as Penstock has workers."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(line.WORKERS)


def run(call: line.Call, before: dict[str, int]) -> dict[str, float]:
    """Seconds of one call, and MB of memory at its peak and of files that are mapped at its end."""
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    mapped, peak = (max(0, memory_kb(name) - before[name]) / 1024 for name in ("RssFile", "VmHWM"))
    del result
    return {"seconds": seconds, "peak_mb": peak, "mapped_mb": mapped}


def serve(program: line.Program, answer: IO[str]) -> None:
    for module in program.imports:
        importlib.import_module(module)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = {"RssFile": memory_kb("RssFile"), "VmHWM": memory_kb("VmRSS")}
    call = program.make()
    for _ in sys.stdin:
        print(json.dumps(run(call, before)), file=answer, flush=True)


def main() -> None:
    module, name, program, data = sys.argv[1:]
    limit_threads()
    # What a library prints must not come between the answers.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        lines = importlib.import_module(module).lines(Path(data))
        chosen = next(one for one in lines if one.name == name)
        serve(chosen.programs[program], answer)
    except Exception as error:  # whatever keeps a peer from running here is said in the report
        print(json.dumps({"unavailable": f"{type(error).__name__}: {error}"}), file=answer, flush=True)


if __name__ == "__main__":
    main()
