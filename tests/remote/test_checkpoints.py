"""A distributed checkpoint, or a sharded model, whose folder a URL names."""

from __future__ import annotations

import io
import json
import pickle
import subprocess

import numpy as np
import pytest
from contents import INDEX, numbers
from fault_proxy import Fault

import penstock

torch = pytest.importorskip("torch")


@pytest.fixture
def checkpoint(place, tmp_path) -> str:
    import torch.distributed.checkpoint as dcp

    state = {"w": torch.from_numpy(numbers(300, 64)), "b": torch.arange(5)}
    dcp.save(state, checkpoint_id=tmp_path / "ckpt", no_dist=True)
    for path in (tmp_path / "ckpt").iterdir():
        place.put(f"ckpt/{path.name}", path.read_bytes())
    return place.url("ckpt")


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_is_its_checkpoint(checkpoint, end):
    found = penstock.load(checkpoint + end)
    assert np.array_equal(np.asarray(found["w"]), numbers(300, 64))
    assert np.array_equal(np.asarray(found["b"]), np.arange(5))
    assert penstock.open(checkpoint + end)["w"].shape == (300, 64)


@pytest.mark.parametrize("rows", [10, 40, 400])
def test_many_chunks_are_asked_for_together(faulty, memory, tmp_path, rows):
    """Two ranks' files of 60 chunks each, of 2 to 100 KB: chunk by chunk it would be a request or two for each."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.filesystem import FileSystemWriter

    state = {f"layer{i}.w": torch.from_numpy(numbers(rows, 64)) + i for i in range(120)}
    dcp.save(state, storage_writer=FileSystemWriter(tmp_path / "ckpt", single_file_per_rank=True), no_dist=True)
    for path in (tmp_path / "ckpt").iterdir():
        memory.objects[f"/bucket/ckpt/{path.name}"] = path.read_bytes()
    faulty.delay = 0.05
    with penstock.open("s3://bucket/ckpt/") as archive:
        assert len(archive) == 120
        requests = list(faulty.requests)
        for name in ("layer0.w", "layer119.w"):
            assert np.array_equal(np.asarray(archive[name].load()), state[name].numpy())
    if rows < 400:
        assert len(requests) < 12, len(requests)
    else:
        assert faulty.most_at_once > 20
        assert sum(request.sent for request in requests) < 120 * 12_000 + 200_000


def test_a_folder_of_files_by_ranks(place):
    """What torch_checkpointing leaves: a file for each rank, and which boxes of a tensor it has."""
    whole = torch.arange(60.0).reshape(6, 10)
    groups = []
    for rank, rows in enumerate([[0, 2, 4], [1, 3, 5]]):
        file = io.BytesIO()
        torch.save({"w": whole[rows]}, file)
        place.put(f"ranks/m_{rank}.pt", file.getvalue())
        boxes = {"global_offsets": [[row, 0] for row in rows], "local_offsets": [[i, 0] for i in range(3)]}
        said = boxes | {"local_sizes": [[1, 10]] * 3, "global_shape": [6, 10], "dtype": "torch.float32"}
        groups.append({"sharding_metadata": {"type": "default_tensor_v1", "data": said}, "ranks": (rank,)})
    item = {"nested_path_to_metadata": {'["w"]': groups}, "rank_to_layout_info": {0: None, 1: None}}
    described = pickle.dumps({"metadata": {"m": item}, "world_size": 2, "version": "2.0"})
    place.put("ranks/metadata.pkl", described)
    for name in ("ranks", "ranks/metadata.pkl"):
        assert np.array_equal(np.asarray(penstock.load(place.url(name))["m"]["w"]), whole.numpy())
    with penstock.open(place.url("ranks")) as archive:
        assert np.array_equal(archive["m.w"][1:3, 4:6], whole.numpy()[1:3, 4:6])


def test_the_command_takes_the_folder(checkpoint, command):
    done = subprocess.run([command, "stats", checkpoint, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"w"' in json.dumps(json.loads(done.stdout))
    if checkpoint.startswith(("s3:", "az:")):
        done = subprocess.run([command, "verify", checkpoint + "/"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_pattern_gives_checkpoints(store, command, tmp_path):
    penstock.save({"w": numbers(4, 4)}, tmp_path / "w.npz")
    for step in (1, 2):
        subprocess.run([command, "convert", tmp_path / "w.npz", f"s3://bucket/runs/step-{step}/"], check=True)
    store.put("runs/w.npz", (tmp_path / "w.npz").read_bytes())
    store.put("runs/README", b"no tensors")

    def found(pattern: str, *args: str) -> list[str]:
        words = [command, "hash", "--content", "--json", f"s3://bucket/{pattern}", *args]
        files = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
        return [file["path"].removeprefix("s3://bucket/runs/") for file in files]

    assert found("runs/step-*") == found("runs/*", "w", "--exclude", "w.npz") == ["step-1", "step-2"]
    assert found("runs/*") == found("runs/**") == ["step-1", "step-2", "w.npz"]
    assert found("runs/*.npz") == ["w.npz"]
    told = subprocess.run([command, "show", "s3://bucket/runs/*"], capture_output=True, text=True)
    assert "3 pictures of 3 files, each float" in told.stdout


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_with_an_index_is_its_model(place, end, tmp_path):
    shard = "model-00001-of-00001.safetensors"
    penstock.save({"layer.w": numbers(10, 4)}, tmp_path / shard)
    names = {"layer.w": shard}
    place.put(f"sharded/{shard}", (tmp_path / shard).read_bytes())
    place.put(f"sharded/{INDEX}", json.dumps({"metadata": {}, "weight_map": names}).encode())
    found = penstock.load(place.url("sharded") + end)
    assert np.array_equal(np.asarray(found["layer.w"]), numbers(10, 4))


@pytest.mark.parametrize("name", ["nothing", "nothing/"])
def test_what_is_not_there_is_named_as_it_was_given(store, name):
    with pytest.raises(penstock.Error, match=f"s3://bucket/{name}: ") as caught:
        penstock.load(f"s3://bucket/{name}")
    assert not caught.value.args[0].endswith(".metadata")


def test_a_bucket_that_is_not_there_is_named(faulty):
    from penstock.torch.dcp import StorageReader

    faulty.faults = [Fault(status=404, body="<Error><Code>NoSuchBucket</Code></Error>")]
    with pytest.raises(penstock.NotFoundError, match="NoSuchBucket"):
        StorageReader("s3://nobody/ckpt").read_metadata()
