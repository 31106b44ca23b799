"""Checkpoints of torch.distributed.checkpoint against what torch itself loads from them."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

torch = pytest.importorskip("torch")
dcp = pytest.importorskip("torch.distributed.checkpoint")

from dcp_pairs import save_by_ranks  # noqa: E402
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner  # noqa: E402
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict  # noqa: E402

PROGRAM = Path(os.environ.get("PENSTOCK_BUILD", Path(__file__).parents[2] / "build" / "release")) / "bin" / "penstock"

pytestmark = pytest.mark.filterwarnings("ignore")


def loaded_by_torch(folder, reader=None):
    """What dcp_to_torch_save would save."""
    state = {}
    reader = reader or dcp.FileSystemReader(folder)
    _load_state_dict(state, storage_reader=reader, planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    return state


def assert_same(ours, theirs):
    if isinstance(theirs, torch.Tensor):
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours.tobytes() == theirs.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key, item in theirs.items():
            assert_same(ours[key], item)
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    else:
        assert ours == theirs


WIDE = torch.arange(7 * 1100.0).reshape(7, 1100)
STATE = {
    "rows": torch.arange(60, dtype=torch.int32).reshape(10, 6),
    "grid": torch.arange(48, dtype=torch.bfloat16).reshape(4, 6, 2),
    "wide": WIDE,
    "line": torch.arange(100_000, dtype=torch.int64),
    "once": torch.ones(5, dtype=torch.float8_e4m3fn),
    "turned": WIDE.t(),
    "scalar": torch.tensor(2.5, dtype=torch.float64),
    "none": torch.empty(0, 3),
    "flags": torch.tensor([True, False, True]),
    "object": {"lr": 0.1, "t": torch.arange(4), "s": "é", "n": [1, None, (2, 3)]},
}
LAYOUT = [
    {
        "rows": [((0, 0), (3, 6))],
        "grid": [((0, 0, 0), (2, 3, 2)), ((2, 3, 0), (2, 3, 2))],
        "wide": [((0, 0), (7, 500))],
        "line": [((0,), (70_000,))],
        "once": [((0,), (5,))],
        "turned": [((0, 0), (1100, 7))],
        "scalar": [((), ())],
        "none": [((0, 0), (0, 3))],
    },
    {
        "rows": [((3, 0), (3, 6))],
        "grid": [((2, 0, 0), (2, 3, 2))],
        "wide": [((0, 500), (4, 600))],
        "line": [((70_000,), (30_000,))],
        "flags": [((0,), (2,))],
        "object": [],
    },
    {
        "rows": [((6, 0), (4, 6))],
        "grid": [((0, 3, 0), (2, 3, 2))],
        "wide": [((4, 500), (3, 600))],
        "flags": [((2,), (1,))],
    },
]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dcp") / "ranks"
    save_by_ranks(folder, STATE, LAYOUT)
    return folder


def test_what_one_process_saves(tmp_path):
    state = {
        "model": {
            "w": torch.randn(3, 4),
            "b": torch.ones(3, dtype=torch.float16),
            "t": torch.arange(6).reshape(2, 3).t(),
        },
        "optimizer": {
            "state": {0: {"step": torch.tensor(3.0), "m": torch.zeros(3, 4)}},
            "groups": [{"lr": 0.1, "p": [0, 1]}],
        },
        "epoch": 3,
        "name": "x",
        "list": [1, torch.ones(2), {"a": None}],
        "empty": {},
        "a.b": torch.ones(1),
    }
    dcp.save(state, checkpoint_id=tmp_path / "ckpt", no_dist=True)
    expected = loaded_by_torch(tmp_path / "ckpt")
    assert_same(penstock.load(tmp_path / "ckpt"), expected)
    assert_same(penstock.load(f"{tmp_path}/ckpt/"), expected)
    archive = penstock.open(tmp_path / "ckpt")
    assert archive.format == "dcp"
    assert not archive.unknown_globals
    assert_same(penstock.load(tmp_path / "ckpt", key="model"), expected["model"])


def test_a_folder_here_takes_nothing_of_the_network(tmp_path):
    """Neither libcurl nor the thread that waits for answers."""
    penstock.save({"a": penstock.tensor([1.0, 2.0]), "b": penstock.tensor([3])}, f"{tmp_path}/ckpt/")
    program = """if True:
        import os, sys, penstock
        assert penstock.load(sys.argv[1])["b"].tolist() == [3]
        with open("/proc/self/maps") as maps:
            assert "libcurl" not in maps.read()
        assert len(os.listdir("/proc/self/task")) == 1"""
    subprocess.run([sys.executable, "-c", program, tmp_path / "ckpt"], check=True)


def test_what_several_ranks_save(ranks):
    expected = loaded_by_torch(ranks)
    assert_same(penstock.load(ranks), expected)
    archive = penstock.open(ranks)
    for name, value in STATE.items():
        if isinstance(value, torch.Tensor):
            assert_same(archive[name].load(), value)
    assert_same(archive["wide"][2:6, 450:700].load(), WIDE[2:6, 450:700])
    assert_same(archive["line"][69_990:70_010].load(), STATE["line"][69_990:70_010])
    assert_same(penstock.load(ranks, mmap=True), expected)


def test_load_into(ranks):
    into = {name: torch.zeros_like(STATE[name]) for name in ("rows", "grid", "wide", "line", "turned", "scalar")}
    penstock.load_into(into, ranks, strict=False)
    for name, tensor in into.items():
        assert torch.equal(tensor, STATE[name])


def test_penstock_torch_loads_it(ranks):
    from penstock import torch as ours

    loaded = ours.load(ranks)
    for name, value in STATE.items():
        if isinstance(value, torch.Tensor):
            assert loaded[name].dtype == value.dtype
            assert torch.equal(loaded[name].float(), value.float())


@pytest.mark.parametrize("ranks_of", ["columns", "rows"])
def test_safetensors_shards(tmp_path, ranks_of):
    if not hasattr(dcp, "HuggingFaceStorageWriter"):
        pytest.skip("this torch has no HuggingFaceStorageWriter")
    state = {name: STATE[name] for name in ("rows", "wide", "line")}
    if ranks_of == "rows":
        layout = [{n: boxes for n, boxes in rank.items() if n in state} for rank in LAYOUT]
        layout = [{n: boxes[:1] for n, boxes in rank.items()} for rank in layout]
    else:
        layout = [
            {n: [((0, c), (t.shape[0], 2)) for c in [k]] for n, t in state.items() if n == "rows"} for k in (0, 2, 4)
        ]
        state = {"rows": state["rows"]}
    writer = dcp.HuggingFaceStorageWriter(str(tmp_path / "hf"), save_distributed=True)
    save_by_ranks(tmp_path / "hf", state, layout, writer)
    expected = loaded_by_torch(None, dcp.HuggingFaceStorageReader(str(tmp_path / "hf")))
    ours = penstock.load(tmp_path / "hf")
    assert sorted(ours) == sorted(expected)
    for name, value in expected.items():
        assert_same(ours[name], value)


def test_a_missing_and_a_cut_file(ranks, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(ranks, folder)
    data = (folder / "__1_0.distcp").read_bytes()
    (folder / "__1_0.distcp").write_bytes(data[:-1])
    with pytest.raises(penstock.TruncatedError, match="cut, or is of another save"):
        penstock.load(folder)
    (folder / "__1_0.distcp").unlink()
    with pytest.raises(penstock.NotFoundError, match=r"1 of the 3 files beside \.metadata is missing: '__1_0\.distcp'"):
        penstock.load(folder)


def test_a_flipped_bit_is_noticed(ranks, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(ranks, folder)
    data = bytearray((folder / "__0_0.distcp").read_bytes())
    at = data.index(STATE["line"][40_000:40_010].numpy().tobytes())
    data[at] ^= 1
    (folder / "__0_0.distcp").write_bytes(data)
    with pytest.raises(penstock.ChecksumError, match=r"__0_0\.distcp"):
        penstock.load(folder)


def test_a_compressed_checkpoint_is_refused(tmp_path):
    from torch.distributed.checkpoint._extension import ZStandard

    if not ZStandard.is_available():
        pytest.skip("no zstandard")
    dcp.save(
        {"w": torch.ones(3)},
        storage_writer=dcp.FileSystemWriter(tmp_path / "z", _extensions=[ZStandard()]),
        no_dist=True,
    )
    with pytest.raises(penstock.UnsupportedError, match=r"stream\.zstd/1"):
        penstock.open(tmp_path / "z")


def test_nothing_in_metadata_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    (tmp_path / "ckpt").mkdir()
    metadata = dcp.Metadata(state_dict_metadata={}, planner_data=Evil(), storage_data={})
    (tmp_path / "ckpt" / ".metadata").write_bytes(pickle.dumps(metadata))
    assert penstock.load(tmp_path / "ckpt") == {}
    assert not (tmp_path / "ran").exists()


def run(*args, code=0):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def test_the_command_lists_and_verifies(ranks, tmp_path):
    listing = {t["name"]: t for t in json.loads(run("ls", "--json", ranks).stdout)["tensors"]}
    assert listing.keys() == {name for name in STATE if name != "object"} | {"object.t"}
    assert [Path(file).name for file in listing["wide"]["files"]] == ["__0_0.distcp", "__1_0.distcp", "__2_0.distcp"]
    assert "in chunks" in run("ls", ranks).stdout
    sizes = sum(file.stat().st_size for file in ranks.iterdir())
    assert json.loads(run("info", "--json", ranks).stdout)["file_bytes"] == sizes
    told = json.loads(run("verify", "--json", ranks.parent).stdout)
    assert (told["files"], told["bytes"], told["tensors"], told["bad"]) == (4, sizes, len(listing), [])
    shutil.copytree(ranks, tmp_path / "copy")
    for name in ("__0_0.distcp", "__2_0.distcp"):
        data = bytearray((tmp_path / "copy" / name).read_bytes())
        data[data.index(WIDE[5, 500:510].numpy().tobytes() if "2" in name else WIDE[5, :10].numpy().tobytes())] ^= 1
        (tmp_path / "copy" / name).write_bytes(data)
    bad = json.loads(run("verify", "--json", tmp_path / "copy", code=1).stdout)["bad"]
    assert {(Path(each["path"]).name, each["code"]) for each in bad} == {
        ("__0_0.distcp", "checksum"),
        ("__2_0.distcp", "checksum"),
    }


def test_the_command_converts(ranks, tmp_path):
    st = pytest.importorskip("safetensors.torch")
    state = {name: value for name, value in STATE.items() if isinstance(value, torch.Tensor)}
    folder = tmp_path / "tensors"
    save_by_ranks(folder, state, [{n: b for n, b in rank.items() if n in state} for rank in LAYOUT])
    run("convert", folder, tmp_path / "x.safetensors")
    st.save_file({name: value.contiguous() for name, value in state.items()}, tmp_path / "theirs.safetensors")
    assert (tmp_path / "x.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()
    assert "'object.lr'" in run("convert", ranks, tmp_path / "y.safetensors", code=1).stderr
    run("convert", ranks, tmp_path / "y.pt")
    loaded = torch.load(tmp_path / "y.pt")
    assert torch.equal(loaded["object"]["t"], STATE["object"]["t"])
    run("convert", ranks, tmp_path / "z.safetensors", "--part", "wide")
    assert torch.equal(st.load_file(tmp_path / "z.safetensors")["tensor"], WIDE)
    data = bytearray((folder / "__2_0.distcp").read_bytes())
    data[data.index(WIDE[5, 500:510].numpy().tobytes())] ^= 1
    (folder / "__2_0.distcp").write_bytes(data)
    assert "CRC-32" in run("convert", folder, tmp_path / "no.safetensors", code=1).stderr
    assert not (tmp_path / "no.safetensors").exists()
