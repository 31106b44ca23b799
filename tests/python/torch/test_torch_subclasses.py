"""Tensors of classes of their own around composite tensors, and wrappers that are their class and attributes."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

import penstock
import penstock.torch as pt


class Sub(torch.Tensor):
    label = "of the class"


class Slotted(torch.Tensor):
    __slots__ = ("elem",)

    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_subclass(cls, elem.to("meta"))
        made.elem = elem
        return made


class Scaled(torch.Tensor):
    """A wrapper whose parts lie in another wrapper, in a list and in a dict."""

    @staticmethod
    def __new__(cls, values, scale):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=torch.float32, device=values.device)

    def __init__(self, values, scale):
        self.values = values
        self.parts = [scale, {"again": values}]

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(func)


class Hooked(torch.Tensor):
    ran = False

    @property
    def elem(self):
        return None

    @elem.setter
    def elem(self, value):
        Hooked.ran = True


class Setting(Hooked):
    def __setattr__(self, name, value):
        Hooked.ran = True
        super().__setattr__(name, value)


def marked(tensor, kind=Sub, **attributes):
    out = tensor.as_subclass(kind)
    vars(out).update(attributes)
    return out


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


COMPOSITES = {
    "meta": lambda: torch.empty(2, 3, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.qint8),
    "quantized by channel": lambda: torch.quantize_per_channel(
        torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    ),
    "dense": lambda: torch.arange(3.0),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", COMPOSITES)
def test_the_class_of_a_composite_tensor_and_its_attributes(path, name):
    tensor = marked(COMPOSITES[name](), tag=[1], label="mine")
    torch.save({"w": tensor}, path)
    with pytest.raises(pt.UnknownGlobalsError, match=r"add_safe_globals\(\[.*Sub\]\)") as caught:
        pt.load(path)
    assert caught.value.names == (f"{Sub.__module__}.Sub",)
    with torch.serialization.safe_globals([Sub]):
        theirs = torch.load(path)["w"]
        of_files = pt.Files(path)[0]["w"]
        if name == "dense":  # which samples have as plain tensors
            assert type(of_files) is torch.Tensor
            assert of_files.equal(theirs.as_subclass(torch.Tensor))
        for found in (pt.load(path)["w"], *([] if name == "dense" else [of_files])):
            assert type(found) is type(theirs) is Sub
            assert (found.layout, found.dtype, found.shape) == (theirs.layout, theirs.dtype, theirs.shape)
            assert (vars(found), found.label) == (vars(theirs), "mine")
        pt.save(pt.load(path), path)
        assert type(torch.load(path)["w"]) is type(pt.load(path)["w"]) is Sub


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parts_of_a_class_that_is_not_allowed(path):
    tensor = marked(torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)]), tag=1)
    torch.save({"w": tensor}, path)
    with pytest.raises(pt.UnknownGlobalsError, match="Sub"):
        pt.load(path)
    kept = pt.load(path, unknown="keep")["w"]
    assert isinstance(kept, penstock.Opaque)
    with torch.serialization.safe_globals([Sub]):
        found = pt.load(path)["w"]
    assert (type(found), found.tag) == (Sub, 1)
    assert [part.tolist() for part in found.unbind()] == [[1, 1], [0, 0, 0]]


def test_what_lies_in_slots(path):
    torch.save({"w": Slotted(torch.tensor([1.0, 2.0]))}, path)
    with pytest.raises(pt.UnknownGlobalsError, match="Slotted"):
        pt.load(path)
    with torch.serialization.safe_globals([Slotted]):
        for again in range(2):
            found = pt.load(path)["w"]
            assert (type(found), found.is_meta, found.elem.tolist()) == (Slotted, True, [1.0, 2.0]), again
            pt.save({"w": found}, path)


def test_wrappers(path):
    made = TwoTensor(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3))
    torch.save({"w": made, "again": made}, path)
    with pytest.raises(pt.UnknownGlobalsError, match="TwoTensor"):
        pt.load(path)
    with torch.serialization.safe_globals([TwoTensor]):
        for found in (pt.load(path), pt.Files(path)[0], pt.load(path, "cpu"), pt.load(path, mmap=True)):
            assert type(found["w"]) is TwoTensor
            assert found["w"] is found["again"]
            assert (found["w"].a.tolist(), found["w"].b.tolist()) == (made.a.tolist(), made.b.tolist())
        on_meta = pt.load(path, "meta")["w"]
        assert on_meta.device == on_meta.a.device == torch.device("meta")


def test_parts_of_wrappers_keep_their_types_and_containers(path):
    inner = TwoTensor(torch.ones(2), torch.zeros(2))
    torch.save({"w": Scaled(inner, torch.tensor(0.5)), "plain": torch.ones(2)}, path)
    with torch.serialization.safe_globals([Scaled, TwoTensor]):
        found = pt.load(path, dtype=torch.bfloat16)
        assert found["plain"].dtype == torch.bfloat16
        assert type(found["w"]) is Scaled
        assert found["w"].dtype == found["w"].parts[0].dtype == found["w"].values.a.dtype == torch.float32
        assert found["w"].parts[1]["again"] is found["w"].values


def test_wrappers_are_saved_and_filled(path):
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    module = torch.nn.Linear(3, 2)
    module.weight = torch.nn.Parameter(TwoTensor(a, b))
    with pytest.raises(penstock.DTypeMismatchError, match=r"add_safe_globals\(\[.*TwoTensor\]\)"):
        pt.save(module.state_dict(), path)
    other = torch.nn.Linear(3, 2)
    other.weight = torch.nn.Parameter(TwoTensor(torch.zeros(2, 3), torch.zeros(2, 3)))
    with torch.serialization.safe_globals([TwoTensor]):
        pt.save(module.state_dict(), path)
        assert torch.load(path)["weight"].b.equal(b)
        pt.load_into(other, path)
    assert other.weight.a.equal(a)
    assert other.weight.b.equal(b)
    torch.save({"weight": a, "bias": torch.zeros(2)}, path)
    pt.load_into(other, path)
    assert other.weight.b.equal(a)


@pytest.mark.parametrize("kind", [Hooked, Setting])
@pytest.mark.parametrize("make", [lambda: torch.ones(2), lambda: torch.ones(2, device="meta")], ids=["dense", "meta"])
def test_no_code_of_the_class_runs(path, kind, make):
    torch.save({"w": marked(make(), kind, elem=1)}, path)
    Hooked.ran = False
    with (
        torch.serialization.safe_globals([kind]),
        pytest.raises(pt.UnknownGlobalsError, match="a way of its own") as caught,
    ):
        pt.load(path)
    assert caught.value.names == (f"{kind.__module__}.{kind.__name__}",)
    assert not Hooked.ran


def test_a_wrapper_in_itself(path):
    made = TwoTensor(torch.ones(2), torch.zeros(2))
    made.loop = [made]
    torch.save(made, path)
    with torch.serialization.safe_globals([TwoTensor]):
        found = pt.load(path)
    assert type(found) is TwoTensor
    assert found.loop[0] is found
