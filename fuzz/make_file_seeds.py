"""Writes the seeds of the fuzzers that read any file (loader, slices, convert) and of scan_index and loader_position.

python fuzz/make_file_seeds.py        # into fuzz/corpus; needs torch, numpy and safetensors
"""

import io
import json
import pathlib
import struct
import zipfile

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


def zip_of(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


def without_signatures(archive):
    """The same archive of torch's with descriptors of 12 bytes, whose signature may be left out."""
    out = bytearray()
    moved = {}
    end = archive.index(b"PK\1\2")
    at = 0
    while at < end:
        name, extra = struct.unpack_from("<HH", archive, at + 26)
        (flags,) = struct.unpack_from("<H", archive, at + 6)
        moved[at] = len(out)
        following = archive.find(b"PK\3\4", at + 4, end)
        following = end if following < 0 else following
        record = archive[at:following]
        if flags & 8:
            record = record[:-16] + record[-12:]
        out += record
        at = following
    directory = len(out)
    while archive[at : at + 4] == b"PK\1\2":
        name, extra, comment = struct.unpack_from("<HHH", archive, at + 28)
        (offset,) = struct.unpack_from("<I", archive, at + 42)
        length = 46 + name + extra + comment
        out += archive[at : at + 42] + struct.pack("<I", moved[offset]) + archive[at + 46 : at + length]
        at += length
    count = struct.unpack_from("<H", archive, archive.rindex(b"PK\5\6") + 10)[0]
    size = len(out) - directory
    return bytes(out + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, size, directory, 0))


def archives():
    """What told archives apart, and what readers pass over."""
    x = by_numpy(np.save, np.arange(3, dtype=np.int32))
    sample = by_torch({"x": torch.arange(3), "n": 1})
    yield "npz", "labels.npz", zip_of({"/a.npy": x, "../b.npy": x, "c\\d.npy": x, "e.npy": x})
    yield "npz", "folder.npz", zip_of({"f/": b"", "f/a.npy": x, "README": b"text"})
    yield "npz", "deeper.npz", zip_of({"a/b/data.pkl": b"\x80\x02N.", "a.npy": x})
    yield "pt", "padded.pt", sample + b"\r\n" + bytes(30)
    yield "pt", "unsigned.pt", without_signatures(sample)


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
    for folder, name, data in archives():
        write(folder, name, data)
    for name, position in POSITIONS.items():
        write("loader_position", name, json.dumps(position).encode())
    for name, body in INDEXES.items():
        write("scan_index", name, body)


main()
