"""A small file is loaded from what was read of it for its index: as strictly as from the file itself."""

import os
import random

import numpy as np
import pytest
import safetensors.torch
import torch

import penstock

X = torch.arange(40.0).reshape(5, 8)
WRITERS = {
    "c.npy": lambda path: np.save(path, np.arange(60.0).reshape(3, 20)),
    "f.npy": lambda path: np.save(path, np.asfortranarray(np.arange(60, dtype=">i4").reshape(3, 20))),
    "stored.npz": lambda path: np.savez(path, a=np.arange(10), b=np.ones((3, 3), ">f4")),
    "deflated.npz": lambda path: np.savez_compressed(path, a=np.zeros(1000), b=np.ones((3, 3))),
    "x.safetensors": lambda path: safetensors.torch.save_file({"a": X, "b": X.bfloat16()}, path),
    "x.pt": lambda path: torch.save({"x": X, "y": X[1:3, ::2], "n": np.arange(4), "s": "text", "l": [1, None]}, path),
    "legacy.pt": lambda path: torch.save({"x": X, "y": X.t()}, path, _use_new_zipfile_serialization=False),
}
MUTATIONS = 150


def described(value):
    if isinstance(value, penstock.Tensor):
        return str(value.dtype), value.shape, value.strides, value.contiguous().view_bytes().numpy().tobytes()
    if isinstance(value, dict):
        return [(key, described(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [described(item) for item in value]
    return repr(value)


def outcome(path, **options):
    """What loading gives, or how it fails. `direct=True` goes to the file for the payload."""
    try:
        return described(penstock.load(path, **options))
    except penstock.Error as error:
        return type(error), str(error)


@pytest.fixture(params=WRITERS)
def written(request, tmp_path):
    path = tmp_path / request.param
    WRITERS[request.param](path)
    return path


def mutated(content, rng):
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(out))
        kind = rng.random()
        if kind < 0.7:
            out[at] = rng.choice((0, 255, out[at] ^ 1 << rng.randrange(8)))
        elif kind < 0.85:
            del out[at : at + rng.choice((1, 8))]
        else:
            out[at:at] = rng.randbytes(rng.choice((1, 8)))
    return bytes(out)


def test_damaged_files_are_what_they_are_read_from_the_disk(written):
    content, rng = written.read_bytes(), random.Random(written.name)
    whole = outcome(written)
    assert whole == outcome(written, direct=True)
    refused = 0
    for _ in range(MUTATIONS):
        written.write_bytes(mutated(content, rng))
        here = outcome(written)
        assert here == outcome(written, direct=True)
        refused += isinstance(here, tuple) and isinstance(here[0], type) and issubclass(here[0], penstock.Error)
    assert refused > MUTATIONS / 5, "what is tried here is damage"


def test_damaged_payload_is_found(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(1000), path)
    content = bytearray(path.read_bytes())
    archive = penstock.open(path)
    content[archive[archive.keys()[0]].offset + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(penstock.ChecksumError, match="CRC-32"):
        penstock.load(path)
    assert penstock.load(path, verify=False)[12] != 12


def test_loads_of_one_archive_have_memory_of_their_own(written):
    archive = penstock.open(written)
    first = archive.load()
    before = described(first)
    for tensor in first.values() if isinstance(first, dict) else [first]:
        if isinstance(tensor, penstock.Tensor):
            np.asarray(tensor)[...] = 7
    assert described(archive.load()) == before
    assert described(first) != before


def test_a_file_that_is_gone_since_it_was_opened(written):
    archive = penstock.open(written)
    before = outcome(written)
    os.truncate(written, 0)
    if written.name != "deflated.npz":  # what is inflated is read again
        assert described(archive.load()) == before
    with pytest.raises(penstock.TruncatedError):
        archive.load(direct=True)
