"""Which shard of how many, of which packing: what packed samples have in their metadata (docs/formats/packed.md).

A task does not know it. It writes zeros in its place, and the driver, which hears of all shards, writes the numbers
over them. So the packing is named by a checksum of all samples, and the same samples give the same bytes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping

import penstock

__all__ = ["checksum_of", "number_shard", "packing_of", "unnumbered"]

_KEYS = {"penstock.shard": 12, "penstock.shards": 12, "penstock.packing": 16}
"""And how many digits each has."""


def unnumbered() -> dict[str, str]:
    """The metadata of a shard that has no number yet."""
    return {key: "0" * digits for key, digits in _KEYS.items()}


def checksum_of(arrays: Mapping[str, penstock.Tensor], metadata: Mapping[str, str]) -> int:
    """Of a shard's samples and of their form; never 0."""
    sum = zlib.crc32(repr(sorted(metadata.items())).encode())
    for name, tensor in arrays.items():
        sum = zlib.crc32(f"{name} {tensor.dtype.name} {tensor.shape}".encode(), sum)
        sum = zlib.crc32(tensor.contiguous().numpy(), sum)
    return sum + 1


def packing_of(checksums: Iterable[int]) -> str:
    """The name of a packing whose shards have these."""
    text = " ".join(map(str, checksums)).encode()
    return f"{zlib.crc32(text):08x}{zlib.adler32(text):08x}"


def number_shard(path: str, number: int, count: int, packing: str) -> None:
    """Writes over the zeros of a file that `unnumbered` made."""
    values = {"penstock.shard": f"{number:012}", "penstock.shards": f"{count:012}", "penstock.packing": packing}
    with open(path, "r+b") as file:
        header = file.read(8)
        header += file.read(int.from_bytes(header, "little"))
        for key, digits in _KEYS.items():
            place = f'"{key}":"'.encode()
            at = header.index(place + b"0" * digits) + len(place)
            file.seek(at)
            file.write(values[key].encode())
        file.flush()
        os.fsync(file.fileno())
