"""The second epoch from the disk cache beside the same files on disk.

    .venv/bin/python bench/remote_cache.py [--small 2000] [--kib 100] [--megabytes 500] [--repeats 5]

Two works, in turns: an epoch of many small files in shuffled batches of 32, and one large array to host memory. Each
from files, from the cache while its objects are trusted (no requests), and from the cache where each object is asked
for (one request without a body, to nginx on this machine). Everything is in the page cache. The goal is 0.9 of files.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "remote")]

import numpy as np  # noqa: E402
from servers import SERVERS  # noqa: E402

import penstock  # noqa: E402


def epoch_of(paths: list[str]) -> Callable[[], None]:
    loader = penstock.DataLoader(penstock.files(paths), batch_size=32, shuffle=True)

    def run() -> None:
        for _ in loader:
            pass

    return run


def in_turns(works: dict[str, tuple[str, Callable[[], object]]], repeats: int) -> dict[str, float]:
    """Seconds of each, after one run that does not count. A work is a trust in seconds and what is done."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, (trust, work) in works.items():
            os.environ["PENSTOCK_CACHE_TRUST_SECONDS"] = trust
            begin = time.perf_counter()
            work()
            if turn:
                seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def works_of(make: Callable[[list[str]], Callable[[], object]], files: list[str], urls: list[str]) -> dict:
    return {"files": ("0", make(files)), "trusted": ("86400", make(urls)), "asked": ("0", make(urls))}


def compare(what: str, works: dict, repeats: int) -> dict:
    taken = in_turns(works, repeats)
    ratios = {name: round(taken["files"] / seconds, 3) for name, seconds in taken.items()}
    return {"what": what, "seconds": {name: round(value, 4) for name, value in taken.items()}, "of_files": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=2000, help="small files")
    parser.add_argument("--kib", type=int, default=100, help="KiB in each")
    parser.add_argument("--megabytes", type=int, default=500, help="in the large one")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as cache,
        SERVERS["nginx"](Path(folder)) as server,
    ):
        os.environ["PENSTOCK_CACHE"] = cache
        for number in range(options.small):
            np.save(server.folder / f"{number:05}.npy", np.full(options.kib * 256, number, "f4"))
        np.save(server.folder / "large.npy", np.zeros(options.megabytes * 250_000, "f4"))
        names = [f"{number:05}.npy" for number in range(options.small)]
        files = [str(server.folder / name) for name in names]
        small = works_of(epoch_of, files, [f"{server.url}/{name}" for name in names])
        large = works_of(
            lambda paths: lambda: penstock.load(paths[0]),
            [str(server.folder / "large.npy")],
            [f"{server.url}/large.npy"],
        )
        print(json.dumps(compare(f"{options.small} files of {options.kib} KiB", small, options.repeats)))
        print(json.dumps(compare(f"one file of {options.megabytes} MB", large, options.repeats)))


if __name__ == "__main__":
    main()
