"""Counts instructions and system calls of fixed work, which repeat where time does not, beside the recorded ones.

script/bench counts prints them, script/bench counts --record keeps them, and the test `counts` compares them (--check).
Needs nothing but Python, valgrind and strace.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import sys
import tempfile
from pathlib import Path

import count_tools
import page
from count_compare import comparable, compare, per_item

RECORDED = Path(__file__).resolve().parent / "results" / "counts.json"
#: What ctest takes for "skipped".
SKIPPED = 77


def measure(program: Path, names: list[str], tools: count_tools.Tools) -> dict:
    """The counts of every workload, several at a time, each on a processor of its own."""
    processors = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="penstock-counts-") as folder:
        count_tools.run([str(program), "files", "data"], folder)
        # Of a thread alone, and what it starts.
        settled = concurrent.futures.ThreadPoolExecutor(
            len(processors), initializer=lambda: os.sched_setaffinity(0, {processors.pop()})
        )
        with settled as pool:
            return dict(zip(names, pool.map(lambda name: tools.count(name, folder), names), strict=True))


def show(name: str, now: dict, recorded: dict | None) -> None:
    before = recorded or {}
    print(f"{name} ({now['items']:,} items)")
    if "instructions" in now:
        text = f"    instructions per item {per_item(now['instructions'], now['items'])}"
        if "instructions" in before:
            ratio = now["instructions"] / before["instructions"]
            text += f", recorded {per_item(before['instructions'], before['items'])}: {ratio:.3f}x"
        print(text)
    if "calls" in now:
        print(f"    system calls per item: {calls_text(now)}")
        if "calls" in before and before["calls"] != now["calls"]:
            print(f"                 recorded: {calls_text(before)}")


def calls_text(counts: dict) -> str:
    """Per item; those of which there are few in all."""
    calls = sorted(counts["calls"].items(), key=lambda call: (-call[1], call[0]))
    rare = [f"{name} {count}" for name, count in calls if count < counts["items"] / 100]
    each = [f"{name} {per_item(count, counts['items'])}" for name, count in calls if count >= counts["items"] / 100]
    parts = [", ".join(each), f"in all {', '.join(rare)}" if rare else ""]
    return "; ".join(part for part in parts if part) or "none"


def table(report: dict) -> str:
    rows = [
        [name, per_item(counts["instructions"], counts["items"]), calls_text(counts)]
        for name, counts in report["workloads"].items()
    ]
    built, tools = report["built"], report["tools"]
    return page.table_of(["item", "instructions", "system calls"], rows) + (
        f"\n{built['compiler']} with `{built['flags']}`, {built['libc']}, {built['machine']}; "
        f"{tools['valgrind']}, {tools['strace']}.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, default=Path("build/release/bin/bench_counts"))
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--keep", type=Path, help="folder for callgrind's files, for callgrind_annotate")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--record", action="store_true", help="keep the counts, and redraw docs/performance.md")
    group.add_argument("--check", action="store_true", help="fail where they grew")
    options = parser.parse_args()

    program = options.program.resolve()
    tools = count_tools.Tools(program, options.keep)
    for missing in tools.missing:
        print(f"not counted: {missing}")
    if not tools.usable():
        return SKIPPED
    built = json.loads(count_tools.run([str(program), "about"]))
    names = [name for name in count_tools.run([str(program), "list"]).splitlines() if options.only in name]
    report = {"built": built, "tools": tools.versions(), "workloads": measure(program, names, tools)}
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {"built": {}, "workloads": {}}
    for name, now in report["workloads"].items():
        show(name, now, recorded["workloads"].get(name))

    if options.record:
        if tools.missing or options.only:
            raise SystemExit("only whole counts are recorded: install valgrind and strace, and leave --only out")
        RECORDED.write_text(json.dumps(report, indent=2) + "\n")
        page.fill("counts", table(report))
        return 0
    if reason := comparable(recorded["built"], built):
        print(f"instructions are not compared: {reason}")
    if not options.check:
        return 0
    problems = compare(recorded, report)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
