"""A model's weights handed to a loop like vLLM's, which copies each into a parameter: Penstock beside its peers.

    .venv/bin/python bench/weights.py [--gigabytes 4] [--repeats 5] [--folder /tmp] [--peers FOLDER] [--only NAME...]

A sharded model in the page cache; the parameters exist and have been written to, as they have in an engine. Each way
takes all tensors once in turn; the best of the turns counts, and ratios are of the same turns. Peers are taken from
FOLDER (`pip install --target FOLDER --no-deps fastsafetensors runai-model-streamer humanize`) where they are there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

import penstock.torch as pt

WIDTH, MIDDLE = 2048, 5632
Pairs = Iterator[tuple[str, torch.Tensor]]


def layer(number: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{part}_proj": (WIDTH, WIDTH) for part in "qkvo"}
    shapes |= {"gate": (MIDDLE, WIDTH), "up": (MIDDLE, WIDTH), "down": (WIDTH, MIDDLE), "norm": (WIDTH,)}
    return {f"model.layers.{number}.{name}.weight": shape for name, shape in shapes.items()}


def write(folder: Path, nbytes: float) -> list[Path]:
    """Shards of about a gigabyte."""
    layers = max(int(nbytes / 2 / sum(torch.Size(shape).numel() for shape in layer(0).values())), 4)
    paths = [folder / f"model-{n + 1:05}-of-00004.safetensors" for n in range(4)]
    for n, path in enumerate(paths):
        shapes = {k: s for number in range(n * layers // 4, (n + 1) * layers // 4) for k, s in layer(number).items()}
        save_file({key: torch.randn(shape).bfloat16() for key, shape in shapes.items()}, path)
    return paths


def penstock(paths: list[Path]) -> Pairs:
    return pt.weights(paths)


def safetensors(paths: list[Path]) -> Pairs:
    """As vLLM's safetensors_weights_iterator does."""
    for path in paths:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                yield name, file.get_tensor(name)


def runai(paths: list[Path]) -> Pairs:
    from runai_model_streamer import SafetensorsStreamer

    with SafetensorsStreamer() as streamer:
        streamer.stream_files([str(path) for path in paths])
        yield from streamer.get_tensors()


def fastsafetensors(paths: list[Path]) -> Pairs:
    """As vLLM's fastsafetensors_weights_iterator does, a file at a time."""
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup

    for path in paths:
        loader = SafeTensorsFileLoader(SingleGroup(), torch.device("cpu"), nogds=True)
        loader.add_filenames({0: [str(path)]})
        buffer = loader.copy_files_to_device()
        for name in list(buffer.key_to_rank_lidx):
            yield name, buffer.get_tensor(name)
        buffer.close()
        loader.close()


WAYS: dict[str, Callable[[list[Path]], Pairs]] = {
    each.__name__: each for each in (penstock, safetensors, runai, fastsafetensors)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--peers", default=None)
    parser.add_argument("--only", nargs="*", default=list(WAYS))
    given = parser.parse_args()
    sys.path += [given.peers] if given.peers else []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        paths = write(Path(folder), given.gigabytes * 1e9)
        for path in paths:
            path.read_bytes()
        parameters = {name: tensor.clone() for name, tensor in safetensors(paths)}
        size = sum(tensor.nbytes for tensor in parameters.values())
        twins = {name: tensor.clone() for name, tensor in parameters.items()}
        ways = dict(WAYS, floor=lambda paths: iter(twins.items()))  # the copy alone
        best: dict[str, list[float]] = {}
        for turn in range(given.repeats):
            for name in (*given.only, "floor"):
                begun, cpu = time.perf_counter(), time.process_time()
                count = 0
                try:
                    for key, tensor in ways[name](paths):
                        parameters[key].data.copy_(tensor)
                        count += 1
                except ImportError as error:
                    print(f"{name}: {error}") if turn == 0 else None
                    continue
                taken = time.perf_counter() - begun
                assert count == len(parameters), name
                best.setdefault(name, []).append(taken)
                print(
                    f"turn {turn} {name:16} {taken:6.3f} s  {time.process_time() - cpu:6.3f} s of processors",
                    flush=True,
                )
    print(
        f"{size / 1e9:.2f} GB, best of {given.repeats}, torch {torch.get_num_threads()} threads; load {os.getloadavg()}"
    )
    peer = min((min(t) for name, t in best.items() if name not in ("penstock", "floor")), default=0.0)
    for name, times in best.items():
        rate, ratio = size / min(times) / 1e9, peer / min(times)
        print(f"{name:16} {min(times):6.3f} s  {rate:6.2f} GB/s  {ratio:5.2f} of the best peer")


if __name__ == "__main__":
    main()
