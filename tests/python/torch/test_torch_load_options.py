"""map_location and mmap of penstock.torch.load, beside torch's."""

from __future__ import annotations

import io
import json
import mmap
import pathlib
import subprocess
import sys
import zipfile

import pytest
import torch
from load_pairs import (
    same,
)

import penstock
import penstock.torch as pt
from penstock.torch.loading import _opening

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from dcp_pairs import save_by_ranks


class Fake:
    """Map locations as torch calls them."""

    def __init__(self):
        self.calls = []

    def __call__(self, storage, location):
        self.calls.append((type(storage), location, storage.nbytes()))
        return storage


class TestMapLocation:
    @pytest.fixture
    def value(self):
        x = torch.randn(3, 4)
        return {"x": x, "row": x[1], "y": torch.ones(2, dtype=torch.int16)}

    @pytest.mark.parametrize("where", ["cpu", torch.device("cpu"), "meta", torch.device("meta"), {"cpu": "cpu"}, None])
    def test_places(self, path, value, where):
        torch.save(value, path)
        same(pt.load(path, where), torch.load(path, where))

    def test_functions(self, path, value):
        torch.save(value, path)
        ours, theirs = Fake(), Fake()
        same(pt.load(path, map_location=ours), torch.load(path, map_location=theirs))
        assert sorted(ours.calls, key=str) == sorted(theirs.calls, key=str)
        same(pt.load(path, map_location=lambda s, _: None), torch.load(path))

    @pytest.mark.parametrize("where", ["nowhere", {"cpu": "nowhere"}, "cuda:17"])
    def test_refusals_are_torchs(self, path, value, where):
        torch.save(value, path)
        errors = []
        for load in (torch.load, pt.load):
            with pytest.raises(RuntimeError) as caught:
                load(path, map_location=where)
            errors.append(caught.value)
        theirs, ours = errors
        assert str(theirs) in str(ours)
        assert isinstance(ours, penstock.Error)
        assert ours.path == str(path)
        assert ours.tensor

    def test_a_recorded_device_is_torchs_to_find(self, path, value):
        torch.save(value, path)
        moved = path.with_name("cuda.pt")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(moved, "w") as new:
            for item in old.infolist():
                data = old.read(item)
                if item.filename.endswith("data.pkl"):
                    data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
                new.writestr(item.filename, data)
        if not torch.cuda.is_available():
            with pytest.raises(RuntimeError, match="CUDA") as theirs:
                torch.load(moved)
            with pytest.raises(RuntimeError, match="CUDA") as ours:
                pt.load(moved)
            assert str(theirs.value) in str(ours.value)
            assert isinstance(ours.value, penstock.NoDeviceError)
            assert ours.value.path == str(moved)
        same(pt.load(moved, "cpu"), torch.load(moved, "cpu"))
        same(pt.load(moved, {"cuda:0": "cpu"}), torch.load(moved, {"cuda:0": "cpu"}))
        locations = []
        pt.load(moved, lambda storage, location: (locations.append(location), storage)[1])
        assert set(locations) == {"cuda:0"}


class TestMmap:
    def test_equals_torch(self, path):
        x = torch.randn(50, 4)
        torch.save({"x": x, "row": x[1], "y": torch.ones(2, dtype=torch.int16)}, path)
        same(pt.load(path, mmap=True), torch.load(path, mmap=True))
        same(pt.load(path.as_uri(), mmap=True), torch.load(path, mmap=True))

    @pytest.mark.parametrize("shift", range(16))
    def test_what_is_not_aligned_is_copied(self, tmp_path, shift):
        value = {"c": torch.randn(3, dtype=torch.complex128), "f": torch.randn(5), "b": torch.tensor([True])}
        saved, packed, legacy = (tmp_path / f"{'x' * shift}{name}.pt" for name in ("saved", "packed", "legacy"))
        torch.save(value, legacy, _use_new_zipfile_serialization=False)
        torch.save(value, saved)
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(packed, "w") as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        for path in (legacy, packed):
            loaded = pt.load(path, mmap=True)
            same(loaded, value)
            assert all(tensor.data_ptr() % tensor.itemsize == 0 for tensor in loaded.values())

    @pytest.mark.parametrize("shared", [False, True])
    def test_the_other_byte_order_is_swapped_in_a_copy(self, path, shared):
        torch.save(
            {"a": torch.arange(3.0), "c": torch.randn(3, dtype=torch.complex64), "b": torch.ones(5).bool()}, path
        )
        other = path.with_name("other.pt")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
            for name in old.namelist():
                new.writestr(name, b"big" if name.endswith("byteorder") else old.read(name))
        before = other.read_bytes()
        expected = torch.load(other)
        same(pt.load(other), expected)
        flag = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        with torch.serialization.set_default_mmap_options(flag):
            loaded = pt.load(other, mmap=True)
        same(loaded, expected)
        loaded["a"].add_(1)
        loaded["c"].add_(1)
        assert other.read_bytes() == before

    def test_what_is_compressed_is_refused(self, path):
        torch.save({"a": torch.zeros(300)}, path)
        packed = path.with_name("packed.pt")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        with pytest.raises(penstock.UnsupportedError, match=r"packed\.pt: mmap can only .* compressed"):
            pt.load(packed, mmap=True)

    def test_writes_stay_in_this_process(self, path):
        torch.save(torch.zeros(4), path)
        before = path.read_bytes()
        pt.load(path, mmap=True).add_(1)
        assert path.read_bytes() == before

    def test_more_than_there_are_addresses_for_is_refused(self, path):
        torch.save(torch.zeros(1 << 26), path)
        code = (
            "import resource, sys, penstock, penstock.torch as pt\n"
            "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
            "resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 27),) * 2)\n"
            "try:\n"
            "    pt.load(sys.argv[1], mmap=True)\n"
            "except penstock.OutOfMemoryError as error:\n"
            "    print(isinstance(error, RuntimeError), error.path == sys.argv[1], error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"True True {path}: the file cannot be mapped; leave mmap out"), done.stdout

    def test_each_of_several_files_is_mapped(self, tmp_path):
        value = {"a": torch.arange(300.0), "b": torch.arange(6, dtype=torch.int64).reshape(2, 3)}
        names = {name: f"model-{name}.safetensors" for name in value}
        for name, file in names.items():
            penstock.save({name: value[name]}, tmp_path / file)
        index = tmp_path / "model.safetensors.index.json"
        index.write_text(json.dumps({"metadata": {}, "weight_map": names}))
        for given in (index, tmp_path):
            loaded = pt.load(given, mmap=True)
            same(loaded, value)
            assert all(str(tmp_path / file) in mapped_files() for file in names.values())
            del loaded

    @pytest.mark.filterwarnings("ignore")
    def test_chunks_of_a_distributed_checkpoint_are_mapped_or_put_together(self, tmp_path):
        value = {"whole": torch.arange(24.0).reshape(4, 6), "cut": torch.arange(40.0).reshape(10, 4)}
        rank = [{"whole": [((0, 0), (4, 6))], "cut": [((0, 0), (5, 4))]}, {"cut": [((5, 0), (5, 4))]}]
        save_by_ranks(tmp_path / "ranks", value, rank)
        loaded = pt.load(tmp_path / "ranks", mmap=True)
        same(loaded, value)

    def test_needs_a_path(self, path):
        torch.save(torch.zeros(4), path)
        with path.open("rb") as file, pytest.raises(ValueError, match="must be a file path"):
            pt.load(file, mmap=True)


def mapped_files():
    return {line.split(maxsplit=5)[-1].strip() for line in pathlib.Path("/proc/self/maps").read_text().splitlines()}


def test_a_shard_that_is_replaced_once_it_was_opened_is_said_to_be(tmp_path, monkeypatch):
    for name in ("a", "b"):
        penstock.save({name: torch.arange(100_000)}, tmp_path / f"{name}.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: f"{name}.safetensors" for name in ("a", "b")}}))
    opened = _opening.opened

    def replaced(*options):
        archive = opened(*options)
        penstock.save({"b": torch.ones(100_000, dtype=torch.int64)}, tmp_path / "b.safetensors")
        return archive

    monkeypatch.setattr(_opening, "opened", replaced)
    with pytest.raises(penstock.ChangedError, match=r"b\.safetensors: the file was replaced or written to") as caught:
        pt.load(index, mmap=True)
    assert caught.value.path == str(tmp_path / "b.safetensors")


def test_a_file_that_is_replaced_while_it_is_mapped_is_said_to_be(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(100_000)}, path)
    seen = iter(range(100))
    monkeypatch.setattr("penstock._files.identity.identity", lambda path: (next(seen),))
    with pytest.raises(penstock.ChangedError, match="replaced or written to while it was loaded"):
        pt.load(path, mmap=True)


COMPOSITES = {
    "coo": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "bsc": lambda: torch.eye(4).to_sparse_bsc((2, 2)),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "quantized": lambda: torch.quantize_per_tensor(torch.arange(4.0), 0.5, 2, torch.qint8),
    "dense": lambda: torch.ones(3),
}


@pytest.mark.parametrize("kind", COMPOSITES)
@pytest.mark.parametrize("surroundings", ["fake", "skip"])
@pytest.mark.parametrize("location", [None, "meta"])
@pytest.mark.filterwarnings("ignore")
def test_surroundings_without_values(tmp_path, kind, surroundings, location):
    from torch._subclasses.fake_tensor import FakeTensorMode

    path = tmp_path / "x.pt"
    torch.save([COMPOSITES[kind]()], path)

    def of(load):
        with FakeTensorMode() if surroundings == "fake" else torch.serialization.skip_data():
            (loaded,) = load(path, map_location=location)
        return type(loaded), loaded.layout, loaded.dtype, str(loaded.device), str(loaded.shape)

    try:
        expected = of(torch.load)
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        pytest.skip(f"torch refuses it: {error}")
    ours = of(pt.load)
    if kind == "jagged":  # whose sizes have names of their own
        ours, expected = ours[:4], expected[:4]
    assert ours == expected


def test_what_is_no_file_to_begin_with(tmp_path):
    stream = io.BytesIO()
    pt.save({"a": torch.ones(1)}, stream)
    with pytest.raises(EOFError, match=r"stands at its end, byte \d+, .* seek\(0\)"):
        pt.load(stream)
    with pytest.raises(TypeError, match=r"bytes of a file's content, .*io\.BytesIO"):
        pt.load(stream.getvalue())
    with pytest.raises(TypeError, match=r"^found an object of class torch\.nn\.modules\.linear\.Linear, .*state_dict"):
        pt.save(torch.nn.Linear(1, 1), tmp_path / "x.pt")
