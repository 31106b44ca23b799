"""Tar shards in an object store: samples a second, in order and shuffled, for bench/remote.py."""

from __future__ import annotations

import contextlib
import io
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from servers import ACCESS_KEY, BUCKET, REGION, ROOT, SECRET_KEY, Server, answers, free_port, running, store

import penstock

SAMPLES = 1_000  # of a shard
SHAPE = (64, 64)  # 16 KB
BATCH = 32
WINDOW = 1_000


def name_of(shard: int) -> str:
    return f"shards/train-{shard:03}.tar"


def fill(put: Callable[[str, Path], object], shards: int, folder: Path) -> None:
    """`put` takes the name of an object and the file that it is to be."""
    arrays = np.random.default_rng(1).standard_normal((SAMPLES, *SHAPE), dtype="f4")
    path = folder / "shard.tar"
    for shard in range(shards):
        with penstock.Writer(path) as writer:
            for i, array in enumerate(arrays):
                writer.add_sample({"__key__": f"{shard:03}{i:06}", "npy": array, "cls": i % 10})
        put(name_of(shard), path)


@contextlib.contextmanager
def quick_store(folder: Path, delay: float) -> Iterator[Server]:
    """bench/store.cpp: it serves `folder` and takes some 20 us of a processor for a request, so that its clients are
    what is measured."""
    program = ROOT / "build" / "release" / "bin" / "bench_store"
    if not program.exists():
        raise SystemExit(f"{program} is not built: ninja -C build/release bench_store")
    port = free_port()
    server = store(f"http://127.0.0.1:{port}")
    with running([program, folder, port, delay * 1000], folder / "log", lambda: answers(server.url)):
        yield server


def dataset(shards: int) -> penstock.Dataset:
    pattern = f"s3://{BUCKET}/shards/train-{{000..{shards - 1:03}}}.tar"
    return penstock.shards(pattern, keys=["npy", "cls"], index=False)


def by_penstock(samples: penstock.Dataset | penstock.SampleStream, count: int, shuffle: bool) -> None:
    loader = penstock.DataLoader(samples, batch_size=BATCH, shuffle=shuffle, num_workers=2)
    assert sum(len(batch["cls"]) for batch in loader) == count


def by_webdataset(url: str, shards: int, shuffle: bool, workers: int) -> None:
    import torch
    import webdataset as wds

    curl = f"pipe:curl -s -f --aws-sigv4 aws:amz:{REGION}:s3 --user {ACCESS_KEY}:{SECRET_KEY} {url}/{BUCKET}/"
    data = wds.WebDataset([curl + name_of(shard) for shard in range(shards)], shardshuffle=shards if shuffle else False)
    data = (data.shuffle(WINDOW) if shuffle else data).decode().to_tuple("npy", "cls").batched(BATCH)
    assert sum(len(y) for _, y in torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers)) > 0


class Ranges:
    """What a torch program makes of obstore: a range for each sample, whose place it knows already."""

    def __init__(self, client: Callable[[str], object], url: str, shards: int) -> None:
        self.client, self.url, self.shards, self.store = client, url, shards, None
        self.bytes = 512 + 16_896 + 1_024  # of a sample, with headers and padding

    def __len__(self) -> int:
        return self.shards * SAMPLES

    def __getitem__(self, index: int):
        import torch

        self.store = self.store or self.client(self.url)
        shard, sample = divmod(index, SAMPLES)
        content = self.store.get_range(name_of(shard), start=sample * self.bytes, length=self.bytes)
        with tarfile.open(fileobj=io.BytesIO(bytes(content))) as tar:
            fields = {member.name.partition(".")[2]: tar.extractfile(member).read() for member in tar}
        return torch.from_numpy(np.load(io.BytesIO(fields["npy"]))), int(fields["cls"])


def by_obstore(client: Callable[[str], object], url: str, shards: int, shuffle: bool, workers: int) -> float:
    """The seconds from the first batch on, for as many samples as there are: its processes are started anew, and import
    torch, which is not what is compared."""
    import torch

    loader = torch.utils.data.DataLoader(
        Ranges(client, url, shards), BATCH, shuffle=shuffle, num_workers=workers, multiprocessing_context="spawn"
    )
    batches = iter(loader)
    first = len(next(batches)[1])
    begun = time.perf_counter()
    rest = sum(len(y) for _, y in batches)
    assert first + rest == shards * SAMPLES
    return (time.perf_counter() - begun) * shards * SAMPLES / rest


def works(client: Callable[[str], object], url: str, shards: int, shuffle: bool) -> dict[str, Callable[[], None]]:
    """The index is made before the clock starts, since it is kept from run to run."""
    known, count = dataset(shards), shards * SAMPLES
    assert len(known) == count
    found: dict[str, Callable[[], None]] = {"Penstock": lambda: by_penstock(known, count, shuffle)}
    if not shuffle:
        found["Penstock, as a stream"] = lambda: by_penstock(penstock.stream(dataset(shards)), count, False)
    for workers in (1, 2):
        found[f"webdataset, curl, {workers} workers"] = lambda n=workers: by_webdataset(url, shards, shuffle, n)
    for workers in (2, 8):
        found[f"torch over obstore, {workers} workers"] = lambda n=workers: by_obstore(client, url, shards, shuffle, n)
    return found
