"""penstock.torch.save writes each object as the type it is, by torch's own pickling, or says why it cannot."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import enum
import io
import pathlib
import pickletools
import types
import uuid
import zipfile

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils.serialization import config

import penstock
import penstock.torch as pt


class Flags(enum.Flag):
    A = 1
    B = 2

    def __reduce_ex__(self, protocol):
        return Flags, (self.value,)  # the first releases of Python 3.11 pickle calls of or_ and getattr


class Text(str):
    pass


class Numbers(set):
    pass


class Mapping(dict):
    pass


class Own(torch.Tensor):
    pass


class OwnParameter(torch.nn.Parameter):
    pass


@dataclasses.dataclass
class Config:
    width: int = 3


Point = collections.namedtuple("Point", "x y")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


def records(path):
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.getinfo(name) for name in archive.namelist()}


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=">i4").reshape(2, 3).T,
        np.array([1, "x", None], dtype=object),
        np.array([(1, 2.5)], dtype=[("a", "<i2"), ("b", "<f8")]),
        np.zeros(2, np.dtype([("a", "i1"), ("b", "<f8")], align=True)),
        np.array([[1, 2]]).view(np.matrix),
        np.ones(2).view(np.memmap),
        np.rec.array([(1, 2.5)]),
        np.zeros((2, 0), "<M8[s]"),
        np.float32(1.5),
        np.str_("text"),
        np.datetime64("2020-01-01"),
        np.dtype("<f4"),
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', value)}",
)
def test_numpys_objects_stay_numpys(path, value):
    pt.save({"a": value, "b": torch.ones(2)}, path)
    theirs, ours = torch.load(path, weights_only=False)["a"], pt.load(path)["a"]
    assert type(theirs) is type(ours) is type(value)
    assert np.array_equal(theirs, value)
    assert np.array_equal(ours, value)
    if not isinstance(value, np.dtype):
        assert (ours.dtype, ours.shape, ours.flags.f_contiguous) == (
            theirs.dtype,
            theirs.shape,
            theirs.flags.f_contiguous,
        )
        assert repr(ours.dtype) == repr(theirs.dtype)


@pytest.mark.parametrize("way", [lambda array: array, lambda array: [{"a": array}]], ids=["itself", "a list"])
def test_an_array_that_contains_itself_is_refused(path, way):
    """It would not load."""
    array = np.empty(2, object)
    array[1] = way(array)
    with pytest.raises(penstock.UnsupportedError, match=r"at \['x'\]: found an array of objects that contains itself"):
        pt.save({"x": array}, path)
    assert not path.exists()
    array[1] = [1]
    pt.save({"x": array, "again": array}, path)
    loaded = pt.load(path)
    assert loaded["x"] is loaded["again"]


@pytest.mark.parametrize("dtype", ["<m8[s]", "<U3", "<f4"])
def test_an_array_that_two_ways_lead_to(path, dtype):
    one = np.zeros(2, dtype)
    pt.save([one, {"again": one}], path)
    loaded = pt.load(path)
    assert loaded[1]["again"] is loaded[0]
    assert loaded[0].dtype == dtype


def test_references_to_types_of_data(path):
    kinds = [int, dict, complex, collections.Counter, torch.Tensor, torch.Size, torch.nn.Parameter, np.float16]
    pt.save(kinds, path)
    assert torch.load(path, weights_only=False) == pt.load(path) == kinds


@pytest.mark.parametrize("value", [torch.int4, torch.uint1, torch.bits8, torch._mkldnn, torch.jagged], ids=str)
def test_constants_that_torch_alone_has(path, value):
    pt.save([value, {"a": value}], path)
    assert torch.load(path) == pt.load(path) == [value, {"a": value}]
    torch.save(value, path)
    assert pt.load(path) is value


@pytest.mark.parametrize("dtype", [torch.bits8, torch.bits4x2, torch.bits16], ids=str)
def test_tensors_of_bits(path, dtype):
    raw = torch.arange(6, dtype=torch.int16 if dtype == torch.bits16 else torch.uint8)
    tensor = raw.view(dtype)
    pt.save({"a": tensor, "again": tensor}, path)
    for loaded in (torch.load(path), pt.load(path)):
        assert loaded["a"].dtype == dtype
        assert torch.equal(loaded["again"].view(raw.dtype), raw)
        assert loaded["a"].data_ptr() == loaded["again"].data_ptr()


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc], ids=str)
@pytest.mark.parametrize("wanted", [False, True])
def test_gradients_of_sparse_tensors_are_wanted_as_torch_keeps_it(path, layout, wanted):
    tensor = torch.eye(2).to_sparse(layout=layout).requires_grad_(wanted)
    torch.save(tensor, path)
    expected = torch.load(path).requires_grad
    pt.save(tensor, path)
    assert torch.load(path).requires_grad == pt.load(path).requires_grad == expected


def test_frozensets_and_tensors_of_penstocks(path):
    tensor = penstock.tensor([1, 2])
    pt.save([frozenset([(1, "a")]), tensor, tensor], path)
    with penstock.open(path) as archive:
        entry = archive[archive.keys()[0]]
        pt.save([frozenset([(1, "a")]), entry[1:]], other := path.with_name("other.pt"))
    loaded = pt.load(path)
    assert type(loaded[0]) is frozenset
    assert loaded[0] == {(1, "a")}
    assert loaded[1] is loaded[2]
    assert torch.equal(loaded[1], torch.tensor([1, 2]))
    assert torch.equal(pt.load(other)[1], torch.tensor([2]))


REFUSED = {
    "module": (torch.nn.Linear(1, 1), "state_dict"),
    "subclass": (torch.ones(1).as_subclass(Own), "as_subclass"),
    "generator": (torch.Generator(), "get_state"),
    "memory format": (torch.channels_last, "str"),
    "dict's subclass": (Mapping(a=1), r"dict\(x\)"),
    "mapping": (types.MappingProxyType({}), r"dict\(x\)"),
    "chain": (collections.ChainMap({}), r"dict\(x\)"),
    "user's dict": (collections.UserDict(a=1), r"dict\(x\)"),
    "deque": (collections.deque([1]), r"list\(x\)"),
    "named tuple": (Point(1, 2), r"tuple\(x\)"),
    "enumeration": (Flags.A, "value"),
    "path": (pathlib.Path("a"), r"str\(path\)"),
    "date": (datetime.datetime(2020, 1, 1), "isoformat"),
    "uuid": (uuid.UUID(int=1), r"str\(x\)"),
    "text's subclass": (Text("a"), r"str\(x\)"),
    "range": (range(3), r"list\(x\)"),
    "slice": (slice(1), "start"),
    "ellipsis": (..., "ellipsis"),
    "function": (print, "name"),
    "array of Python's": (array.array("i", [1]), r"list\(x\)"),
    "view of memory": (memoryview(b"a"), r"bytes\(x\)"),
    "masked array": (np.ma.masked_array([1], [True]), r"MaskedArray.*x\.filled\(\), or x\.data and x\.mask"),
    "text's array of another class": (np.char.array(["a"]), r"numpy\.asarray\(x\)"),
    "object in an array": (np.array([Config()], dtype=object), "Config"),
    "structure with objects": (np.zeros(2, [("a", object)]), r"ndarray.*x\.tolist\(\)"),
    "array of ml_dtypes": (np.zeros(2, ml_dtypes.bfloat16), "bfloat16"),
    "number of ml_dtypes": (ml_dtypes.bfloat16(1), "bfloat16"),
    "type of ml_dtypes": (np.dtype(ml_dtypes.int4), "int4"),
    "class of ml_dtypes": (ml_dtypes.float8_e5m2, "float8_e5m2"),
    "factory": (collections.defaultdict(lambda: 1), "lambda"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_what_is_refused_is_named_with_its_place(path, name):
    value, named = REFUSED[name]
    path.write_bytes(b"before")
    with pytest.raises(TypeError, match=rf"(?s)at \['opt'\]\['state'\]\[3\].*{named}") as caught:
        pt.save({"opt": {"state": [1, "b", None, value]}}, path)
    assert isinstance(caught.value, penstock.Error)
    assert path.read_bytes() == b"before"
    assert [file.name for file in path.parent.iterdir()] == ["x.pt"]
    file = io.BytesIO()
    with pytest.raises(TypeError):
        pt.save(value, file)
    assert file.getvalue() == b""


@pytest.mark.parametrize(
    ("value", "classes"),
    [
        (Flags.A | Flags.B, [Flags]),
        (Text("a"), [Text]),
        (Numbers([1, 2]), [Numbers]),
        (Config(5), [Config]),
        (Point(1, 2), [Point]),
        (pathlib.PurePosixPath("a/b"), [pathlib.PurePosixPath]),
        (torch.__version__, [type(torch.__version__)]),
        (collections.UserDict(a=1), [collections.UserDict]),
        (collections.ChainMap({"a": 1}), [collections.ChainMap]),
        (range(1, 9, 2), [range]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_classes_that_the_program_allows(path, value, classes):
    with torch.serialization.safe_globals(classes):
        pt.save([value, torch.ones(1)], path)
        for loaded in (torch.load(path), pt.load(path)):
            assert type(loaded[0]) is type(value)
            assert loaded[0] == value
    with pytest.raises(penstock.UnsafeError):
        pt.load(path)
    with pytest.raises(TypeError, match="add_safe_globals"):
        pt.save([value], path)


def test_what_torch_does_not_read_though_it_is_allowed(path):
    with torch.serialization.safe_globals([Mapping]), pytest.raises(TypeError) as caught:
        pt.save([Mapping(a=1)], path)
    assert "add_safe_globals" not in str(caught.value)


def test_a_class_of_parameters_is_written_as_torch_writes_it(path):
    """torch's pickles do not name it, whatever reads them."""
    parameter = OwnParameter(torch.arange(3.0), requires_grad=False)
    parameter.scale = 2
    torch.save({"w": parameter}, path)
    theirs = torch.load(path)["w"]
    with pytest.warns(UserWarning, match=r"OwnParameter is written as torch\.nn\.Parameter"):
        pt.save({"w": parameter}, path)
    for loaded in (torch.load(path)["w"], pt.load(path)["w"]):
        assert type(loaded) is type(theirs) is torch.nn.Parameter
        assert torch.equal(loaded, theirs)
        assert vars(loaded) == vars(theirs) == {"scale": 2}
        assert loaded.requires_grad is theirs.requires_grad is False


class SetsItself(str):
    ran = False

    def __setstate__(self, state):
        SetsItself.ran = True


def test_a_class_with_a_state_of_its_own_is_not_called(path):
    value = SetsItself("a")
    value.part = 1
    with torch.serialization.safe_globals([SetsItself]):
        torch.save(value, path)
        with pytest.raises(penstock.UnsafeError, match="SetsItself"):
            pt.load(path)
    assert not SetsItself.ran


class Reduced:
    def __reduce__(self):
        return Reduced, (1,)

    def __init__(self, *_args):
        self.width = 3


class ByCall:
    def __reduce__(self):
        return made_by_call, ()


def made_by_call():
    return ByCall()


class NewArguments:
    def __new__(cls, width):
        made = object.__new__(cls)
        made.width = width
        return made

    def __getnewargs__(self):
        return (self.width,)


class OtherState:
    def __getstate__(self):
        return (1, 2, 3)


class OwnPoint(Point):
    def __new__(cls, x, y):
        return super().__new__(cls, x, y)


class OwnState(torch.Tensor):
    def __setstate__(self, state):
        super().__setstate__(state)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (SetsItself("a"), "a way of its own"),
        (Reduced(), r"Reduced has a way of its own .* save vars\(x\)"),
        (ByCall(), "made_by_call is a function"),
        (NewArguments(3), "a way of its own"),
        (OtherState(), "none that its attributes are set by"),
        (OwnPoint(1, 2), r"save tuple\(x\)"),
        (torch.ones(2).as_subclass(OwnState), "as_subclass"),
        (np.array([Reduced()], dtype=object), r"at \['a'\]\[0\]\.flat\[0\]: found an object of class .*Reduced"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_allowed_class_that_load_would_not_make_is_refused_when_it_is_saved(path, value, reason):
    """A run must not learn at its resume that its checkpoint is not read."""
    if isinstance(value, SetsItself):
        value.part = 1
    allowed = [SetsItself, Reduced, made_by_call, ByCall, NewArguments, OtherState, OwnPoint, OwnState]
    path.write_bytes(b"before")
    with torch.serialization.safe_globals(allowed):
        with pytest.raises(TypeError, match=rf"(?s){reason}.*torch\.save for torch\.load alone") as caught:
            pt.save({"a": [value, torch.ones(2)]}, path)
        assert isinstance(caught.value, penstock.Error)
        assert path.read_bytes() == b"before"
        torch.save({"a": [value, torch.ones(2)]}, path)
        with pytest.raises(penstock.UnsafeError):
            pt.load(path)


def test_settings_for_saving_are_torchs(path):
    value = {"a": torch.ones(3), "b": torch.ones(5)}
    with config.patch({"save.storage_alignment": 4096}):
        pt.save(value, path)
    offsets = [info.header_offset + 30 for name, info in records(path).items() if name.startswith("data/")]
    assert len({offset // 4096 for offset in offsets}) == 2
    with config.patch({"save.compute_crc32": False}):
        pt.save(value, path)
    torch.save(value, other := path.with_name("other.pt"))
    assert records(path)["data/0"].CRC != records(other)["data/0"].CRC
    assert torch.equal(pt.load(path)["b"], value["b"])


def test_within_skip_data_no_payload_is_written(path):
    with torch.serialization.skip_data():
        pt.save({"a": torch.ones(3)}, path)
    assert pt.load(path)["a"].tolist() == [0, 0, 0]


def test_without_the_byte_order(path):
    names = []
    for save in (torch.save, pt.save):
        with path.open("wb") as file:
            save(torch.ones(2), file, _disable_byteorder_record=True)
        names.append(list(records(path)))
    assert names[0] == names[1]
    pt.save(torch.ones(2), path)
    assert list(records(path)) != names[0]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.filterwarnings("ignore")
def test_other_protocols(path, protocol):
    pt.save({"a": torch.ones(2), "b": "text"}, path, pickle_protocol=protocol)
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        assert next(pickletools.genops(archive.read(name)))[1] == protocol
    assert pt.load(path)["a"].tolist() == [1, 1]


def test_the_format_of_before_zip(path):
    pt.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    assert not zipfile.is_zipfile(path)
    assert torch.load(path)["a"].tolist() == pt.load(path)["a"].tolist() == [1, 1]


def test_links_lead_on_to_the_file(path):
    link = path.with_name("link.pt")
    link.symlink_to(path.name)
    pt.save(np.ones(2), link)
    assert link.is_symlink()
    assert pt.load(path).tolist() == [1, 1]


@pytest.mark.parametrize("value", [torch.ones(2), np.ones(2)], ids=["native", "pickled"])
@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("none/x.pt", FileNotFoundError),
        ("x.pt/y.pt", NotADirectoryError),
        ("", IsADirectoryError),
    ],
)
def test_errors_name_the_path(path, value, place, kind):
    path.write_bytes(b"before")
    where = path.parent / place
    with pytest.raises(kind, match=str(where)) as caught:
        pt.save(value, where)
    assert isinstance(caught.value, penstock.Error)
    assert [file.name for file in path.parent.iterdir()] == ["x.pt"]


@pytest.mark.parametrize("value", [torch.ones(2), np.ones(2)], ids=["native", "pickled"])
def test_what_cannot_be_written_into(value):
    with pytest.raises(AttributeError, match="write"):
        pt.save(value, 5)
    with pytest.raises(FileNotFoundError):
        pt.save(value, "")
