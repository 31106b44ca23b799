"""Counted transfers, and the warning of tensors that go to and fro."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import penstock

needs_device = pytest.mark.skipif(not penstock.device.is_available(), reason="no device")
DIRECTIONS = {"host_to_device", "device_to_host", "device_to_device", "peer_to_peer"}


def test_stats_name_every_direction():
    stats = penstock.device.transfer_stats()
    assert set(stats) == DIRECTIONS
    for counts in stats.values():
        assert set(counts) == {"copies", "bytes", "submit_seconds", "waits", "wait_seconds"}


def test_the_host_alone_transfers_nothing():
    with penstock.device.transfers() as moved:
        penstock.arange(0, 100).to("cpu", copy=True).tolist()
    assert all(counts["copies"] == 0 for counts in moved.stats().values())


def test_threads_are_all_or_the_current_one():
    with pytest.raises(penstock.InvalidArgumentError, match="'all' or 'current'"):
        penstock.device.transfers(threads="mine")
    with (
        penstock.device.transfers(threads="current") as own,
        ThreadPoolExecutor(1) as other,
        pytest.raises(penstock.InvalidArgumentError, match="another"),
    ):
        other.submit(own.stats).result()


@needs_device
def test_every_way_there_and_back_is_counted():
    t = penstock.arange(0, 250, dtype="float32")
    with penstock.device.transfers() as moved:
        d = t.cuda()
        assert moved.stats()["host_to_device"]["bytes"] == 1000
        assert d.cpu().equal(t)
        assert d.tolist() == t.tolist()
        assert d[7].item() == 7
    d.cpu()  # after the block
    stats = moved.stats()
    assert stats["host_to_device"]["copies"] == 1
    assert stats["device_to_host"]["copies"] == 3
    assert stats["device_to_host"]["bytes"] == 2004
    assert stats["device_to_host"]["waits"] == 3
    assert stats["device_to_host"]["wait_seconds"] >= 0


@needs_device
def test_loads_and_loaders_are_counted(tmp_path):
    t = penstock.rand(64, 32)
    penstock.save(t, tmp_path / "t.npy")
    with penstock.device.transfers() as moved:
        penstock.load(tmp_path / "t.npy", device="cuda")
    assert moved.stats()["host_to_device"]["bytes"] == t.nbytes
    with penstock.device.transfers() as moved:
        batches = list(penstock.DataLoader(penstock.rows(t), batch_size=8, device="cuda"))
    assert moved.stats()["host_to_device"]["copies"] == len(batches) == 8
    assert moved.stats()["host_to_device"]["waits"] == 0


@needs_device
def test_transforms_that_enlarge_elements_are_done_on_the_device():
    images = penstock.asarray(bytes(range(256)) * 36).reshape(16, 3, 8, 24)
    floats = penstock.rows(images).cast("float32").scale(1 / 255).normalize([0.5, 0.25, 0.1], [0.2, 0.3, 0.4])
    wanted = list(penstock.DataLoader(floats, batch_size=8))
    with penstock.device.transfers() as moved:
        batches = list(penstock.DataLoader(floats, batch_size=8, device="cuda"))
    assert moved.stats()["host_to_device"]["bytes"] < 2 * images.nbytes
    assert [batch.device.type for batch in batches] == ["cuda", "cuda"]
    assert all(there.cpu().equal(here) for there, here in zip(batches, wanted, strict=True))


def go_to_and_fro(tensor, trips: int = 10):
    for _ in range(trips):
        tensor = tensor.cuda()
        tensor = tensor.cpu()  # the line of the warning
    return tensor


@needs_device
@pytest.mark.parametrize("elements", [6, 17_000_000])  # the latter is copied by a thread of its own
def test_to_and_fro_warns_once_at_the_callers_line(elements):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        go_to_and_fro(penstock.zeros(elements), trips=6)
    assert [warning.category for warning in caught] == [penstock.TransferWarning]
    assert caught[0].filename == __file__
    with open(__file__) as source:
        assert "the line of the warning" in source.readlines()[caught[0].lineno - 1]
    for part in ("float32", f"({elements},)", "cuda:0", "4 times", "keep it on"):
        assert part in str(caught[0].message)


@needs_device
def test_the_warning_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", penstock.TransferWarning)
        with pytest.raises(penstock.TransferWarning, match="back 4 times"):
            go_to_and_fro(penstock.zeros(3))


@needs_device
def test_one_way_does_not_warn():
    t = penstock.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            assert t.cuda().tolist() == [0, 0, 0]
