"""Distributed checkpoints in a store: written by dcp.save, save and the command, whole or not at all, and read back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from conftest import client_of, every_dialect
from contents import numbers
from fault_proxy import Fault
from penstock._core import _remove
from refusals import has_no_secret
from written import MEGA, run

import penstock

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

from penstock.torch.dcp import StorageReader, StorageWriter  # noqa: E402

warnings.filterwarnings("ignore", message="torch.distributed is disabled")
EMPTY = "<ListBucketResult></ListBucketResult>"


def state_of(elements: int, seed: int = 0) -> dict:
    tensors = {"w": torch.from_numpy(numbers(elements, seed=seed)), "b": torch.arange(5)}
    return {"model": tensors, "step": 3 + seed, "steps": [torch.ones(2), 1]}


def blank(state):
    if isinstance(state, dict):
        return {key: blank(value) for key, value in state.items()}
    if isinstance(state, list):
        return [blank(value) for value in state]
    return torch.zeros_like(state) if isinstance(state, torch.Tensor) else 0


def assert_same(found, expected) -> None:
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected)
    if isinstance(expected, (dict, list)):
        pairs = (
            ((found[key], expected[key]) for key in expected)
            if isinstance(expected, dict)
            else zip(found, expected, strict=True)
        )
        for one, other in pairs:
            assert_same(one, other)
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(torch.as_tensor(np.asarray(found)), expected)
    else:
        assert found == expected


def assert_is_checkpoint(url: str, expected: dict) -> None:
    found = blank(expected)
    dcp.load(found, storage_reader=StorageReader(url), no_dist=True)
    assert_same(found, expected)
    assert_same(penstock.load(url), expected)


def names_in(server, prefix: str) -> list[str]:
    pages = client_of(server).list(prefix)
    return sorted(meta["path"].removeprefix(prefix).lstrip("/") for page in pages for meta in page)


@pytest.mark.parametrize("elements", [100, 5 * MEGA])
def test_saved_by_dcp(server, elements):
    for seed in (1, 2):  # the second one in place of the first
        state = state_of(elements, seed)
        dcp.save(state, storage_writer=StorageWriter(f"{server.base}/saved/ckpt"), no_dist=True)
        assert_is_checkpoint(f"{server.base}/saved/ckpt", state)
        assert len(names_in(server, "saved/ckpt")) == 2


def test_saved_by_several_threads_and_again(server):
    writer = StorageWriter(f"{server.base}/saved/many/", thread_count=3, single_file_per_rank=False)
    for seed in (1, 2):
        dcp.save(state_of(100, seed), storage_writer=writer, no_dist=True)
        assert_is_checkpoint(f"{server.base}/saved/many/", state_of(100, seed))
        assert len(names_in(server, "saved/many")) == 6  # a file for each of five items, and .metadata
    with pytest.raises(CheckpointException, match="has a checkpoint already"):
        dcp.save(
            state_of(100), storage_writer=StorageWriter(f"{server.base}/saved/many", overwrite=False), no_dist=True
        )


ASYNC = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from penstock.torch.dcp import StorageReader, StorageWriter
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
state = {"w": torch.arange(1000.0)}
dcp.async_save(state, storage_writer=StorageWriter(sys.argv[2])).result()
found = {"w": torch.zeros(1000)}
dcp.load(found, storage_reader=StorageReader(sys.argv[2]))
assert torch.equal(found["w"], state["w"])
dist.destroy_process_group()  # or gloo's threads may let go of tensors while Python ends, which aborts
"""


def test_saved_in_the_background(server, tmp_path):
    words = [sys.executable, "-c", ASYNC, str(tmp_path / "meeting"), f"{server.base}/saved/async"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("url", ["http://h/ckpt", "hf://owner/repo/ckpt"])
def test_where_it_cannot_be_saved(url):
    with pytest.raises(penstock.UnsupportedError, match="s3://, gs:// or az://"):
        StorageWriter(url)
    assert not StorageWriter.validate_checkpoint_id(url)
    assert StorageReader.validate_checkpoint_id(url)


@pytest.mark.parametrize("elements", [100, 5 * MEGA])
def test_converted_by_the_command(server, command, tmp_path, elements):
    flat = {"a.w": numbers(elements), "a.b": numbers(7, seed=1), "none": np.zeros((0, 3), "i8")}
    penstock.save(flat, tmp_path / "x.safetensors", sync=False)
    to = f"{server.base}/saved/converted/"
    if names_in(server, "saved/converted"):
        run(command, "convert", "--force", tmp_path / "x.safetensors", to)
    else:
        run(command, "convert", tmp_path / "x.safetensors", to)
    assert len(names_in(server, "saved/converted")) == 2
    assert_is_checkpoint(to, {name: torch.from_numpy(value) for name, value in sorted(flat.items())} | {})
    assert "--force" in run(command, "convert", tmp_path / "x.safetensors", to, code=1)
    run(command, "convert", "--force", to, tmp_path / "back.safetensors")
    assert (tmp_path / "back.safetensors").read_bytes() == (tmp_path / "x.safetensors").read_bytes()


def save_by_dcp(base: str, seed: int):
    dcp.save(state_of(5 * MEGA, seed), storage_writer=StorageWriter(f"{base}/ckpt"), no_dist=True)


def save_by_save(base: str, seed: int):
    penstock.save({"w": numbers(5 * MEGA, seed=seed), "step": seed}, f"{base}/ckpt/")


WAYS = {"dcp": save_by_dcp, "save": save_by_save}
REFUSED = {
    "a part": "partNumber=2",
    "the end of the data": "?uploadId",
    "what is in it": ".metadata",
}


@every_dialect
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", REFUSED.values(), ids=REFUSED)
def test_a_refusal_leaves_the_earlier_checkpoint(dialect, faulty, memory, way, target):
    """The store in memory lists nothing, which an empty folder and one whose files have other names look like."""
    faulty.faults = [Fault(status=200, target=dialect.listed, body=dialect.empty)]
    WAYS[way](dialect.base, 1)
    before = dict(memory.objects)
    assert "/bucket/ckpt/.metadata" in before
    listing = Fault(status=200, target=dialect.listed, body=dialect.listing(before))
    body = "<Error><Code>AccessDenied</Code></Error>"
    faulty.faults = [listing, Fault(status=403, target=dialect.at(target), methods=["PUT", "POST"], body=body)]
    with pytest.raises((penstock.PermissionDeniedError, CheckpointException)) as failed:
        WAYS[way](dialect.base, 2)
    assert "PermissionDenied" in repr(failed.value) or "may" in str(failed.value)
    has_no_secret(failed.value)
    assert not memory.uploads
    assert memory.objects["/bucket/ckpt/.metadata"] == before["/bucket/ckpt/.metadata"]
    assert before.items() <= memory.objects.items()


@every_dialect
@pytest.mark.parametrize("way", WAYS)
def test_what_passes_is_not_noticed(dialect, faulty, memory, way):
    listing = Fault(status=200, target=dialect.listed, body=dialect.empty)
    faulty.faults = [Fault(status=503, times=3), Fault(reset=True, target=dialect.at("partNumber=2"), times=1), listing]
    WAYS[way](dialect.base, 1)
    assert not memory.uploads
    assert len(memory.objects) == 2
    assert np.array_equal(
        np.asarray(penstock.load(f"{dialect.base}/ckpt/", key="model.w" if way == "dcp" else "w")),
        numbers(5 * MEGA, seed=1),
    )


KILLED = """
import torch, torch.distributed.checkpoint as dcp
from penstock.torch.dcp import StorageWriter
dcp.save({"w": torch.zeros(10 << 20)}, storage_writer=StorageWriter("s3://bucket/ckpt"), no_dist=True)
"""


def test_a_process_that_is_killed_leaves_no_object(faulty, memory):
    listing = Fault(status=200, target="list-type", body=EMPTY)
    faulty.faults = [listing, Fault(hang=True, target="partNumber=3")]
    with subprocess.Popen([sys.executable, "-c", KILLED]) as process:
        while not any("partNumber=3" in request.target for request in faulty.requests):
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert not memory.objects


def test_a_checkpoint_at_the_root_of_a_bucket(server, tmp_path):
    client_of(server, "bucket")  # the store is up
    penstock.save({"w": numbers(10)}, f"{tmp_path}/ckpt/", sync=False)
    for path in (tmp_path / "ckpt").iterdir():
        client_of(server).put(path.name, path.read_bytes())
    try:
        for url in (server.base, f"{server.base}/"):
            assert np.array_equal(np.asarray(penstock.load(url)["w"]), numbers(10))
    finally:
        for path in (tmp_path / "ckpt").iterdir():
            _remove(f"{server.base}/{path.name}")


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/"])
def test_a_bucket_without_one(faulty, memory, url):
    with pytest.raises(penstock.IsDirectoryError, match=f"{url}: ") as failed:
        penstock.load(url)
    assert failed.value.path == url
    asked = [request.target for request in faulty.requests]
    assert [target for target in asked if target.endswith(("/.metadata", ".index.json"))]


def test_a_part_that_is_refused_is_told_though_torchs_writer_goes_on(faulty):
    faulty.faults = [
        Fault(target="partNumber", status=403),
        Fault(target="list-type", status=200, body="<ListBucketResult></ListBucketResult>"),
    ]
    state = {f"k{i}": torch.ones(1 << 18) for i in range(60)}
    with pytest.raises(dcp.api.CheckpointException) as caught:
        dcp.save(state, storage_writer=StorageWriter("s3://bucket/ck"), no_dist=True)
    error, _ = caught.value.failures[0]
    assert isinstance(error, penstock.PermissionDeniedError)
    assert "__0_0.distcp" in str(error)
    assert not faulty.origin.uploads
