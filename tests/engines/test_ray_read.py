"""Tensor files as datasets of Ray, on a cluster of two nodes."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import torch

import penstock

ray = pytest.importorskip("ray")

from penstock.ray import TensorDatasource, read_tensors  # noqa: E402

pytestmark = pytest.mark.usefixtures("cluster")


def column(dataset, name="data"):
    return np.concatenate([batch[name] for batch in dataset.iter_batches(batch_size=None)])


def test_npy_is_what_rays_own_reader_gives(folder):
    ours, rays = read_tensors(folder / "small"), ray.data.read_numpy(str(folder / "small"))
    np.testing.assert_array_equal(column(ours), column(rays))
    assert ours.schema() == rays.schema()
    assert ours.count() == 60


def test_a_large_file_is_read_in_rows_by_several_tasks(folder):
    dataset = read_tensors(folder / "large.npy", override_num_blocks=7).materialize()
    assert dataset.num_blocks() == 7
    np.testing.assert_array_equal(column(dataset), np.load(folder / "large.npy"))


def test_blocks_are_bounded_and_sizes_are_those_of_the_headers(folder):
    np.savez_compressed(folder / "c.npz", x=np.arange(60_000.0).reshape(-1, 2), y=np.arange(30_000))
    context = ray.data.DataContext.get_current()
    before, context.target_max_block_size = context.target_max_block_size, 100_000
    try:
        for path in ("large.npy", "c.npz"):
            source = TensorDatasource(folder / path)
            tasks = source.get_read_tasks(3)
            assert len(tasks) <= 3
            assert sum(task.metadata.size_bytes for task in tasks) == source.estimate_inmemory_data_size()
            blocks = [block for task in tasks for block in task()]
            assert sum(block.num_rows for block in blocks) == sum(task.metadata.num_rows for task in tasks)
            row = source.estimate_inmemory_data_size() // source.get_read_tasks(1)[0].metadata.num_rows
            assert max(block.num_rows for block in blocks) * row <= 100_000 + row
            assert len(blocks) >= source.estimate_inmemory_data_size() // 100_000
    finally:
        context.target_max_block_size = before
    assert source.estimate_inmemory_data_size() == 60_000 * 8 + 30_000 * 8


def test_torch_batches_share_the_memory_of_the_object_store(folder):
    """Where a batch lies in one block, and is no bool."""
    dataset = read_tensors(folder / "large.npy", override_num_blocks=3).materialize()
    twice = [[batch["data"] for batch in dataset.iter_torch_batches(batch_size=None)] for _ in range(2)]
    assert [a.data_ptr() for a in twice[0]] == [b.data_ptr() for b in twice[1]]
    assert torch.equal(torch.cat(twice[0]), torch.from_numpy(np.load(folder / "large.npy")))


@pytest.fixture
def samples(tmp_path):
    for i in range(6):
        content = {"x": penstock.full((2, 3), float(i)), "m": {"a": penstock.ones(i + 1), "y": i, "s": f"n{i}"}}
        penstock.save(content, tmp_path / f"{i}.pt")
    return tmp_path


def test_a_row_may_be_a_file_with_its_nested_parts(samples):
    rows = read_tensors(samples, include_paths=True).take_all()
    for i, row in enumerate(rows):
        assert (row["m.y"], row["m.s"], row["path"]) == (i, f"n{i}", str(samples / f"{i}.pt"))
        np.testing.assert_array_equal(row["x"], np.full((2, 3), i))
        np.testing.assert_array_equal(row["m.a"], np.ones(i + 1))
    chosen = read_tensors([samples / "0.pt", samples / "1.pt"], keys="m").take_all()
    assert [set(row) for row in chosen] == [{"m.a", "m.y", "m.s"}] * 2
    by_row = read_tensors(samples, each="row", keys=["x"], cast="float16")
    assert column(by_row, "x").dtype == np.float16
    np.testing.assert_array_equal(column(by_row, "x")[:, 0], np.repeat(np.arange(6), 2))


@pytest.mark.parametrize("extension", ["npz", "safetensors", "pt"])
def test_rows_of_several_arrays_stay_together(tmp_path, extension):
    for i, n in enumerate((5, 0, 9)):
        content = {"x": penstock.full((n, 2), float(i)), "y": penstock.arange(n)}
        penstock.save(content, tmp_path / f"{i}.{extension}")
    dataset = read_tensors(tmp_path, each="row")
    assert column(dataset, "y").tolist() == [*range(5), *range(9)]
    assert column(dataset, "x")[:, 1].tolist() == [0.0] * 5 + [2.0] * 9


def test_packed_samples_of_one_length_and_of_several(tmp_path):
    penstock.pack(
        penstock.zip(x=penstock.rows(np.arange(20).reshape(10, 2)), y=penstock.rows(list(range(10)))), tmp_path / "a"
    )
    rows = read_tensors(tmp_path / "a", override_num_blocks=3).take_all()
    assert [(row["x"].tolist(), row["y"]) for row in rows] == [([2 * i, 2 * i + 1], i) for i in range(10)]
    penstock.pack(penstock.dataset([{"v": penstock.arange(i + 1)} for i in range(5)]), tmp_path / "b", shard_bytes=30)
    assert [row["v"].tolist() for row in read_tensors(tmp_path / "b").take_all()] == [[*range(i + 1)] for i in range(5)]


def test_a_distributed_checkpoint_has_a_row_for_each_tensor(tmp_path):
    import torch.distributed.checkpoint as dcp

    state = {"layer": {"w": torch.rand(40, 8), "b": torch.rand(8)}, "step": torch.tensor(3.0)}
    dcp.save(state, checkpoint_id=tmp_path / "ckpt")
    rows = {row["name"]: row for row in read_tensors(tmp_path / "ckpt").take_all()}
    assert set(rows) == {"layer.w", "layer.b", "step"}
    for name, tensor in (("layer.w", state["layer"]["w"]), ("layer.b", state["layer"]["b"]), ("step", state["step"])):
        assert rows[name]["shape"] == list(tensor.shape)
        np.testing.assert_array_equal(rows[name]["tensor"], tensor.numpy())
    weight = read_tensors(tmp_path / "ckpt", each="row", keys=["layer.w"])
    np.testing.assert_array_equal(column(weight, "layer.w"), state["layer"]["w"].numpy())


def test_types_that_arrow_has_not_are_refused_and_cast(tmp_path):
    penstock.save({"w": penstock.ones(4, 2, dtype="bfloat16")}, tmp_path / "w.safetensors")
    with pytest.raises(penstock.UnsupportedError, match=r'w\.safetensors.*bfloat16; cast="float32"'):
        read_tensors(tmp_path / "w.safetensors")
    assert column(read_tensors(tmp_path / "w.safetensors", each="row", cast={"w": "float32"}), "w").sum() == 8
    for dtype in ("?", ">i2", ">f8", "u8", "<f2"):
        array = np.arange(12).reshape(6, 2).astype(dtype)
        np.save(tmp_path / "t.npy", array)
        np.testing.assert_array_equal(column(read_tensors(tmp_path / "t.npy")), array)


def test_what_does_not_go_together_is_named_before_anything_runs(folder, samples, tmp_path):
    np.save(tmp_path / "ints.npy", np.arange(12).reshape(3, 4))
    np.save(tmp_path / "deep.npy", np.ones((2, 2, 2)))
    np.save(tmp_path / "number.npy", np.float64(1))
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.npy").write_text("no array")
    small = str(folder / "small/00.npy")
    for paths, options, error, words in [
        ([], {}, ValueError, "no paths"),
        ([3], {}, TypeError, "path of type int"),
        (tmp_path / "missing.npy", {}, penstock.NotFoundError, "missing.npy"),
        (tmp_path / "empty", {}, penstock.NotFoundError, "no tensor files"),
        (str(tmp_path / "*.xyz"), {}, penstock.NotFoundError, "xyz"),
        (tmp_path / "text.npy", {}, penstock.UnknownFormatError, "text.npy"),
        ([small, samples / "0.pt"], {}, ValueError, "say each="),
        ([small, tmp_path / "ints.npy"], {}, ValueError, "type of 'data'.*float64.*int64.*cast="),
        ([small, tmp_path / "deep.npy"], {}, ValueError, "number of dimensions"),
        (tmp_path / "number.npy", {}, ValueError, "numbers of rows"),
        (samples / "0.pt", {"each": "row"}, ValueError, "is no tensor"),
        (samples / "0.pt", {"keys": ["z"]}, ValueError, "no 'z' among"),
        (samples / "0.pt", {"keys": ["x", "m.z"]}, ValueError, "no 'm.z' among"),
        (small, {"cast": {"x": "float32"}}, ValueError, "no 'x' among"),
        (small, {"each": "rows"}, ValueError, "each='rows'"),
        (small, {"cast": "float33"}, penstock.Error, "float33"),
    ]:
        with pytest.raises(error, match=words):
            read_tensors(paths, **options)


def test_a_file_that_changes_under_way_is_named(folder):
    path = folder / "small/07.npy"
    dataset = read_tensors(folder / "small")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(Exception, match=r"07\.npy") as told:
        dataset.materialize()
    assert isinstance(told.value, penstock.TruncatedError), "Ray's error is the task's too"
    np.save(path, np.ones((4, 4)))
    with pytest.raises(Exception, match="changed since") as told:
        dataset.materialize()
    assert isinstance(told.value, penstock.ChangedError)


def test_a_worker_that_is_killed_costs_its_tasks_alone(folder):
    marker = str(folder / "killed")

    def kills_once(batch):
        if (batch["data"] == 700).any() and not os.path.exists(marker):
            open(marker, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    dataset = read_tensors(folder / "small", override_num_blocks=10).map_batches(kills_once, batch_size=None)
    got = np.sort(column(dataset)[:, 0])
    assert os.path.exists(marker)
    np.testing.assert_array_equal(got, np.sort(column(ray.data.read_numpy(str(folder / "small")))[:, 0]))


def test_both_nodes_read(folder):
    def where(batch):
        return {"node": np.full(len(batch["data"]), ray.get_runtime_context().get_node_id())}

    # Of two tasks the second may follow the first to a node that is free again; of many not all do.
    options = {"override_num_blocks": 10, "ray_remote_args": {"scheduling_strategy": "SPREAD"}}
    nodes = read_tensors(folder / "small", **options).map_batches(where, batch_size=None).take_all()
    assert len({row["node"] for row in nodes}) == 2


def test_a_row_of_a_tar_is_a_sample(tmp_path):
    for shard in range(2):
        with penstock.Writer(tmp_path / f"train-{shard}.tar") as writer:
            for i in range(5):
                number = 5 * shard + i
                fields = {"npy": np.full((2, 3), number, "f4"), "cls": number, "txt": f"n{number}", "jpg": b"\xff" * i}
                writer.add_sample({"__key__": f"{number:04}", **fields, "json": {"boxes": [[number]] * i}})
    rows = read_tensors(str(tmp_path / "*.tar"), include_paths=True, override_num_blocks=3).take_all()
    rows.sort(key=lambda row: row["__key__"])
    assert len(rows) == 10
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(row["npy"], np.full((2, 3), i, "f4"))
        assert (row["__key__"], row["cls"], row["txt"], row["jpg"]) == (f"{i:04}", i, f"n{i}", b"\xff" * (i % 5))
        assert row["json"] == {"boxes": [[i]] * (i % 5)}
        assert row["path"].endswith(f"train-{i // 5}.tar")
    chosen = read_tensors(tmp_path / "train-0.tar", keys=["cls", "npy"], cast={"npy": "float16"}).take_all()
    assert [row["cls"] for row in chosen] == list(range(5))
    assert set(chosen[0]) == {"cls", "npy"}
    assert chosen[0]["npy"].dtype == np.float16


def test_a_field_that_a_sample_lacks_is_named(tmp_path):
    with penstock.Writer(tmp_path / "a.tar") as writer:
        writer.add_sample({"__key__": "a", "cls": 1, "txt": "x"})
        writer.add_sample({"__key__": "b", "cls": 2})
    with pytest.raises(Exception, match=r"has no '?\"?txt"):
        read_tensors(tmp_path / "a.tar").materialize()
    assert [row["cls"] for row in read_tensors(tmp_path / "a.tar", keys="cls").take_all()] == [1, 2]
