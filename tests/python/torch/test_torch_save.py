"""penstock.torch.save: what torch.load reads from its files is what it reads from torch.save's."""

from __future__ import annotations

import collections
import io
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import pytest
import torch
from load_pairs import VALUES
from load_pairs import same as same_in_all

import penstock
import penstock.torch as pt


def same(a, b):
    same_in_all(a, b, whole=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


LIMITED = """
import os, resource, signal, sys, numpy, torch, penstock, penstock.torch as pt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    pt.save({"x": %s}, sys.argv[1], **eval(sys.argv[2]))
except penstock.InputOutputError as error:
    print(error)
print(os.listdir(os.path.dirname(sys.argv[1])))
"""


def limited(made, path, **options):
    """What is told, and what is left, where files may have 64 KiB."""
    program = [sys.executable, "-c", LIMITED % made, str(path), repr(options)]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("made", ["torch.zeros(1 << 20)", "numpy.zeros(1 << 20)", "bytearray(1 << 20)"])
def test_a_file_that_grows_too_large_leaves_nothing(path, made):
    told, left = limited(made, path)
    assert told.startswith(f"{path}: cannot write the file: File too large; the file system")
    assert left == "[]"


def test_torchs_old_format_that_grows_too_large_names_the_path(path):
    told, left = limited("torch.zeros(1 << 20)", path, _use_new_zipfile_serialization=False)
    assert told.startswith(f"{path}: cannot write the file: File too large")
    assert "File too large" in told
    assert left == "[]"


@pytest.mark.parametrize("name", [name for name in VALUES if name != "list in itself"])
@pytest.mark.filterwarnings("ignore")
def test_files_are_torchs(path, name):
    torch.manual_seed(1)
    value = VALUES[name]()
    theirs = path.with_name("torch.pt")
    torch.save(value, theirs)
    pt.save(value, path)
    same(torch.load(path), torch.load(theirs))
    same(pt.load(path), torch.load(theirs))


@pytest.mark.parametrize(
    "name",
    [
        "state dict",
        "optimizer",
        "parameter",
        "attributes",
        "parameter with attributes",
        "meta",
        "quantized",
        "quantized per channel",
        "nested",
        "conj that requires grad",
        "attributes of all kinds",
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_pickles_are_torchs_byte_for_byte(path, name):
    torch.manual_seed(1)
    value = VALUES[name]()
    pickles = []
    for save in (torch.save, pt.save):
        save(value, path)
        with zipfile.ZipFile(path) as archive:
            pickles.append(archive.read("x/data.pkl"))
    assert pickles[0] == pickles[1]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", [name for name in VALUES if name != "list in itself"])
@pytest.mark.filterwarnings("ignore")
def test_pickled_files_are_torchs(path, name, zipped):
    if not zipped and name in {"untyped storage", "nested"}:
        pytest.skip("torch itself cannot read these in the old format")
    torch.manual_seed(1)
    value = [VALUES[name](), bytearray(b"by torch's own pickling")]
    theirs = path.with_name("torch.pt")
    for save, where in ((torch.save, theirs), (pt.save, path)):
        save(value, where, _use_new_zipfile_serialization=zipped)
    same_in_all(torch.load(path), torch.load(theirs))
    same_in_all(pt.load(path), torch.load(theirs))


def test_a_list_in_itself(path):
    value = [1]
    value.append(value)
    pt.save(value, path)
    loaded = torch.load(path)
    assert loaded[0] == 1
    assert loaded[1] is loaded


def test_sharing_is_kept(path):
    x = torch.randn(3, 4)
    pt.save({"x": x, "again": x, "row": x[1], "flat": x.view(-1)}, path)
    loaded = torch.load(path)
    loaded["row"].fill_(7)
    assert loaded["x"][1].tolist() == [7] * 4
    assert loaded["flat"][4:8].tolist() == [7] * 4
    assert loaded["again"] is loaded["x"]


def test_views_of_one_memory_as_different_types(path):
    """torch.save refuses these; as untyped storages torch.load reads them, shared."""
    z = torch.randn(3, dtype=torch.complex64)
    pt.save([z, z.conj(), z.real, z.conj().imag], path)
    loaded = torch.load(path)
    same(loaded, [z, z.conj(), z.real, z.conj().imag])
    assert loaded[1].is_conj()
    assert loaded[3].is_neg()
    loaded[2].zero_()
    assert loaded[1].real.tolist() == [0] * 3


@pytest.mark.parametrize("scheme", ["tensor", "channel"])
def test_quantized_tensors_share(path, scheme):
    x = torch.randn(4, 6)
    if scheme == "tensor":
        whole = torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)
    else:
        whole = torch.quantize_per_channel(x, torch.rand(4) + 0.1, torch.arange(4), 0, torch.qint8)
    value = [whole, whole.t() if scheme == "tensor" else whole, whole[1:] if scheme == "tensor" else whole]
    pt.save(value, path)
    loaded = torch.load(path)
    same(loaded, value)
    assert len({tensor.untyped_storage().data_ptr() for tensor in loaded}) == 1


@pytest.mark.parametrize("name", ["quint8", "qint8", "qint32"])
def test_storages_of_quantized_tensors(path, name):
    storage = torch.storage.TypedStorage(wrap_storage=torch.ones(12).untyped_storage(), dtype=getattr(torch, name))
    pt.save([storage], path)
    same(torch.load(path), [storage])


def test_hooks_are_warned_of_as_by_torch(path):
    tensor = torch.ones(2, requires_grad=True)
    tensor.register_hook(print)
    for save in (torch.save, pt.save):
        with pytest.warns(UserWarning, match="backward hook .* on tensor will not be serialized"):
            save({"t": tensor}, path)
    same(torch.load(path)["t"], torch.ones(2, requires_grad=True))


def test_metadata_of_state_dicts(path):
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    pt.save(net.state_dict(), path)
    loaded = torch.load(path)
    assert type(loaded) is collections.OrderedDict
    assert loaded._metadata == net.state_dict()._metadata
    net.load_state_dict(loaded)


def test_into_files(path):
    buffer = io.BytesIO()
    pt.save({"x": torch.ones(2)}, buffer)
    buffer.seek(0)
    assert torch.load(buffer)["x"].tolist() == [1, 1]
    pt.save(torch.ones(2), str(path.with_name("no_extension")))
    assert torch.load(path.with_name("no_extension")).tolist() == [1, 1]


def test_arguments_are_torchs(path):
    pt.save(1, path, pickle, 2, True)
    assert torch.load(path) == 1
    with pytest.raises(penstock.UnsupportedError, match=r"torch\.save"):
        pt.save(1, path, pickle_module=io)
    with pytest.raises(TypeError):
        pt.save(1, path, no_such_argument=1)


class Own(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (torch.nn.Linear(2, 2), "Linear"),
        (torch.ones(2).as_subclass(Own), "Own"),
        (object, r"builtins\.object"),
        (range(3), "list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_torch_would_not_read_is_refused_and_nothing_is_written(path, value, named):
    path.write_bytes(b"before")
    with pytest.raises(TypeError, match=named) as caught:
        pt.save({"deep": [value]}, path)
    assert isinstance(caught.value, penstock.Error)
    assert path.read_bytes() == b"before"


def test_errors_name_the_place(path):
    with pytest.raises(penstock.Error, match=r"\['a'\]\[1\]"):
        pt.save({"a": [1, torch.nn.Linear(1, 1)]}, path)
    with pytest.raises(penstock.Error, match=r"\['a'\]\[1\]"):
        pt.save({"a": [1, torch.ones(2).as_subclass(Own)]}, path)


class Trickle(io.RawIOBase):
    """A raw stream, which may take less than it is given."""

    def __init__(self, most=10**9):
        self.taken = b""
        self.most = most

    def write(self, data):
        part = bytes(data[: min(100, self.most - len(self.taken))])
        self.taken += part
        return len(part)


@pytest.mark.parametrize("value", [torch.arange(3000.0), np.arange(3000.0)], ids=["native", "pickled"])
def test_raw_streams_get_all_of_it_or_an_error(value):
    stream = Trickle()
    pt.save({"a": value}, stream)
    assert pt.load(io.BytesIO(stream.taken))["a"].tolist() == list(range(3000))
    with pytest.raises(OSError, match="takes no more"):
        pt.save({"a": value}, Trickle(most=5000))


def test_errors_of_saving_to_streams_name_no_file_on_the_way():
    with pytest.raises(penstock.UnsupportedError) as caught:
        pt.save({"a": torch.ones(2).to_mkldnn()}, io.BytesIO())
    assert caught.value.path == "<memory>"
    assert str(caught.value).startswith("<memory>: at ['a']: ")


class TestTheFileInItsPlace:
    """The two ways that files are written behave alike."""

    VALUES = pytest.mark.parametrize("value", [torch.arange(3.0), np.arange(3.0)], ids=["native", "pickled"])

    @VALUES
    def test_keeps_owner_and_permissions(self, tmp_path, value):
        if os.getuid() != 0:
            pytest.skip("only root gives files away")
        path = tmp_path / "x.pt"
        path.write_bytes(b"before")
        os.chown(path, 1234, 4321)
        path.chmod(0o640)
        pt.save({"a": value}, path)
        status = path.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 4321, 0o640)

    @VALUES
    def test_has_as_long_a_name_as_there_may_be(self, tmp_path, value):
        path = tmp_path / ("x" * 252 + ".pt")
        pt.save({"a": value}, path)
        assert pt.load(path)["a"].tolist() == [0, 1, 2]
        with pytest.raises(OSError, match="shorter path"):
            pt.save({"a": value}, tmp_path / ("x" * 300))

    @VALUES
    def test_links_in_a_circle_stay(self, tmp_path, value):
        path = tmp_path / "x.pt"
        path.symlink_to(path)
        with pytest.raises(penstock.NotFoundError, match="circle"):
            pt.save({"a": value}, path)
        assert path.is_symlink()
        assert [file.name for file in tmp_path.iterdir()] == ["x.pt"]


def nested(depth, leaf=1, kind=tuple):
    for _ in range(depth):
        leaf = kind([leaf])
    return leaf


class TestWhatIsWrittenIsRead:
    """Whatever `save` takes, `load` gives back: no bound of the reader is met by a file that the writer makes."""

    @pytest.mark.parametrize("beside", [None, collections.defaultdict(int)], ids=["by ours", "by torch's pickler"])
    @pytest.mark.parametrize(
        "value",
        [
            2**2000,
            2**9000,
            {nested(64): 1},
            {nested(65): 1},
            {nested(200)},
            nested(900, kind=list),
            torch.ones([1] * 64),
            torch.ones([1] * 65),
            {float("nan"): 1, 0.5: 2, None: 3, (1, 2): 4},
            {"\ud800": torch.ones(1)},
            torch.empty(0, 2**40),
        ],
        ids=lambda value: None,
    )
    def test_bounds(self, tmp_path, value, beside):
        path = tmp_path / "x.pt"
        try:
            pt.save([value, beside], path)
        except penstock.Error:
            assert not path.exists()
        else:
            assert repr(pt.load(path)[0]) == repr(value)

    def test_many_values(self, tmp_path):
        value = {"ids": [[i % 50_000 for i in range(600)] for _ in range(2000)], "empty": [[] for _ in range(300_000)]}
        pt.save(value, tmp_path / "x.pt")
        assert pt.load(tmp_path / "x.pt") == value

    def test_many_tensors_below_long_keys(self, tmp_path):
        value = {"a" * 3000: {"b" * 3000: {str(i): torch.ones(1) for i in range(15_000)}}}
        pt.save(value, tmp_path / "x.pt")
        loaded = pt.load(tmp_path / "x.pt")
        assert list(loaded["a" * 3000]["b" * 3000]) == list(value["a" * 3000]["b" * 3000])
        names = penstock.open(tmp_path / "x.pt").keys()
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ({"a": torch.ones(300)}, {}),
        ({"a": torch.ones(3), "d": collections.defaultdict(list)}, {}),
        ({"a": torch.ones(3)}, {"pickle_protocol": 4}),
        ({"a": torch.ones(3)}, {"_use_new_zipfile_serialization": False}),
    ],
    ids=["native", "by torch", "protocol 4", "legacy"],
)
@pytest.mark.parametrize("buffering", [-1, 0])
def test_an_open_file_is_flushed_and_stays_open(path, value, options, buffering):
    with open(path, "wb", buffering=buffering) as out:
        pt.save(value, out, **options)
        assert not out.closed
        assert torch.load(path, weights_only=False)["a"].tolist() == value["a"].tolist()
        out.write(b"more")
    assert path.read_bytes().endswith(b"more")


def test_a_temporary_file_is_read_by_its_name():
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        pt.save({"a": torch.arange(3)}, file)
        assert pt.load(file.name)["a"].tolist() == [0, 1, 2]


def test_what_cannot_be_flushed_is_written():
    class Sink:
        taken = b""

        def write(self, data):
            self.taken += bytes(data)
            return len(data)

    sink = Sink()
    pt.save({"a": torch.ones(3)}, sink)
    assert pt.load(io.BytesIO(sink.taken))["a"].tolist() == [1, 1, 1]


def test_an_error_of_the_flush_is_seen():
    class Full(io.BytesIO):
        def flush(self):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        pt.save({"a": torch.ones(3)}, Full())


def test_ctrl_c_while_torch_writes_leaves_nothing(tmp_path):
    """The destructor of torch's writer completes what was broken off, when our file is closed already."""
    program = """
import numpy as np, torch
import penstock.torch as pt

def broken_off(self, *args):
    raise KeyboardInterrupt

torch.serialization._open_zipfile_writer_buffer.__exit__ = broken_off
try:
    pt.save({"a": np.ones(3)}, "x.pt")
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "interrupted\n"), ended.stderr
    assert list(tmp_path.iterdir()) == []


class TakesLittle(io.RawIOBase):
    """Takes a few bytes of what it is given, as a pipe may."""

    def __init__(self):
        self.taken = bytearray()

    def writable(self):
        return True

    def write(self, data):
        part = bytes(data[:1000])
        self.taken += part
        return len(part)


@pytest.mark.parametrize("in_memory", [0, 1 << 30])
def test_open_files_get_it_by_memory_or_by_a_file(monkeypatch, in_memory):
    monkeypatch.setattr("penstock.torch.saving._save._IN_MEMORY", in_memory)
    state = {"a": torch.arange(5000.0), "b": [torch.ones(3, dtype=torch.bfloat16), "text"]}
    whole, little = io.BytesIO(b"before"), TakesLittle()
    whole.seek(6)
    pt.save(state, whole)
    pt.save(state, little)
    assert whole.getvalue()[:6] == b"before"
    assert whole.getvalue()[6:] == bytes(little.taken)
    read = torch.load(io.BytesIO(bytes(little.taken)))
    assert torch.equal(read["a"], state["a"])
    assert torch.equal(read["b"][0], state["b"][0])


class Attributes(dict):
    """A dict whose attributes are its items, as many programs have one."""

    __getattr__ = dict.__getitem__


def test_dicts_whose_attributes_are_their_items(tmp_path):
    with pytest.raises(penstock.DTypeMismatchError, match=r"Attributes.*save dict\(x\)"):
        pt.save({"a": Attributes(b=1)}, tmp_path / "x.pt")
