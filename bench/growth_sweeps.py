"""What bench/growth.py sweeps: calls whose work is linear in the number of some things."""

from __future__ import annotations

import random
import subprocess
from array import array
from pathlib import Path
from typing import Any

from growth import Call, Sweep

import penstock

COMMAND = Path(__file__).resolve().parents[1] / "build/release/bin/penstock"


def _decades(first: int, last: int) -> list[int]:
    """Three numbers for each order of magnitude."""
    out, number = [], float(first)
    while number <= last * 1.01:
        out.append(round(number))
        number *= 10 ** (1 / 3)
    return out


def _drain(dataset: penstock.Dataset, **options: Any) -> None:
    for _ in penstock.DataLoader(dataset, num_workers=0, **options):
        pass


def _small(count: int = 1) -> penstock.Tensor:
    return penstock.zeros((count,), dtype="float32")


def _files(number: int, folder: Path) -> Call:
    for i in range(number):
        penstock.save(_small(), folder / f"{i}.npy")
    return lambda: _drain(penstock.files(folder), batch_size=64)


def _written(ending: str) -> Any:
    def make(number: int, folder: Path) -> Call:
        content = {f"layer.{i}.weight": _small() for i in range(number)}
        return lambda: penstock.save(content, folder / f"many{ending}", sync=False)

    return make


def _read(ending: str) -> Any:
    def make(number: int, folder: Path) -> Call:
        path = folder / f"many{ending}"
        penstock.save({f"layer.{i}.weight": _small() for i in range(number)}, path)
        return lambda: penstock.load(path)

    return make


def _into(number: int, folder: Path) -> Call:
    content = {f"layer.{i}.weight": _small() for i in range(number)}
    penstock.save(content, folder / "many.safetensors")
    return lambda: penstock.load_into(content, folder / "many.safetensors")


def _split(number: int, folder: Path) -> Call:
    penstock.save({f"layer.{i}.weight": _small() for i in range(number)}, folder / "many.safetensors")
    shards = folder / "split.safetensors"
    command = [COMMAND, "convert", folder / "many.safetensors", shards, "--shard-size", "1MB", "--force"]
    return lambda: subprocess.run(command, check=True, capture_output=True)


def _mixed_datasets(number: int, folder: Path) -> Call:
    parts = [penstock.rows(_small(20)) for _ in range(number)]
    weights = [random.Random(i).random() for i in range(number)]
    return lambda: penstock.mix(parts, weights, end="first", size=20 * number)


def _mixed_samples(number: int, folder: Path) -> Call:
    parts = [penstock.rows(penstock.zeros((number, 1))), penstock.rows(penstock.zeros((number, 1)))]
    return lambda: penstock.mix(parts, [2**0.5, 1.0], size=number)


def _mixed_streams(number: int, folder: Path) -> Call:
    def run() -> None:
        parts = [penstock.stream(lambda: iter(range(20))) for _ in range(number)]
        mixed = penstock.mix(parts, [1.0 + i % 7 for i in range(number)], size=10 * number)
        for _ in penstock.DataLoader(mixed, batch_size=64, num_workers=0):
            pass

    return run


def _joined(join: Any) -> Any:
    def make(number: int, folder: Path) -> Call:
        parts = [penstock.rows(_small(4)) for _ in range(number)]
        return lambda: _drain(join(*parts), batch_size=64, shuffle=True)

    return make


def _position(number: int, folder: Path) -> Call:
    loader = penstock.DataLoader(penstock.zip(*(penstock.rows(_small(4)) for _ in range(number))), num_workers=0)
    return loader.state_dict


def _stages(number: int, folder: Path) -> Call:
    dataset = penstock.rows(_small(8))
    for _ in range(number):
        dataset = dataset.map(lambda sample: sample)
    return lambda: _drain(dataset, batch_size=8)


def _zips(number: int, folder: Path) -> Call:
    rows = penstock.rows(_small(4))
    dataset = penstock.zip(rows)
    for _ in range(number):
        dataset = penstock.zip(dataset, rows)
    return lambda: _drain(dataset, batch_size=4)


def _transforms(number: int, folder: Path) -> Call:
    dataset = penstock.rows(_small(8))
    for _ in range(number):
        dataset = dataset.scale(0.5)
    return lambda: _drain(dataset, batch_size=8)


def _weights(make_weights: Any) -> Any:
    def make(number: int, folder: Path) -> Call:
        weights = make_weights(number)
        return lambda: penstock.WeightedSampler(weights, 10)

    return make


def _indices(number: int, folder: Path) -> Call:
    rows, order = penstock.rows(_small(number)), array("q", range(number))
    return lambda: penstock.subset(rows, order)


def _rows(shuffle: bool) -> Any:
    def make(number: int, folder: Path) -> Call:
        rows = penstock.rows(penstock.zeros((number, 13)))
        return lambda: _drain(rows, batch_size=256, shuffle=shuffle)

    return make


def _shards(number: int, folder: Path) -> Call:
    penstock.pack(penstock.rows(_small(number)), folder / "packed", shard_bytes=1)
    return lambda: penstock.packed(folder / "packed")


def _chunks(number: int, folder: Path) -> Call:
    penstock.save({f"layer.{i}.weight": _small() for i in range(number)}, f"{folder / 'checkpoint'}/")
    return lambda: penstock.load(folder / "checkpoint")


def _nesting(number: int, folder: Path) -> Call:
    content: Any = 1
    for _ in range(number):
        content = [content]
    path = folder / "deep.pt"
    penstock.save({"deep": content}, path)
    return lambda: penstock.load(path)


def _workers(number: int, folder: Path) -> Call:
    rows = penstock.rows(_small(2))

    def run() -> None:
        for _ in penstock.DataLoader(rows, batch_size=1, num_workers=number):
            pass

    return run


SWEEPS = (
    Sweep("files of a folder", _decades(10, 10_000), _files),
    *(
        Sweep(f"{what} tensors in {ending}", _decades(100, 100_000 if ending != ".npz" else 30_000), make(ending))
        for ending in (".safetensors", ".pt", ".npz")
        for what, make in (("writing", _written), ("reading", _read))
    ),
    *(
        (Sweep("tensors that convert splits", _decades(100, 100_000), _split, counts=False),)
        if COMMAND.exists()
        else ()
    ),
    Sweep("load_into tensors of .safetensors", _decades(100, 100_000), _into),
    Sweep("chunks of a checkpoint", _decades(10, 10_000), _chunks),
    Sweep("shards of packed samples", _decades(3, 3_000), _shards),
    Sweep("nesting", _decades(1, 1_000), _nesting),  # of 2,000 levels, which is the limit
    Sweep("mixing datasets of 20 samples", _decades(4, 4_000), _mixed_datasets),
    Sweep("mixing samples of two datasets", _decades(1_000, 1_000_000), _mixed_samples),
    Sweep("mixing streams of 10 samples", _decades(3, 3_000), _mixed_streams),
    Sweep("datasets of 4 samples in a row", _decades(4, 4_000), _joined(penstock.Dataset.concat)),
    Sweep("datasets of 4 samples side by side", _decades(4, 4_000), _joined(penstock.zip)),
    Sweep("parts of a sample in a position", _decades(4, 4_000), _position),
    Sweep("zips inside of each other", _decades(1, 1_000), _zips),
    Sweep("native transforms one behind the other", _decades(1, 1_000), _transforms),
    Sweep("stages of map", _decades(1, 1_000), _stages),
    Sweep("weights in an array", _decades(1_000, 1_000_000), _weights(lambda n: array("d", [1.0]) * n)),
    Sweep("weights in a tensor", _decades(1_000, 1_000_000), _weights(lambda n: penstock.ones((n,)))),
    Sweep("weights in a list", _decades(1_000, 1_000_000), _weights(lambda n: [1.0] * n)),
    Sweep("indices of a subset", _decades(1_000, 1_000_000), _indices),
    Sweep("rows in order", _decades(1_000, 1_000_000), _rows(False)),
    Sweep("rows in any order", _decades(1_000, 1_000_000), _rows(True)),
    Sweep("workers beyond the batches", _decades(2, 256), _workers),
)
