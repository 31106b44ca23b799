"""Writes the seeds of the fuzzers that read any file (loader, slices, convert) and of scan_index and loader_position.

python fuzz/make_file_seeds.py        # into fuzz/corpus/{files,scan_index,loader_position}; needs torch and safetensors
"""

import io
import json
import pathlib
import struct

import numpy as np
import safetensors.numpy
import torch

CORPUS = pathlib.Path(__file__).parent / "corpus"
MARK = b"CHOICES"


def by_numpy(save, *values, **named):
    stream = io.BytesIO()
    save(stream, *values, **named)
    return stream.getvalue()


def by_torch(value):
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def files():
    """Samples as a loader meets them, with payload that goes straight into the batch (2 KB or more)."""
    x = np.arange(1024, dtype=np.float32).reshape(64, 16)
    t = torch.from_numpy(x)
    yield "rows.npy", by_numpy(np.save, x)
    yield "fortran.npy", by_numpy(np.save, np.asfortranarray(x))
    yield "swapped.npy", by_numpy(np.save, x.astype(">f4"))
    yield "pair.npz", by_numpy(np.savez, x=x, y=np.arange(5, dtype=np.int16))
    yield "deflated.npz", by_numpy(np.savez_compressed, x=x, y=np.arange(5, dtype=np.int16))
    yield "sample.pt", by_torch({"x": t, "label": 3, "name": "a"})
    yield "views.pt", by_torch([t[:32], t[32:], t[:, :3], t.T])
    yield "complex.pt", by_torch({"z": torch.view_as_complex(t.reshape(512, 2)).conj(), "f": t.half()})
    yield "pair.safetensors", safetensors.numpy.save({"x": x, "y": np.arange(5, dtype=np.int16)})


# Each fuzzer asks for what it needs, in its own order: to the loader this is one byte that is changed in the second
# file, whose checksums are mended; to slices it is cuts and ways to read.
CHOICES = bytes.fromhex("0001d00700010302010046005a0002010100010200010201051e00030200")

POSITIONS = {
    "plain.json": {"seed": 1, "epoch": 2, "batch": 1, "samples": 10, "batch_size": 3, "num_replicas": 1},
    "random.json": {"seed": 2**63, "epoch": 0, "batch": 4, "samples": 10, "batch_size": 3, "order": "random"},
    "old.json": {"seed": 0, "epoch": 0, "batch": 0, "samples": 10},
    "far.json": {"seed": 0, "epoch": 2**64 - 1, "batch": 2**63 - 1, "samples": 10, "batch_size": 3},
    "wrong.json": {"seed": -1, "epoch": 1.5, "batch": "1", "samples": None, "order": 7},
}


def text(value):
    return struct.pack("<Q", len(value)) + value


def visit(folder, *parts):
    return text(folder) + struct.pack(f"<Q{len(parts)}I", len(parts), *parts)


def listing(at, names, *further):
    identity = struct.pack("<QQqq", 1, 2, 1_600_000_000 * 10**9, 1_600_000_000 * 10**9)
    body = at + identity + text(b"".join(name + b"\0" for name in names))
    return body + struct.pack("<Q", len(further)) + b"".join(further)


INDEXES = {
    "empty": b"",
    "two": listing(visit(b"/d/", 0), [], visit(b"/d/a/", 0, 1)) + listing(visit(b"/d/a/", 0, 1), [b"1.pt", b"2.pt"]),
    "gone": listing(visit(b"/", 1), [b"x"], visit(b"/nowhere/", 2)),
    "cut": listing(visit(b"/d/", 3), [b"1.pt"])[:-4],
    "back": listing(visit(b"/d/", 0), [], visit(b"/", 0)),
}


def write(folder, name, data):
    (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    (CORPUS / folder / name).write_bytes(data)


def main():
    torch.manual_seed(0)
    for name, data in files():
        write("files", name, data + CHOICES + bytes([len(CHOICES)]) + MARK)
    for name, position in POSITIONS.items():
        write("loader_position", name, json.dumps(position).encode())
    for name, body in INDEXES.items():
        write("scan_index", name, body)


main()
