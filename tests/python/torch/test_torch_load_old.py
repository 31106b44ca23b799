"""penstock.torch.load beside torch.load: files of before torch 1.6, as nothing writes them any more."""

from __future__ import annotations

import collections
import io
import pickle
import struct
import tarfile

import numpy as np
import pytest
import torch
from load_pairs import same

import penstock
import penstock.torch as pt

FLOATS = np.arange(10, dtype="<f4").tobytes()


class Id:
    """Written as a persistent id."""

    def __init__(self, key):
        self.key = key


class Tensor:
    """Written as a call that makes a tensor over a storage."""

    def __init__(self, storage, offset, size, strides):
        self.parts = storage, offset, size, strides, False, collections.OrderedDict()

    def __reduce__(self):
        return torch._utils._rebuild_tensor_v2, self.parts


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.key if isinstance(obj, Id) else None


def pickled(value):
    stream = io.BytesIO()
    Pickler(stream, 2).dump(value)
    return stream.getvalue()


def tar(obj, *, location="cpu", views=(), tensors=()):
    """Of one storage, 0, of ten floats; views are (key, root, offset, size), tensors (key, storage, size, offset)."""
    records = b"".join(
        pickled((key, storage, torch.FloatTensor)) + struct.pack("<i4xqqq", 1, size, 1, offset)
        for key, storage, size, offset in tensors
    )
    members = {
        "sys_info": pickled({"protocol_version": 1000, "little_endian": True}),
        "storages": pickled(1)
        + pickled((0, location, torch.FloatStorage))
        + struct.pack("<q", 10)
        + FLOATS
        + pickled(list(views)),
        "tensors": pickled(len(tensors)) + records,
        "pickle": pickled(obj),
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:") as out:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def legacy(obj, keys):
    """Each key's storage is ten floats."""
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    parts = [pickled(part) for part in (0x1950A86A20F9469CFC6C, 1001, system, obj, keys)]
    return b"".join(parts) + (struct.pack("<q", 10) + FLOATS) * len(keys)


def storage(key="a", view=None, kind=torch.FloatStorage, size=10):
    return Id(("storage", kind, key, "cpu", size, view))


def both(data, path, **options):
    path.write_bytes(data)
    return pt.load(path, **options), torch.load(path, weights_only=False, **options)


def test_views_saved_as_storages(tmp_path):
    view = storage(view=("v", 2, 4))
    ours, theirs = both(legacy([view, storage(), Tensor(storage(), 1, (3,), (1,))], ["a"]), tmp_path / "x.pt")
    assert [part.tolist() for part in ours[:2]] == [part.tolist() for part in theirs[:2]]
    assert ours[0].tolist() == [2, 3, 4, 5]
    assert ours[1].data_ptr() + 8 == ours[0].data_ptr()
    same(ours[2], theirs[2])
    empty = storage(view=("v", 10, 0))
    ours, theirs = both(legacy([empty, storage()], ["a"]), tmp_path / "x.pt")
    assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


@pytest.mark.parametrize("view", [None, ("v", 3, 5)])
def test_storages_of_quantized_types(tmp_path, view):
    data = legacy([storage(view=view, kind=torch.QInt8Storage)], ["a"])[: -len(FLOATS)] + bytes(range(10))
    (ours,), (theirs,) = both(data, tmp_path / "x.pt")
    assert (ours.dtype, len(ours)) == (theirs.dtype, len(theirs))
    assert ours.untyped().tolist() == theirs.untyped().tolist()


def test_views_saved_as_storages_in_tar_archives(tmp_path):
    ours, theirs = both(tar({"v": Id(5), "a": Id(0)}, views=[(5, 0, 2, 4)]), tmp_path / "x.pt")
    assert {key: list(part) for key, part in ours.items()} == {key: list(part) for key, part in theirs.items()}


def test_keys_of_storages_that_are_numbers(tmp_path):
    ours, theirs = both(
        legacy([Tensor(storage(3), 0, (2,), (1,)), Tensor(storage(4), 0, (9,), (1,))], [4, 3]), tmp_path / "x.pt"
    )
    same(ours, theirs)


def test_the_location_in_a_tar_archive(tmp_path):
    path = tmp_path / "x.pt"
    path.write_bytes(tar(Id(1), location="cuda:0", tensors=[(1, 0, 2, 3)]))
    same(pt.load(path, "cpu"), torch.load(path, "cpu", weights_only=False))
    same(pt.load(path, {"cuda:0": "cpu"}), torch.load(path, {"cuda:0": "cpu"}, weights_only=False))
    locations = []
    pt.load(path, lambda found, location: (locations.append(location), found)[1])
    assert locations == ["cuda:0"]
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="CUDA"):
            pt.load(path)
    assert penstock.load(path).tolist() == [3, 4]
