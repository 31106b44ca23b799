"""torch.serialization.add_safe_globals: honoured beside torch.load, as far as that runs nothing."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import pickle
import types
import typing
import uuid

import pytest
import torch
from load_pairs import same

import penstock
import penstock.torch as pt


@dataclasses.dataclass
class Config:
    width: int = 3
    names: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: float


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: int
    b: list[int]


class Plain:
    def __init__(self, tensor):
        self.tensor = tensor
        self.parts = [tensor, {"a": Frozen(1.0)}]


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = 1, [2]


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class Space(types.SimpleNamespace):
    pass


# Python 3.11.0 to 3.11.3 write a member as a call of getattr, which torch refuses whatever it is allowed.
BY_VALUE = pytest.mark.skipif(
    Color.RED.__reduce_ex__(2)[0] is getattr, reason="this Python writes members of enumerations by getattr"
)


class ByName(enum.Enum):
    ONE = 1

    def __reduce_ex__(self, protocol):
        return getattr, (type(self), self.name)


Point = collections.namedtuple("Point", "x y")


class Typed(typing.NamedTuple):
    x: int
    y: str = ""


class Subclass(torch.Tensor):
    pass


class Refused:
    ran = False

    def __init__(self):
        self.value = 1

    def __setstate__(self, state):
        Refused.ran = True
        self.__dict__.update(state)


class Reduced:
    def __reduce__(self):
        return (Reduced, (), {"a": 1})


def function(value):
    Refused.ran = True
    return value


class Calls:
    def __reduce__(self):
        return (function, (3,))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


def subclassed():
    tensor = torch.randn(3).as_subclass(Subclass)
    tensor.tag = [1]
    return tensor


HONOURED = {
    "dataclass": (lambda: Config(4, ["a"]), [Config]),
    "frozen dataclass": (lambda: Frozen(0.5), [Frozen]),
    "slotted dataclass": (lambda: Slotted(1, [2]), [Slotted]),
    "slots": (lambda: Slots(), [Slots]),
    "namespace of its own": (lambda: Space(a=1, b=[2]), [Space]),
    "enum": (lambda: [Color.RED, Color.BLUE, Color.RED], [Color]),
    "named tuple": (lambda: [Point(1, torch.ones(2)), Typed(2, "t")], [Point, Typed]),
    "tensor of a subclass": (subclassed, [Subclass]),
    "a class itself": (lambda: [Config, Color], [Config, Color]),
    "under another name": (lambda: Config(5), [(Config, f"{Config.__module__}.Config")]),
}


def content(value):
    if isinstance(value, Slots):
        return (value.a, value.b)
    if isinstance(value, (list, tuple)):
        return [type(value), *map(content, value)]
    if isinstance(value, torch.Tensor):
        return (type(value), value.tolist(), vars(value))
    return value


@pytest.mark.parametrize("name", [pytest.param(name, marks=BY_VALUE if name == "enum" else ()) for name in HONOURED])
def test_honoured(path, name):
    make, allowed = HONOURED[name]
    torch.save({"v": make()}, path)
    with pytest.raises(pt.UnknownGlobalsError, match="does not know either"):
        pt.load(path)
    with torch.serialization.safe_globals(allowed):
        theirs, ours = torch.load(path)["v"], pt.load(path)["v"]
    assert type(ours) is type(theirs)
    assert content(ours) == content(theirs)


def test_objects_with_tensors_and_objects_inside(path):
    torch.save(Plain(torch.arange(3)), path)
    with torch.serialization.safe_globals([Plain, Frozen]):
        loaded = pt.load(path)
    same(loaded.tensor, torch.arange(3))
    assert loaded.parts[0] is loaded.tensor
    assert loaded.parts[1] == {"a": Frozen(1.0)}


def test_objects_inside_themselves(path):
    value = Plain(torch.arange(3))
    value.parts.append(value)
    value.slots = Slots()
    value.slots.a = {"up": (value, value.slots)}
    torch.save([value.slots, value], path)
    with torch.serialization.safe_globals([Plain, Frozen, Slots]):
        for loaded in (torch.load(path), pt.load(path)):
            slots, plain = loaded
            assert plain.parts[-1] is plain
            assert plain.slots is slots
            assert slots.a["up"] == (plain, slots)
            assert slots.b == [2]
            same(plain.tensor, torch.arange(3))


def test_unknown_objects_inside_themselves_are_kept(path):
    value = Plain(torch.arange(3))
    value.parts.append(value)
    torch.save(value, path)
    with pytest.raises(pt.UnknownGlobalsError, match="Plain"):
        pt.load(path)
    kept = pt.load(path, unknown="keep")
    assert kept.state["parts"][-1] is kept


def test_what_needs_its_state_cannot_be_inside_it(path):
    value = Refused()
    value.value = value
    torch.save(value, path)
    with (
        torch.serialization.safe_globals([Refused]),
        pytest.raises(pt.UnknownGlobalsError, match="a way of its own"),
    ):
        pt.load(path)


@pytest.mark.parametrize(("make", "allowed"), [(Refused, Refused), (Reduced, Reduced), (Calls, function)])
def test_what_would_run_is_refused_with_the_reason(path, make, allowed):
    torch.save([make()], path)
    Refused.ran = False
    with (
        torch.serialization.safe_globals([allowed]),
        pytest.raises(pt.UnknownGlobalsError, match=rf"add_safe_globals allows.*{allowed.__name__}.*Penstock calls"),
    ):
        pt.load(path)
    with torch.serialization.safe_globals([allowed]):
        assert isinstance(pt.load(path, unknown="keep")[0], penstock.Opaque)
    assert not Refused.ran


@BY_VALUE
def test_enumerations_make_no_members(path):
    torch.save([Color.RED], path)
    data = path.read_bytes()
    with torch.serialization.safe_globals([Color]):
        assert pt.load(path) == [Color.RED]
        path.write_bytes(data.replace(b"K\x01\x85", b"K\x07\x85"))
        with pytest.raises(penstock.Error, match="no member"):
            pt.load(path, verify=False)


def test_members_of_enumerations_by_getattr_are_refused(path):
    torch.save([ByName.ONE], path)
    with torch.serialization.safe_globals([ByName]):
        with pytest.raises(pickle.UnpicklingError, match="getattr"):
            torch.load(path)
        with pytest.raises(pt.UnknownGlobalsError, match=r"names builtins\.getattr"):
            pt.load(path)


ZONE = datetime.timezone(datetime.timedelta(hours=-3), "there")


@pytest.mark.parametrize(
    "value",
    [
        range(2, 9, 3),
        slice(None, 5),
        pathlib.PurePosixPath("a/b"),
        pathlib.PosixPath("/tmp"),
        pathlib.PureWindowsPath("c:/x"),
        datetime.date(2026, 2, 28),
        datetime.time(23, 59, 58, 123456, ZONE),
        datetime.time(1, fold=1),
        datetime.datetime(1999, 12, 31, 1, 2, 3, 4),
        datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZONE),
        datetime.timedelta(-3, 5, 7),
        ZONE,
        decimal.Decimal("-1.50"),
        fractions.Fraction(-3, 7),
        uuid.UUID(int=77),
        types.SimpleNamespace(a=1, b=[2]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_plain_values_of_python(tmp_path, value, protocol):
    path = tmp_path / "x.pt"
    torch.save({"value": value, "again": [value]}, path, pickle_protocol=protocol)
    allowed = [type(value), datetime.timedelta, datetime.timezone, getattr]
    with pytest.raises(pt.UnknownGlobalsError):
        pt.load(path)
    with torch.serialization.safe_globals(allowed):
        loaded = pt.load(path)
    expected = torch.load(path, weights_only=False)
    assert loaded == expected
    assert type(loaded["value"]) is type(value)
    assert loaded["value"] is loaded["again"][0]
    assert getattr(loaded["value"], "fold", 0) == getattr(expected["value"], "fold", 0)


@dataclasses.dataclass
class Call:
    """Pickles as a call with these arguments."""

    kind: type
    args: tuple

    def __reduce__(self):
        return self.kind, self.args


@pytest.mark.parametrize(
    "call",
    [
        Call(fractions.Fraction, ("1e999999999",)),
        Call(fractions.Fraction, (1, 0)),
        Call(datetime.date, (b"\x07\xe4\x0d\x01",)),
        Call(datetime.datetime, (b"\x07\xe4\x01\x01\x7f\x00\x00\x00\x00\x00",)),
        Call(datetime.time, (b"\x01", 3)),
        Call(datetime.time, ()),
        Call(datetime.date, ()),
        Call(range, ("3",)),
        Call(range, (1, 2, 0)),
        Call(range, ()),
        Call(pathlib.PurePosixPath, (3,)),
        Call(decimal.Decimal, ("x",)),
        Call(uuid.UUID, ()),
    ],
    ids=repr,
)
def test_parts_of_plain_values_are_looked_at(tmp_path, call):
    torch.save(call, tmp_path / "x.pt")
    with torch.serialization.safe_globals([call.kind]), pytest.raises(pt.UnknownGlobalsError, match="do not make one"):
        pt.load(tmp_path / "x.pt")


class OwnTuple(tuple):
    pass


def test_tuples_of_a_class_of_their_own(tmp_path):
    value = [OwnTuple((1, torch.ones(2))), OwnTuple()]
    torch.save(value, tmp_path / "x.pt")
    with torch.serialization.safe_globals([OwnTuple]):
        loaded = pt.load(tmp_path / "x.pt")
    assert [type(part) for part in loaded] == [OwnTuple, OwnTuple]
    assert loaded[0][0] == 1
    assert loaded[1] == ()
