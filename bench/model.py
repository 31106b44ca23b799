"""Fills the tables of "Scale" in docs/performance.md from a small model and the measured lines of one JSON.

Readers are processes with a loader each, as many on a machine as it has GPUs. What a reader can do is the least of what
its processors and its requests in flight allow; what all can do is bounded by what the storage gives them together.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import page
from show import number

FILE_BYTES = 16_384
READERS_A_MACHINE = 8
CORES_A_READER = 8
#: What `num_workers="auto"` goes up to.
THREADS = 64
#: Heap of a reader for each file: an entry, the name, and its place in the shuffled order.
ENTRY_BYTES, NAME_BYTES, ORDER_BYTES = 8, 14, 4
#: Entries a second from a kept index into memory, one thread.
INDEX_RATE = 25e6
#: PyTorch's permutation, which is one thread's.
SHUFFLE_RATE = 40e6


@dataclass(frozen=True)
class Storage:
    """`latency` is a request's; `requests` and `gigabytes` a second are of the whole storage, or of each machine's."""

    name: str
    latency: float
    requests: float
    gigabytes: float
    of_each_machine: bool
    #: Entries that one listing request brings, and listings that go on at once.
    listed: int
    listings: int


STORAGES = (
    Storage("local NVMe", 0.0001, 1e6, 6, True, 10_000, 8),
    Storage("NFS-like, 0.5 ms", 0.0005, 400_000, 10, False, 1_000, 8),
    Storage("S3-like, 50 ms", 0.05, 50_000, 100, False, 1_000, 8),
)
#: An open and a read; nothing waits for a close.
REQUESTS_A_FILE = 2


def files_a_second(storage: Storage, readers: int, core_rate: float) -> tuple[float, str]:
    """Of all readers together, and what bounds it."""
    machines = -(-readers // READERS_A_MACHINE)
    shares = machines if storage.of_each_machine else 1
    bounds = {
        "processors": readers * CORES_A_READER * core_rate,
        "requests in flight": readers * THREADS / (REQUESTS_A_FILE * storage.latency),
        "its requests": shares * storage.requests / REQUESTS_A_FILE,
        "its bytes": shares * storage.gigabytes * 1e9 / FILE_BYTES,
    }
    name = min(bounds, key=lambda bound: bounds[bound])
    return bounds[name], name


def readers_table(core_rate: float) -> str:
    rows = []
    for storage in STORAGES:
        for readers in (1, 10, 100, 1000):
            rate, bound = files_a_second(storage, readers, core_rate)
            gigabytes = rate * FILE_BYTES / 1e9
            rows.append([storage.name, f"{readers:,}", number(rate), number(gigabytes), bound])
    return page.table_of(["storage", "readers", "files/s", "GB/s", "bounded by"], rows)


def in_words(seconds: float) -> str:
    if seconds < 0.001:
        return "< 1 ms"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.0f} s" if seconds < 300 else f"{seconds / 60:.0f} min"


def in_bytes(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.0f} {unit}"
    return f"{count:.0f} B"


def files_table(list_rate: float) -> str:
    rows = []
    for exponent in range(3, 10):
        files = 10**exponent
        asked = [files / s.listed / s.listings * s.latency for s in STORAGES[1:]]
        rows.append(
            [
                f"10^{exponent}",
                in_bytes(files * (ENTRY_BYTES + NAME_BYTES)),
                in_bytes(files * ORDER_BYTES),
                in_words(files / list_rate),
                *(in_words(max(files / list_rate, seconds)) for seconds in asked),
                in_words(files / INDEX_RATE),
                in_words(files / SHUFFLE_RATE),
            ]
        )
    head = ["files", "list", "order", "list local", "list NFS-like", "list S3-like", "from the index", "shuffle"]
    return page.table_of(head, rows)


def line_of(report: dict, part: str) -> dict | None:
    return next((line for line in report["lines"] if part in line["name"]), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    report = json.loads(parser.parse_args().results.read_text())
    small = line_of(report, "10,000 .npy")
    if small is None:
        raise SystemExit("the results have no line of small .npy to take the rate of a core from")
    core_rate = small["penstock"]["median"] / report["machine"]["cores"]
    listing = line_of(report, "first shuffled batch from the folder")
    list_rate = 1e9 / listing["penstock"]["median"] if listing else 2e6
    page.fill("readers", readers_table(core_rate))
    page.fill("files", files_table(list_rate))


if __name__ == "__main__":
    main()
