"""Measures every line against its peers and its floor, interleaved, and writes medians and spread as JSON.

Use script/bench, which sets up what this needs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import lines
import numpy as np
import safetensors
import torch

import penstock


def floor_rate(program: str, line: lines.Line) -> float:
    answer = subprocess.run([program, *line.floor], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)[line.floor_key] / line.scale


def spread(rates: list[float]) -> dict[str, float]:
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def measure(line: lines.Line, program: str, repeats: int, peer_repeats: int) -> dict:
    """Penstock and the floor alternate, so that a slow moment of the machine hits both; slow peers run fewer times."""
    ours, floor = [], []
    peers: dict[str, list[float]] = {name: [] for name in line.peers}
    for repeat in range(repeats + 1):
        measured = lines.rate(line, line.penstock), floor_rate(program, line)
        if repeat == 0:
            continue  # the first run warms the page cache
        ours.append(measured[0])
        floor.append(measured[1])
        if repeat <= peer_repeats:
            for name, call in line.peers.items():
                peers[name].append(lines.rate(line, call))
    best = max(peers, key=lambda name: statistics.median(peers[name]))
    mine, bare, rival = (statistics.median(rates) for rates in (ours, floor, peers[best]))
    return {
        "name": line.name,
        "unit": line.unit,
        "penstock": spread(ours),
        "floor": spread(floor),
        "floor_command": " ".join(line.floor[:1]),
        "peers": {name: spread(rates) for name, rates in peers.items()},
        "best_peer": best,
        "ratio_to_peer": mine / rival,
        "ratio_to_floor": mine / bare,
        "goal_peer": line.goal_peer,
        "goal_floor": line.goal_floor,
        "notes": line.notes,
    }


def machine() -> dict:
    facts = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((row.split(":")[1].strip() for row in facts if row.startswith("model name")), "unknown")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "safetensors": safetensors.__version__,
        "penstock": penstock.__version__,
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def show(result: dict) -> None:
    digits = 2 if result["unit"] == "GB/s" else 0
    numbers = [
        f"{value:,.{digits}f}"
        for value in (
            result["penstock"]["median"],
            result["peers"][result["best_peer"]]["median"],
            result["floor"]["median"],
        )
    ]
    print(f"{result['name']}: {numbers[0]} {result['unit']}")
    print(f"    peer  {numbers[1]} ({result['best_peer']}): {result['ratio_to_peer']:.1f}x")
    print(f"    floor {numbers[2]}: {result['ratio_to_floor']:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the files are made and kept")
    parser.add_argument("--floor", default="build/release/bin/bench_floor", help="the floor program")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peer-repeats", type=int, default=2)
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--out", type=Path, help="JSON to write")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    chosen = [line for line in lines.all_lines(options.data.resolve()) if options.only in line.name]
    results = []
    for line in chosen:
        results.append(measure(line, options.floor, options.repeats, options.peer_repeats))
        show(results[-1])
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"machine": machine(), "lines": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
