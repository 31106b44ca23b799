"""penstock.torch beside torch itself on a real device: the same tensors, on the device that was asked for."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file as their_load_file
from safetensors.torch import save_file

import penstock
import penstock.torch as pt
from penstock.torch.safetensors import load_file

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch has no CUDA device")

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)


def content() -> dict:
    generator = torch.Generator().manual_seed(1)
    made = {str(dtype): torch.randint(0, 2, (7, 5, 3), generator=generator).to(dtype) for dtype in DTYPES}
    large = torch.randn(1500, 1001, generator=generator)
    shared = torch.arange(100.0)
    return {**made, "large": large, "view": large[3:700, ::2].t(), "parts": [shared[:10], shared[5:]], "epoch": 3}


def same(ours, theirs) -> None:
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key, value in theirs.items():
            same(ours[key], value)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif isinstance(theirs, torch.Tensor):
        assert ours.device == theirs.device
        assert ours.dtype == theirs.dtype
        assert ours.stride() == theirs.stride()
        assert torch.equal(ours, theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize("place", ["cuda", "cuda:0", torch.device("cuda"), "cpu"], ids=str)
def test_load_is_torchs(tmp_path, place):
    torch.save(content(), tmp_path / "x.pt")
    ours = pt.load(tmp_path / "x.pt", map_location=place)
    same(ours, torch.load(tmp_path / "x.pt", map_location=place, weights_only=True))
    assert ours["parts"][0].untyped_storage().data_ptr() == ours["parts"][1].untyped_storage().data_ptr()


def test_files_of_the_device_come_back_to_it(tmp_path):
    made = {"w": torch.randn(100, 30, device="cuda"), "n": torch.ones(3)}
    torch.save(made, tmp_path / "x.pt")
    same(pt.load(tmp_path / "x.pt"), torch.load(tmp_path / "x.pt", weights_only=True))
    same(pt.load(tmp_path / "x.pt", map_location="cpu"), torch.load(tmp_path / "x.pt", "cpu", weights_only=True))


def test_what_is_saved_is_read_by_torch(tmp_path):
    made = {"w": torch.randn(100, 30, device="cuda"), "half": torch.randn(9, device="cuda").half().t()}
    pt.save(made, tmp_path / "x.pt")
    same(torch.load(tmp_path / "x.pt", map_location="cuda", weights_only=True), made)


def test_modules_and_optimizers_on_the_device(tmp_path):
    def trained(seed: int):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Linear(30, 5)).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(2, 20, device="cuda")).sum().backward()
        optimizer.step()
        return model, optimizer

    model, optimizer = trained(1)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "x.pt")
    other, other_optimizer = trained(2)
    pt.load_into({"model": other, "optimizer": other_optimizer.state_dict()}, tmp_path / "x.pt")
    same(dict(other.state_dict()), dict(model.state_dict()))
    for number, state in optimizer.state_dict()["state"].items():
        same(other_optimizer.state_dict()["state"][number], state)


def test_safetensors_are_theirs(tmp_path):
    tensors = {name: value.contiguous() for name, value in content().items() if isinstance(value, torch.Tensor)}
    save_file({name: value.clone() for name, value in tensors.items()}, tmp_path / "x.safetensors")
    same(
        load_file(tmp_path / "x.safetensors", device="cuda"), their_load_file(tmp_path / "x.safetensors", device="cuda")
    )


def test_batches_with_transforms_are_torchs_arithmetic(tmp_path):
    images = torch.randint(0, 256, (64, 3, 20, 30), dtype=torch.uint8)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    floats = pt.Rows(images.numpy()).cast(torch.float32).scale(1 / 255).normalize(mean, std)
    wanted = images.float().mul(1 / 255).sub(torch.tensor(mean)[:, None, None]).div(torch.tensor(std)[:, None, None])
    for workers in (0, 2):
        loader = pt.DataLoader(floats, batch_size=16, num_workers=workers, device="cuda")
        batches = list(loader)
        assert all(batch.is_cuda for batch in batches)
        assert torch.equal(torch.cat(batches).cpu(), wanted)


def test_what_torch_computes_with_a_batch_is_right_while_more_are_loaded(tmp_path):
    rows = torch.arange(4096 * 1000, dtype=torch.int32).reshape(4096, 1000)
    penstock.save(rows.numpy(), tmp_path / "x.npy")
    stream = torch.cuda.Stream()
    sums = []
    with torch.cuda.stream(stream):
        for batch in pt.DataLoader(pt.Rows(tmp_path / "x.npy").cast(torch.float64), batch_size=64, device="cuda"):
            torch.cuda._sleep(1_000_000)
            sums.append(batch.sum(1))
    assert torch.equal(torch.cat(sums).cpu(), rows.double().sum(1))
