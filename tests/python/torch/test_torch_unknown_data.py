"""Plain objects of a `.pt` without their classes: unknown="data" of load; and what messages advise."""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import datetime
import enum
import pathlib
import pickle
import sys
import types
import weakref

import pytest
import torch

import penstock
import penstock.torch as pt


@dataclasses.dataclass
class Config:
    lr: float = 0.1
    keys: tuple = (1, 2)
    inner: object = None


class Slots:
    __slots__ = ("a",)


class EasyDict(dict):
    """As the package easydict has it: items that are attributes."""

    def __init__(self, items):
        for name, value in items.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        self[name] = value


class Bag(dict):
    pass


class Row(list):
    pass


class Color(enum.Enum):
    RED = 1

    def __reduce_ex__(self, protocol):
        return Color, (self.value,)  # the first releases of Python 3.11 pickle a call of getattr


def made(value):
    raise AssertionError


class Called:
    def __reduce__(self):
        return made, ({"a": 1},)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


def test_attributes_without_permission(path):
    slots = Slots()
    slots.a = torch.ones(2)
    torch.save(
        {
            "args": argparse.Namespace(lr=0.5, names=["a"], out=pathlib.PurePosixPath("a/b"), items=3),
            "space": types.SimpleNamespace(w=torch.arange(3)),
            "config": Config(inner=Config()),
            "empty": [argparse.Namespace(), types.SimpleNamespace()],
            "slots": slots,
            "day": datetime.date(2020, 1, 2),
        },
        path,
    )
    found = pt.load(path, unknown="data")
    args = found["args"]
    assert args.lr == args["lr"] == vars(args)["lr"] == 0.5
    assert (args.names, args.out, args["items"]) == (["a"], pathlib.PurePosixPath("a/b"), 3)
    assert dict(args.items()).keys() == {"lr", "names", "out", "items"}
    assert copy.deepcopy(args) == pickle.loads(pickle.dumps(args)) == args
    assert found["space"].w.tolist() == [0, 1, 2]
    assert found["config"] == {"lr": 0.1, "keys": (1, 2), "inner": {"lr": 0.1, "keys": (1, 2), "inner": None}}
    assert found["config"].inner.lr == 0.1
    assert found["empty"] == [{}, {}]
    assert found["slots"].a.tolist() == [1, 1]
    assert found["day"] == datetime.date(2020, 1, 2)


def test_dicts_and_lists_of_classes_of_their_own(path):
    bag = Bag({(1, "a"): torch.ones(1), 2: [3]})
    bag.note = "x"
    easy = EasyDict({"a": 1, "b": EasyDict({"c": [2]})})
    torch.save({"easy": easy, "bag": bag, "row": Row([1, torch.ones(1)])}, path)
    found = pt.load(path, unknown="data")
    assert found["easy"] == {"a": 1, "b": {"c": [2]}}
    assert found["easy"].b.c == [2]
    assert set(found["bag"]) == {(1, "a"), 2}
    assert found["bag"].note == "x"
    assert found["row"][0] == 1


def test_a_dict_that_its_own_attribute_leads_to(path):
    bag = Bag({(1, "a"): torch.ones(1), "b": 2})
    bag.note = [bag]
    torch.save(bag, path)
    found = pt.load(path, unknown="data")
    assert set(found) == {(1, "a"), "b"}
    assert found.note[0] is found


def test_objects_that_lead_back_to_themselves(path):
    config = Config()
    config.inner = [config]
    torch.save(config, path)
    found = pt.load(path, unknown="data")
    assert found.inner[0] is found


def test_what_is_more_than_data_stays_an_error(path):
    for value, name in [(Color.RED, "Color"), (Called(), "made"), (torch.nn.ReLU, None)]:
        torch.save({"v": value, "args": argparse.Namespace(a=1)}, path)
        if name is None:
            assert isinstance(pt.load(path, unknown="data")["v"], penstock.Opaque)
            continue
        with pytest.raises(pt.UnknownGlobalsError, match=name) as caught:
            pt.load(path, unknown="data")
        assert "Namespace" not in caught.value.names


def test_an_allowed_class_is_itself(path):
    torch.save([Config(), argparse.Namespace(a=1)], path)
    with torch.serialization.safe_globals([Config]):
        found = pt.load(path, unknown="data")
    assert found[0] == Config()
    assert found[1].a == 1


def module_called(name, monkeypatch):
    for end in (i for i, letter in enumerate(name + ".") if letter == "."):
        module = types.ModuleType(name[:end])
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name[:end], module)
    return module


def omegaconf(monkeypatch):
    """Modules with the names and the attributes of OmegaConf's."""
    made = {}
    for module, names in (
        ("omegaconf.dictconfig", ["DictConfig"]),
        ("omegaconf.listconfig", ["ListConfig"]),
        ("omegaconf.nodes", ["AnyNode"]),
        ("omegaconf.base", ["Metadata", "ContainerMetadata"]),
    ):
        module_of = module_called(module, monkeypatch)
        for name in names:
            made[name] = type(name, (), {"__module__": module})
            setattr(module_of, name, made[name])

    def node(value, parent):
        kind = "DictConfig" if isinstance(value, dict) else "ListConfig" if isinstance(value, list) else "AnyNode"
        out = made[kind]()
        out._metadata = made["Metadata" if kind == "AnyNode" else "ContainerMetadata"]()
        out._metadata.__dict__.update(ref_type=type(value), resolver_cache=collections.defaultdict(dict))
        out._parent = parent
        if isinstance(value, dict):
            out._content = {key: node(item, out) for key, item in value.items()}
        elif isinstance(value, list):
            out._content = [node(item, out) for item in value]
        else:
            out._val = value
        return out

    return node


def test_omegaconf(path, monkeypatch):
    content = {"lr": 0.1, "layers": [1, [2, None]], "opt": {"name": "adam", "again": "${lr}", "empty": {}, "none": []}}
    torch.save({"cfg": omegaconf(monkeypatch)(content, None)}, path)
    cfg = pt.load(path, unknown="data")["cfg"]
    assert cfg == content
    assert cfg.opt.name == "adam"


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (argparse.Namespace(a=1), "argparse.Namespace"),
        (types.SimpleNamespace(a=1), "types.SimpleNamespace"),
        (Config(), f"{Config.__module__}.Config"),
    ],
)
def test_the_message_says_the_way(path, value, names):
    torch.save({"args": value}, path)
    with pytest.raises(pt.UnknownGlobalsError, match=rf"unknown='data'.*add_safe_globals\(\[{names}\]\)") as caught:
        pt.load(path)
    assert caught.value.names == (names,)
    with pytest.raises(TypeError, match=rf"save vars\(x\), or allow it by .*add_safe_globals\(\[{names}\]\)"):
        pt.save({"args": value}, path)


def test_a_reference_to_a_class_is_no_module(path):
    torch.save({"act": torch.nn.ReLU}, path)
    with pytest.raises(
        pt.UnknownGlobalsError, match=r"add_safe_globals\(\[torch\.nn\.modules\.activation\.ReLU\]\)"
    ) as c:
        pt.load(path)
    assert "whole module" not in str(c.value)
    torch.save(torch.nn.ReLU(), path)
    with pytest.raises(pt.UnknownGlobalsError, match="whole module"):
        pt.load(path)


def function(value):
    raise AssertionError


class Calls:
    def __reduce__(self):
        return function, (3,)


def test_names_that_are_allowed_and_would_run(path):
    torch.save([Calls()], path)
    with torch.serialization.safe_globals([function]), pytest.raises(pt.UnknownGlobalsError) as caught:
        pt.load(path)
    assert caught.value.names == (f"{__name__}.function",)


def graphs(monkeypatch):
    """Classes with the states of torch_geometric's, where theirs are not installed."""
    module = module_called("torch_geometric.data.storage", monkeypatch)

    class Store:
        def __init__(self, parent, mapping):
            self.__dict__.update(_mapping=mapping, _parent=weakref.ref(parent))

        def __getstate__(self):
            return self.__dict__ | {"_parent": self._parent()}

        def __setstate__(self, state):
            raise AssertionError

    class Data:
        def __init__(self, **mapping):
            self.__dict__["_store"] = Store(self, mapping)

        def __getstate__(self):
            return self.__dict__

        def __setstate__(self, state):
            raise AssertionError

    for kind in (Store, Data):
        kind.__module__ = kind.__setstate__.__module__ = module.__name__
        kind.__qualname__ = kind.__name__
        setattr(module, kind.__name__, kind)
    return Data, Store


def test_graphs_of_torch_geometric(path, monkeypatch):
    kinds = graphs(monkeypatch)
    torch.save([kinds[0](x=torch.ones(2)), kinds[0](x=torch.zeros(2))], path)
    with pytest.raises(pt.UnknownGlobalsError, match="Data"):
        pt.load(path)
    with torch.serialization.safe_globals(list(kinds)):
        found = pt.load(path)
    assert [type(graph) for graph in found] == [kinds[0]] * 2
    assert found[1]._store._parent() is found[1]
    assert found[0]._store._mapping["x"].tolist() == [1, 1]
