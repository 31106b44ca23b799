"""Read once, broadcast: processes that all want the whole of a checkpoint from a store with a limited rate.

    bench/broadcast.py [--ranks 4] [--megabytes 512] [--rate 200] [--rounds 3]

Beside `StorageReader(url, broadcast="on")` stands the same reader with "off", where each process reads all by itself.
The store is SeaweedFS behind the proxy of tests/remote, which limits the bytes of all answers together
(`script/test remote` installs it). Processor, memory and network are this machine's, for server, proxy and ranks.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "remote")]
URL = "s3://bucket/ckpt"
ROWS = 1 << 20  # of a tensor of 32 MiB


def state_of(megabytes: int, fill: float) -> dict:
    import torch

    return {f"layer{i}": torch.full((ROWS, 8), fill + i) for i in range(max(1, megabytes // 32))}


def load(megabytes: int, broadcast: str, rounds: int) -> None:
    """A rank: seconds of each round, on rank 0's standard output."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    from penstock.torch.dcp import StorageReader

    dist.init_process_group("gloo")
    for _ in range(rounds):
        target = state_of(megabytes, -1)
        dist.barrier()
        started = time.perf_counter()
        dcp.load(target, storage_reader=StorageReader(URL, broadcast=broadcast))
        dist.barrier()
        if dist.get_rank() == 0:
            print(time.perf_counter() - started, flush=True)
        assert all(tensor[-1, -1] == 1 + i for i, tensor in enumerate(target.values()))
    dist.destroy_process_group()


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def measure(options: argparse.Namespace, url: str, broadcast: str) -> float:
    """The median of the rounds behind the first."""
    common = os.environ | {"AWS_ENDPOINT_URL": url, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    common |= {"WORLD_SIZE": str(options.ranks), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--load", broadcast]
    command += ["--megabytes", str(options.megabytes), "--rounds", str(options.rounds + 1)]
    ranks = [
        subprocess.Popen(command, env=common | {"RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(options.ranks)
    ]
    said = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit("a rank failed")
    return statistics.median(float(line) for line in said[0].split()[1:])


def compare(options: argparse.Namespace) -> None:
    import torch.distributed.checkpoint as dcp
    from servers import SERVERS, behind_proxy

    import penstock
    from penstock.torch.dcp import StorageWriter

    with tempfile.TemporaryDirectory() as folder, SERVERS["seaweed"](Path(folder)) as server:
        os.environ.update(server.environment)
        penstock.save({"begun": 1}, "s3://bucket/begun.pt")  # SeaweedFS makes a bucket for the first object in it
        dcp.save(state_of(options.megabytes, 1), storage_writer=StorageWriter(URL), no_dist=True)
        with behind_proxy(server.url, "--rate", str(options.rate * 1e6)) as limited:
            seconds = {broadcast: measure(options, limited, broadcast) for broadcast in ("off", "on")}
    print(f"{options.ranks} ranks, {options.megabytes} MiB, {options.rate:g} MB/s:", end=" ")
    print(f"each by itself {seconds['off']:.2f} s, read once {seconds['on']:.2f} s, ", end="")
    floor = options.megabytes * 1.048576 / options.rate
    print(f"{seconds['off'] / seconds['on']:.1f} times as fast; once through the limit is {floor:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=512, help="MiB of tensors, of 32 each")
    parser.add_argument("--rate", type=float, default=200, help="MB/s of all answers together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        load(options.megabytes, options.load, options.rounds)
    else:
        compare(options)


if __name__ == "__main__":
    main()
