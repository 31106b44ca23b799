"""penstock.torch.load_into beside module.load_state_dict(torch.load(path)), and penstock.torch.save read by torch."""

from __future__ import annotations

import copy
import types
import warnings

import pytest
import torch
from load_pairs import same

import penstock
import penstock.torch as pt


class Net(torch.nn.Module):
    def __init__(self, width=4, bias=True):
        super().__init__()
        self.first = torch.nn.Linear(3, width, bias=bias)
        self.norm = torch.nn.BatchNorm1d(width)
        self.rest = torch.nn.Sequential(torch.nn.Linear(width, 2), torch.nn.Linear(2, 1))


def addresses(module):
    return [value.data_ptr() for value in module.state_dict().values() if isinstance(value, torch.Tensor)]


def both(make, path, **options):
    """The outcome of torch's way and of ours on equal modules: result or error, and the state behind it."""
    out = []
    torch.manual_seed(3)
    module = make()
    for way in ("torch", "ours"):
        target = copy.deepcopy(module)
        pointers = addresses(target)
        try:
            if way == "torch":
                result = tuple(target.load_state_dict(torch.load(path), **options))
            else:
                result = tuple(pt.load_into(target, path, **options))
        except RuntimeError as error:
            result = str(error)
        assert options.get("assign") or pointers == addresses(target)
        out.append((result, target.state_dict()))
    return out


def agree(make, path, **options):
    theirs, ours = both(make, path, **options)
    assert ours[0] == theirs[0]
    same(ours[1], theirs[1])
    return ours


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_the_whole(path, strict, assign):
    torch.save(Net().state_dict(), path)
    result, _ = agree(Net, path, strict=strict, assign=assign)
    assert result == ([], [])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("first.bias"),
        lambda s: s.update({"extra": torch.ones(1)}),
        lambda s: s.update({"first.extra": torch.ones(1), "rest.7.weight": torch.ones(1)}),
        lambda s: s.update({"first.weight": torch.ones(5, 3)}),
        lambda s: (s.pop("norm.running_mean"), s.update({"a.b": torch.ones(1), "rest.0.bias": torch.ones(7)})),
    ],
)
def test_keys_that_do_not_fit(path, change, strict):
    state = Net().state_dict()
    change(state)
    torch.save(state, path)
    theirs, ours = both(Net, path, strict=strict)
    assert type(ours[0]) is type(theirs[0])
    if isinstance(ours[0], str):
        # torch goes through the module for unexpected keys, and copies what fits before it complains.
        assert sorted(ours[0].splitlines()) == sorted(theirs[0].splitlines())
        torch.manual_seed(3)
        same(ours[1], Net().state_dict())
    else:
        assert [sorted(keys) for keys in ours[0]] == [sorted(keys) for keys in theirs[0]]
        same(ours[1], theirs[1])


@pytest.mark.parametrize("stored", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kept", [torch.float32, torch.float16, torch.bfloat16])
def test_types_are_converted_on_the_way(path, stored, kept):
    torch.save(Net().to(stored).state_dict(), path)
    agree(lambda: Net().to(kept), path)


def test_layouts(path):
    state = Net().state_dict()
    state["first.weight"] = torch.randn(3, 4).t()
    state["rest.0.weight"] = torch.randn(4, 4)[:, ::2].t()
    torch.save(state, path)
    agree(Net, path)

    def transposed():
        net = Net()
        net.first.weight = torch.nn.Parameter(torch.randn(3, 4).t())
        return net

    agree(transposed, path)


def test_old_formats_and_safetensors(path):
    torch.save(Net().state_dict(), path, _use_new_zipfile_serialization=False)
    agree(Net, path)
    torch.manual_seed(1)
    net = Net()
    penstock.save(dict(net.state_dict()), path.with_name("x.safetensors"))
    other = Net()
    pt.load_into(other, path.with_name("x.safetensors"))
    same(other.state_dict(), net.state_dict())


def test_scalars_stored_with_one_element(path):
    state = Net().state_dict()
    state["norm.num_batches_tracked"] = torch.tensor([5])
    torch.save(state, path)
    agree(Net, path)


def test_tied_parameters(path):
    def tied():
        net = Net()
        net.rest[1] = torch.nn.Linear(4, 2)
        net.rest[1].weight = net.rest[0].weight
        return net

    state = tied().state_dict()
    state["rest.0.weight"] = torch.zeros(2, 4)
    torch.save(state, path)
    agree(tied, path)


class Special(torch.nn.Linear):
    def _load_from_state_dict(self, state_dict, prefix, *args):
        state_dict[prefix + "weight"] = state_dict[prefix + "weight"] * 2
        torch.nn.Module._load_from_state_dict(self, state_dict, prefix, *args)


def hooked():
    net = Net()
    net._register_load_state_dict_pre_hook(lambda state, *_: state.update({"first.bias": torch.zeros(4)}))
    return net


class WithState(Net):
    def get_extra_state(self):
        return {"n": 1}

    def set_extra_state(self, state):
        self.state = state


class TakesState(torch.nn.Linear):
    """It is told a state that it does not write."""

    def set_extra_state(self, state):
        raise AssertionError(state)


def with_a_way_in_the_object():
    net = Net()
    net.first._load_from_state_dict = types.MethodType(Special._load_from_state_dict, net.first)
    return net


@pytest.mark.parametrize("make", [lambda: Special(3, 4), hooked, WithState, with_a_way_in_the_object])
def test_modules_that_load_in_their_own_way(path, make):
    torch.save(make().state_dict(), path)
    theirs, ours = both(make, path)
    assert ours[0] == theirs[0]
    for key, value in theirs[1].items():
        assert torch.equal(ours[1][key], value) if isinstance(value, torch.Tensor) else ours[1][key] == value


@pytest.mark.parametrize("strict", [False, True])
def test_a_state_that_a_module_takes_is_missing(path, strict):
    torch.save(TakesState(3, 4).state_dict(), path)
    result, _ = agree(lambda: TakesState(3, 4), path, strict=strict)
    assert "_extra_state" in result if strict else result == (["_extra_state"], [])


def test_keys_of_a_child_that_was_set_to_none_are_passed_over(path):
    torch.save(Net().state_dict(), path)

    def cut():
        net = Net()
        net.first = net.rest[1] = None
        return net

    result, _ = agree(cut, path)
    assert result == ([], [])


def test_state_dicts_as_targets(path):
    torch.save({"a": torch.arange(3.0), "b": torch.ones(2, dtype=torch.int64)}, path)
    target = {"a": torch.zeros(3), "b": torch.zeros(2)}
    before = {key: value.data_ptr() for key, value in target.items()}
    assert pt.load_into(target, path) == ([], [])
    assert {key: value.data_ptr() for key, value in target.items()} == before
    assert target["a"].tolist() == [0, 1, 2]
    assert target["b"].tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"size mismatch for a: .*torch.Size\(\[3\]\) from checkpoint"):
        pt.load_into({"a": torch.zeros(4), "b": torch.zeros(2)}, path)
    assert pt.load_into({}, path, strict=False).unexpected_keys == ["a", "b"]


def test_assign_with_type_and_device(path):
    torch.save(Net().state_dict(), path)
    net = Net()
    pt.load_into(net, path, assign=True, dtype=torch.bfloat16, device="cpu")
    assert net.first.weight.dtype == torch.bfloat16
    assert net.norm.num_batches_tracked.dtype == torch.int64
    with torch.device("meta"):
        skeleton = Net()
    pt.load_into(skeleton, path, assign=True)
    same(skeleton.state_dict()["first.weight"], torch.load(path)["first.weight"])
    for option in ({"dtype": torch.float16}, {"device": "cpu"}):
        with pytest.raises(ValueError, match="assign=True"):
            pt.load_into(net, path, **option)


def test_requires_grad_and_gradients_stay(path):
    torch.save(Net().state_dict(), path)
    net = Net()
    net.first.weight.requires_grad_(False)
    net.first.bias.grad = torch.ones(4)
    pt.load_into(net, path)
    assert not net.first.weight.requires_grad
    assert net.first.bias.requires_grad
    assert net.first.bias.grad.sum() == 4


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("value", [0, 1, 7, True, 1.5, "x", None, [torch.ones(1)]])
@pytest.mark.parametrize("key", ["first.bias", "epoch"])
def test_values_that_are_no_tensors(path, key, value, strict):
    torch.save({**Net().state_dict(), key: value}, path)
    theirs, ours = both(Net, path, strict=strict)
    assert ours[0] == theirs[0]


@pytest.mark.parametrize("version", [None, 1, 2])
@pytest.mark.parametrize("plain", [False, True])
def test_counters_of_batches_that_old_files_lack(path, version, plain):
    state = Net().state_dict()
    del state["norm.num_batches_tracked"]
    state._metadata["norm"] = {} if version is None else {"version": version}
    torch.save(dict(state) if plain else state, path)
    theirs, ours = both(Net, path)
    assert ours[0] == theirs[0]
    assert isinstance(ours[0], str) == (version == 2 and not plain)
    if isinstance(ours[0], tuple):
        same(ours[1], theirs[1])


@pytest.mark.filterwarnings("ignore:for .* a no-op")
def test_modules_on_the_meta_device(path):
    torch.save(Net().state_dict(), path)
    with torch.device("meta"):
        target = Net()
    with pytest.warns(UserWarning, match=r"first\.weight: .* is a no-op"):
        pt.load_into(target, path)


class Doubled(torch.Tensor):
    """Says itself what it becomes when a state dict is loaded."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.module_load:
            return torch.nn.Parameter(args[1].detach() * 2)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_swapped_parameters(path):
    def make():
        net = Net()
        net.first.weight = torch.nn.Parameter(torch.ones(4, 3).as_subclass(Doubled))
        return net

    torch.save(Net().state_dict(), path)
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        ours, theirs = make(), make()
        pt.load_into(ours, path)
        theirs.load_state_dict(torch.load(path))
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    same(ours.state_dict(), theirs.state_dict())
    assert torch.equal(ours.first.weight, torch.load(path)["first.weight"] * 2)


def test_results_read_as_torchs(path):
    torch.save(Net().state_dict(), path)
    assert repr(pt.load_into(Net(), path)) == repr(Net().load_state_dict(torch.load(path)))
    torch.save({}, path)
    assert repr(pt.load_into(Net(), path, strict=False)).startswith("IncompatibleKeys(missing_keys=['first.weight',")


def test_backward_passes_do_not_go_on_over_what_was_loaded(path):
    torch.save(Net().state_dict(), path)
    target = Net()
    loss = (target.first.weight**2).sum()
    pt.load_into(target, path)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_imaginary_parts_are_left_out_with_torchs_warning(path):
    torch.save({"a": torch.tensor([1 + 2j])}, path)
    target = {"a": torch.zeros(1)}
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="imaginary"):
            pt.load_into(target, path)
    finally:
        torch.set_warn_always(always)
    assert target["a"].tolist() == [1]


def test_what_is_no_state_dict(path):
    torch.save([torch.ones(1)], path)
    for load in (pt.load_into, lambda module, path: module.load_state_dict(torch.load(path))):
        with pytest.raises(TypeError, match=r"state.dict"):
            load(Net(), path)
    with pytest.raises(FileNotFoundError):
        pt.load_into(Net(), path.with_name("none.pt"))


def test_a_damaged_file_is_an_error(path):
    torch.save({"a": torch.arange(1000.0)}, path)
    data = bytearray(path.read_bytes())
    at = data.index(torch.arange(1000.0).numpy().tobytes()[:64])
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(penstock.ChecksumError):
        pt.load_into({"a": torch.zeros(1000)}, path)


class TestPlacesInOneMemory:
    """As one place after the other gets its tensor."""

    @staticmethod
    def both(path, state, make, keys):
        torch.save(state, path)
        out = []
        for load in (lambda into: pt.load_into(into, path), lambda into: copy_each(into, torch.load(path))):
            memory, places = make()
            load(dict(zip(keys, places, strict=True)))
            out.append(memory)
        assert torch.equal(*out)

    def test_that_overlap(self, path):
        def make():
            memory = torch.zeros(9)
            return memory, [memory[:3], memory[2:5], memory[6:]]

        state = {name: torch.arange(3.0) + 10 * i for i, name in enumerate("abc")}
        self.both(path, state, make, "abc")
        self.both(path, state, make, "bac")

    def test_within_each_other_and_interleaved(self, path):
        def make():
            memory = torch.zeros(12)
            return memory, [memory, memory[3:5], memory[6::2], memory[7::2]]

        state = {
            "a": torch.ones(12),
            "b": torch.full((2,), 2.0),
            "c": torch.full((3,), 3.0),
            "d": torch.full((3,), 4.0),
        }
        self.both(path, state, make, "abcd")

    def test_of_tied_keys_the_last_counts(self, path):
        def make():
            memory = torch.zeros(3)
            return memory, [memory, memory]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.both(path, {"a": torch.ones(3), "b": torch.full((3,), 2 + 1j)}, make, "ab")
            self.both(path, {"a": torch.full((3,), 2 + 1j), "b": torch.ones(3)}, make, "ab")

    def test_an_expanded_place_is_refused_as_torch_does(self, path):
        torch.save({"a": torch.arange(12.0).reshape(3, 4)}, path)
        memory = torch.zeros(4)
        with pytest.raises(RuntimeError, match=r"a: elements of the target .*expanded"):
            pt.load_into({"a": memory.expand(3, 4)}, path)
        assert memory.tolist() == [0, 0, 0, 0]


def copy_each(places, state):
    for key, place in places.items():
        place.copy_(state[key])
