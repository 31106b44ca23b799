"""Devices, streams and moves. What needs a device runs on the simulated driver or a real one."""

from __future__ import annotations

import pytest

import penstock

needs_device = pytest.mark.skipif(not penstock.is_available(), reason="no device")


def test_the_cpu_needs_no_driver():
    t = penstock.tensor([1.0, 2.0])
    assert not t.is_cuda
    assert t.cpu() is not None
    assert t.to("cpu", copy=True).equal(t)
    assert t.to(penstock.tensor([1], dtype="int32")).dtype == "int32"


def test_absent_devices_are_refused():
    t = penstock.tensor([1.0])
    for call in (lambda: t.cuda(77), lambda: t.to("cuda:77"), lambda: penstock.Stream("cuda:77")):
        with pytest.raises(penstock.NoDeviceError, match="cuda:77 requested"):
            call()
    if not penstock.is_available():
        assert penstock.device_count() == 0
        with pytest.raises(penstock.NoDeviceError):
            t.pin_memory()


def test_nothing_is_pinned_by_itself():
    assert not penstock.tensor([1.0]).is_pinned()


@needs_device
def test_there_and_back():
    t = penstock.arange(0, 1000, dtype="float32")
    d = t.cuda()
    assert d.is_cuda
    assert d.device == "cuda:0"
    assert d.cpu().equal(t)
    assert d.to("cuda:0").device == d.device
    p = t.pin_memory()
    assert p.is_pinned()
    assert p.to("cuda", non_blocking=True).cpu().equal(t)


@needs_device
def test_streams_nest_and_order_work():
    stream = penstock.Stream("cuda:0")
    with stream as same:
        assert penstock.Stream.current("cuda:0") == same
        d = penstock.arange(0, 10).cuda()
        event = stream.record()
    assert penstock.Stream.current("cuda:0") != stream
    penstock.Stream.current("cuda:0").wait(event)
    event.synchronize()
    assert event.done()
    assert penstock.Stream.wrap("cuda:0", stream.pointer) == stream
    assert d.cpu().tolist() == list(range(10))


@needs_device
def test_memory_is_counted():
    before = penstock.memory_stats()["in_use_bytes"]
    d = penstock.zeros((1024,), dtype="float32").cuda()
    assert penstock.memory_stats("cuda:0")["in_use_bytes"] == before + d.nbytes
    del d
    assert penstock.memory_stats()["in_use_bytes"] == before
    penstock.empty_cache()
    penstock.synchronize()


@needs_device
def test_dlpack_keeps_the_device_and_orders_streams():
    d = penstock.arange(0, 10).cuda()
    assert d.__dlpack_device__() == (2, 0)
    again = penstock.from_dlpack(d)
    assert again.device == d.device
    assert again.cpu().equal(d.cpu())
    d.__dlpack__(stream=-1)
    for refused in (0, -2):
        with pytest.raises(BufferError, match="stream"):
            d.__dlpack__(stream=refused)


@needs_device
def test_load_takes_a_device(tmp_path):
    t = penstock.arange(0, 100, dtype="int32")
    penstock.save({"t": t}, tmp_path / "x.safetensors")
    d = penstock.load(tmp_path / "x.safetensors", device="cuda")["t"]
    assert d.is_cuda
    assert d.cpu().equal(t)
