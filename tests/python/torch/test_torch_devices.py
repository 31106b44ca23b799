"""penstock.torch with a device: torch's own memory there, or on the simulated driver what stands in for it."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar

import pytest
import torch
from penstock._core import _load_into, _load_storages_into

import penstock
import penstock.sharing
import penstock.torch as pt
from penstock.torch import _devices
from penstock.torch.safetensors import load_file, safe_open, save_file

pytestmark = pytest.mark.skipif(not penstock.device.is_available(), reason="no device")


class Memory:
    """Device memory that torch has no part in; what is made of it is a copy on the host, with the bytes it has then."""

    made: ClassVar[list[tuple[int, torch.device]]] = []

    def __init__(self, nbytes, device):
        self.made.append((nbytes, device))
        self.bytes = penstock.full((nbytes,), 255, dtype="uint8", device=str(device))

    def __dlpack__(self, **options):
        return self.bytes.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.bytes.__dlpack_device__()

    def _on_host(self):
        return torch.from_dlpack(self.bytes.cpu())

    def untyped_storage(self):
        return self._on_host().untyped_storage()

    def view(self, dtype):
        return self._on_host().view(dtype)


@pytest.fixture
def made(monkeypatch):
    """The device memory that torch was asked for: (bytes, device)."""
    Memory.made = []
    if torch.cuda.is_available():
        real = _devices._memory

        def counted(nbytes, device):
            Memory.made.append((nbytes, device))
            return real(nbytes, device)

        monkeypatch.setattr(_devices, "_memory", counted)
    else:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
        monkeypatch.setattr(torch.cuda, "device_count", penstock.device.device_count)
        monkeypatch.setattr(_devices, "_memory", Memory)
    return Memory.made


CUDA = torch.device("cuda:0")


@pytest.fixture
def checkpoint(tmp_path):
    base = torch.arange(12.0).reshape(3, 4)
    content = {
        "state": OrderedDict(weight=base, tied=base, columns=base.t()[1:], half=torch.ones(5, dtype=torch.bfloat16)),
        "scale": torch.randn(100_001, generator=torch.Generator().manual_seed(2)),
        "fp8": torch.arange(6.0).to(torch.float8_e4m3fn),
        "empty": torch.empty(0, 3),
        "lazy": torch.tensor([1 + 2j, 3 - 1j]).conj(),
        "count": 7,
    }
    path = tmp_path / "x.pt"
    torch.save(content, path)
    return path, content


def same(ours, theirs):
    if isinstance(theirs, dict):
        assert type(ours) is type(theirs)
        assert list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, torch.Tensor):
        assert ours.dtype == theirs.dtype
        assert ours.stride() == theirs.stride()
        if theirs.dtype.itemsize == 1:
            ours, theirs = ours.view(torch.uint8), theirs.view(torch.uint8)
        assert torch.equal(ours.cpu(), theirs)
    else:
        assert ours == theirs


class TestLoad:
    @pytest.mark.parametrize("map_location", ["cuda:0", "cuda", CUDA, {"cpu": "cuda:0"}], ids=str)
    def test_every_storage_once_and_straight_to_the_device(self, checkpoint, made, map_location):
        path, content = checkpoint
        loaded = pt.load(path, map_location)
        same(loaded, content)
        assert {device for _, device in made} == {CUDA}
        assert sorted(nbytes for nbytes, _ in made if nbytes) == [6, 10, 16, 48, 400_004]
        state = loaded["state"]
        assert state["weight"].untyped_storage().data_ptr() == state["columns"].untyped_storage().data_ptr()

    def test_some_of_it_elsewhere(self, tmp_path, made):
        """The recorded device decides where nothing is said; what belongs to the host goes to its memory."""
        torch.save([torch.arange(4), torch.arange(9)], tmp_path / "x.pt")
        loaded = pt.load(tmp_path / "x.pt", {"cpu": "cuda:0"})
        same(loaded[1], torch.arange(9))
        made.clear()
        assert pt.load(tmp_path / "x.pt")[1].device.type == "cpu"
        assert made == []

    @pytest.mark.parametrize("map_location", ["cuda:0", {"cpu": "cuda:0"}], ids=str)
    @pytest.mark.parametrize("strict", [False, True])
    def test_another_type(self, checkpoint, made, map_location, strict):
        path, content = checkpoint
        if strict:
            with pytest.raises(penstock.InvalidArgumentError, match="complex64 to float16"):
                pt.load(path, map_location, dtype="float16", strict=True)
            made.clear()
            content["lazy"] = content["lazy"].real.clone()
            torch.save(content, path)
        loaded = pt.load(path, map_location, dtype="float16", strict=strict)
        same(loaded["state"]["weight"], content["state"]["weight"].half())
        assert loaded["state"]["columns"].tolist() == content["state"]["columns"].tolist()
        same(loaded["scale"], content["scale"].half())
        same(loaded["fp8"], content["fp8"].half())
        assert loaded["lazy"].tolist() == [1, 3]
        assert loaded["empty"].shape == (0, 3)
        assert loaded["state"]["tied"] is loaded["state"]["weight"]
        assert {device for _, device in made} == {CUDA}
        assert sorted(nbytes for nbytes, _ in made if nbytes) == [4, 10, 12, 18, 24, 200_002]

    @pytest.mark.parametrize("wanted", ["float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn"])
    def test_every_type_as_on_the_host(self, tmp_path, made, wanted):
        values = torch.tensor([0.0, -1.5, 1 / 3, 500.0, 1e-7, 1e30, float("inf"), float("nan")], dtype=torch.float64)
        content = {
            name: values.to(getattr(torch, name))
            for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e5m2")
        }
        torch.save({**content, "int": torch.arange(3)}, tmp_path / "x.pt")
        on_host = pt.load(tmp_path / "x.pt", "cpu", dtype=wanted)
        loaded = pt.load(tmp_path / "x.pt", "cuda", dtype=wanted)
        for name, tensor in on_host.items():
            assert loaded[name].dtype == tensor.dtype
            # All NaN are one: devices make others than the host does.
            there, here = (torch.view_as_real(part.cpu().to(torch.complex128)) for part in (loaded[name], tensor))
            assert torch.equal(there.nan_to_num(7), here.nan_to_num(7)), name

    def test_strict_names_the_tensor(self, tmp_path, made):
        torch.save({"fits": torch.ones(2), "large": torch.tensor([1e300], dtype=torch.float64)}, tmp_path / "x.pt")
        assert pt.load(tmp_path / "x.pt", "cuda", dtype="float32")["large"].tolist() == [float("inf")]
        with pytest.raises(penstock.InvalidArgumentError, match=r"1e\+300") as caught:
            pt.load(tmp_path / "x.pt", "cuda", dtype="float32", strict=True)
        assert caught.value.tensor == "large"

    def test_functions_and_meta_are_asked_as_ever(self, checkpoint, made):
        path, _ = checkpoint
        pt.load(path, lambda storage, location: storage)
        pt.load(path, "meta")
        assert made == []

    def test_checksums_are_looked_at(self, checkpoint, made):
        path, content = checkpoint
        data = bytearray(path.read_bytes())
        payload = content["scale"].numpy().tobytes()
        data[data.index(payload) + 100] ^= 1
        path.write_bytes(data)
        with pytest.raises(penstock.ChecksumError):
            pt.load(path, "cuda")


class TestSafetensors:
    @pytest.fixture
    def path(self, tmp_path):
        tensors = {
            "b": torch.arange(70_000.0).reshape(700, 100),
            "a": torch.ones(3, dtype=torch.bfloat16),
            "none": torch.empty(2, 0),
            "fp8": torch.arange(4.0).to(torch.float8_e5m2),
        }
        save_file(tensors, tmp_path / "x.safetensors")
        return tmp_path / "x.safetensors", tensors

    def test_whole_files(self, path, made):
        path, tensors = path
        loaded = load_file(path, device="cuda:0")
        same({name: loaded[name] for name in tensors}, tensors)
        assert [nbytes for nbytes, _ in made if nbytes] == [280_000, 6, 4]

    @pytest.mark.parametrize("device", ["cuda", "cuda:0"])
    def test_one_at_a_time(self, path, made, device):
        path, tensors = path
        with safe_open(path, "pt", device) as file:
            for name in file.keys():  # noqa: SIM118 - as safetensors' users write it
                same(file.get_tensor(name), tensors[name])
        assert {where for _, where in made} == {CUDA}


class TestMemoryOfOthers:
    """What load_into does with parameters on a device: bytes into their memory, values through a conversion."""

    def test_bytes_values_and_strides(self, checkpoint):
        path, content = checkpoint
        archive = penstock.open(path)
        numbers = {name: number for number, name in enumerate(archive.keys())}
        same_type = penstock.zeros(100_001, dtype="float32", device="cuda:0")
        other_type = penstock.zeros(3, 4, dtype="float64", device="cuda:0")
        turned = penstock.zeros(4, 3, dtype="float32", device="cuda:0")
        _load_into(
            archive,
            [numbers["scale"], numbers["state.weight"], numbers["state.columns"]],
            [same_type, other_type, turned.transpose(0, 1).transpose(0, 1)[1:]],
        )
        assert torch.equal(torch.from_dlpack(same_type.cpu()), content["scale"])
        assert other_type.cpu().tolist() == content["state"]["weight"].tolist()
        assert turned.cpu().tolist() == [[0.0] * 3, *content["state"]["columns"].tolist()]

    def test_what_the_owner_still_does_with_it_comes_first(self, tmp_path):
        """The other library's stream is ahead of the copies: its fill must not come after them."""
        torch.save(torch.arange(50_000), tmp_path / "x.pt")
        stream = penstock.device.Stream("cuda:0")
        with stream:
            place = penstock.full((400_000,), 7, dtype="uint8", device="cuda:0")

        class Other:
            def __dlpack__(self, **options):
                return place.__dlpack__(**options)

            def __dlpack_device__(self):
                return place.__dlpack_device__()

        _load_storages_into(penstock.open(tmp_path / "x.pt"), {0: Other()})
        assert torch.equal(torch.from_dlpack(place.cpu()).view(torch.int64), torch.arange(50_000))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_made_on_the_device(tmp_path, monkeypatch, workers):
    """As far as it goes without torch's own CUDA: what torch would be handed is there already."""
    from penstock.torch import _devices
    from penstock.torch.loader import _feeds, _finish

    for i in range(20):
        torch.save({"x": torch.full((3,), float(i)), "y": i}, tmp_path / f"{i:02d}.pt")
    monkeypatch.setattr(_devices, "_why_absent", lambda device: "")
    monkeypatch.setattr(_feeds, "arrives_on_device", lambda device: device is not None)
    monkeypatch.setattr(_finish, "batch_to_torch", lambda value: value)
    loader = pt.DataLoader(pt.Files(tmp_path), 8, num_workers=workers, device="cuda:0", shuffle=True, pin_memory=True)
    torch.manual_seed(3)
    batches = list(loader)
    torch.manual_seed(3)
    expected = list(pt.DataLoader(pt.Files(tmp_path), 8, shuffle=True))
    assert len(batches) == len(expected)
    for batch, other in zip(batches, expected, strict=True):
        assert batch["x"].device == "cuda:0"
        assert batch["x"].cpu().tolist() == other["x"].tolist()
        assert batch["y"].cpu().tolist() == other["y"].tolist()


def test_masks_follow_their_batches_to_the_device(tmp_path, monkeypatch):
    from penstock.torch import _devices
    from penstock.torch.loader import _feeds, _finish, _iteration

    for i in range(8):
        torch.save(torch.full((3,), float(i)), tmp_path / f"{i}.pt")
    (tmp_path / "5.pt").write_bytes(b"")
    monkeypatch.setattr(_devices, "_why_absent", lambda device: "")
    monkeypatch.setattr(_feeds, "arrives_on_device", lambda device: device is not None)
    monkeypatch.setattr(_finish, "batch_to_torch", lambda value: value)
    monkeypatch.setattr(_iteration, "pin_memory", lambda value: ("pinned", value.tolist()))
    monkeypatch.setattr(_iteration, "to_device", lambda value, device: (value, device))
    pairs = list(pt.DataLoader(pt.Files(tmp_path), 4, device="cuda:0", on_error="mask"))
    assert [batch.device for batch, _ in pairs] == ["cuda:0"] * 2
    assert [batch.cpu()[:, 0].tolist() for batch, _ in pairs] == [[0, 1, 2, 3], [4, 6, 6, 7]]
    assert [valid for _, valid in pairs] == [
        (("pinned", [True] * 4), CUDA),
        (("pinned", [True, False, True, True]), CUDA),
    ]


def test_a_load_into_pinned_memory(tmp_path):
    state = {"w": torch.arange(3000.0).reshape(3, 1000), "b": torch.ones(5, dtype=torch.bfloat16), "step": 3}
    torch.save(state, tmp_path / "x.pt")
    loaded = pt.load(tmp_path / "x.pt", pinned=True)
    assert torch.equal(loaded["w"], state["w"])
    assert torch.equal(loaded["b"], state["b"])
    assert loaded["w"].untyped_storage().nbytes() < 2 * 3000 * 4
    assert penstock.from_dlpack(loaded["w"]).is_pinned()
    both = pt.load(tmp_path / "x.pt", pinned=True, shared=True)
    assert torch.equal(both["b"], state["b"])
    assert penstock.from_dlpack(both["w"]).is_pinned()
    assert torch.equal(pt.attach(penstock.sharing.share(both))["w"], state["w"])
    half = pt.load(tmp_path / "x.pt", pinned=True, dtype=torch.float16)["w"]
    assert torch.equal(half, state["w"].half())
    assert penstock.from_dlpack(half).is_pinned()
    for others in ({"mmap": True}, {"ranks": "auto"}):
        with pytest.raises(penstock.UnsupportedError, match="leave out one of pinned"):
            pt.load(tmp_path / "x.pt", pinned=True, **others)
