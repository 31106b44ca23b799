"""A model's weights from a bucket, whose folder is listed, and by URLs that nothing lists."""

from __future__ import annotations

import json

import pytest
from conftest import every_dialect

import penstock

torch = pytest.importorskip("torch")
pt = pytest.importorskip("penstock.torch")


def put_model(memory, tmp_path, rows=300) -> dict:
    state = {f"layer{i}.w": torch.full((rows, 64), float(i)) for i in range(6)}
    shards = {name: f"model-{1 + i // 3}.safetensors" for i, name in enumerate(state)}
    for file in sorted(set(shards.values())):
        pt.save_file({name: state[name] for name in state if shards[name] == file}, tmp_path / file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    pt.save_file({"stale": torch.ones(1)}, tmp_path / "adapter.safetensors")
    for path in tmp_path.glob("*.*"):
        memory.objects[f"/bucket/model/{path.name}"] = path.read_bytes()
    return state


def same(found, expected):
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@every_dialect
@pytest.mark.parametrize("end", ["", "/", "/model.safetensors.index.json"])
def test_a_folder_of_a_bucket(dialect, faulty, memory, tmp_path, end):
    expected = put_model(memory, tmp_path)
    same(dict(pt.weights(f"{dialect.base}/model{end}", ring_bytes=1 << 18)), expected)


def test_only_the_chosen_tensors_are_fetched(faulty, memory, tmp_path):
    put_model(memory, tmp_path, 8000)
    found = dict(pt.weights("s3://bucket/model", include=["layer4.*"]))
    assert found["layer4.w"].eq(4).all()
    assert sum(request.sent for request in faulty.requests) < 2 * 8000 * 64 * 4


def test_a_missing_shard_is_named(faulty, memory, tmp_path):
    put_model(memory, tmp_path)
    del memory.objects["/bucket/model/model-2.safetensors"]
    with pytest.raises(penstock.NotFoundError, match=r"model-2.safetensors"):
        pt.weights("s3://bucket/model")


def test_a_bucket_is_listed(store, tmp_path):
    parts = {f"pytorch_model-{n}.bin": {f"w{n}": torch.full((20,), n)} for n in range(2)}
    for name, part in parts.items():
        torch.save(part, tmp_path / name)
        store.put(f"listed/{name}", (tmp_path / name).read_bytes())
    store.put("listed/training_args.bin", b"x")
    same(
        dict(pt.weights(store.url("listed"))), {name: value for part in parts.values() for name, value in part.items()}
    )
    with pytest.raises(penstock.NotFoundError, match="no weights are there"):
        pt.weights(store.url("listed"), files=["*.safetensors"])


def test_without_a_listing_the_usual_names_are_tried(faulty, memory, tmp_path):
    expected = put_model(memory, tmp_path)
    same(dict(pt.weights(f"{faulty.url}/bucket/model")), expected)
    memory.objects.clear()
    with pytest.raises(penstock.NotFoundError, match="cannot be listed; name the files"):
        pt.weights(f"{faulty.url}/bucket/model")
