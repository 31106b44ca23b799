"""How cost grows with the number of things: prints the slope of each sweep, which is 1 where ten times the things cost
ten times the work.

    script/bench growth [--only TEXT] [--most N]

A sweep makes the same call for more and more things, over three orders of magnitude. Its slope is that of the logarithm
of the processor time over the logarithm of their number, where the number decides: in the upper part of the sweep.
Work that is linear must stay below LIMIT. Processor time, the least of several runs, is measured, so that a machine
that does other work meanwhile says almost the same.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT = 1.15
RUNS = 3
ENOUGH = 2.0  # seconds that a run may take; larger numbers of things are left out then

Call = Callable[[], object]


@dataclass(frozen=True)
class Sweep:
    """`make` prepares the call for so many things, in an empty folder of its own; what it does is not measured."""

    name: str
    numbers: Sequence[int]
    make: Callable[[int, Path], Call]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The growth exponent of (number, cost), where the number decides the cost.

    What a call costs at least, whatever the number, is taken off, and the median slope between any two of the upper
    points is given: one point that was disturbed does not change it by much.
    """
    ordered = sorted(points)
    least = ordered[0][1]
    told = [(number, cost - least) for number, cost in ordered[1:] if cost >= 2 * least]
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="sweeps whose names have this text")
    parser.add_argument("--most", type=int, default=10**9, help="no more things than this")
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
        if found > LIMIT:
            too_steep.append(sweep.name)
    if too_steep:
        print(f"steeper than {LIMIT}: {', '.join(too_steep)}", file=sys.stderr)
    return 1 if too_steep else 0


if __name__ == "__main__":
    sys.exit(main())
