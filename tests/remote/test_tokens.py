"""Arrays without a header, files of tokens and arrays of objects by URL: what they are by path."""

from __future__ import annotations

import io
import pickle
import struct

import numpy as np
import pytest

import penstock

TOKENS = np.random.default_rng(1).integers(0, 50000, 90_000).astype("uint16")


@pytest.fixture
def put(proxy):
    def put_object(name: str, content: bytes) -> str:
        proxy.origin.objects[f"/{name}"] = content
        return f"{proxy.url}/{name}"

    return put_object


def test_an_array_without_a_header(put):
    url = put("train.bin", bytes(10) + TOKENS.tobytes())
    array = penstock.raw(url, "uint16", (-1, 100), 10)
    assert array.shape == (900, 100)
    assert np.array_equal(array[300:310, ::7].load().numpy(), TOKENS.reshape(-1, 100)[300:310, ::7])
    assert np.array_equal(penstock.load(url, dtype=">u2", shape=-1, offset=10).numpy(), TOKENS.byteswap())
    rows = pickle.loads(pickle.dumps(penstock.rows(url, dtype="uint16", shape=(-1, 100), offset=10)))
    with penstock.DataLoader(rows, batch_size=900) as loader:
        assert np.array_equal(next(iter(loader)).numpy(), TOKENS.reshape(-1, 100))
    with pytest.raises(penstock.ShapeMismatchError, match="10 bytes are left over") as raised:
        penstock.raw(url, "uint16", (-1, 100))
    assert raised.value.path == url


def test_one_row_is_one_request(put, proxy):
    url = put("train.bin", TOKENS.tobytes())
    rows = penstock.rows(penstock.raw(url, "uint16", (-1, 100)))
    before = len(proxy.requests)
    assert rows[500].tolist() == TOKENS[50_000:50_100].tolist()
    assert len(proxy.requests) == before + 1


def test_documents(put):
    lengths = np.array([40_000, 0, 50_000], "<i4")
    offsets = np.array([0, 80_000, 80_000], "<i8")
    bounds = np.array([0, 1, 3], "<i8")
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 3, 3)
    url = put("corpus.idx", header + lengths.tobytes() + offsets.tobytes() + bounds.tobytes())
    put("corpus.bin", TOKENS.tobytes())
    for name in (url, url.removesuffix(".idx"), url.replace(".idx", ".bin")):
        documents = penstock.documents(name)
        assert penstock.lengths(documents) == [40_000, 50_000]
        assert documents[1].tolist() == TOKENS[40_000:].tolist()


def test_documents_of_llmc(put):
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(TOKENS)
    tokens = TOKENS.copy()
    tokens[[0, 70_000]] = 50256
    url = put("train.bin", header.tobytes() + tokens.tobytes())
    documents = penstock.documents(url)
    assert penstock.lengths(documents) == [70_000, 20_000]
    assert documents[1].tolist() == tokens[70_000:].tolist()


def test_arrays_of_objects(put):
    ragged = np.empty(3, object)
    ragged[:] = [np.arange(2.0), np.arange(5.0), np.arange(0.0)]
    names = np.array(["a", "bc"], object)
    single, several = io.BytesIO(), io.BytesIO()
    np.save(single, ragged, allow_pickle=True)
    np.savez(several, ragged=ragged, names=names, plain=np.arange(3))
    dataset = penstock.files([put("ragged.npy", single.getvalue()), put("several.npz", several.getvalue())])
    assert [row.tolist() for row in dataset[0]] == [row.tolist() for row in ragged]
    sample = dataset[1]
    assert [row.tolist() for row in sample["ragged"]] == [row.tolist() for row in ragged]
    assert sample["names"] == ["a", "bc"]
    assert sample["plain"].tolist() == [0, 1, 2]
