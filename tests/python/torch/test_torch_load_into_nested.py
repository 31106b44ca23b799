"""penstock.torch.load_into with nested targets, parts of files, optimizers and other objects that have a state."""

from __future__ import annotations

import collections
import copy
import pathlib

import numpy as np
import pytest
import torch
from load_pairs import same

import penstock
import penstock.torch as pt


def linear(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Linear(3, 2)


def trained(seed=0, kind=torch.optim.Adam, **options):
    """A module and its optimizer after two steps."""
    module = linear(seed)
    optimizer = kind(module.parameters(), lr=0.1, **options)
    for _ in range(2):
        optimizer.zero_grad()
        module(torch.ones(4, 3)).square().sum().backward()
        optimizer.step()
    return module, optimizer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.pt"


@pytest.fixture
def checkpoint(path):
    """What the tutorial saves."""
    module, optimizer = trained(1)
    torch.save(
        {
            "epoch": 4,
            "model_state_dict": module.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "loss": 0.25,
        },
        path,
    )
    return torch.load(path)


def read_bytes():
    """What this process has read so far."""
    lines = pathlib.Path("/proc/self/io").read_text().splitlines()
    return int(lines[0].removeprefix("rchar: "))


class TestDicts:
    def test_are_filled_at_any_depth(self, path, checkpoint):
        target = copy.deepcopy(checkpoint)
        place = target["model_state_dict"]["weight"].zero_()
        target["optimizer_state_dict"]["state"][0]["exp_avg"].zero_()
        target["optimizer_state_dict"]["param_groups"][0].update(lr=7.0, betas=(0.0, 0.0), params=[])
        target.update(epoch=0, loss=0)
        assert pt.load_into(target, path) == ([], [])
        same(target, checkpoint)
        assert target["model_state_dict"]["weight"] is place

    def test_report_what_is_missing_and_unexpected_by_its_path(self, path, checkpoint):
        module = linear(2)
        before = copy.deepcopy(module.state_dict())
        target = {"model_state_dict": {**module.state_dict(), "extra": torch.ones(1)}, "best": {"score": 1}}
        with pytest.raises(RuntimeError, match=r'Missing.*"best\.score", "model_state_dict\.extra"') as caught:
            pt.load_into(target, path)
        assert '"epoch", "optimizer_state_dict.state.0.step"' in str(caught.value)
        same(module.state_dict(), before)
        result = pt.load_into(target, path, strict=False)
        assert result.missing_keys == ["best.score", "model_state_dict.extra"]
        assert "optimizer_state_dict.state.1.exp_avg_sq" in result.unexpected_keys
        assert "epoch" in result.unexpected_keys
        assert "optimizer_state_dict.param_groups.0.betas" in result.unexpected_keys
        same(module.state_dict(), checkpoint["model_state_dict"])

    @pytest.mark.parametrize("assign", [False, True])
    def test_of_nothing_match_nothing(self, path, checkpoint, assign):
        for target in ({}, {"model_state_dict": {}}, {"optimizer_state_dict": {"state": {}}}):
            with pytest.raises(RuntimeError, match=r"Unexpected(.|\n)*strict=False fills the target"):
                pt.load_into(target, path, assign=assign)
            result = pt.load_into(target, path, assign=assign, strict=False)
            assert "model_state_dict.weight" in result.unexpected_keys
            assert "matched" not in repr(result)

    def test_other_shapes_and_kinds_are_named_and_nothing_is_touched(self, path, checkpoint):
        weight = torch.zeros(2, 3)
        target = {
            "epoch": "four",
            "model_state_dict": {"weight": weight, "bias": torch.zeros(9)},
            "optimizer_state_dict": torch.ones(2),
            "loss": torch.zeros(1),
        }
        with pytest.raises(RuntimeError) as caught:
            pt.load_into(target, path, strict=False)
        message = str(caught.value)
        assert "epoch: found the number 4 in the file, where the target has a string" in message
        assert "size mismatch for model_state_dict.bias" in message
        assert "optimizer_state_dict: found a dict of 2 in the file" in message
        assert "loss: found the number 0.25 in the file, where the target has a tensor of shape (1,)" in message
        assert not weight.any()

    def test_take_a_file_on_a_device_that_is_not_here(self, path):
        values = torch.arange(3.0)
        torch.save({"a": {"b": values}}, path)
        data = path.read_bytes().replace(b"\x03\x00\x00\x00cpu", b"\x03\x00\x00\x00xla")
        path.write_bytes(data)
        target = {"a": {"b": torch.zeros(3)}}
        with pytest.raises(penstock.Error, match="CRC"):
            pt.load_into(target, path)

    def test_keys_in_messages_do_not_reach_the_terminal(self, path):
        torch.save({"a\x1b[2J": torch.ones(1), "b": {"c\n": 1}}, path)
        with pytest.raises(RuntimeError) as caught:
            pt.load_into({"b": {"c\n": "text"}}, path)
        assert "a\\x1b[2J" in str(caught.value)
        assert "b.c\\n: found the number 1" in str(caught.value)
        assert "\x1b" not in str(caught.value)

    def test_assign_replaces_tensors_at_any_depth(self, path, checkpoint):
        target = copy.deepcopy(checkpoint)
        old = target["optimizer_state_dict"]["state"][0]["exp_avg"]
        new = pt.load_into(target, path, assign=True, dtype=torch.float64)
        assert new == ([], [])
        state = target["optimizer_state_dict"]["state"][0]
        assert state["exp_avg"] is not old
        assert state["exp_avg"].dtype == torch.float64
        assert torch.equal(state["exp_avg"].float(), checkpoint["optimizer_state_dict"]["state"][0]["exp_avg"])

    def test_a_type_is_that_of_floating_point_tensors_wherever_they_lie(self, path):
        saved = {"pair": (torch.ones(2), 1), "w": torch.nn.Parameter(torch.ones(2)), "z": torch.ones(2) * 1j}
        torch.save({**saved, "tied": [saved["w"], torch.arange(2)]}, path)
        target = {"pair": (torch.zeros(2), 0), "w": torch.zeros(2), "z": torch.zeros(2) * 1j, "tied": None}
        assert pt.load_into(target, path, assign=True, dtype=torch.bfloat16) == ([], [])
        assert target["pair"][0].dtype == target["w"].dtype == torch.bfloat16
        assert isinstance(target["w"], torch.nn.Parameter)
        assert target["w"].is_leaf
        assert target["tied"][0].data_ptr() == target["w"].data_ptr()
        assert (target["z"].dtype, target["tied"][1].dtype) == (torch.complex64, torch.int64)

    def test_a_place_that_is_filled_twice_has_what_comes_last(self, path):
        torch.save({"a": torch.full((2, 2), 1.0), "b": torch.full((2,), 2.0), "c": torch.full((2, 2), 3.0)}, path)
        whole = torch.zeros(2, 2)
        pt.load_into({"a": whole, "b": whole[0], "c": whole}, path)
        same(whole, torch.full((2, 2), 3.0))
        torch.save({"a": {"x": torch.ones(1), "n": 1}, "b": {"x": torch.full((1,), 2.0), "n": 2}}, path)
        part = {"x": torch.zeros(1), "n": 0}
        pt.load_into({"a": part, "b": part}, path)
        same(part, {"x": torch.full((1,), 2.0), "n": 2})


class TestLists:
    @pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "b", "a"]], ids="".join)
    def test_a_tuple_that_lies_in_several_places(self, path, order):
        saved, before = (torch.ones(2), 5), (torch.zeros(2), 0)
        torch.save({"a": saved, "b": saved, "c": (saved, 1)}, path)
        whole = {"a": before, "b": before, "c": (before, 0)}
        target = {key: whole[key] for key in order}
        assert pt.load_into(target, path) == ([], [])
        assert target["a"] is target["b"] is target["c"][0]
        assert target["a"][0] is before[0]
        same(target, {key: {"a": saved, "b": saved, "c": (saved, 1)}[key] for key in order})

    def test_of_tensors_and_dicts(self, path):
        saved = [torch.arange(3.0), (torch.ones(2), {"n": 5, "x": torch.full((2, 2), 7.0)}), [1, 2, 3]]
        torch.save(saved, path)
        target = [torch.zeros(3), (torch.zeros(2), {"n": 0, "x": torch.zeros(2, 2)}), []]
        places = [target[0], target[1][0], target[1][1]["x"]]
        assert pt.load_into(target, path) == ([], [])
        same(target, saved)
        assert all(a is b for a, b in zip(places, [target[0], target[1][0], target[1][1]["x"]], strict=True))

    def test_of_other_lengths(self, path):
        torch.save({"x": [torch.ones(1), torch.ones(2)]}, path)
        longer = {"x": [torch.zeros(1), torch.zeros(2), torch.zeros(3)]}
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "x\.2"'):
            pt.load_into(longer, path)
        with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "x\.1"'):
            pt.load_into({"x": (torch.zeros(1),)}, path)

    def test_numbers_in_tuples(self, path):
        Pair = collections.namedtuple("Pair", "tensor number")
        torch.save({"pair": (torch.ones(2), 5), "deep": ((torch.ones(1), 6), 7)}, path)
        target = {"pair": Pair(torch.zeros(2), 0), "deep": ((torch.zeros(1), 0), 0)}
        tensor = target["pair"].tensor
        pt.load_into(target, path)
        assert isinstance(target["pair"], Pair)
        assert target["pair"].tensor is tensor
        assert target["pair"].number == 5
        assert (target["deep"][0][1], target["deep"][1]) == (6, 7)
        torch.save((torch.ones(2), 5), path)
        with pytest.raises(RuntimeError, match="the number 0 cannot be replaced where it lies"):
            pt.load_into((tensor.zero_(), 0), path)
        assert not tensor.any()
        assert pt.load_into((tensor, 5), path) == ([], [])
        assert tensor.all()

    def test_that_contain_themselves(self, path):
        saved = {"a": torch.ones(2)}
        saved["self"] = saved
        pt.save(saved, path)
        target = {"a": torch.zeros(2)}
        target["self"] = target
        assert pt.load_into(target, path) == ([], [])
        assert target["a"].all()

    def test_of_shared_parts_take_no_longer_than_there_are_parts(self, path):
        saved, target = {"t": torch.ones(1)}, {"t": torch.zeros(1)}
        for _ in range(60):
            saved, target = {"a": saved, "b": saved}, {"a": target, "b": target}
        pt.save(saved, path)
        pt.load_into(target, path)
        assert len(pt.load_into({}, path, strict=False).unexpected_keys) < 1000

    def test_as_deep_as_files_go(self, path):
        saved, target = torch.ones(1), torch.zeros(1)
        innermost = target
        for _ in range(1500):
            saved, target = [saved], [target]
        pt.save(saved, path)
        pt.load_into(target, path)
        assert innermost.all()


class TestModules:
    @pytest.mark.parametrize("assign", [False, True])
    def test_inside_of_dicts(self, path, checkpoint, assign):
        module = linear(5)
        torch.save({"model": checkpoint["model_state_dict"], "epoch": 4}, path)
        target = {"model": module, "epoch": 0}
        assert pt.load_into(target, path, assign=assign) == ([], [])
        same(module.state_dict(), checkpoint["model_state_dict"])
        assert target == {"model": module, "epoch": 4}

    def test_say_the_paths_of_their_keys(self, path):
        torch.save({"models": [{"weight": torch.ones(2, 3), "gone": torch.ones(1)}]}, path)
        result = pt.load_into({"models": [linear(), linear()]}, path, strict=False)
        assert result.missing_keys == ["models.1.weight", "models.1.bias", "models.0.bias"] or sorted(
            result.missing_keys
        ) == ["models.0.bias", "models.1.bias", "models.1.weight"]
        assert result.unexpected_keys == ["models.0.gone"]

    def test_with_hooks_get_their_own_way(self, path, checkpoint):
        module = linear(5)
        module._register_load_state_dict_pre_hook(lambda state, *_: state.update(bias=torch.full((2,), 9.0)))
        pt.load_into({"model_state_dict": module}, path, strict=False)
        assert module.bias.tolist() == [9, 9]
        assert torch.equal(module.weight, checkpoint["model_state_dict"]["weight"])

    def test_a_checkpoint_for_a_module_says_which_key_is_meant(self, path, checkpoint):
        with pytest.raises(RuntimeError, match="give load_into key='model_state_dict'"):
            pt.load_into(linear(), path)

    def test_a_wrapped_state_says_which_prefix_is_meant(self, path):
        torch.save({f"module.{key}": value for key, value in linear(1).state_dict().items()}, path)
        with pytest.raises(RuntimeError, match=r"give load_into prefix='module\.'"):
            pt.load_into(linear(), path)
        pt.load_into(linear(), path, prefix="module.")
        torch.save(linear(1).state_dict(), path)
        with pytest.raises(RuntimeError, match=r"call load_into\(model\.module"):
            pt.load_into(torch.nn.ModuleDict({"module": linear()}), path)


class TestObjects:
    @pytest.mark.parametrize(
        ("kind", "options"),
        [
            (torch.optim.Adam, {"amsgrad": True}),
            (torch.optim.SGD, {"momentum": 0.9}),
            (torch.optim.AdamW, {}),
            (torch.optim.RMSprop, {}),
        ],
    )
    def test_optimizers_go_on_as_if_not_stopped(self, path, kind, options):
        module, optimizer = trained(1, kind, **options)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        optimizer.step()
        scheduler.step()
        state = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
        torch.save(state, path)
        other = linear(7)
        fresh = kind(other.parameters(), lr=0.7, **options)
        again = torch.optim.lr_scheduler.StepLR(fresh, 1, 0.5)
        assert pt.load_into({"model": other, "optimizer": fresh, "scheduler": again}, path) == ([], [])
        for net, opt, sched in ((module, optimizer, scheduler), (other, fresh, again)):
            opt.zero_grad()
            net(torch.ones(1, 3)).sum().backward()
            opt.step()
            sched.step()
        same(other.state_dict(), module.state_dict())
        same(fresh.state_dict(), optimizer.state_dict())
        assert again.state_dict() == scheduler.state_dict()

    def test_an_optimizer_by_itself_and_by_key(self, path, checkpoint):
        _, fresh = trained(3)
        assert pt.load_into(fresh, path, key="optimizer_state_dict") == ([], [])
        same(fresh.state_dict(), checkpoint["optimizer_state_dict"])

    def test_what_they_refuse_comes_with_its_path(self, path, checkpoint):
        module = torch.nn.Sequential(linear(), linear())
        weight = module[0].weight.detach().clone()
        fresh = torch.optim.Adam(module.parameters())
        with pytest.raises(RuntimeError, match=r"loading Adam at optimizer_state_dict: ValueError: .*group"):
            pt.load_into({"model_state_dict": module[0], "optimizer_state_dict": fresh}, path, strict=False)
        assert torch.equal(module[0].weight, weight)
        with pytest.raises(
            RuntimeError,
            match=r"loss: found the number 0\.25 in the file, where the target has an object of class torch",
        ):
            pt.load_into({"loss": fresh}, path, strict=False)

    def test_a_moving_average(self, path):
        average = torch.optim.swa_utils.AveragedModel(linear(1))
        average.update_parameters(linear(2))
        torch.save({"ema": average.state_dict()}, path)
        other = torch.optim.swa_utils.AveragedModel(linear(3))
        pt.load_into({"ema": other}, path)
        same(other.state_dict(), average.state_dict())


class TestOtherTargets:
    def test_a_tensor_and_an_array(self, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(6, dtype="f4").reshape(2, 3))
        tensor = torch.zeros(2, 3, dtype=torch.float64)
        assert pt.load_into(tensor, tmp_path / "x.npy") == ([], [])
        assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
        array = np.zeros((2, 3), "f4")
        pt.load_into(array, tmp_path / "x.npy")
        assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
        array.flags.writeable = False
        with pytest.raises(RuntimeError, match="the array cannot be filled"):
            pt.load_into(array, tmp_path / "x.npy")
        own = penstock.zeros((2, 3))
        pt.load_into({"x": own}["x"], tmp_path / "x.npy")
        assert own.tolist() == [[0, 1, 2], [3, 4, 5]]
        mapped = penstock.load(tmp_path / "x.npy", mmap=True)
        with pytest.raises(RuntimeError, match="its memory is read-only"):
            pt.load_into(mapped, tmp_path / "x.npy")
        with pytest.raises(RuntimeError, match="size mismatch for the target"):
            pt.load_into(tensor[0], tmp_path / "x.npy")
        with pytest.raises(RuntimeError, match="use load"):
            pt.load_into(tensor, tmp_path / "x.npy", assign=True)

    def test_a_module_and_one_array(self, tmp_path):
        np.save(tmp_path / "x.npy", np.ones((2, 3), "f4"))
        with pytest.raises(TypeError, match=r"holds a tensor of shape \(2, 3\), where Linear needs a state dict"):
            pt.load_into(linear(), tmp_path / "x.npy")

    @pytest.mark.parametrize("target", [5, "x", None, {1, 2}, object(), torch.Tensor])
    def test_what_cannot_be_filled(self, path, checkpoint, target):
        with pytest.raises(TypeError, match="expected a module, a tensor"):
            pt.load_into(target, path)

    def test_tensors_without_memory(self, path):
        torch.save({"a": {"b": torch.ones(2)}}, path)
        with pytest.raises(RuntimeError, match=r"a\.b: the target is on the meta device"):
            pt.load_into({"a": {"b": torch.zeros(2, device="meta")}}, path)

    def test_composite_tensors_and_named_values(self, path):
        saved = {
            "sparse": torch.eye(3).to_sparse(),
            "array": np.arange(3.0),
            "size": torch.Size([1, 2]),
            "dtype": torch.float16,
            "score": np.float64(0.5),
            "rng": torch.get_rng_state(),
            "some": {"thing": [torch.ones(1), None]},
        }
        pt.save(saved, path)
        target = {
            "sparse": torch.zeros(3, 3).to_sparse(),
            "array": torch.zeros(3),
            "size": torch.Size([]),
            "dtype": torch.float32,
            "score": 0.0,
            "rng": torch.zeros_like(saved["rng"]),
            "some": None,
        }
        assert pt.load_into(target, path) == ([], [])
        assert torch.equal(target["sparse"].to_dense(), torch.eye(3))
        assert target["array"].tolist() == [0, 1, 2]
        assert (target["size"], target["dtype"], target["score"]) == (torch.Size([1, 2]), torch.float16, 0.5)
        assert torch.equal(target["rng"], saved["rng"])
        same(target["some"], {"thing": [torch.ones(1), None]})


class TestParts:
    def test_load_takes_a_part(self, path, checkpoint):
        same(pt.load(path, key="model_state_dict"), checkpoint["model_state_dict"])
        same(
            pt.load(path, key="optimizer_state_dict.state.0.exp_avg"),
            pt.load(path, key="optimizer_state_dict")["state"][0]["exp_avg"],
        )
        same(
            pt.load(path, key=["optimizer_state_dict", "param_groups", 0]),
            checkpoint["optimizer_state_dict"]["param_groups"][0],
        )
        assert pt.load(path, key="epoch") == 4
        assert set(penstock.load(path, key="model_state_dict")) == {"weight", "bias"}

    def test_keys_that_are_not_there(self, path, checkpoint):
        with pytest.raises(
            KeyError, match=r"has no 'model_state'.*its keys are 'epoch', 'model_state_dict'.*did you mean"
        ):
            pt.load(path, key="model_state")
        with pytest.raises(KeyError, match=r"no key of the content begins with 'module\.'"):
            pt.load(path, prefix="module.")
        with pytest.raises(TypeError, match="a key of type float"):
            pt.load(path, key=1.5)

    def test_exact_keys_go_before_paths(self, path):
        torch.save({"a.b": 1, "a": {"b": 2, 0: 3, "0": 4}, 7: 5, "7": 6}, path)
        assert pt.load(path, key="a.b") == 1
        assert pt.load(path, key=["a", "b"]) == 2
        assert [pt.load(path, key=["a", step]) for step in (0, "0")] == [3, 4]
        assert [pt.load(path, key=step) for step in (7, "7")] == [5, 6]

    @pytest.mark.parametrize("mmap", [False, True])
    def test_a_prefix_is_left_out_of_keys_and_versions(self, path, mmap):
        net = torch.nn.Sequential(torch.nn.BatchNorm1d(3), linear(1))
        torch.save({"state_dict": torch.nn.ModuleDict({"model": net}).state_dict(), "epoch": 1}, path)
        state = pt.load(path, key="state_dict", prefix="model.", mmap=mmap)
        same(state, net.state_dict())
        assert state._metadata == net.state_dict()._metadata
        other = copy.deepcopy(net)
        other[1].weight.data.zero_()
        pt.load_into(other, path, key="state_dict", prefix="model.")
        same(other.state_dict(), net.state_dict())

    def test_shared_tensors_stay_shared_and_named(self, path):
        shared = torch.arange(4.0)
        torch.save({"first": {"x": shared}, "second": {"y": shared, "z": shared[1:]}}, path)
        state = pt.load(path, key="second")
        same(state, {"y": shared, "z": shared[1:]})
        assert state["z"].data_ptr() == state["y"].data_ptr() + 4
        target = {"y": torch.zeros(4), "z": torch.zeros(3)}
        pt.load_into(target, path, key="second")
        assert torch.equal(target["y"], shared)
        assert torch.equal(target["z"], shared[1:])

    def test_only_its_bytes_are_read(self, path):
        large = torch.zeros(1 << 21)
        torch.save({"model": linear(1).state_dict(), "optimizer": {"state": {0: large}}}, path)
        report = {}
        penstock.load(path, key="model", report=report)
        assert report["read_bytes"] < 1 << 16
        for call in (
            lambda: pt.load(path, key="model"),
            lambda: pt.load_into(linear(), path, key="model"),
            lambda: pt.load_into({"model": linear()}, path, strict=False),
        ):
            before = read_bytes()
            call()
            assert read_bytes() - before < 1 << 20

    def test_unknown_classes_elsewhere_do_not_matter(self, path):
        torch.save({"args": Config(), "model": linear(1).state_dict()}, path)
        with pytest.raises(pt.UnknownGlobalsError):
            pt.load(path)
        module = linear()
        pt.load_into(module, path, key="model")
        same(module.state_dict(), linear(1).state_dict())
        same(pt.load(path, key="model"), linear(1).state_dict())
        with pytest.raises(RuntimeError, match="args"):
            pt.load_into({"model": module}, path)

    def test_other_formats(self, tmp_path):
        state = {"encoder.w": torch.ones(2), "encoder.b": torch.zeros(1), "head": torch.ones(3)}
        pt.save_file(state, tmp_path / "x.safetensors")
        same(pt.load(tmp_path / "x.safetensors", prefix="encoder."), {"b": torch.zeros(1), "w": torch.ones(2)})
        same(pt.load(tmp_path / "x.safetensors", key="encoder.w"), torch.ones(2))
        np.savez(tmp_path / "x.npz", a=np.ones(2), b=np.zeros(3))
        assert torch.equal(pt.load(tmp_path / "x.npz", key="b"), torch.zeros(3, dtype=torch.float64))
        np.save(tmp_path / "x.npy", np.ones(2))
        with pytest.raises(KeyError, match="it is a tensor and has no keys"):
            pt.load(tmp_path / "x.npy", key="a")

    @pytest.mark.parametrize("assign", [False, True])
    def test_flat_names_fill_nested_targets(self, tmp_path, assign):
        path = tmp_path / "x.safetensors"
        state = {f"model.{key}": tensor for key, tensor in linear(1).state_dict().items()}
        pt.save_file({**state, "ema.w": torch.ones(2), "parts.0": torch.ones(1), "parts.1.b": torch.ones(3)}, path)
        for module in (linear(), Owner(3, 2)):
            target = {"model": module, "ema": {"w": torch.zeros(2)}, "parts": [torch.zeros(1), {"b": torch.zeros(3)}]}
            assert pt.load_into(target, path, assign=assign) == ([], [])
            same(module.state_dict(), linear(1).state_dict())
            same([target["ema"]["w"], *target["parts"]], [torch.ones(2), torch.ones(1), {"b": torch.ones(3)}])
        anything = {"model": linear(), "ema": None, "parts": [None, {"b": None}]}
        pt.load_into(anything, path, assign=assign)
        same(anything["ema"], {"w": torch.ones(2)})
        same(anything["parts"][1], {"b": torch.ones(3)})
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "ema.v"[\s\S]*"ema.w"'):
            pt.load_into({"model": linear(), "ema": {"v": torch.ones(2)}}, path, assign=assign)


class Owner(torch.nn.Linear):
    """A module that loads in a way of its own."""

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)


class Config:
    """A class that no reader knows."""
