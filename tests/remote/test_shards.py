"""Tar shards behind URLs: the samples of the same shards here, and a shard that is replaced."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import numpy as np
import pytest
from contents import npy_of, numbers
from fault_proxy import Fault
from refusals import refused

import penstock

COUNTS = (40, 25, 60)
# The last sample of the second shard, which does not lie in the 64 KiB that opening an object brings.
BEHIND_HEAD = 64
HEAD = 64 << 10


def shard(first: int, count: int, rows: int = 8) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(first, first + count):
            fields = {"npy": npy_of(numbers(rows, 4, seed=i)), "cls": b"%d" % i, "json": b'{"n": [%d]}' % i}
            for name, content in fields.items():
                info = tarfile.TarInfo(f"s/{i:05}.{name}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture
def shards(proxy, settings, tmp_path):
    """Three shards at `url`, and the same ones here."""
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=5, XDG_CACHE_HOME=tmp_path / "cache")
    (tmp_path / "here").mkdir()
    first = 0
    for number, count in enumerate(COUNTS):
        content = shard(first, count)
        proxy.origin.objects[f"/t-{number:03}.tar"] = content
        (tmp_path / "here" / f"t-{number:03}.tar").write_bytes(content)
        first += count
    return f"{proxy.url}/t-{{000..002}}.tar", str(tmp_path / "here")


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("keys", [None, ["cls", "npy"], ["cls"]])
def test_batches_are_those_of_the_shards_here(shards, shuffle, keys):
    url, here = shards
    made = [
        penstock.DataLoader(penstock.shards(where, keys), batch_size=16, shuffle=shuffle, seed=4, num_workers=2)
        for where in (url, here)
    ]
    for ours, expected in zip(*made, strict=True):
        assert list(ours) == list(expected)
        assert np.array_equal(np.asarray(ours["cls"]), np.asarray(expected["cls"]))
        if keys is None or "npy" in keys:
            assert np.array_equal(np.asarray(ours["npy"]), np.asarray(expected["npy"]))


def test_samples_of_megabytes(proxy, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=5)
    proxy.origin.objects["/big.tar"] = shard(0, 3, rows=700_000)  # 11 MB each
    for keys in (None, ["npy"], ["cls"]):
        dataset = penstock.shards(f"{proxy.url}/big.tar", keys, index=False)
        for i in (2, 0, 1):
            sample = dataset[i]
            assert "cls" not in sample or sample["cls"] == i
            assert "npy" not in sample or np.array_equal(np.asarray(sample["npy"]), numbers(700_000, 4, seed=i))


def test_streams_read_each_shard_in_order(shards, proxy):
    url, _ = shards
    stream = penstock.stream(penstock.shards(url, ["cls"]))
    assert [s["cls"] for s in stream] == list(range(sum(COUNTS)))
    proxy.origin.objects["/z.tar.gz"] = gzip.compress(shard(0, 9))
    zipped = penstock.stream(penstock.shards(f"{proxy.url}/z.tar.gz", ["cls"]))
    assert [s["cls"] for s in zipped] == list(range(9))


def test_describing_a_sample_lets_others_run(shards, settings):
    settings(PENSTOCK_REMOTE_TIMEOUT=2, PENSTOCK_REMOTE_RETRY_SECONDS=0)
    # The server is a thread of this process.
    assert penstock.shards(shards[0], index=False).describe(3).endswith("t-000.tar[3]")


def test_an_index_is_kept_by_etag(shards, proxy, tmp_path):
    url, _ = shards
    index = tmp_path / "shards.index"
    assert len(penstock.shards(url, index=index)) == sum(COUNTS)
    before = index.read_bytes()
    proxy.forget()
    assert len(penstock.shards(url, index=index)) == sum(COUNTS)
    assert len(proxy.requests) == len(COUNTS), "each was opened, and no header was looked for"
    assert max(request.sent for request in proxy.requests) <= HEAD
    proxy.origin.objects["/t-001.tar"] = shard(40, 26)
    assert len(penstock.shards(url, index=index)) == sum(COUNTS) + 1
    assert index.read_bytes() != before


def test_an_index_beside_is_taken_and_compared(shards, proxy):
    """Energon's: none of the shard's headers is looked for, and a number too many parts no sample."""
    content = shard(0, 60, rows=4000)
    proxy.origin.objects["/e.tar"] = content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = tar.getmembers()
    begins = [member.offset for member in members[::3]]
    end = members[-1].offset_data + 512
    for too_many in (None, 31):
        numbers_ = [*begins, end] if too_many is None else sorted([*begins, members[too_many].offset, end])
        proxy.origin.objects["/e.tar.idx"] = np.array(numbers_, "<u8").tobytes()
        dataset = penstock.shards(f"{proxy.url}/e.tar", ["cls"], index=False)
        proxy.forget()
        assert len(dataset) == len(numbers_) - 1
        assert sum(request.sent for request in proxy.requests) < len(content) / 10
        for order in (list(range(len(dataset))), [*range(1, len(dataset), 3), 10, 11]):
            loader = penstock.DataLoader(dataset, sampler=order, batch_size=8, num_workers=1, on_error="skip")
            read = [n for batch in loader for n in np.asarray(batch["cls"]).tolist()]
            if too_many is None:
                assert read == order
            else:
                assert read == [i - (i > 11) for i in order if i not in (10, 11)]
                assert {index for index, _, _ in loader.set_aside} == {10, 11}


@pytest.mark.parametrize("streamed", [False, True], ids=["in order", "streamed"])
def test_what_was_asked_for_ahead_is_counted(shards, proxy, streamed):
    for number in range(len(COUNTS)):
        proxy.origin.objects[f"/t-{number:03}.tar"] = shard(number * 100, 100, rows=4000)
    dataset = penstock.shards(shards[0], ["npy"], index=False)
    len(dataset)
    proxy.forget()
    with penstock.DataLoader(penstock.stream(dataset) if streamed else dataset, batch_size=4, num_workers=2) as loader:
        for _ in loader:
            pass
        stats = loader.stats()
    assert stats["remote_requests"] == len(proxy.requests) > 3
    assert stats["remote_received_bytes"] == proxy.sent


def test_a_shard_that_is_replaced_is_told(shards, proxy):
    url, _ = shards
    dataset = penstock.shards(url, index=False)
    assert dataset[BEHIND_HEAD]["cls"] == BEHIND_HEAD
    proxy.origin.objects["/t-001.tar"] = shard(500, 25)
    with refused(penstock.ChangedError, "t-001.tar"):
        dataset[BEHIND_HEAD]
    with refused(penstock.ChangedError, "t-001.tar"):
        list(penstock.DataLoader(dataset, batch_size=16, num_workers=1))
    assert dataset[0]["cls"] == 0
    assert penstock.shards(url, index=False)[41]["cls"] == 501


def test_a_list_of_wids_names_objects_beside_it(shards, proxy):
    wids = {"shardlist": [{"url": "t-001.tar", "nsamples": 25}, {"url": f"{proxy.url}/t-000.tar"}]}
    proxy.origin.objects["/list.json"] = json.dumps(wids).encode()
    dataset = penstock.shards(f"{proxy.url}/list.json", ["cls"], index=False)
    assert [dataset[i]["cls"] for i in (0, 24, 25)] == [40, 64, 0]


def test_errors_name_the_object(shards, proxy):
    url, _ = shards
    with refused(penstock.NotFoundError, "none.tar"):
        len(penstock.shards(f"{proxy.url}/none.tar", index=False))
    proxy.origin.objects["/cut.tar"] = shard(0, 5)[:9000]
    cut = penstock.shards(f"{proxy.url}/cut.tar", index=False)
    assert cut[0]["cls"] == 0
    with refused(penstock.TruncatedError, "cut.tar"):
        cut[len(cut) - 1]
    dataset = penstock.shards(url, index=False)
    assert len(dataset) == sum(COUNTS)
    proxy.faults = [Fault(status=403)]
    with pytest.raises(penstock.Error, match=r"t-001\.tar.*403"):
        dataset[BEHIND_HEAD]
