"""Figures from object stores on this machine, beside other clients of the same store.

    script/bench remote [--server seaweed|rclone|quick] [--gigabytes 2] [--objects 10000] [--shards 10] [--repeats 3]
                        [--only shards] [--out FILE]

Five works, each in turns by everybody:

- one large `.safetensors` to host memory; the floor is curl with as many ranges in parallel, into nothing;
- many small objects as shuffled batches of 32, where every request takes 5 ms longer (a proxy between); the floor is
  requests in flight / 5 ms, or what the proxy itself gives;
- samples of tar shards (1,000 of 16 KB each) in order and shuffled, where every request takes 5 ms longer; and
  the index of these shards;
- 128 rows of the large tensor: bytes sent for each byte asked for;
- tensors in memory to one `.safetensors` object: `penstock.save` beside clients that send a file which has been
  written before; the floor is curl, which sends as many parts of that file in parallel, each as an object.

`--server quick` does the work of tar shards alone, from a server in C++ (bench/store.cpp) that delays answers itself
and checks no signature: there the clients are the limit, and not a server or proxy.

Client, server and proxy share the machine's processors, which is said beside the figures. Peers that are not installed
are left out by name.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "remote")]
sys.path += [str(path) for path in (ROOT / "build" / "remote").glob("lib/python*/site-packages")]

import numpy as np  # noqa: E402
import obstore  # noqa: E402
import obstore.store  # noqa: E402
import remote_shards  # noqa: E402
from fault_proxy import FaultProxy, Upstream, in_thread  # noqa: E402
from servers import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, SERVERS, behind_proxy  # noqa: E402

import penstock  # noqa: E402

PART = 8 << 20
FLIGHT = 16
SMALL = 16 << 10
DELAY = 0.005
LARGE = "large.safetensors"


def client(url: str) -> obstore.store.S3Store:
    keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY, "region": REGION}
    return obstore.store.S3Store(BUCKET, endpoint=url, **keys, client_options={"allow_http": True, "timeout": "600s"})


def fill(url: str, size: int, objects: int) -> None:
    store = client(url)
    rows = size // (4 * 4096)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / LARGE
        tensors = {f"w{number}": np.zeros((rows // 8, 4096), "f4") + number for number in range(8)}
        penstock.save(tensors, path)
        store.put(LARGE, path, use_multipart=True, chunk_size=64 << 20)
        sample = Path(folder) / "x.npy"
        np.save(sample, np.zeros(SMALL // 4 - 32, "f4"))
        content = sample.read_bytes()
    for number in range(objects):
        store.put(f"small/{number:05}.npy", content)


def timed(work: Callable[[], object]) -> float:
    """The seconds that it takes, or that it says it took."""
    begun = time.perf_counter()
    own = work()
    return own if isinstance(own, float) else time.perf_counter() - begun


def in_turns(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each. Whoever cannot run is left out by name."""
    took: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, work in works.items():
            if name in took and not took[name]:
                continue
            try:
                took.setdefault(name, []).append(timed(work))
            except ImportError as error:
                print(f"  {name} is left out: {error}")
                took[name] = []
    return {name: statistics.median(seconds) for name, seconds in took.items() if seconds}


def by_obstore(url: str, size: int) -> None:
    """Ranges by threads: get_ranges joins neighbours, of which one stream is left."""
    store = client(url)
    with ThreadPoolExecutor(FLIGHT) as pool:
        starts = range(0, size, PART)
        parts = pool.map(lambda start: store.get_range(LARGE, start=start, end=min(start + PART, size)), starts)
        assert sum(len(part) for part in list(parts)) == size


def by_boto3(url: str, size: int) -> None:
    import boto3
    from boto3.s3.transfer import TransferConfig

    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "region_name": REGION}
    config = TransferConfig(max_concurrency=FLIGHT, multipart_chunksize=PART)
    with open("/dev/shm/penstock.boto3", "wb+") as file:
        boto3.client("s3", endpoint_url=url, **keys).download_fileobj(BUCKET, LARGE, file, Config=config)
    os.unlink("/dev/shm/penstock.boto3")


def by_s3fs(url: str, size: int) -> None:
    import s3fs

    fs = s3fs.S3FileSystem(key=ACCESS_KEY, secret=SECRET_KEY, endpoint_url=url, skip_instance_cache=True)
    starts = list(range(0, size, PART))
    ends = [min(start + PART, size) for start in starts]
    fs.cat_ranges([f"{BUCKET}/{LARGE}"] * len(starts), starts, ends)


def by_curl(url: str, size: int) -> None:
    """So many processes as ranges in flight, each with every n-th part on one connection."""
    keys = ["--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{ACCESS_KEY}:{SECRET_KEY}"]
    running = []
    for first in range(min(FLIGHT, -(-size // PART))):
        words = ["curl", "-s"]
        for begin in range(first * PART, size, FLIGHT * PART):
            words += ["--next"] if len(words) > 2 else []
            words += ["-s", *keys, "-r", f"{begin}-{min(begin + PART, size) - 1}", "-o", "/dev/null"]
            words += [f"{url}/{BUCKET}/{LARGE}"]
        running.append(subprocess.Popen(words))
    for process in running:
        if process.wait():
            raise RuntimeError("curl failed")


def large(url: str, repeats: int) -> dict:
    size = client(url).head(LARGE)["size"]
    works = {
        "Penstock": lambda: penstock.load(f"s3://{BUCKET}/{LARGE}"),
        "obstore": lambda: by_obstore(url, size),
        "boto3": lambda: by_boto3(url, size),
        "s3fs": lambda: by_s3fs(url, size),
        f"curl, {FLIGHT} ranges": lambda: by_curl(url, size),
    }
    found = {name: size / seconds / 1e9 for name, seconds in in_turns(works, repeats).items()}
    return {"work": f"{size / 1e9:.2f} GB to host", "unit": "GB/s", "figures": found}


def upload(url: str, size: int, repeats: int) -> dict:
    """Figures of sending `size` bytes. Peers get a file in memory, whose writing does not count."""
    rows = size // (8 * 4 * 4096)
    tensors = {f"w{number}": np.random.default_rng(number).random((rows, 4096), "f4") for number in range(8)}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / LARGE
        penstock.save(tensors, path)
        size = path.stat().st_size

        def sent_by_boto3() -> None:
            import boto3
            from boto3.s3.transfer import TransferConfig

            keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "region_name": REGION}
            config = TransferConfig(max_concurrency=FLIGHT, multipart_chunksize=PART)
            boto3.client("s3", endpoint_url=url, **keys).upload_file(str(path), BUCKET, "up-boto3", Config=config)

        def sent_by_curl() -> None:
            keys = ["--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{ACCESS_KEY}:{SECRET_KEY}"]
            running = []
            for first in range(min(FLIGHT, len(parts))):
                words = ["curl"]
                for part in parts[first::FLIGHT]:
                    words += ["--next"] if len(words) > 1 else []
                    words += ["-s", "-f", *keys, "-T", str(part), "-o", "/dev/null"]
                    words += ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", f"{url}/{BUCKET}/up-{part.name}"]
                running.append(subprocess.Popen(words))
            codes = [process.wait() for process in running]
            if any(codes):
                raise RuntimeError("curl failed")

        parts = [Path(folder) / f"part-{number}" for number in range(-(-size // PART))]
        with open(path, "rb") as file:
            for part in parts:
                part.write_bytes(file.read(PART))
        store = client(url)
        works = {
            "Penstock": lambda: penstock.save(tensors, f"s3://{BUCKET}/up-penstock.safetensors"),
            "obstore": lambda: store.put("up-obstore", path, chunk_size=PART, max_concurrency=FLIGHT),
            "boto3": sent_by_boto3,
            f"curl, {FLIGHT} objects at once": sent_by_curl,
        }
        found = {name: size / seconds / 1e9 for name, seconds in in_turns(works, repeats).items()}
        sent = penstock.load(f"s3://{BUCKET}/up-penstock.safetensors")
        assert all(np.array_equal(np.asarray(sent[name]), tensor) for name, tensor in tensors.items())
    return {"work": f"{size / 1e9:.2f} GB sent", "unit": "GB/s", "figures": found}


def by_penstock_loader(workers: int) -> int:
    dataset = penstock.files(f"s3://{BUCKET}/small/*.npy")
    loader = penstock.DataLoader(dataset, batch_size=32, shuffle=True, num_workers=workers)
    return sum(batch.shape[0] for batch in loader)


class Objects:
    """What a torch program has: one get for each sample."""

    def __init__(self, url: str, names: list[str]) -> None:
        self.url, self.names, self.store = url, names, None

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int):
        import torch

        self.store = self.store or client(self.url)
        content = memoryview(self.store.get(self.names[index]).bytes())
        return torch.from_numpy(np.frombuffer(content, "f4", offset=128).copy())


def by_torch(url: str, objects: int, workers: int) -> int:
    import torch

    names = [f"small/{number:05}.npy" for number in range(objects)]
    loader = torch.utils.data.DataLoader(
        Objects(url, names), 32, shuffle=True, num_workers=workers, multiprocessing_context="spawn"
    )
    return sum(len(batch) for batch in loader)


def small(url: str, objects: int, repeats: int) -> dict:
    works = {"Penstock": lambda: by_penstock_loader(2)}
    for workers in (2, 8):
        works[f"torch over obstore, {workers} workers"] = lambda workers=workers: by_torch(url, objects, workers)
    found = {name: objects / seconds for name, seconds in in_turns(works, repeats).items()}
    return {"work": f"{objects} objects of 16 KB, 5 ms each, batches of 32", "unit": "objects/s", "figures": found}


def shards(url: str, count: int, shuffle: bool, repeats: int) -> dict:
    samples = count * remote_shards.SAMPLES
    seconds = in_turns(remote_shards.works(client, url, count, shuffle), repeats)
    order = "shuffled" if shuffle else "in order"
    found = {name: samples / taken for name, taken in seconds.items()}
    return {"work": f"{count} tar shards, {order}, 5 ms a request", "unit": "samples/s", "figures": found}


def shard_index(count: int, repeats: int) -> dict:
    seconds = in_turns({"Penstock": lambda: len(remote_shards.dataset(count))}, repeats)
    found = {name: count / taken for name, taken in seconds.items()}
    return {"work": f"index of {count} tar shards, 5 ms a request", "unit": "shards/s", "figures": found}


def rows(proxy: FaultProxy) -> dict:
    proxy.forget()
    tensor = penstock.open(f"s3://{BUCKET}/{LARGE}")["w3"]
    asked = tensor[1000:1128].load().nbytes
    return {"work": "128 rows of a large tensor", "unit": "sent/asked", "figures": {"Penstock": proxy.sent / asked}}


def of_shards(url: str, given: argparse.Namespace) -> list[dict]:
    orders = [shards(url, given.shards, shuffle, given.repeats) for shuffle in (False, True)]
    return [shard_index(given.shards, given.repeats), *orders]


def by_server(given: argparse.Namespace) -> list[dict]:
    results = []
    with tempfile.TemporaryDirectory() as folder, SERVERS[given.server](Path(folder)) as server:
        os.environ.update(server.environment)
        if given.only is None:
            fill(server.url, int(given.gigabytes * 1e9), given.objects)
            results.append(large(server.url, given.repeats))
            results.append(upload(server.url, int(given.gigabytes * 1e9 / 2), given.repeats))
            with in_thread(FaultProxy(Upstream(server.url))) as proxy:
                os.environ["AWS_ENDPOINT_URL"] = proxy.url
                results.append(rows(proxy))
        store = client(server.url)
        put = functools.partial(store.put, use_multipart=True, chunk_size=64 << 20)
        remote_shards.fill(put, given.shards, Path(folder))
        with behind_proxy(server.url, "--delay", str(DELAY)) as between:
            os.environ["AWS_ENDPOINT_URL"] = between
            if given.only is None:
                results.append(small(between, given.objects, given.repeats))
            return results + of_shards(between, given)


def by_quick_store(given: argparse.Namespace) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        served = Path(folder) / "served"
        (served / "shards").mkdir(parents=True)
        remote_shards.fill(lambda name, path: shutil.copy(path, served / name), given.shards, Path(folder))
        with remote_shards.quick_store(served, DELAY) as server:
            os.environ.update(server.environment)
            return of_shards(server.url, given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=["seaweed", "rclone", "quick"], default="seaweed")
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--objects", type=int, default=10000)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["shards"], help="this work alone")
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    given = parser.parse_args()
    results = by_quick_store(given) if given.server == "quick" else by_server(given)
    for result in results:
        print(
            f"{result['work']} ({given.server}, {os.cpu_count()} processors for client and server), {result['unit']}:"
        )
        for name, figure in sorted(result["figures"].items(), key=lambda item: -item[1]):
            print(f"  {name:36} {figure:10.2f}")
    if given.out:
        given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
