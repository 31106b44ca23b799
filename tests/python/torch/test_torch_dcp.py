"""`penstock.torch.dcp` in one process, against torch's own reader and writer on the same folders."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pickle
import pickletools
import random
import shutil
import subprocess
import sys
import threading

import pytest
import torch
import torch.distributed.checkpoint as dcp
from test_dcp import LAYOUT, STATE, loaded_by_torch, save_by_ranks
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner

import penstock
from penstock.torch.dcp import StorageReader, StorageWriter, _places

pytestmark = pytest.mark.filterwarnings("ignore")


def same(a, b):
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert torch.equal(a.contiguous().reshape(-1).view(torch.uint8), b.contiguous().reshape(-1).view(torch.uint8))
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        assert a == b


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dcp") / "ranks"
    save_by_ranks(folder, STATE, LAYOUT)
    return folder


@pytest.fixture
def copy(ranks, tmp_path):
    shutil.copytree(ranks, tmp_path / "copy")
    return tmp_path / "copy"


def failure(call):
    """The penstock.Error in what dcp raises."""
    with pytest.raises(dcp.api.CheckpointException) as caught:
        call()
    error, _ = caught.value.failures[0]
    return error


def failure_of_metadata(folder):
    """The same of metadata. torch 2.11 says only that there is none, whatever the reader raised: then the reader's."""
    error = failure(lambda: load(folder))
    if isinstance(error, AssertionError):
        with pytest.raises(penstock.Error) as caught:
            StorageReader(folder).read_metadata()
        error = caught.value
    return error


def load(folder, state=None, **options):
    state = {"line": torch.zeros(100_000, dtype=torch.int64)} if state is None else state
    dcp.load(state, storage_reader=StorageReader(folder, **options), no_dist=True)
    return state


def test_it_loads_what_torch_loads(ranks):
    same(loaded_by_torch(None, StorageReader(ranks)), loaded_by_torch(ranks))


def test_metadata_is_that_of_torch(ranks, tmp_path):
    dcp.save({"a": {"b": [torch.ones(2), 3]}}, checkpoint_id=tmp_path / "other", no_dist=True)
    for folder in (ranks, tmp_path / "other"):
        ours, theirs = StorageReader(folder).read_metadata(), dcp.FileSystemReader(folder).read_metadata()
        ours.storage_meta.load_id = theirs.storage_meta.load_id = None
        assert ours == theirs


EXOTIC = {
    "c64": torch.randn(4, 3, dtype=torch.complex64),
    "f8": torch.arange(6).to(torch.float8_e5m2),
    "bool": torch.tensor([[True], [False]]),
    "u16": torch.arange(5).to(torch.uint16),
    "half": torch.ones(2, 2, dtype=torch.float16),
}


def test_the_stride_of_one_element_does_not_matter(tmp_path):
    dcp.save({"one": torch.full((1,), 5)}, checkpoint_id=tmp_path, no_dist=True)
    column = torch.zeros(1, 2, dtype=torch.int64)
    load(tmp_path, {"one": column[:, 0]})
    assert column.tolist() == [[5, 0]]


def test_targets_of_every_kind(ranks, tmp_path):
    """Other dtypes and strides than the file's, views, and tensors that want gradients."""
    dcp.save(EXOTIC, checkpoint_id=tmp_path / "exotic", no_dist=True)
    loaded = load(tmp_path / "exotic", {name: torch.zeros_like(tensor) for name, tensor in EXOTIC.items()})
    same(loaded, EXOTIC)

    def targets():
        base = torch.zeros(20, 12, dtype=torch.int32)
        return {
            "rows": base[5:15, 3:9],
            "grid": torch.zeros(4, 6, 2, dtype=torch.float64),
            "wide": torch.zeros(1100, 7).t(),
            "turned": torch.zeros(1100, 7, requires_grad=True),
            "line": torch.zeros(200_000, dtype=torch.int64)[::2],
            "scalar": torch.zeros((), dtype=torch.float32),
            "none": torch.zeros(0, 3),
        }

    ours, theirs = targets(), targets()
    places = {name: tensor.data_ptr() for name, tensor in ours.items()}
    load(ranks, ours)
    dcp.load(theirs, checkpoint_id=ranks, no_dist=True)
    same(ours, theirs)
    assert {name: tensor.data_ptr() for name, tensor in ours.items()} == places
    assert torch.equal(ours["rows"], STATE["rows"])


class Recorded(DefaultLoadPlanner):
    """Says what it is asked, and gives targets that are not those of the state dict."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def resolve_tensor(self, read_item):
        self.calls.append(("resolve", read_item.dest_index.fqn, tuple(read_item.dest_offsets)))
        return torch.full(read_item.lengths, 9, dtype=torch.float64).t().contiguous().t()

    def commit_tensor(self, read_item, tensor):
        self.calls.append(("commit", read_item.dest_index.fqn, tuple(read_item.dest_offsets)))
        super().resolve_tensor(read_item).copy_(tensor)

    def load_bytes(self, read_item, value):
        assert isinstance(value, io.BytesIO)
        assert value.tell() == 0
        self.calls.append(("bytes", read_item.dest_index.fqn))
        super().load_bytes(read_item, value)


@pytest.mark.parametrize("verify", [False, True])
def test_targets_that_are_one_memory_take_the_last_of_the_plan(tmp_path, verify):
    """Tied weights, of a checkpoint in which they are not tied."""
    size = 1 << 18
    state = {"a": torch.zeros(size), "b": torch.ones(size)}
    dcp.save(state, storage_writer=StorageWriter(tmp_path / "x"), no_dist=True)
    for reader in (dcp.FileSystemReader(tmp_path / "x"), StorageReader(tmp_path / "x", verify=verify)):
        tied = torch.full((size,), 7.0)
        dcp.load({"b": tied, "a": tied}, storage_reader=reader, no_dist=True)
        assert tied.unique().tolist() == [1.0]  # the plan goes by name


def test_the_planner_is_asked_as_torch_asks_it(ranks):
    calls = []
    for reader in (StorageReader(ranks), dcp.FileSystemReader(ranks)):
        state = {"rows": torch.zeros(10, 6, dtype=torch.int32), "wide": torch.zeros(7, 1100), "object": None}
        planner = Recorded()
        dcp.load(state, storage_reader=reader, planner=planner, no_dist=True)
        assert torch.equal(state["rows"], STATE["rows"])
        assert torch.equal(state["wide"], STATE["wide"])
        same(state["object"], STATE["object"])
        calls.append(sorted(planner.calls))
    assert calls[0] == calls[1]


def test_a_planner_that_makes_plans_anew(ranks):
    class Anew(DefaultLoadPlanner):
        def create_global_plan(self, global_plan):
            return [self.changed(plan) for plan in global_plan]

    class Dropping(Anew):
        def changed(self, plan):
            return type(plan)(plan.items)

    class Turning(Anew):
        def changed(self, plan):
            return dataclasses.replace(plan, items=plan.items[:0:-1])

    for planner in (Dropping(), Turning()):
        state = {"line": torch.zeros(100_000, dtype=torch.int64), "grid": torch.zeros(4, 6, 2, dtype=torch.bfloat16)}
        dcp.load(state, storage_reader=StorageReader(ranks), planner=planner, no_dist=True)
        assert torch.equal(state["line"][80_000:], STATE["line"][80_000:])


def test_random_boxes(tmp_path):
    """Tensors saved in one grid of boxes and loaded as another."""
    draw = random.Random(5)

    def cuts(size):
        inner = sorted(draw.sample(range(1, size), min(size - 1, draw.randrange(3)))) if size > 1 else []
        return list(zip([0, *inner], [*inner, size], strict=True))

    def grid(shape):
        boxes = [((), ())]
        for size in shape:
            boxes = [((*at, a), (*n, b - a)) for at, n in boxes for a, b in cuts(size)]
        return boxes

    shapes = [tuple(draw.randrange(1, 9) for _ in range(draw.randrange(4))) for _ in range(20)]
    full = {f"t{i}": torch.randn(shape) for i, shape in enumerate(shapes)}
    save_by_ranks(tmp_path / "x", full, [{name: grid(tensor.shape) for name, tensor in full.items()}])

    class Boxes(DefaultLoadPlanner):
        def create_local_plan(self):
            from torch.distributed.checkpoint.metadata import ChunkStorageMetadata
            from torch.distributed.checkpoint.planner import LoadPlan
            from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

            items = []
            for name, tensor in full.items():
                boxes = [ChunkStorageMetadata(torch.Size(at), torch.Size(n)) for at, n in grid(tensor.shape)]
                described = self.metadata.state_dict_metadata[name]
                for item in create_read_items_for_chunk_list(name, described, boxes):
                    at = [a + b for a, b in zip(item.dest_index.offset, item.dest_offsets, strict=True)]
                    self.places[len(items)] = tuple(slice(a, a + n) for a, n in zip(at, item.lengths, strict=True))
                    items.append(item)
            self.items = items
            return LoadPlan(items)

        def resolve_tensor(self, item):
            at = next(i for i, each in enumerate(self.items) if each is item)
            return self.state_dict[item.dest_index.fqn][self.places[at]]

    planner = Boxes()
    planner.places = {}
    loaded = {name: torch.zeros_like(tensor) for name, tensor in full.items()}
    dcp.load(loaded, storage_reader=StorageReader(tmp_path / "x"), planner=planner, no_dist=True)
    same(loaded, full)


def test_a_missing_a_cut_and_a_wrong_file(copy):
    whole = (copy / "__1_0.distcp").read_bytes()
    (copy / "__1_0.distcp").unlink()
    error = failure(lambda: load(copy))
    assert isinstance(error, penstock.NotFoundError)
    assert "__1_0.distcp" in str(error)
    assert error.tensor == "line"
    same(load(copy, {"none": torch.ones(0, 3)}), {"none": STATE["none"]})  # which needs only files that are there
    (copy / "__1_0.distcp").write_bytes(whole[: len(whole) // 2])
    error = failure(lambda: load(copy))
    assert isinstance(error, penstock.TruncatedError)
    assert error.path.endswith("__1_0.distcp")
    assert error.tensor == "line"
    (copy / "__1_0.distcp").write_bytes(whole[64:] + whole[:64])
    error = failure(lambda: load(copy))
    assert isinstance(error, penstock.CorruptError)
    assert "not of one save" in str(error)
    assert isinstance(failure(lambda: load(copy, {"object": None})), penstock.UnsafeError)  # there is no stream
    (copy / "__1_0.distcp").write_bytes(whole[:-64] + bytes(64))
    metadata = dcp.FileSystemReader(copy).read_metadata()
    for place in metadata.storage_data.values():
        place.length -= 64
    metadata_with(copy, storage_data=metadata.storage_data)
    assert isinstance(failure(lambda: load(copy, {"object": None})), penstock.CorruptError)  # it ends before
    (copy / ".metadata").unlink()
    error = failure_of_metadata(copy)
    assert "no checkpoint, or saving it did not come to its end" in str(error)


def test_a_flipped_bit_is_noticed(copy):
    data = bytearray((copy / "__0_0.distcp").read_bytes())
    data[data.index(STATE["line"][40_000:40_010].numpy().tobytes())] ^= 1
    (copy / "__0_0.distcp").write_bytes(data)
    error = failure(lambda: load(copy))
    assert isinstance(error, penstock.ChecksumError)
    assert error.tensor == "line"
    load(copy, verify=False)


@pytest.mark.parametrize("kind", ["epoch", "text", "storage"])
def test_a_flipped_bit_of_an_object_is_noticed(tmp_path, kind):
    state = {"epoch": 3, "text": "adam", "storage": {1: [torch.arange(9.0)]}, "w": torch.ones(2)}
    dcp.save(state, checkpoint_id=tmp_path / "c", no_dist=True, planner=DefaultSavePlanner(flatten_state_dict=False))
    file = tmp_path / "c" / "__0_0.distcp"
    was, now = {
        "epoch": (b"K\x03.", b"K\x0d."), "text": (b"adam", b"adan"),
        "storage": (torch.arange(9.0).numpy().tobytes(), torch.arange(1, 10.0).numpy().tobytes()),
    }[kind]  # fmt: skip
    data = file.read_bytes()
    assert data.count(was) == 1
    file.write_bytes(data.replace(was, now))

    def loaded(**options):
        state = {"epoch": 0, "text": "", "storage": None}
        planner = DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
        reader = StorageReader(tmp_path / "c", **options)
        dcp.load(state, storage_reader=reader, planner=planner, no_dist=True)
        return state

    for options in ({}, {"weights_only": False}):
        error = failure(lambda options=options: loaded(**options))
        assert isinstance(error, penstock.ChecksumError)
        assert error.tensor == kind
        assert error.path == str(file)
    assert loaded(verify=False)["epoch"] == (13 if kind == "epoch" else 3)
    with pytest.raises(penstock.ChecksumError):
        penstock.load(tmp_path / "c")


@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("at", [3, -22, -19])  # of the mark that begins the archive, and of that which ends it
def test_a_flipped_bit_of_an_objects_archive_is_noticed(tmp_path, at, safe):
    dcp.save({"text": "adam"}, checkpoint_id=tmp_path / "c", no_dist=True)
    file = tmp_path / "c" / "__0_0.distcp"
    data = bytearray(file.read_bytes())
    data[at] ^= 8
    file.write_bytes(data)
    reader = StorageReader(tmp_path / "c", weights_only=safe)
    error = failure(lambda: dcp.load({"text": ""}, storage_reader=reader, no_dist=True))
    assert isinstance(error, penstock.CorruptError)
    assert (error.tensor, error.path) == ("text", str(file))


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("damage", ["beside", "outside", "over", "smaller", "gone", "none", "wider"])
@pytest.mark.parametrize("name", ["rows", "grid", "line"])
def test_chunks_that_do_not_make_their_tensor_are_named(copy, name, damage, weights_only):
    """torch's planner asks nothing for what no chunk covers, so that targets would stay as they were."""
    metadata = dcp.FileSystemReader(copy).read_metadata()
    item = metadata.state_dict_metadata[name]
    first, last = item.chunks[0], item.chunks[-1]
    if damage == "beside":
        first.offsets = torch.Size([first.offsets[0] + 1, *first.offsets[1:]])
    elif damage == "outside":
        last.offsets = torch.Size([10**6, *last.offsets[1:]])
    elif damage == "over":
        last.offsets = first.offsets
    elif damage == "smaller":
        last.sizes = torch.Size([last.sizes[0] - 1, *last.sizes[1:]])
    elif damage == "gone":
        item.chunks.pop()
    elif damage == "none":
        item.chunks.clear()
    else:
        item.size = torch.Size([item.size[0] + 1, *item.size[1:]])
    metadata_with(copy, state_dict_metadata=metadata.state_dict_metadata)
    target = {name: torch.zeros(STATE[name].shape, dtype=STATE[name].dtype)}
    with pytest.raises(penstock.CorruptError) as caught:
        StorageReader(copy, weights_only=weights_only).read_metadata()
    assert caught.value.tensor == name
    with pytest.raises(dcp.api.CheckpointException):
        load(copy, target, weights_only=weights_only)
    with pytest.raises(penstock.CorruptError):
        penstock.load(copy)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("pair", [("a", "b"), ("epoch", "step")])
def test_two_in_the_same_bytes_are_named(tmp_path, pair, weights_only):
    """Both streams are sound, and one of the two would have the other's value."""
    state = {"a": torch.zeros(3, 4), "b": torch.ones(3, 4), "epoch": 3, "step": 400}
    dcp.save(state, checkpoint_id=tmp_path / "c", no_dist=True)
    places = dcp.FileSystemReader(tmp_path / "c").read_metadata().storage_data
    first, second = (index for index in places if index.fqn in pair)
    places[first] = places[second]
    metadata_with(tmp_path / "c", storage_data=places)
    with pytest.raises(penstock.CorruptError, match="belong to it and to") as caught:
        StorageReader(tmp_path / "c", weights_only=weights_only).read_metadata()
    assert caught.value.tensor in pair
    with pytest.raises(dcp.api.CheckpointException):
        load(tmp_path / "c", state, weights_only=weights_only)
    with pytest.raises(penstock.CorruptError, match="belong to it and to"):
        penstock.load(tmp_path / "c")


def test_a_rank_for_itself_fills_its_targets_or_names_them(tmp_path):
    dcp.save({"w": torch.arange(6.0), "v": torch.ones(2)}, checkpoint_id=tmp_path, no_dist=True)
    reader = StorageReader(tmp_path)
    metadata = reader.read_metadata()
    metadata.state_dict_metadata["w"].chunks.clear()
    reader.set_up_storage_reader(metadata, True)
    planner = DefaultLoadPlanner()
    planner.set_up_planner({"w": torch.zeros(6), "v": torch.zeros(2)}, metadata, True)
    plan = reader.prepare_global_plan([reader.prepare_local_plan(planner.create_local_plan())])[0]
    with pytest.raises(penstock.CorruptError, match="0 of the 6 elements") as caught:
        reader.read_data(planner.finish_plan(plan), planner)
    assert caught.value.tensor == "w"


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "", ".", "a/b"])
def test_files_outside_of_the_folder_are_refused(copy, name):
    (copy.parent / "x").write_bytes(b"x" * 1000)
    reader = dcp.FileSystemReader(copy)
    metadata = reader.read_metadata()
    for number, place in enumerate(metadata.storage_data.values()):
        place.relative_path, place.offset = name, number << 30
    (copy / ".metadata").write_bytes(pickle.dumps(metadata))
    for state in ({"object": None}, None):
        assert isinstance(failure(lambda state=state: load(copy, state)), penstock.UnsafeError)


def metadata_with(copy, **attributes):
    metadata = dcp.FileSystemReader(copy).read_metadata()
    for name, value in attributes.items():
        setattr(metadata, name, value)
    (copy / ".metadata").write_bytes(pickle.dumps(metadata))


class Evil:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_nothing_is_run(copy, tmp_path):
    metadata_with(copy, planner_data={"x": Evil(tmp_path / "ran")})
    assert "io.open" in str(failure_of_metadata(copy))
    dcp.save({"evil": Evil(tmp_path / "ran")}, checkpoint_id=tmp_path / "objects", no_dist=True)
    error = failure(lambda: load(tmp_path / "objects", {"evil": None}))
    assert isinstance(error, penstock.UnsafeError)
    assert error.tensor == "evil"
    assert not (tmp_path / "ran").exists()
    load(tmp_path / "objects", {"evil": None}, weights_only=False)
    assert (tmp_path / "ran").exists()


def test_metadata_that_is_damaged(copy):
    whole = (copy / ".metadata").read_bytes()
    draw = random.Random(3)
    ends = [op[2] for op in pickletools.genops(whole)]
    for cut in [0, 1, *draw.sample(ends, 8)]:
        (copy / ".metadata").write_bytes(whole[:cut])
        with pytest.raises(penstock.CorruptError):
            StorageReader(copy).read_metadata()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        (copy / ".metadata").write_bytes(data)
        with contextlib.suppress(penstock.Error):  # and nothing else
            assert isinstance(StorageReader(copy).read_metadata(), dcp.Metadata)


@pytest.mark.parametrize("changed", ["state_dict_metadata", "storage_data", "planner_data", "version", "storage_meta"])
def test_metadata_of_other_types(copy, changed):
    metadata_with(copy, **{changed: dcp.metadata.MetadataIndex("x")})
    with pytest.raises(penstock.CorruptError, match="MetadataIndex"):
        StorageReader(copy).read_metadata()


def test_what_it_cannot_read_is_said(copy, tmp_path):
    metadata = dcp.FileSystemReader(copy).read_metadata()
    for place in metadata.storage_data.values():
        place.transform_descriptors = ["stream.zstd/1"]
    metadata_with(copy, storage_data=metadata.storage_data)
    assert "stream.zstd/1" in str(failure(lambda: load(copy)))
    with pytest.raises(penstock.InvalidArgumentError, match="broadcast"):
        StorageReader(copy, broadcast="yes")
    with pytest.raises(penstock.InvalidArgumentError, match="wasbs://"):
        StorageReader("wasbs://bucket/x")
    with pytest.raises(penstock.InvalidArgumentError, match="thread_count"):
        StorageWriter(copy, thread_count=0)
    for cls in (StorageReader, StorageWriter):
        assert cls.validate_checkpoint_id(copy)
        assert cls.validate_checkpoint_id(str(copy))
        assert cls.validate_checkpoint_id("gs://bucket/x")
        assert not cls.validate_checkpoint_id("wasbs://bucket/x")


def test_the_checkpoint_may_be_named_later(ranks, tmp_path):
    reader, writer = StorageReader(tmp_path / "none"), StorageWriter(tmp_path / "none")
    state = {"line": torch.zeros(100_000, dtype=torch.int64)}
    dcp.load(state, checkpoint_id=ranks, storage_reader=reader, no_dist=True)
    assert reader.checkpoint_id == str(ranks)
    dcp.save(state, checkpoint_id=tmp_path / "written", storage_writer=writer, no_dist=True)
    assert writer.checkpoint_id == str(tmp_path / "written")
    same(loaded_by_torch(tmp_path / "written"), {"line": STATE["line"]})
    assert not (tmp_path / "none").exists()


NESTED = {
    "model": {"w": torch.randn(30, 40), "t": torch.randn(4, 5).t(), "view": torch.arange(10.0)[2:5], "e": {}},
    "steps": 3,
    "list": [1, torch.ones(2), "é"],
    "none": torch.empty(0, 3),
    "scalar": torch.tensor(2.0),
    **EXOTIC,
}


@pytest.mark.parametrize("options", [{}, {"thread_count": 3}, {"single_file_per_rank": False, "sync_files": False}])
def test_what_it_writes_is_read_by_all(tmp_path, options):
    dcp.save(NESTED, storage_writer=StorageWriter(tmp_path / "ours", **options), no_dist=True)
    dcp.save(NESTED, checkpoint_id=tmp_path / "theirs", no_dist=True)
    expected = loaded_by_torch(tmp_path / "theirs")
    same(loaded_by_torch(tmp_path / "ours"), expected)
    same(loaded_by_torch(None, StorageReader(tmp_path / "ours")), expected)
    loaded = penstock.torch.load(tmp_path / "ours")
    assert torch.equal(loaded["model"]["t"], NESTED["model"]["t"])
    names = [name for name in os.listdir(tmp_path / "ours") if name != ".metadata"]
    assert all(name.startswith("__0_") and name.endswith(".distcp") for name in names)
    ours, theirs = (dcp.FileSystemReader(tmp_path / name).read_metadata() for name in ("ours", "theirs"))
    assert (ours.version, ours.planner_data) == (theirs.version, theirs.planner_data)
    assert ours.state_dict_metadata == theirs.state_dict_metadata
    assert ours.storage_meta.save_id


def test_an_async_save_is_completed_behind_the_end_of_the_program(tmp_path):
    """Python's own threads for pieces of work take none from then on."""
    program = """if 1:
        import sys
        import torch
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
        from penstock.torch.dcp import StorageWriter
        from concurrent.futures import ThreadPoolExecutor

        def is_over():
            try:
                ThreadPoolExecutor(1).submit(int).result()
            except RuntimeError:
                return True

        class Late(DefaultSavePlanner):
            def create_local_plan(self):
                while not is_over():
                    pass
                return super().create_local_plan()

        dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/group", rank=0, world_size=1)
        state = {"w": torch.arange(4)}
        dcp.async_save(state, storage_writer=StorageWriter(sys.argv[1] + "/ck"), planner=Late())
    """
    call = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert penstock.load(tmp_path / "ck")["w"].tolist() == [0, 1, 2, 3]


def test_async_save(tmp_path):
    state = {"w": torch.arange(1000.0)}
    writer = StorageWriter(tmp_path / "x")
    for turn in range(2):
        done = dcp.async_save(state, storage_writer=writer)
        state["w"] += 1000  # not in what is saved: it was copied
        done.result()
        same(loaded_by_torch(tmp_path / "x"), {"w": torch.arange(1000.0) + 1000 * turn})


class Broken:
    def __reduce__(self):
        raise ValueError("it cannot be pickled")


@pytest.mark.parametrize("why", ["disk", "object"])
def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch, why):
    folder = tmp_path / "x"
    dcp.save({"w": torch.ones(3)}, storage_writer=StorageWriter(folder), no_dist=True)
    before = sorted(os.listdir(folder))
    state = {"a": torch.zeros(5), "w": torch.zeros(3)}
    if why == "object":
        state["b"] = Broken()
    else:
        from penstock.torch.dcp import _writer

        def full(tensor, file):
            file.write(b"half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(_writer, "_save", full)
    with pytest.raises((dcp.api.CheckpointException, ValueError)) as caught:
        dcp.save(state, storage_writer=StorageWriter(folder), no_dist=True)
    if why == "disk":
        error, _ = caught.value.failures[0]
        assert isinstance(error, penstock.InputOutputError)
        assert "No space left" in str(error)
        assert "__0_1.distcp" in str(error)
    assert sorted(os.listdir(folder)) == before
    same(loaded_by_torch(folder), {"w": torch.ones(3)})


LIMITED = """
import os, resource, signal, sys, torch, penstock
import torch.distributed.checkpoint as dcp
from penstock.torch.dcp import StorageWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, 1 << 15))
try:
    dcp.save({f"k{i}": torch.ones(3000) for i in range(9)}, storage_writer=StorageWriter(sys.argv[1]), no_dist=True)
except dcp.api.CheckpointException as error:
    print(type(error.failures[0][0]).__name__, error.failures[0][0])
print(os.listdir(sys.argv[1]))
"""


def test_a_file_that_torchs_writer_cannot_end_is_named(tmp_path):
    program = [sys.executable, "-W", "ignore", "-c", LIMITED, str(tmp_path / "x")]
    told, left = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told.startswith(f"InputOutputError {tmp_path}/x/__0_0.distcp: cannot write the file: File too large")
    assert left == "[]"


@pytest.mark.parametrize("kind", ["sparse", "meta"])
def test_tensors_that_cannot_be_saved_are_named(tmp_path, kind):
    tensor = torch.eye(3).to_sparse() if kind == "sparse" else torch.ones(3, device="meta")
    state = {"w": torch.ones(3), "model": {"odd": tensor}}
    error = failure(lambda: dcp.save(state, storage_writer=StorageWriter(tmp_path / "x"), no_dist=True))
    assert isinstance(error, penstock.UnsupportedError)
    assert error.tensor == "model.odd"
    assert os.listdir(tmp_path / "x") == []


def test_a_folder_of_safetensors_is_told_apart(tmp_path):
    writer = dcp.HuggingFaceStorageWriter(path=str(tmp_path / "x"))
    dcp.save({"w": torch.ones(3)}, storage_writer=writer, no_dist=True)
    with pytest.raises(penstock.NotFoundError, match=r"HuggingFaceStorageReader"):
        StorageReader(tmp_path / "x").read_metadata()


def test_a_save_that_was_killed_is_no_checkpoint(tmp_path):
    class Killed(StorageWriter):
        def finish(self, metadata, results):
            raise KeyboardInterrupt

    folder = tmp_path / "x"
    with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever dcp makes of it
        dcp.save({"w": torch.zeros(3)}, storage_writer=Killed(folder), no_dist=True)
    (folder / ".__0_7.distcp.0a.partial").write_bytes(b"half")
    with pytest.raises(penstock.NotFoundError):
        penstock.open(folder)
    dcp.save({"w": torch.ones(3)}, storage_writer=StorageWriter(folder), no_dist=True)
    same(loaded_by_torch(folder), {"w": torch.ones(3)})
    assert sorted(os.listdir(folder)) == [".metadata", "__0_1.distcp"]


def test_files_of_others_in_the_folder_stay(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for turn in range(2):
        dcp.save({"w": torch.full((3,), turn)}, storage_writer=StorageWriter(tmp_path), no_dist=True)
    assert (tmp_path / "config.json").exists()
    assert len(os.listdir(tmp_path)) == 3
    writer = StorageWriter(tmp_path, overwrite=False)
    error = failure(lambda: dcp.save({"w": torch.ones(1)}, storage_writer=writer, no_dist=True))
    assert "a checkpoint already" in str(error)


def test_each_rank_for_itself(tmp_path):
    """use_collectives=False: a `.metadata` for each rank."""
    state = {"w": torch.arange(5.0), "n": 3}
    dcp.save(state, storage_writer=StorageWriter(tmp_path / "ours"), no_dist=True, use_collectives=False)
    dcp.save(state, checkpoint_id=tmp_path / "theirs", no_dist=True, use_collectives=False)
    assert sorted(os.listdir(tmp_path / "ours")) == sorted(os.listdir(tmp_path / "theirs"))
    for folder in ("ours", "theirs"):
        for reader in (StorageReader(tmp_path / folder), dcp.FileSystemReader(tmp_path / folder)):
            loaded = {"w": torch.zeros(5), "n": 0}
            dcp.load(loaded, storage_reader=reader, no_dist=True)
            same(loaded, state)


def test_network_file_systems_are_known(monkeypatch, tmp_path):
    text = f"1 2 0:1 / / rw - ext4 /dev/x rw\n3 1 0:2 / {tmp_path}/a\\040b rw,shared shared:1 - nfs4 host:/ rw\n"
    (tmp_path / "a b" / "c").mkdir(parents=True)
    monkeypatch.setattr(_places, "open", lambda *_, **__: io.StringIO(text), raising=False)
    assert _places.is_on_network(str(tmp_path / "a b" / "c"))
    assert not _places.is_on_network(str(tmp_path))


def test_it_may_be_used_in_any_thread(ranks):
    loaded = {}
    thread = threading.Thread(target=lambda: loaded.update(load(ranks)))
    thread.start()
    thread.join()
    assert torch.equal(loaded["line"], STATE["line"])
