"""Measures every line against its peers and its floor, interleaved, and writes medians and spread as JSON.

Use script/bench, which sets up what this needs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import line
import measure
import show

#: What gives lines, in the order of the page; see line.py.
MODULES = (
    "small",
    "rows",
    "tokens",
    "crowded",
    "state",
    "cold",
    "ring",
    "listing",
    "describe",
    "single",
    "shards",
    "million",
    "values",
    "transformed",
    "augmented",
    "appending",
    "dcp",
)
PACKAGES = ("penstock-tensors", "torch", "numpy", "safetensors")


def machine() -> dict:
    facts = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((row.split(":")[1].strip() for row in facts if row.startswith("model name")), "unknown")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
        "peers": peer_versions(),
        **devices(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def devices() -> dict:
    import penstock

    if not penstock.device.is_available():
        return {}
    facts = [penstock.device.device_properties(f"cuda:{index}") for index in range(penstock.device.device_count())]
    return {"devices": [one["name"] for one in facts], "driver_version": facts[0]["driver_version"]}


def peer_versions() -> dict[str, str]:
    """Of each package; one that lies in a folder of its own (`--target`) has that folder's name."""
    rows = [row.split() for row in Path("script/requirements-peers.txt").read_text().splitlines()]
    named = [(words[0].split("=="), words[-1]) for words in rows if words and words[0] != "#"]
    return {Path(last).name if "/" in last else name: version for (name, version), last in named}


def record(out: Path, facts: dict, lines: list[dict], absent: dict[str, str], *, whole: bool) -> None:
    """Writes the figures. Those of a part replace that part of what the same machine measured the same day, as the page
    has one date and one machine."""
    before = json.loads(out.read_text()) if out.exists() and not whole else {}
    if before.get("machine") != facts:
        before = {}
    kept = {one["name"]: one for one in before.get("lines", [])} | {one["name"]: one for one in lines}
    absent = {name: why for name, why in {**before.get("absent", {}), **absent}.items() if name not in kept}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": facts, "lines": list(kept.values()), "absent": absent}, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the files are made and kept")
    parser.add_argument("--floor", default="build/release/bin/bench_floor", help="the floor program")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peer-repeats", type=int, default=2)
    parser.add_argument("--modules", default=",".join(MODULES), help="whose lines, separated by commas")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--million", action="store_true", help="make the folder of 1,000,000 files where it is missing")
    parser.add_argument("--shards", type=int, help="so many tar shards in place of 100 (1.7 GB)")
    parser.add_argument("--out", type=Path, help="JSON to write")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    if options.shards:
        os.environ["PENSTOCK_BENCH_SHARDS"] = str(options.shards)
    how = measure.Options(options.data.resolve(), options.floor, options.repeats, options.peer_repeats)
    if options.million and not (how.data / "million").exists():
        importlib.import_module("million").make(how.data)
    results, absent = [], {}
    for module in options.modules.split(","):
        try:
            lines = importlib.import_module(module).lines(how.data)
        except line.Absent as reason:
            absent[module] = str(reason)
            print(f"{module}: not measured: {reason}\n")
            continue
        for one in lines:
            if options.only not in one.name:
                continue
            try:
                results.append(measure.measure(module, one, how))
                show.show(results[-1])
            except line.Absent as reason:
                absent[one.name] = str(reason)
                print(f"{one.name}: not measured: {reason}\n")
    if options.out:
        whole = not options.only and options.modules == parser.get_default("modules")
        record(options.out, machine(), results, absent, whole=whole)


if __name__ == "__main__":
    main()
