"""Measures penstock.torch beside torch, each pair interleaved in one run, and prints medians and their ratio.

Use script/bench python, which sets up what this needs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import corpus
import page
import run
import small
import torch
from torch.utils.data import DataLoader

import penstock.torch as pt

WORKERS = 2
IMPORT_GOAL_MS = 20


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


def filled(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {key: torch.empty_like(value).zero_() for key, value in state.items()}


def copied(target: dict[str, torch.Tensor], path: Path) -> None:
    """What load_state_dict does with each parameter."""
    for key, value in torch.load(path).items():
        target[key].copy_(value)


def pairs(root: Path) -> list[Pair]:
    state, _ = corpus.state(root)
    many, one = many_tensors(root), small_file(root)
    folder = corpus.small_pt(root)
    files = small.TorchFiles(sorted(folder.iterdir()), lambda path: torch.load(path, weights_only=True))
    options = {"batch_size": 32, "shuffle": True}
    target = filled(torch.load(state, mmap=True))
    content = torch.load(many)
    out = root / "written.pt"
    return [
        Pair("load 2.2 GB", lambda: torch.load(state), lambda: pt.load(state), 7),
        Pair("load 2.2 GB, mapped", lambda: torch.load(state, mmap=True), lambda: pt.load(state, mmap=True), 15),
        Pair(
            "2.2 GB into tensors that are there", lambda: copied(target, state), lambda: pt.load_into(target, state), 7
        ),
        Pair("load 10,000 tensors of 1 KB", lambda: torch.load(many), lambda: pt.load(many), 7, 3),
        Pair("save 10,000 tensors of 1 KB", lambda: torch.save(content, out), lambda: pt.save(content, out), 7),
        Pair("load one file of 1 KB", lambda: torch.load(one), lambda: pt.load(one), 500, 3),
        *(
            Pair(
                f"10,000 .pt of 16 KB, torch with {workers} workers",
                lambda workers=workers: drain(DataLoader(files, num_workers=workers, **options)),
                lambda: drain(pt.DataLoader(pt.Files(folder), num_workers=WORKERS, **options)),
                5,
                10,
            )
            for workers in (0, WORKERS)
        ),
    ]


def seconds_of(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    del result
    return seconds


def measure(pair: Pair) -> dict:
    pair.ours()  # warms the page cache
    measured = [(seconds_of(pair.theirs), seconds_of(pair.ours)) for _ in range(pair.repeats)]
    theirs, ours = (statistics.median(side) for side in zip(*measured, strict=True))
    return {"name": pair.name, "torch_s": theirs, "penstock_s": ours, "ratio": theirs / ours, "goal": pair.goal}


def import_seconds(statement: str) -> float:
    """Of a process that runs one statement, above one that runs none."""

    def run_python(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    return statistics.median(run_python(statement) - run_python("pass") for _ in range(15))


def epoch_memory(whose: str, folder: Path) -> float:
    """MB that an epoch adds to a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("epoch.py")), whose, str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(report: dict) -> str:
    rows = [
        [
            row["name"],
            f"{row['penstock_s'] * 1e3:,.2f} ms",
            f"{row['torch_s'] * 1e3:,.2f} ms",
            f"{row['ratio']:.1f}x",
            f"{row['goal']:g}x" if row["goal"] else "",
        ]
        for row in report["pairs"]
    ]
    memory = report["epoch_memory_mb"]
    mine, theirs = (f"{memory[whose]:.1f} MB" for whose in ("penstock", "torch"))
    rows.append(["memory that an epoch of the 10,000 `.pt` adds", mine, f"{theirs} (0 workers)", "", ""])
    rows.append(["`import penstock`", f"{report['import_s'] * 1e3:.1f} ms", "", "", f"{IMPORT_GOAL_MS} ms"])
    head = ["work", "Penstock", "torch", "ratio", "goal"]
    return page.table_of(head, rows) + page.place_of(report["machine"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the files are made and kept")
    parser.add_argument("--record", type=Path, help="JSON to write; the table of docs/performance.md is drawn from it")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    root = options.data.resolve()
    torch.set_num_threads(WORKERS)
    results = []
    for pair in pairs(root):
        results.append(measure(pair))
        row = results[-1]
        goal = f" (goal {pair.goal:g}x)" if pair.goal else ""
        print(f"{pair.name}: torch {row['torch_s'] * 1e3:.2f} ms, penstock {row['penstock_s'] * 1e3:.2f} ms: ", end="")
        print(f"{row['ratio']:.1f}x{goal}", flush=True)
    imports = import_seconds("import penstock")
    print(f"import penstock: {imports * 1e3:.1f} ms above bare Python (goal {IMPORT_GOAL_MS})")
    memory = {whose: epoch_memory(whose, corpus.small_pt(root)) for whose in ("penstock", "torch")}
    print(f"an epoch of 10,000 files adds {memory['penstock']:.1f} MB, torch's (0 workers) {memory['torch']:.1f} MB")
    if options.record:
        report = {"machine": run.machine(), "pairs": results, "import_s": imports, "epoch_memory_mb": memory}
        options.record.write_text(json.dumps(report, indent=2) + "\n")
        page.fill("python", table(report))


if __name__ == "__main__":
    main()
