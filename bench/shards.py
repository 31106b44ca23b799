"""Tar shards of 1,000 samples each, a .npy of 16 KB and a .cls, in batches of 32: in order, shuffled, and their index.

There are 100 shards (1.7 GB) unless script/bench --shards says otherwise.
"""

from __future__ import annotations

import io
import os
import sys
from functools import partial
from pathlib import Path

import corpus
from line import PEER_PYTHON, WORKERS, Call, Floor, Line, Program, drain, shuffled

SHARDS = int(os.environ.get("PENSTOCK_BENCH_SHARDS", "100"))
SAMPLES = 1_000  # of a shard
BATCH = 32
#: Samples in the window of WebDataset's shuffle, which its own examples take.
WINDOW = 1_000
#: wids is no part of webdataset since 1.0, so that an older one lies beside it (script/requirements-peers.txt).
WIDS = Path("build/peers/wids")
#: What a member of 16 KB and one of a digit take in a shard, headers and padding included.
MEMBERS = (512 + corpus.SMALL_BYTES_IN_TAR, 512 + 512)


def make(folder: Path) -> list[Path]:
    """Shards as WebDataset's writer makes them. All have the same samples, which nobody notices."""
    paths = [folder / f"train-{number:03}.tar" for number in range(SHARDS)]
    if all(path.exists() for path in paths):
        return paths
    import tarfile

    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    arrays = np.random.default_rng(1).standard_normal((SAMPLES, *corpus.SMALL_SHAPE), dtype="f4")
    for number, path in enumerate(paths):
        part = path.with_suffix(".part")
        with tarfile.open(part, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i, array in enumerate(arrays):
                content = io.BytesIO()
                np.save(content, array)
                for field, data in (("npy", content.getvalue()), ("cls", str(i % 10).encode())):
                    member = tarfile.TarInfo(f"{number:03}{i:06}.{field}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        part.rename(path)
    return paths


def _ours(paths: list[str], shuffle: bool) -> Call:
    import penstock

    shards = penstock.shards(paths, keys=["npy", "cls"], index=False)
    len(shards)
    return lambda: drain(penstock.DataLoader(shards, batch_size=BATCH, shuffle=shuffle, num_workers=WORKERS))


def _ours_as_stream(paths: list[str]) -> Call:
    import penstock

    stream = penstock.stream(penstock.shards(paths, keys=["npy", "cls"], index=False))
    return lambda: drain(penstock.DataLoader(stream, batch_size=BATCH, num_workers=WORKERS))


def _ours_loose(folder: Path, samples: int) -> Call:
    """As many samples as the shards have, from fewer files that are read several times."""
    import penstock

    files = penstock.files(folder)

    def run() -> None:
        for _ in range(0, samples, len(files)):
            drain(penstock.DataLoader(files, batch_size=BATCH, shuffle=True, num_workers=WORKERS))

    return run


def _webdataset(paths: list[str], workers: int, window: int) -> Call:
    import webdataset as wds
    from torch.utils.data import DataLoader

    data = wds.WebDataset(paths, shardshuffle=len(paths) if window else False)
    data = (data.shuffle(window) if window else data).decode().to_tuple("npy", "cls").batched(BATCH)
    return lambda: drain(DataLoader(data, batch_size=None, num_workers=workers))


def _decoded(sample: dict) -> tuple:
    import numpy as np

    return np.load(sample[".npy"]), int(sample[".cls"].read())


def _itself(name: str) -> str:
    """wids copies a shard to its cache unless it is told that the shard is one already."""
    return name


def _wids(paths: list[str], workers: int) -> Call:
    sys.path.insert(0, str(WIDS.resolve()))
    import wids
    from torch.utils.data import DataLoader

    listed = [{"url": path, "nsamples": SAMPLES} for path in paths]
    # As many shards open as there are, because with fewer each sample of a shuffled order would list its shard anew.
    options = {"localname": _itself, "keep": True, "lru_size": len(paths), "transformations": [_decoded]}
    data = wids.ShardListDataset(listed, **options)
    return lambda: drain(DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers))


def _index(paths: list[str]) -> Call:
    import penstock

    return lambda: len(penstock.shards(paths, index=False))


def _wids_index(paths: list[str]) -> Call:
    sys.path.insert(0, str(WIDS.resolve()))
    from wids import wids

    return lambda: sum(wids.compute_num_samples(path) for path in paths)


def _listing(root: Path, paths: list[Path]) -> str:
    listing = root / f"shards-{len(paths)}.txt"
    if not listing.exists():
        listing.write_text("".join(f"{path}\n" for path in paths))
    return str(listing)


def _samples(root: Path, paths: list[Path]) -> str:
    """Shard, offset and bytes of each sample, in a shuffled order, for the floor."""
    listing = root / f"shards-{len(paths)}-samples.txt"
    if not listing.exists():
        size = sum(MEMBERS)
        order = shuffled(len(paths) * SAMPLES)
        listing.write_text("".join(f"{n // SAMPLES} {n % SAMPLES * size} {size}\n" for n in order))
    return str(listing)


def lines(root: Path) -> list[Line]:
    shards = make(root / "shards")
    paths, samples, ours = [str(path) for path in shards], SHARDS * SAMPLES, ("penstock",)
    listing = _listing(root, shards)
    title = f"{SHARDS} tar shards of 1,000 samples"
    torch = ("torch", "numpy", "webdataset")
    webdataset = {
        window: {
            f"webdataset and torch, {workers} workers": Program(
                partial(_webdataset, paths, workers, window), torch, PEER_PYTHON
            )
            for workers in (0, 1, 2)
        }
        for window in (0, WINDOW)
    }
    wids = {
        f"wids and torch, {workers} workers": Program(partial(_wids, paths, workers), ("torch", "numpy"), PEER_PYTHON)
        for workers in (0, 2)
    }
    common = {"unit": "samples/s", "work": samples, "repeats": 3}
    in_order = Floor(["shards", listing, str(WORKERS)], "bytes_per_second", sum(MEMBERS))
    at_random = Floor(["samples", listing, _samples(root, shards), str(WORKERS)])
    return [
        Line(
            name=f"{title}, in order",
            ours=Program(partial(_ours, paths, False), ours),
            peers=webdataset[0],
            floor=in_order,
            goal_peer=10,
            goal_floor=0.8,
            **common,
        ),
        Line(
            name=f"{title}, in order, as a stream",
            ours=Program(partial(_ours_as_stream, paths), ours),
            peers=webdataset[0],
            floor=in_order,
            goal_peer=10,
            **common,
        ),
        Line(
            name=f"{title}, shuffled, beside wids",
            ours=Program(partial(_ours, paths, True), ours),
            peers=wids,
            floor=at_random,
            goal_peer=10,
            **common,
        ),
        Line(
            name=f"{title}, shuffled, beside a window of {WINDOW:,}",
            ours=Program(partial(_ours, paths, True), ours),
            peers=webdataset[WINDOW],
            notes=["WebDataset shuffles shards and then within the window, Penstock over all samples."],
            **common,
        ),
        Line(
            name=f"{title}, shuffled, beside loose files",
            ours=Program(partial(_ours, paths, True), ours),
            peers={"Penstock, loose .npy": Program(partial(_ours_loose, corpus.small_npy(root), samples), ours)},
            goal_peer=0.8,
            notes=["The loose files are 10,000, read again and again, and have no labels."],
            **common,
        ),
        Line(
            name=f"{title}: their index, in a new process",
            unit="ms",
            kind="time",
            work=samples,
            fresh=True,
            ours=Program(partial(_index, paths), ours),
            peers={"wids": Program(partial(_wids_index, paths), ("numpy", "torch"), PEER_PYTHON)},
            floor=Floor(["headers", listing, str(WORKERS)]),
            goal_peer=5,
            goal_floor=0.8,
        ),
    ]
