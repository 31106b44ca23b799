"""`.pt` that nothing should believe, and those of the first versions."""

import array
import io
import pickle
import struct
import subprocess
import sys
import warnings
import zipfile
from collections import defaultdict

import pytest
from pt_pairs import LAYOUTS, assert_same, save

import penstock

torch = pytest.importorskip("torch")
warnings.simplefilter("ignore")


def test_every_truncation_is_an_error(tmp_path):
    for layout in LAYOUTS:
        data = save({"w": torch.arange(4)}, tmp_path / "x.pt", layout).read_bytes()
        for length in range(0, len(data), 1 if layout == "legacy" else 3):
            (tmp_path / "cut.pt").write_bytes(data[:length])
            with pytest.raises(penstock.Error):
                penstock.load(tmp_path / "cut.pt")


def pt_with(tmp_path, pickled):
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as out:
        out.writestr("x/data.pkl", pickled)
        out.writestr("x/version", "3\n")
    return tmp_path / "x.pt"


def test_deep_nesting_is_an_error(tmp_path):
    for pickled in (b"]" * 1_000_000 + b"a" * 999_999 + b".", b"N" + b"\x85" * 300_000 + b"."):
        with pytest.raises(penstock.Error, match="nested"):
            penstock.load(pt_with(tmp_path, pickled))


def test_more_values_than_a_pickler_writes_in_so_many_bytes_are_an_error(tmp_path):
    with pytest.raises(penstock.Error, match="more objects"):
        penstock.load(pt_with(tmp_path, b"N" + b"\x85" * 1_000_000 + b"."))


# One opcode again and again, with what it needs before and after it.
OPCODES = {
    "EMPTY_LIST": (b"(", b"]", b"l."),
    "EMPTY_LIST, never taken": (b"", b"]", b"."),
    "EMPTY_DICT": (b"(", b"}", b"l."),
    "EMPTY_SET": (b"(", b"\x8f", b"l."),
    "EMPTY_TUPLE": (b"(", b")", b"l."),
    "MARK": (b"N", b"(", b"."),
    "MARK and LIST": (b"(", b"(l", b"l."),
    "MARK and DICT": (b"(", b"(d", b"l."),
    "MARK and FROZENSET": (b"(", b"(\x91", b"l."),
    "TUPLE1": (b"N", b"\x85", b"."),
    "TUPLE2 of one": (b"(N", b"N\x86", b"l."),
    "DUP": (b"(N", b"2", b"l."),
    "DUP of a list": (b"](]", b"2", b"e."),
    "MEMOIZE": (b"N", b"\x94", b"."),
    "BINPUT": (b"N", b"q\x01", b"."),
    "BINGET": (b"(]q\x01", b"h\x01", b"l."),
    "BINGET of a tuple as arguments": (b"cbuiltins\ntuple\nq\x01(NNNNNNNNtq\x02\x85q\x03", b"h\x01h\x03R0", b"."),
    "REDUCE of an unknown name": (b"(cx\ny\nq\x01", b"h\x01)R", b"l."),
    "NEWOBJ of an unknown name": (b"(cx\ny\nq\x01", b"h\x01)\x81", b"l."),
    "BUILD": (b"cx\ny\n)R", b"}b", b"."),
    "GLOBAL": (b"(", b"ca\nb\n", b"l."),
    "BININT2": (b"(", b"M\xe8\x03", b"l."),
    "BINFLOAT": (b"(", b"G" + bytes(8), b"l."),
    "LONG1": (b"(", b"\x8a\x02\x00\x10", b"l."),
    "INT": (b"(", b"I300\n", b"l."),
    "SHORT_BINUNICODE": (b"(", b"\x8c\x00", b"l."),
    "SHORT_BINBYTES": (b"(", b"C\x00", b"l."),
    "SHORT_BINSTRING": (b"(", b"U\x01\xff", b"l."),
    "STRING": (b"(", b"S''\n", b"l."),
    "UNICODE": (b"(", b"V\n", b"l."),
    "BYTEARRAY8": (b"(", b"\x96" + bytes(8), b"l."),
    "APPEND": (b"]", b"Na", b"."),
    "SETITEM": (b"}", b"NNs", b"."),
}
MEASURE = """
import resource, sys
import penstock
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
try:
    penstock.open(sys.argv[1])
except penstock.Error:
    pass
print(peak() - before)
"""


@pytest.mark.parametrize("what", OPCODES)
def test_memory_is_bounded_by_the_size_of_the_pickle(tmp_path, what):
    # Far less where the file is refused: these are the objects that are given out.
    size, slack, most = 3 << 20, 64 << 20, 110
    before, opcode, after = OPCODES[what]
    path = pt_with(tmp_path, before + opcode * (size // len(opcode)) + after)
    done = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < most * size + slack


def test_shared_structure_costs_nothing(tmp_path):
    value = ()
    for _ in range(60):
        value = (value, value)
    loaded = penstock.load(pt_with(tmp_path, pickle.dumps(value, 2)))
    assert loaded[0] is loaded[1]


@pytest.mark.parametrize("part", ["a" * 60_000, b"a" * 60_000, bytearray(b"ab")], ids=["text", "bytes", "bytearray"])
def test_shared_scalars_are_one_object(tmp_path, part):
    loaded = penstock.load(pt_with(tmp_path, pickle.dumps([part, part, {"key": part}], 5)))
    assert loaded[0] is loaded[1] is loaded[2]["key"]
    assert loaded[0] == part


def test_shared_names_are_one_object(tmp_path):
    loaded = penstock.load(pt_with(tmp_path, b"](c" + b"m" * 60_000 + b"\nName\nq\x00h\x00e."))
    assert loaded[0] is loaded[1]


def test_text_that_is_no_utf8_is_an_error_with_its_place(tmp_path):
    with pytest.raises(penstock.CorruptError, match=r"x\.pt: BINUNICODE has text that is not UTF-8 .*byte"):
        penstock.load(pt_with(tmp_path, b"X\x01\0\0\0\xff."))


def old_tar(tmp_path):
    """A file as torch 0.1 wrote it."""
    import tarfile

    def pickled(value):
        return pickle.dumps(value, 2)

    class Id:
        def __init__(self, key):
            self.key = key

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return obj.key if isinstance(obj, Id) else None

    stream = io.BytesIO()
    Pickler(stream, 2).dump({"w": Id("9"), "b": Id("9")})
    values = array.array("f", range(6))
    members = {
        "storages": pickled(1)
        + pickled((7, "cpu", torch.FloatStorage))
        + struct.pack("<q", 6)
        + values.tobytes()
        + pickled([]),
        "tensors": pickled(1) + pickled((9, 7, torch.FloatTensor)) + struct.pack("<i4x2q2qq", 2, 2, 3, 3, 1, 0),
        "pickle": stream.getvalue(),
        "sys_info": pickled({"protocol_version": 1000}),
    }
    path = tmp_path / "old.pt"
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1_500_000_000.25
            tar.addfile(info, io.BytesIO(data))
    return path


def test_tar_archives_of_the_first_versions(tmp_path):
    path = old_tar(tmp_path)
    theirs = torch.load(path, weights_only=False)  # torch reads it only by running it
    assert_same(penstock.load(path), theirs)


def test_a_cut_tar_archive_is_an_error_or_whole(tmp_path):
    content = old_tar(tmp_path).read_bytes()
    whole = []
    for length in range(len(content)):
        try:
            penstock.load(memoryview(content)[:length])
            whole.append(length)
        except penstock.Error:
            pass
    assert whole == list(range(len(content) - len(whole), len(content)))


def test_defaultdicts_are_read_as_dicts(tmp_path):
    loaded = penstock.load(save(defaultdict(list, a=[1]), tmp_path / "x.pt"))
    assert loaded["a"] == [1]


@pytest.mark.parametrize("part", [b"}", b"]", b"K\0\x85", b"T\2\0\0\0ab"])
def test_a_pickle_that_deflates_to_nothing_makes_no_more_than_a_stored_one(tmp_path, part):
    """Nine million empty dicts deflate to nine kilobytes, and would take two gigabytes as cells."""
    with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02](" + part * 9_000_000 + b"e.")
        archive.writestr("x/version", "3\n")
    with pytest.raises(penstock.LimitError, match=r"x\.pt"):
        penstock.open(tmp_path / "x.pt")


def test_one_tensor_very_often_is_read(tmp_path):
    """Two bytes of pickle lead there each time."""
    torch.save([torch.ones(2)] * 200_000, tmp_path / "a.pt")
    assert len(penstock.load(tmp_path / "a.pt")) == 200_000


def test_a_deflated_pickle_of_many_values_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02](" + b"K\7" * 400_000 + b"e.")
        archive.writestr("x/version", "3\n")
    assert penstock.load(tmp_path / "x.pt") == [7] * 400_000


@pytest.mark.parametrize("innermost", [(), [], {}, (1,), None])
@pytest.mark.parametrize("workers", [0, 2])
def test_samples_of_very_many_parts_are_refused(tmp_path, innermost, workers):
    """A kilobyte of containers that hold each other twice is a thousand million of them in a batch."""
    value = innermost
    for _ in range(30):
        value = (value, value)
    torch.save(value, tmp_path / "x.pt")
    with pytest.raises(penstock.LimitError, match="select what you need with keys"):
        next(iter(penstock.DataLoader(penstock.files([tmp_path / "x.pt"]), num_workers=workers)))
    with pytest.raises(penstock.LimitError, match="select what you need with keys"):
        penstock.files([tmp_path / "x.pt"])[0]
