"""Files of tokens, written from the pages that describe their bytes (docs/formats/llmc.md, megatron.md)."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

LLMC = {"uint16": (20240520, 1), "uint32": (20240801, 7)}
CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float64": 6, "float32": 7, "uint16": 8}


def llmc(path: Path, tokens: np.ndarray) -> Path:
    header = np.zeros(256, "<i4")
    header[:3] = *LLMC[tokens.dtype.name], len(tokens)
    path.write_bytes(header.tobytes() + tokens.astype(tokens.dtype.newbyteorder("<")).tobytes())
    return path


def megatron(path: Path, documents: list[list[np.ndarray]], modes: bytes = b"") -> Path:
    """PATH.idx and PATH.bin of documents, each a list of sequences, as Megatron's IndexedDatasetBuilder writes them."""
    sequences = [sequence for document in documents for sequence in document]
    dtype = sequences[0].dtype if sequences else np.dtype("int32")
    lengths = np.array([len(sequence) for sequence in sequences], "<i4")
    sizes = lengths.astype("<i8") * dtype.itemsize
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype("<i8") if sequences else np.zeros(0, "<i8")
    bounds = np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype("<i8")
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[dtype.name], len(lengths), len(bounds))
    Path(f"{path}.idx").write_bytes(header + lengths.tobytes() + offsets.tobytes() + bounds.tobytes() + modes)
    Path(f"{path}.bin").write_bytes(b"".join(sequence.tobytes() for sequence in sequences))
    return path


def megatron_documents(path: Path) -> list[np.ndarray]:
    """The documents of PATH.idx and PATH.bin, by NumPy alone."""
    index = Path(f"{path}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, sequences, bounds = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    dtype = next(name for name, number in CODES.items() if number == code)
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    offsets = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    ends = np.frombuffer(index, "<i8", bounds, 34 + 12 * sequences)
    tokens = Path(f"{path}.bin").read_bytes()
    parts = [np.frombuffer(tokens, dtype, n, at) for n, at in zip(lengths.tolist(), offsets.tolist(), strict=True)]
    empty = np.zeros(0, dtype)
    return [np.concatenate([empty, *parts[a:b]]) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
