"""Measures penstock.torch beside torch, each pair interleaved in one run, and prints medians and their ratio.

Use script/bench python, which sets up what this needs.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import corpus
import lines
import run
import torch
from torch.utils.data import DataLoader

import penstock.torch as pt

WORKERS = 2


@dataclass
class Pair:
    """The same work by torch and by Penstock; `goal` is how many times as fast it is to be."""

    name: str
    theirs: Callable[[], object]
    ours: Callable[[], object]
    repeats: int
    goal: float | None = None


def drain(batches: Iterable[object]) -> None:
    for _ in batches:
        pass


def many_tensors(root: Path) -> Path:
    path = root / "many.pt"
    if not path.exists():
        torch.save(OrderedDict((f"layer{i}.weight", torch.randn(16, 16)) for i in range(10_000)), path)
    return path


def small_file(root: Path) -> Path:
    path = root / "one.pt"
    if not path.exists():
        torch.save({"x": torch.randn(200)}, path)
    return path


def import_seconds(statement: str) -> float:
    """Of a process that runs one statement, above one that runs none."""

    def run_python(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    return statistics.median(run_python(statement) - run_python("pass") for _ in range(15))


def loader_memory(code: str, folder: Path) -> float:
    """MB that an epoch adds to the peak of a process that has imported torch."""
    report = (
        "import resource, sys, torch\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        f"before = peak()\n{code}\nprint(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", report, str(folder)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def pairs(root: Path) -> list[Pair]:
    state, _ = corpus.state(root)
    many, one = many_tensors(root), small_file(root)
    small = corpus.small_pt(root)
    files = lines.TorchFiles(sorted(small.iterdir()), lambda path: torch.load(path, weights_only=True))
    options = {"batch_size": 32, "shuffle": True}
    return [
        Pair("load 2.2 GB", lambda: torch.load(state), lambda: pt.load(state), 5),
        Pair("load 2.2 GB, mapped", lambda: torch.load(state, mmap=True), lambda: pt.load(state, mmap=True), 15),
        Pair("load 10,000 tensors of 1 KB", lambda: torch.load(many), lambda: pt.load(many), 7, 3),
        Pair("load one file of 1 KB", lambda: torch.load(one), lambda: pt.load(one), 500, 3),
        *(
            Pair(
                f"10,000 .pt of 16 KB, torch with {workers} workers",
                lambda workers=workers: drain(DataLoader(files, num_workers=workers, **options)),
                lambda: drain(pt.DataLoader(pt.Files(small), num_workers=WORKERS, **options)),
                3,
                10,
            )
            for workers in (0, 2)
        ),
    ]


def seconds_of(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    del result
    return seconds


def measure(pair: Pair) -> dict[str, object]:
    pair.ours()  # warms the page cache
    measured = [(seconds_of(pair.theirs), seconds_of(pair.ours)) for _ in range(pair.repeats)]
    theirs, ours = (statistics.median(side) for side in zip(*measured, strict=True))
    return {"name": pair.name, "torch_s": theirs, "penstock_s": ours, "ratio": theirs / ours, "goal": pair.goal}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the files are made and kept")
    parser.add_argument("--out", type=Path, help="JSON to write")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(WORKERS)
    results = []
    for pair in pairs(options.data.resolve()):
        results.append(measure(pair))
        row = results[-1]
        goal = f" (goal {pair.goal:g}x)" if pair.goal else ""
        print(f"{pair.name}: torch {row['torch_s'] * 1e3:.2f} ms, penstock {row['penstock_s'] * 1e3:.2f} ms: ", end="")
        print(f"{row['ratio']:.1f}x{goal}", flush=True)
    imports = import_seconds("import penstock")
    print(f"import penstock: {imports * 1e3:.1f} ms above bare Python (goal 20)")
    memory = loader_memory(
        "import penstock.torch as pt\n"
        "for _ in pt.DataLoader(pt.Files(sys.argv[1]), batch_size=32, shuffle=True, num_workers=2): pass",
        corpus.small_pt(options.data.resolve()),
    )
    print(f"memory over an epoch of 10,000 files: {memory:.1f} MB above a process with torch in it")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"peak of this process: {peak:.1f} GB")
    if options.out:
        content = {"machine": run.machine(), "pairs": results, "import_s": imports, "loader_memory_mb": memory}
        options.out.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
