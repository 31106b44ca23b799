"""Lazy modules, whose parameters have no shape yet."""

from __future__ import annotations

import pytest
import torch

import penstock.torch as pt


def lazy():
    return torch.nn.Sequential(torch.nn.LazyConv2d(3, 3), torch.nn.LazyBatchNorm2d())


def test_load_into_gives_them_their_shapes(tmp_path):
    made = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3))
    torch.save(made.state_dict(), tmp_path / "x.pt")
    for target, key in ((lazy(), None), ({"model": lazy()}, "model")):
        state = made.state_dict()
        torch.save(state if key is None else {key: state}, tmp_path / "x.pt")
        pt.load_into(target, tmp_path / "x.pt")
        module = target if key is None else target[key]
        assert module[0].weight.equal(made[0].weight)
        assert module[1].running_mean.equal(made[1].running_mean)


def test_they_are_saved_and_read(tmp_path):
    path = tmp_path / "x.pt"
    module = lazy()
    module[0].bias.requires_grad = False
    pt.save(module.state_dict(), path)
    found = pt.load(path)
    assert type(found["0.weight"]) is torch.nn.UninitializedParameter
    assert (found["0.weight"].requires_grad, found["0.bias"].requires_grad) == (True, False)
    assert type(found["1.running_mean"]) is torch.nn.UninitializedBuffer
    with torch.serialization.safe_globals([torch.nn.UninitializedParameter, torch.nn.parameter.UninitializedBuffer]):
        assert type(torch.load(path)["0.weight"]) is torch.nn.UninitializedParameter
    other = lazy()
    pt.load_into(other, path)
    assert torch.nn.parameter.is_lazy(other[0].weight)


def test_a_lazy_parameter_alone_cannot_be_filled(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "x.pt")
    with pytest.raises(RuntimeError, match=r"w: .*lazy parameter.*give its module"):
        pt.load_into({"w": torch.nn.UninitializedParameter()}, tmp_path / "x.pt")


@pytest.mark.parametrize("make", [lambda: torch.zeros(1).expand(3), lambda: torch.zeros(2).as_strided((3,), (0,))])
def test_an_expanded_target_is_named(tmp_path, make):
    module = torch.nn.Module()
    module.inner = torch.nn.Module()
    module.inner.register_buffer("b", make())
    torch.save({"inner.b": torch.ones(3)}, tmp_path / "x.pt")
    with pytest.raises(RuntimeError, match=r"inner\.b: .*expanded.*clone\(\)"):
        pt.load_into(module, tmp_path / "x.pt")
    pt.load_into(module, tmp_path / "x.pt", assign=True)
    assert module.inner.b.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match=r"the target: .*expanded"):
        pt.load_into(make(), tmp_path / "x.pt", key="inner.b")
