"""Arrays without a header and memory maps of NumPy's as datasets of torch tensors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
import torch.utils.data as td

import penstock
import penstock.torch as pt

TOKENS = np.arange(4000, dtype=np.uint16).reshape(40, 100)


@pytest.fixture
def path(tmp_path):
    TOKENS.tofile(tmp_path / "train.bin")
    return tmp_path / "train.bin"


def whole(dataset):
    return next(iter(pt.DataLoader(dataset, batch_size=len(dataset))))


@pytest.mark.parametrize("dtype", ["uint16", torch.uint16, np.uint16, penstock.DType("uint16")])
def test_rows_of_a_file_without_a_header(path, dtype):
    rows = pt.Rows(path, dtype=dtype, shape=(-1, 100))
    assert rows[3].dtype == torch.uint16
    assert rows[3].tolist() == TOKENS[3].tolist()
    assert whole(rows.cast("int64")).tolist() == TOKENS.tolist()
    assert pickle.loads(pickle.dumps(rows))[7].tolist() == TOKENS[7].tolist()
    pair = pt.Rows(path, path, dtype=dtype, shape=(-1, 50), offset=200)
    assert pair[1][1].tolist() == TOKENS[1, 50:].tolist()
    other = next(iter(td.DataLoader(rows, batch_size=40, num_workers=1)))
    assert other.tolist() == TOKENS.tolist()


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_memmap_is_not_read(path, mode):
    mapped = np.memmap(path, "uint16", mode, shape=TOKENS.shape)
    rows = pt.Rows(mapped)
    if mode != "r":
        mapped[5, 0] = 7
    assert whole(rows).tolist() == mapped.tolist()
    assert pickle.loads(pickle.dumps(rows))[5].tolist() == mapped[5].tolist()


def test_documents(tmp_path):
    begin = 50256
    tokens = np.array([begin, 1, 2, begin, 3, begin, 4, 5, 6], np.uint16)
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(tokens)
    (tmp_path / "train.bin").write_bytes(header.tobytes() + tokens.tobytes())
    documents = pt.Documents(tmp_path / "train.bin")
    assert [one.tolist() for one in documents] == [[begin, 1, 2], [begin, 3], [begin, 4, 5, 6]]
    assert documents[0].dtype == torch.uint16
    again = pickle.loads(pickle.dumps(documents))
    assert type(again) is pt.Documents
    batch = next(iter(pt.DataLoader(again.cast("int64"), batch_size=3, collate_fn=pt.pad(lengths=True))))
    assert batch["lengths"].tolist() == [3, 2, 4]
    assert batch["values"][1].tolist() == [begin, 3, 0, 0]
    array = penstock.raw(tmp_path / "train.bin", "uint16", offset=1024)
    assert len(pt.Documents(array, begin=2)) == 2
