"""penstock.torch.load of open files and of what is no checkpoint."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import tempfile
import warnings
import zipfile

import pytest
import torch
from test_torch_load import same

import penstock
import penstock.torch as pt


@pytest.fixture(params=[True, False], ids=["zip", "legacy"])
def saved(request):
    def data(value):
        stream = io.BytesIO()
        torch.save(value, stream, _use_new_zipfile_serialization=request.param)
        return stream.getvalue()

    return data


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_compressed_files(tmp_path, saved, module):
    value = {"v": torch.arange(100.0)}
    with module.open(tmp_path / "x", "wb") as file:
        file.write(saved(value))
    with module.open(tmp_path / "x") as file:
        same(pt.load(file), value)


class Window(io.RawIOBase):
    """Part of a larger file, whose descriptor it gives."""

    def __init__(self, file, start, size):
        self.file, self.start, self.size, self.position = file, start, size, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def fileno(self):
        return self.file.fileno()

    def seek(self, offset, whence=0):
        self.position = (0, self.position, self.size)[whence] + offset
        return self.position

    def tell(self):
        return self.position

    def readinto(self, buffer):
        count = min(len(buffer), self.size - self.position)
        buffer[:count] = os.pread(self.file.fileno(), count, self.start + self.position)
        self.position += count
        return count


class Inverted(io.FileIO):
    """A file that is not on disk as it is read."""

    def readinto(self, buffer):
        count = super().readinto(buffer)
        buffer[:count] = bytes(255 - byte for byte in buffer[:count])
        return count

    def readall(self):
        return bytes(255 - byte for byte in super().readall())

    def read(self, size=-1):
        return bytes(255 - byte for byte in super().read(size))


@pytest.mark.parametrize("buffered", [True, False])
def test_windows_onto_larger_files(tmp_path, saved, buffered):
    first, second = saved({"v": torch.zeros(3)}), saved({"v": torch.ones(3)})
    (tmp_path / "both").write_bytes(first + second)
    with open(tmp_path / "both", "rb") as file:
        window = Window(file, len(first), len(second))
        same(pt.load(io.BufferedReader(window) if buffered else window), {"v": torch.ones(3)})


@pytest.mark.parametrize("buffered", [True, False])
def test_files_that_are_another_on_disk(tmp_path, saved, buffered):
    (tmp_path / "x").write_bytes(bytes(255 - byte for byte in saved([torch.ones(3)])))
    with Inverted(tmp_path / "x") as file:
        same(pt.load(io.BufferedReader(file) if buffered else file), [torch.ones(3)])


def test_temporary_files(saved):
    for made in (tempfile.TemporaryFile, tempfile.NamedTemporaryFile, tempfile.SpooledTemporaryFile):
        with made() as file:
            file.write(saved({"v": torch.ones(3)}))
            file.seek(0)
            same(pt.load(file), {"v": torch.ones(3)})


def test_files_opened_as_text_are_refused(tmp_path, saved):
    (tmp_path / "x.pt").write_bytes(saved(torch.ones(3)))
    for encoding in ("utf-8", "latin1"):
        with open(tmp_path / "x.pt", encoding=encoding) as file:
            with pytest.raises(penstock.InvalidArgumentError, match=r"x\.pt: .*binary mode"):
                pt.load(file)
            with pytest.raises(
                (ValueError, TypeError, AttributeError, RuntimeError, AssertionError, pickle.UnpicklingError)
            ):
                torch.load(file)
    with pytest.raises(penstock.InvalidArgumentError, match="binary mode"):
        pt.load(io.StringIO("x"))


def test_empty_files_have_ended(tmp_path):
    (tmp_path / "x.pt").touch()
    for file in (tmp_path / "x.pt", io.BytesIO()):
        for load in (torch.load, pt.load):
            with pytest.raises(EOFError):
                load(file)
    with pytest.raises(penstock.UnknownFormatError, match=r"x\.pt"):
        pt.load(tmp_path / "x.pt")


def test_encodings(tmp_path):
    torch.save(torch.ones(3), tmp_path / "x.pt")
    for encoding in ("utf-8", "ascii", "latin1"):
        same(pt.load(tmp_path / "x.pt", encoding=encoding), torch.ones(3))
    with pytest.raises(penstock.UnsupportedError, match="'bytes'"):
        pt.load(tmp_path / "x.pt", encoding="bytes")
    for value in ({"a": ["é"]}, {"é": 1}, [(b"x",)], {1: {"é"}}):
        torch.save(value, tmp_path / "y.pt")
        with pytest.raises(penstock.UnsupportedError, match=r"y\.pt: encoding is 'latin1'"):
            pt.load(tmp_path / "y.pt", encoding="latin1")
    torch.save({"a": [1, {"b": (2, torch.ones(2))}]}, tmp_path / "y.pt")
    same(pt.load(tmp_path / "y.pt", encoding="latin1"), torch.load(tmp_path / "y.pt"))
    with pytest.raises(TypeError, match="encoding"):
        pt.load(tmp_path / "x.pt", encoding=3)
    with pytest.raises(TypeError, match="fix_imports"):
        pt.load(tmp_path / "x.pt", fix_imports=True)


def test_packages_are_named(tmp_path):
    with warnings.catch_warnings(), torch.package.PackageExporter(str(tmp_path / "x.pt")) as package:
        warnings.simplefilter("ignore")
        package.save_text("x", "y.txt", "hello")
    for load in (pt.load, penstock.load):
        with pytest.raises(penstock.UnsupportedError, match=r"x\.pt: .*torch\.package"):
            load(tmp_path / "x.pt")


def test_distributed_checkpoints_are_named(tmp_path):
    first, second = io.BytesIO(), io.BytesIO()
    torch.save(torch.ones(3), first)
    torch.save(torch.zeros(5), second)
    (tmp_path / "x.distcp").write_bytes(first.getvalue() + second.getvalue())
    with pytest.raises(penstock.UnsupportedError, match=r"torch\.distributed\.checkpoint") as caught:
        pt.load(tmp_path / "x.distcp")
    assert caught.value.offset == len(first.getvalue())


def test_many_and_long_names_are_listed_briefly(tmp_path):
    pickles = [b"](" + b"".join(b"cm%06d\nn\n" % i for i in range(50_000)) + b"e.", b"c" + b"m" * 10**6 + b"\nn\n."]
    for pickled, count in zip(pickles, (50_000, 1), strict=True):
        with zipfile.ZipFile(tmp_path / "x.pt", "w") as out:
            out.writestr("x/data.pkl", b"\x80\x02" + pickled)
            out.writestr("x/version", "3\n")
        with pytest.raises(pt.UnknownGlobalsError) as caught:
            pt.load(tmp_path / "x.pt")
        assert len(caught.value.names) == count
        assert len(str(caught.value)) < 1500
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.names) == (str(caught.value), caught.value.names)
        if count > 1:
            assert "m000019.n and 49980 more" in str(caught.value)


def test_an_index_of_shards(tmp_path, saved):
    base = torch.randn(4, 6)
    shards = [
        {"a.weight": base, "a.part": base[1:3], "half": torch.arange(5).to(torch.bfloat16)},
        {"b.weight": torch.nn.Parameter(torch.randn(3).double()), "unlisted": torch.zeros(2)},
    ]
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        name = f"pytorch_model-{number:05}-of-00002.bin"
        (tmp_path / name).write_bytes(saved(shard))
        weight_map |= dict.fromkeys(shard.keys() - {"unlisted"}, name)
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 130}, "weight_map": weight_map}))
    loaded = pt.load(index)
    assert loaded.keys() == weight_map.keys()
    for name, tensor in loaded.items():
        expected = next(shard[name] for shard in shards if name in shard)
        assert torch.equal(tensor, expected), name
        assert (tensor.dtype, tensor.requires_grad) == (expected.dtype, expected.requires_grad), name
    assert loaded["a.part"].data_ptr() == loaded["a.weight"][1:].data_ptr()
    part = penstock.open(index)["a.weight"][1:3].load()
    assert torch.equal(torch.from_dlpack(part), base[1:3])
