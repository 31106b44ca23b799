"""Several processes that all need one file, by several ways; prints seconds, ratios and memory.

    .venv/bin/python bench/ranks.py [--ranks 4] [--gigabytes 2] [--repeats 5] [--folder /tmp]

The file is in the page cache. Processes meet before each load and behind it, so that a figure is the time until the
last of them has the whole result. Then each reads all of it, as a program would. Memory is what all of them together
take of the machine while they have it: the sum of their PSS, without what they had before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

import penstock.torch as pt

TENSORS = 64


def memory() -> int:
    """Bytes of this process, pages that others share divided among them."""
    with open("/proc/self/smaps_rollup") as lines:
        return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def refuse(*_: object) -> int:
    raise PermissionError(1, "not in this figure")


def alone(path: Path) -> dict:
    return pt.load(path)


def torch_alone(path: Path) -> dict:
    return torch.load(path.with_suffix(".pt"), weights_only=True)


def once(path: Path) -> dict:
    return pt.load(path, ranks="auto")


def shared(path: Path) -> dict:
    return pt.load(path, ranks="auto", shared=True)


def sent(path: Path) -> dict:
    kept, os.memfd_create = os.memfd_create, refuse
    try:
        return pt.load(path, ranks="auto")
    finally:
        os.memfd_create = kept


WAYS = {"torch.load, each": torch_alone, "each by itself": alone, "ranks=": once, "ranks=, shared=True": shared}
WAYS["ranks= over gloo"] = sent


def work(rank: int, path: Path, given: argparse.Namespace, results: multiprocessing.Queue) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path.parent}/meet", rank=rank, world_size=given.ranks)
    for _ in range(given.repeats):
        for name, way in WAYS.items():
            before = memory()
            dist.barrier()
            begun = time.perf_counter()
            state = way(path)
            dist.barrier()
            loaded = time.perf_counter() - begun
            total = sum(float(tensor[::4096].sum()) for tensor in state.values())  # each page is touched
            dist.barrier()
            touched = time.perf_counter() - begun
            taken = memory() - before
            dist.barrier()
            results.put((name, loaded, touched, taken, total))
            del state
            dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "model.safetensors"
        size = int(given.gigabytes * 1e9 / TENSORS / 4)
        state = {f"layer.{n}": torch.full((size,), float(n)) for n in range(TENSORS)}
        pt.save_file(state, path)
        torch.save(state, path.with_suffix(".pt"))
        expected = sum(float(tensor[::4096].sum()) for tensor in state.values())
        del state
        for each in (path, path.with_suffix(".pt")):
            with open(each, "rb") as file:
                while file.read(1 << 24):
                    pass
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        workers = [context.Process(target=work, args=(r, path, given, results)) for r in range(given.ranks)]
        for worker in workers:
            worker.start()
        told = [results.get(timeout=600) for _ in range(given.ranks * given.repeats * len(WAYS))]
        for worker in workers:
            worker.join()
    assert all(abs(total - expected) <= 1e-6 * expected for *_, total in told)
    print(
        f"{given.ranks} processes, {given.gigabytes:g} GB, page cache, best of {given.repeats}; load {os.getloadavg()}"
    )
    base = 0.0
    for name in WAYS:
        own = [each for each in told if each[0] == name]
        turns = [own[i : i + given.ranks] for i in range(0, len(own), given.ranks)]
        loaded = min(max(each[1] for each in turn) for turn in turns)
        touched = min(max(each[2] for each in turn) for turn in turns)
        taken = sorted(sum(each[3] for each in turn) for turn in turns)[len(turns) // 2]
        base = touched if name == "each by itself" else base
        ratio = f"{base / touched:6.2f}x" if base else "       "
        print(f"{name:22} {loaded:7.3f} s loaded  {touched:7.3f} s read {ratio}  {taken / 1e9:6.2f} GB")


if __name__ == "__main__":
    main()
