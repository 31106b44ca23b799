"""Datasets of Ray as folders of tensor files: whole, or not at all."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock

ray = pytest.importorskip("ray")

from penstock.ray import TensorDatasink, read_tensors, write_tensors  # noqa: E402

pytestmark = pytest.mark.usefixtures("cluster")


def numbered(n=30, blocks=3):
    return ray.data.range(n, override_num_blocks=blocks).map_batches(
        lambda batch: {"i": batch["id"], "x": np.stack([batch["id"]] * 6, 1).reshape(-1, 2, 3).astype("f4")}
    )


def assert_numbered(rows, n=30):
    assert sorted(int(row["i"]) for row in rows) == list(range(n))
    for row in rows:
        assert (np.asarray(row["x"]) == int(row["i"])).all()


def test_packed_is_what_penstock_reads(tmp_path):
    write_tensors(numbered(), tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["out"]
    assert sorted(os.listdir(tmp_path / "out")) == [f"0000{i}.safetensors" for i in range(3)]
    packed = penstock.packed(tmp_path / "out")
    assert_numbered([packed[i] for i in range(len(packed))])
    assert_numbered(read_tensors(tmp_path / "out").take_all())


def test_shards_say_which_of_how_many_they_are(tmp_path):
    """So that one that is missing is noticed, and one of another packing in its place."""
    write_tensors(numbered(), tmp_path / "out")
    write_tensors(numbered(), tmp_path / "again")
    write_tensors(numbered().map_batches(lambda batch: {**batch, "i": batch["i"] + (batch["i"] == 25)}), tmp_path / "b")
    names = sorted(os.listdir(tmp_path / "out"))
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    for name in names:
        os.rename(tmp_path / "out" / name, tmp_path / "away")
        with pytest.raises(penstock.NotFoundError, match=name):
            penstock.packed(tmp_path / "out")
        (tmp_path / "out" / name).write_bytes((tmp_path / "b" / name).read_bytes())
        with pytest.raises(penstock.NotFoundError, match=f"{name}.*another packing than"):
            penstock.packed(tmp_path / "out")
        os.rename(tmp_path / "away", tmp_path / "out" / name)
    assert len(penstock.packed(tmp_path / "out")) == 30


@pytest.mark.parametrize("format", ["npz", "safetensors", "pt"])
def test_columns_of_other_formats(tmp_path, format):
    (tmp_path / "out").mkdir()
    write_tensors(numbered(), tmp_path / "out", format=format, rows_per_file=30)
    assert os.listdir(tmp_path / "out") == [f"00000.{format}"]
    assert_numbered(read_tensors(tmp_path / "out", each="row").take_all())


def test_npy_and_rows_of_several_lengths(tmp_path):
    write_tensors(numbered().select_columns("x"), tmp_path / "one", format="npy")
    assert read_tensors(tmp_path / "one").count() == 30
    ragged = ray.data.from_items([{"v": np.arange(i % 3 + 1), "w": i} for i in range(6)], override_num_blocks=1)
    write_tensors(ragged, tmp_path / "ragged")
    packed = penstock.packed(tmp_path / "ragged")
    assert [packed[i]["v"].tolist() for i in range(6)] == [[*range(i % 3 + 1)] for i in range(6)]
    with pytest.raises(Exception, match='format="packed"'):
        write_tensors(ragged, tmp_path / "no", format="npz")
    with pytest.raises(Exception, match="one array"):
        write_tensors(numbered(), tmp_path / "no", format="npy")
    texts = ray.data.from_items([{"t": "a"}])
    with pytest.raises(Exception, match="no tensor"):
        write_tensors(texts, tmp_path / "no")
    assert sorted(os.listdir(tmp_path)) == ["one", "ragged"]


def test_a_task_that_fails_leaves_nothing(tmp_path):
    def fails(batch):
        if (batch["id"] == 17).any():
            raise RuntimeError("the program's own mistake")
        return batch

    dataset = ray.data.range(30, override_num_blocks=6).map_batches(fails, batch_size=None).materialize
    with pytest.raises(Exception, match="own mistake"):
        dataset()
    lazy = ray.data.range(30, override_num_blocks=6).map_batches(fails, batch_size=None)
    with pytest.raises(Exception, match="own mistake"):
        write_tensors(lazy, tmp_path / "out")
    assert os.listdir(tmp_path) == []


class KilledOnce(TensorDatasink):
    """Its first task is killed behind its file, which nobody hears of."""

    def write(self, blocks, ctx):
        out = super().write(blocks, ctx)
        marker = self._place.name + ".killed"
        if ctx.task_idx == 1 and not os.path.exists(marker):
            open(marker, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return out


def test_a_worker_that_is_killed_leaves_no_row_twice(tmp_path):
    numbered().write_datasink(KilledOnce(tmp_path / "out"))
    assert sorted(os.listdir(tmp_path)) == ["out", "out.killed"]
    packed = penstock.packed(tmp_path / "out")
    assert len(os.listdir(tmp_path / "out")) == 3
    assert_numbered([packed[i] for i in range(len(packed))])


def test_where_it_may_write(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    for folder in ("full", "full/x"):
        with pytest.raises(penstock.InvalidArgumentError, match="the path exists"):
            write_tensors(numbered(), tmp_path / folder)
    with pytest.raises(penstock.NotFoundError, match="make it first"):
        write_tensors(numbered(), tmp_path / "none/out")
    with pytest.raises(ValueError, match="no rows"):
        write_tensors(ray.data.range(5).filter(lambda row: False), tmp_path / "out")
    with pytest.raises(ValueError, match="format='csv'"):
        write_tensors(numbered(), tmp_path / "out", format="csv")
    with pytest.raises(ValueError, match="rows_per_file=0"):
        write_tensors(numbered(), tmp_path / "out", rows_per_file=0)
    assert os.listdir(tmp_path) == ["full"]


sys.path.append(str(Path(__file__).parents[1] / "remote"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with an empty bucket: what its clients have to know, here and on the workers."""
    import servers

    try:
        with servers.rclone(tmp_path_factory.mktemp("rclone")) as server, pytest.MonkeyPatch.context() as patch:
            for name, value in {**server.environment, "AWS_EC2_METADATA_DISABLED": "true"}.items():
                patch.setenv(name, value)
            yield server
    except servers.Missing as missing:
        pytest.skip(str(missing))


def write_to_store(dataset, store, url, sink=TensorDatasink, **options):
    workers = {"runtime_env": {"env_vars": {**store.environment, "AWS_EC2_METADATA_DISABLED": "true"}}}
    dataset.write_datasink(sink(url, **options), ray_remote_args=workers)


def test_objects_in_a_store(store):
    write_to_store(numbered(), store, "s3://bucket/out")
    names = os.listdir(store.folder / "bucket/out")
    assert len(names) == 3
    assert {name[:7] for name in names} == {"000000-", "000001-", "000002-"}
    packed = penstock.packed("s3://bucket/out/")
    assert_numbered([packed[i] for i in range(len(packed))])
    with pytest.raises(penstock.InvalidArgumentError, match="objects below this prefix"):
        write_tensors(numbered(), "s3://bucket/out")
    with pytest.raises(penstock.UnsupportedError, match="s3://, gs:// or az://"):
        write_tensors(numbered(), "http://host/out")


def test_a_task_that_fails_leaves_no_object(store):
    def fails(batch):
        if 20 in batch["id"]:
            raise ValueError("my own mistake")
        return batch

    lazy = ray.data.range(30, override_num_blocks=6).map_batches(fails, batch_size=None)
    with pytest.raises(Exception, match="own mistake"):
        write_to_store(lazy, store, "s3://bucket/failed")
    # This server keeps the folder of an upload that was taken back.
    assert not [path for path in (store.folder / "bucket/failed").rglob("*") if path.is_file()]


class KilledOnceInStore(TensorDatasink):
    """Its first task is killed behind its object, which nobody hears of."""

    def __init__(self, url, *, marker):
        super().__init__(url)
        self.marker = marker

    def write(self, blocks, ctx):
        out = super().write(blocks, ctx)
        if ctx.task_idx == 1 and not os.path.exists(self.marker):
            open(self.marker, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return out


def test_a_worker_that_is_killed_leaves_no_object_twice(store, tmp_path):
    write_to_store(numbered(), store, "s3://bucket/killed", KilledOnceInStore, marker=str(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert len(os.listdir(store.folder / "bucket/killed")) == 3
    packed = penstock.packed("s3://bucket/killed/")
    assert_numbered([packed[i] for i in range(len(packed))])
