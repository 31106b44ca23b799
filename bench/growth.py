"""How cost grows with the number of things: prints the slope of each sweep, which is 1 where ten times the things cost
ten times the work.

    script/bench growth [--only TEXT] [--most N] [--instructions]

A sweep makes the same call for more and more things, over three orders of magnitude. Its slope is that of the logarithm
of the processor time over the logarithm of their number, where the number decides: in the upper part of the sweep.
Work that is linear must stay below LIMIT. Processor time, the least of several runs, is measured, so that a machine
that does other work meanwhile says almost the same.

Time also grows because caches and the tables of pages hold only so many things, which is no fault of an algorithm.
With --instructions each sweep counts them, too, by valgrind's callgrind: their slope tells what the algorithms do. A
slope of time beyond LIMIT is a fault only where that of instructions is beyond it.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT = 1.15
RUNS = 3
ENOUGH = 2.0  # seconds that a run may take; larger numbers of things are left out then
COUNTED = 20_000  # things at most whose instructions are counted: valgrind takes 50 times as long

Call = Callable[[], object]


@dataclass(frozen=True)
class Sweep:
    """`make` prepares the call for so many things, in an empty folder of its own; what it does is not measured."""

    name: str
    numbers: Sequence[int]
    make: Callable[[int, Path], Call]
    counts: bool = True  # whether its work is done in this process, where instructions can be counted


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The growth exponent of (number, cost), where the number decides the cost.

    What a call costs whatever the number is taken off: where the line through the first two points begins. (All that
    the first point costs would be too much: it has things, too, and linear work would seem to have a slope of 1.08.)
    The median slope between any two of the upper points is given: one point that was disturbed does not change it by
    much.
    """
    ordered = sorted(points)
    (first, least), (second, more) = ordered[:2]
    fixed = min(max(least - first * (more - least) / (second - first), 0), least)
    told = [(number, cost - fixed) for number, cost in ordered[1:] if cost >= 2 * least]
    if len(told) < 2:  # the number hardly decides
        (first, before), (last, after) = ordered[0], ordered[-1]
        return math.log(after / before) / math.log(last / first)
    slopes = [
        math.log(high[1] / low[1]) / math.log(high[0] / low[0]) for i, low in enumerate(told) for high in told[i + 1 :]
    ]
    return statistics.median(slopes)


def spent() -> float:
    """Seconds of processor time of this process and of those that it has waited for."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def seconds_of(call: Call) -> float:
    """The least processor time of some calls, each of which is made so often that the clock tells."""
    least = math.inf
    for _ in range(RUNS):
        times, begin = 0, spent()
        while times == 0 or spent() - begin < 0.005:
            call()
            times += 1
        least = min(least, (spent() - begin) / times)
    return least


def measured(sweep: Sweep, folder: Path, most: int) -> list[tuple[int, float]]:
    points: list[tuple[int, float]] = []
    for number in sweep.numbers:
        if number > most or (points and points[-1][1] > ENOUGH):
            break
        place = folder / f"{sweep.name.replace(' ', '-').replace('/', '-')}-{number}"
        place.mkdir()
        points.append((number, seconds_of(sweep.make(number, place))))
    return points


def counted_numbers(numbers: Sequence[int], most: int) -> list[int]:
    """The largest of them, and those about a tenth and a hundredth of it."""
    largest = max(number for number in numbers if number <= min(most, COUNTED))
    tenths = (min(numbers, key=lambda number: abs(number - largest / part)) for part in (100, 10, 1))
    return sorted(set(tenths))


def instructions(sweep: Sweep, number: int, folder: Path) -> int:
    """Of one call in this process, behind another that has warmed everything up: what one more call adds."""

    def counted(times: int) -> int:
        place = folder / f"{number}-{times}"
        place.mkdir()
        command = [shutil.which("valgrind") or "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        command += [sys.executable, __file__, "--repeat", sweep.name, str(number), str(times), str(place)]
        done = subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True
        )
        found = re.search(r"Collected : (\d+)", done.stderr)
        assert found is not None, done.stderr
        return int(found[1])

    return counted(2) - counted(1)


def counted(sweep: Sweep, folder: Path, most: int) -> list[tuple[int, float]]:
    return [(number, instructions(sweep, number, folder)) for number in counted_numbers(sweep.numbers, most)]


def repeat(name: str, number: int, times: int, place: Path) -> None:
    """What `instructions` counts."""
    from growth_sweeps import SWEEPS

    (sweep,) = (one for one in SWEEPS if one.name == name)
    call = sweep.make(number, place)
    for _ in range(times):
        call()


def main() -> int:
    if sys.argv[1:2] == ["--repeat"]:
        name, number, times, place = sys.argv[2:]
        repeat(name, int(number), int(times), Path(place))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="sweeps whose names have this text")
    parser.add_argument("--most", type=int, default=10**9, help="no more things than this")
    parser.add_argument("--instructions", action="store_true", help="count them, too: minutes for each sweep")
    arguments = parser.parse_args()
    from growth_sweeps import SWEEPS

    too_steep = []
    print(f"{'':42s} {'slope':>6s}   microseconds of processor time a thing, for so many")
    for sweep in SWEEPS:
        if arguments.only not in sweep.name:
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-growth-") as folder:
            points = measured(sweep, Path(folder), arguments.most)
        found = slope(points)
        each = "  ".join(f"{number}: {cost / number * 1e6:.2f}" for number, cost in points)
        print(f"{sweep.name:42s} {found:6.2f}   {each}", flush=True)
        decides = found
        if arguments.instructions and sweep.counts:
            with tempfile.TemporaryDirectory(prefix="penstock-growth-") as folder:
                counts = counted(sweep, Path(folder), arguments.most)
            decides = slope(counts)
            each = "  ".join(f"{number}: {count / number:,.0f}" for number, count in counts)
            print(f"{'':42s} {decides:6.2f}   instructions a thing: {each}", flush=True)
        if decides > LIMIT:
            too_steep.append(sweep.name)
    if too_steep:
        print(f"steeper than {LIMIT}: {', '.join(too_steep)}", file=sys.stderr)
    return 1 if too_steep else 0


if __name__ == "__main__":
    sys.exit(main())
