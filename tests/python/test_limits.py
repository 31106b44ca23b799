"""The limits of docs/settings.md, on both sides of each."""

import json
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import penstock


def npy(path: Path, header: str, data: bytes) -> Path:
    path.write_bytes(b"\x93NUMPY\2\0" + struct.pack("<I", len(header)) + header.encode() + data)
    return path


def npy_header(size: int) -> str:
    start = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"
    return start + " " * (size - len(start) - 1) + "\n"


def test_dimensions(tmp_path):
    shape = (1,) * 64
    file = npy(tmp_path / "x.npy", f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n", bytes(4))
    assert penstock.load(file).shape == shape
    shape = (1,) * 65
    npy(file, f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n", bytes(4))
    with pytest.raises(penstock.LimitError):
        penstock.load(file)


def test_header_of_an_npy(tmp_path):
    data = np.arange(2, dtype="f4").tobytes()
    assert penstock.load(npy(tmp_path / "x.npy", npy_header(1 << 20), data)).tolist() == [0, 1]
    with pytest.raises(penstock.LimitError):
        penstock.load(npy(tmp_path / "x.npy", npy_header((1 << 20) + 1), data))


def npy_of_type(depth: int) -> str:
    kind = "'<f4'"
    for _ in range(depth):
        kind = f"[('a', {kind})]"
    return f"{{'descr': {kind}, 'fortran_order': False, 'shape': (2,)}}\n"


def test_types_of_an_npy(tmp_path):
    assert penstock.load(npy(tmp_path / "x.npy", npy_of_type(30), bytes(8))).shape == (2,)
    with pytest.raises(penstock.LimitError):
        penstock.load(npy(tmp_path / "x.npy", npy_of_type(33), bytes(8)))


def test_nesting_of_a_pickle(tmp_path):
    def loaded(depth: int):
        with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:
            archive.writestr("x/data.pkl", b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".")
            archive.writestr("x/version", "3\n")
        return penstock.load(tmp_path / "x.pt")

    assert isinstance(loaded(1990), list)
    with pytest.raises(penstock.LimitError):
        loaded(2010)


@pytest.mark.parametrize(("size", "fits"), [(1024, True), (1025, False)])
def test_integers_of_a_pickle(size, fits, tmp_path):
    number = 1 << (8 * size - 2)
    data = pickle.dumps(np.array([number], dtype=object), 2)
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n"
    file = npy(tmp_path / "x.npy", header, data)
    if fits:
        assert penstock.load(file) == [number]
    else:
        with pytest.raises(penstock.LimitError):
            penstock.load(file)


def index(path: Path, shards: int) -> Path:
    names = {f"t{i}": f"s{i}.safetensors" for i in range(shards)}
    path.write_text(json.dumps({"metadata": {}, "weight_map": names}))
    return path


def test_shards_of_an_index(tmp_path):
    with pytest.raises(FileNotFoundError):
        penstock.load(index(tmp_path / "m.safetensors.index.json", 16_384))
    with pytest.raises(penstock.LimitError):
        penstock.load(index(tmp_path / "m.safetensors.index.json", 16_385))


@pytest.mark.parametrize(("levels", "fits"), [(60, True), (70, False)])
def test_levels_of_a_sample(levels, fits, tmp_path):
    sample = penstock.zeros(1)
    for _ in range(levels):
        sample = [sample]
    penstock.save(sample, tmp_path / "x.pt")
    dataset = penstock.files([str(tmp_path / "x.pt")])
    if fits:
        assert dataset[0]
    else:
        with pytest.raises(penstock.LimitError):
            dataset[0]


def test_json_of_a_header(tmp_path):
    def loaded(depth: int):
        extra = "[" * depth + "]" * depth
        header = f'{{"x":{{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":{extra}}}}}'
        file = tmp_path / "x.safetensors"
        file.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(4))
        return penstock.load(file)

    assert list(loaded(50)) == ["x"]
    with pytest.raises(penstock.LimitError):
        loaded(70)


def test_workers_and_batches_ahead():
    rows = penstock.rows([1, 2, 3])
    penstock.DataLoader(rows, num_workers=4096)
    penstock.DataLoader(rows, prefetch_factor=1 << 20)
    with pytest.raises(penstock.InvalidArgumentError):
        penstock.DataLoader(rows, num_workers=4097)
    with pytest.raises(penstock.InvalidArgumentError):
        penstock.DataLoader(rows, prefetch_factor=(1 << 20) + 1)
