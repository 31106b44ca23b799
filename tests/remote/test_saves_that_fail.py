"""Whatever request of a save fails, and however: the old checkpoint is there, or the new one, whole."""

from __future__ import annotations

import contextlib
import urllib.parse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from conftest import S3, every_dialect
from contents import numbers
from fault_proxy import Fault, Request, Response, plain
from writable import WritableMemory
from written import run

import penstock

WRITING = ("PUT", "POST")
MODES = {
    "refused": {"status": 403, "body": "<Error><Code>AccessDenied</Code></Error>"},
    "failed": {"status": 500},
    "lost": {"lost": True},
    "not arrived": {"reset": True},
}


class ListingMemory(WritableMemory):
    """Lists what it holds."""

    async def __call__(self, request: Request) -> Response:
        target, _, query = request.target.partition("?")
        given = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if request.method != "GET" or given.get("list-type") != "2":
            return await super().__call__(request)
        keys = [urllib.parse.unquote(name).removeprefix(f"{target.rstrip('/')}/") for name in sorted(self.objects)]
        some = [key for key in keys if key.startswith(given.get("prefix", ""))]
        text = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in some)
        return plain(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())


@pytest.fixture
def memory(dialect):
    return ListingMemory() if dialect is S3 else dialect.memory()


@dataclass
class Way:
    save: Callable[[int], None]
    load: Callable[[], object]


def content(seed: int) -> dict:
    return {f"k{i}": numbers(50, seed=10 * seed + i) for i in range(3)}


def save_by_dcp(base: str, seed: int) -> None:
    torch = pytest.importorskip("torch")
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    from penstock.torch.dcp import StorageWriter

    warnings.filterwarnings("ignore", message="torch.distributed is disabled")
    state = {name: torch.from_numpy(value) for name, value in content(seed).items()}
    try:
        dcp.save(state, storage_writer=StorageWriter(f"{base}/ckpt", thread_count=2), no_dist=True)
    except dcp.api.CheckpointException as error:
        raise error.failures[0][0] from error


@pytest.fixture
def ways(command, tmp_path, dialect):
    base = dialect.base

    def convert(seed: int) -> None:
        penstock.save(content(seed), tmp_path / "x.safetensors", sync=False)
        arguments = ("--force", "--shard-size", "200", tmp_path / "x.safetensors", f"{base}/m.safetensors")
        try:
            run(command, "convert", *arguments)
        except AssertionError as error:
            raise penstock.InputOutputError(str(error)) from error

    def save(seed: int) -> None:
        penstock.save(content(seed), f"{base}/ckpt/")

    def pack(seed: int) -> None:
        penstock.pack(penstock.rows(numbers(50, 3, seed=seed)), f"{base}/ckpt", shard_bytes=200)

    return {
        "save": Way(save, lambda: penstock.load(f"{base}/ckpt/")),
        "dcp": Way(partial(save_by_dcp, base), lambda: penstock.load(f"{base}/ckpt/")),
        "convert": Way(convert, lambda: penstock.load(f"{base}/m.safetensors.index.json")),
        "pack": Way(pack, lambda: [penstock.packed(f"{base}/ckpt")[i] for i in range(50)]),
    }


def comparable(value) -> str:
    if isinstance(value, dict):
        return repr(sorted((name, comparable(item)) for name, item in value.items()))
    return repr([comparable(item) for item in value] if isinstance(value, list) else np.asarray(value).tolist())


@every_dialect
@pytest.mark.parametrize("later", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["save", "dcp", "convert"])
def test_the_old_or_the_new_is_there(faulty, memory, settings, ways, name, mode, later):
    """The n-th request that writes fails; "for ever": and no request for that object is answered from then on."""
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=0)
    way = ways[name]
    way.save(2)
    new = comparable(way.load())
    for number in range(20):
        faulty.faults = []
        memory.objects.clear()
        way.save(1)
        old = comparable(way.load())
        assert old != new
        one = Fault(methods=WRITING, after=number, times=1, **MODES[mode])
        faulty.faults = [one, *([Fault(reset=True, methods=[*WRITING, "HEAD"], behind=one)] if later else [])]
        try:
            way.save(2)
            failed = None
        except penstock.Error as error:
            failed = error
        happened = one.times < 1
        faulty.faults = []
        assert comparable(way.load()) in ((old, new) if failed else (new,)), f"request {number}: {failed}"
        if not happened:
            assert number > 1
            return
    raise AssertionError("it does not end")


@every_dialect
@pytest.mark.parametrize("method", ["HEAD", "DELETE"])
def test_an_answer_without_a_body_that_comes_drop_by_drop_ends(faulty, memory, settings, ways, method):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=0, PENSTOCK_REMOTE_TIMEOUT=1)
    way = ways["convert" if method == "HEAD" else "save"]
    way.save(1)
    faulty.faults = [Fault(methods=[method], endless_headers=True, pause=0.05)]
    with contextlib.suppress(penstock.Error):
        way.save(2)
    assert any(request.method == method for request in faulty.requests)


@every_dialect
@pytest.mark.parametrize("mode", MODES)
def test_packing_leaves_all_shards_or_none_or_is_known_to_be_broken(faulty, memory, settings, ways, mode):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=0)
    way = ways["pack"]
    way.save(1)
    whole = dict(memory.objects)
    assert len(whole) > 2
    for number in range(4 * len(whole)):
        memory.objects.clear()
        one = Fault(methods=WRITING, after=number, times=1, **MODES[mode])
        faulty.faults = [one, Fault(reset=True, methods=["HEAD"])]
        try:
            way.save(1)
        except penstock.Error:
            # An object whose answer was lost may be there alone. Where nobody knows of the last one, the others stay.
            assert len(memory.objects) in (0, 1, len(whole) - 1, len(whole))
        else:
            assert memory.objects == whole
        if one.times == 1:
            return
    raise AssertionError("it does not end")
