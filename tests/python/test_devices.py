"""Devices, streams and moves. What needs a device runs on the simulated driver or a real one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import penstock
import penstock.sharing
from penstock import _core

needs_device = pytest.mark.skipif(not penstock.device.is_available(), reason="no device")
needs_simulator = pytest.mark.skipif("PENSTOCK_SIM_MODE" not in os.environ, reason="not the simulated driver")


def test_the_cpu_needs_no_driver():
    t = penstock.tensor([1.0, 2.0])
    assert not t.is_cuda
    assert t.cpu() is t
    assert t.to("cpu") is t
    assert t.to(t) is t
    assert t.to("float32") is t
    assert t.contiguous() is t
    copy = t.to("cpu", copy=True)
    assert copy is not t
    assert copy.equal(t)
    assert t.to(penstock.tensor([1], dtype="int32")).dtype == "int32"


def test_to_takes_device_and_dtype():
    t = penstock.tensor([1.0, 2.5])
    for made in (t.to("cpu", "float16"), t.to(dtype="float16"), t.to("float16", device="cpu"), t.to(None, "float16")):
        assert (made.dtype, made.device, made.tolist()) == ("float16", "cpu", [1, 2.5])
    assert t.to(device="cpu") is t
    assert t.to("cpu", "float32") is t
    for copy in (t.to("cpu", "float32", copy=True), t.to(t, copy=True)):
        assert copy is not t
        assert copy.equal(t)
    for wrong in (
        lambda: t.to(),
        lambda: t.to("float16", "float32"),
        lambda: t.to("cpu", device="cpu"),
        lambda: t.to(t, "float16"),
        lambda: t.cuda("cpu"),
        lambda: t.cuda(-1),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match="expected"):
            wrong()


def test_absent_devices_are_refused(tmp_path):
    t = penstock.tensor([1.0])
    for call in (lambda: t.cuda(77), lambda: t.to("cuda:77"), lambda: penstock.device.Stream("cuda:77")):
        with pytest.raises(penstock.NoDeviceError, match="cuda:77 requested"):
            call()
    if not penstock.device.is_available():
        assert penstock.device.device_count() == 0
        with pytest.raises(penstock.NoDeviceError):
            t.pin_memory()
        penstock.save(t, tmp_path / "x.npy")
        with pytest.raises(penstock.NoDeviceError):
            penstock.load(tmp_path / "x.npy", pinned=True)


def test_doctor_knows_file_memory_and_devices(tmp_path):
    penstock.save(penstock.zeros(1000), tmp_path / "x.npy")
    found = penstock.doctor(tmp_path / "x.npy")
    assert found["file"]["bytes_read"] == (tmp_path / "x.npy").stat().st_size
    assert found["memory"]["copy_by_one_thread"] > 0
    described = sum(name.startswith("cuda:") for name in found)
    assert found["driver"]["devices"] == penstock.device.device_count() == described
    assert all(entry["weight"] in ("note", "problem") and entry["text"] for entry in found["advice"])
    with pytest.raises(penstock.NotFoundError):
        penstock.doctor(tmp_path / "absent")


def test_nothing_is_pinned_by_itself():
    assert not penstock.tensor([1.0]).is_pinned()


def test_properties_of_the_cpu():
    found = penstock.device.device_properties("cpu")
    assert isinstance(found["name"], str)
    assert found["total_bytes"] > 0


@needs_device
def test_properties_of_devices():
    for index in range(penstock.device.device_count()):
        found = penstock.device.device_properties(f"cuda:{index}")
        assert found["name"]
        assert found["total_bytes"] == penstock.device.memory_stats(f"cuda:{index}")["total_bytes"]
        assert len(found["capability"]) == 2
        assert found["driver_version"] >= 11000


@needs_device
def test_what_changes_nothing_is_the_same_object():
    d = penstock.arange(0, 10).to("cuda:0")
    assert d.cuda() is d
    assert d.cuda(0) is d.cuda("cuda:0") is d.cuda(penstock.device.Device("cuda:0"), non_blocking=True) is d
    assert d.to("cuda", d.dtype) is d.to(device="cuda:0", dtype=d.dtype) is d
    assert d.to("cuda:0") is d
    assert d.to(d) is d
    pinned = d.cpu().pin_memory()
    assert pinned.pin_memory() is pinned


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
    stream = penstock.device.Stream("cuda:0")
    with stream as same:
        assert penstock.device.Stream.current("cuda:0") == same
        d = penstock.arange(0, 10).cuda()
        event = stream.record()
    assert penstock.device.Stream.current("cuda:0") != stream
    penstock.device.Stream.current("cuda:0").wait(event)
    event.synchronize()
    assert event.done()
    assert penstock.device.Stream.wrap("cuda:0", stream.pointer) == stream
    assert d.cpu().tolist() == list(range(10))


@needs_device
def test_blocks_of_a_stream_belong_to_their_thread():
    stream, other = penstock.device.Stream("cuda:0"), penstock.device.Stream("cuda:0")
    before = penstock.device.Stream.current("cuda:0")
    inside, leave = threading.Event(), threading.Event()

    def work():
        with stream:
            inside.set()
            leave.wait(30)
            assert penstock.device.Stream.current("cuda:0") == stream

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        assert inside.wait(30)
        with stream:
            assert penstock.device.Stream.current("cuda:0") == stream
        assert penstock.device.Stream.current("cuda:0") == before
        leave.set()
        done.result(30)
    with pytest.raises(penstock.InvalidArgumentError, match="innermost block"):
        stream.__exit__(None, None, None)
    with stream, pytest.raises(penstock.InvalidArgumentError, match="innermost block"):
        other.__exit__(None, None, None)
    assert penstock.device.Stream.current("cuda:0") == before


@needs_device
def test_large_work_goes_to_the_current_stream(tmp_path):
    """Though it is another thread that submits it, while the caller's looks for signals."""
    penstock.save(penstock.ones(64, 1 << 18), tmp_path / "x.npy")
    host = penstock.ones(1 << 24).pin_memory()
    small = penstock.rows(tmp_path / "x.npy")
    stream = penstock.device.Stream("cuda:0")
    work = {
        "zeros": lambda: penstock.zeros(1 << 24, device="cuda:0"),
        "randn": lambda: penstock.randn(1 << 24, device="cuda:0"),
        "copy": lambda: host.to("cuda:0", non_blocking=True),
        "sum": lambda: made["zeros"] + 1,
        "load": lambda: penstock.load(tmp_path / "x.npy", device="cuda:0"),
        "batch": lambda: next(iter(penstock.DataLoader(small, batch_size=64, device="cuda:0"))),
        "to": lambda: penstock.to([host], "cuda:0", non_blocking=True),
    }
    made = {}
    with stream:
        for name, call in work.items():
            stream.synchronize()
            made[name] = call()
            if os.environ.get("PENSTOCK_SIM_MODE") == "lazy" and name != "load":
                assert not stream.done(), name
    assert made["sum"].cpu().equal(host)
    assert made["load"].cpu().equal(made["batch"].cpu())


@needs_device
def test_memory_is_counted():
    before = penstock.device.memory_stats()["in_use_bytes"]
    d = penstock.zeros((1024,), dtype="float32").cuda()
    assert penstock.device.memory_stats("cuda:0")["in_use_bytes"] == before + d.nbytes
    del d
    assert penstock.device.memory_stats()["in_use_bytes"] == before
    penstock.device.empty_cache()
    penstock.device.synchronize()


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
def test_load_takes_the_way_that_gds_asks_for(tmp_path):
    path = tmp_path / "x.npy"
    penstock.save(penstock.arange(0, 2_000_000, dtype="int64"), path)
    archive = penstock.open(path)
    for load in (lambda **options: penstock.load(path, **options), archive.load, archive[archive.keys()[0]].load):
        for gds in (True, False):
            report = {}
            assert load(device="cuda:0", gds=gds, report=report).cpu()[-1].item() == 1_999_999
            # What cannot go by cuFile says why.
            assert report["route"] == ("gds" if gds and "because" not in report["why"] else "ring")
            assert ("cuFile" in report["why"]) == gds


@needs_device
@pytest.mark.parametrize("name", ["x.pt", "x.safetensors", "x.npz"])
def test_a_load_into_pinned_memory(tmp_path, name):
    state = {"t": penstock.arange(0, 1000, dtype="int32").reshape(10, 100), "few": penstock.arange(3)}
    penstock.save(state, tmp_path / name)
    loaded = penstock.load(tmp_path / name, pinned=True)
    assert all(loaded[key].is_pinned() and loaded[key].equal(value) for key, value in state.items())
    assert loaded["t"].cuda().cpu().equal(state["t"])
    with penstock.open(tmp_path / name) as archive:
        assert archive.load(pinned=True)["few"].is_pinned()
    both = penstock.load(tmp_path / name, pinned=True, shared=True)
    assert all(both[key].is_pinned() and both[key].equal(value) for key, value in state.items())
    there = penstock.sharing.attach(penstock.sharing.share(both))
    assert there["t"].equal(state["t"])
    assert not there["t"].is_pinned()  # in this mapping
    halved = penstock.load(tmp_path / name, pinned=True, dtype="float16")
    expected = penstock.load(tmp_path / name, dtype="float16")
    assert all(halved[key].is_pinned() and halved[key].equal(value) for key, value in expected.items())
    for others in ({"device": "cuda"}, {"mmap": True}):
        with pytest.raises(penstock.UnsupportedError, match="leave out one of"):
            penstock.load(tmp_path / name, pinned=True, **others)


@needs_device
def test_load_takes_a_device(tmp_path):
    t = penstock.arange(0, 100, dtype="int32")
    penstock.save({"t": t}, tmp_path / "x.safetensors")
    d = penstock.load(tmp_path / "x.safetensors", device="cuda")["t"]
    assert d.is_cuda
    assert d.cpu().equal(t)


@needs_device
@pytest.mark.parametrize("name", ["x.pt", "x.safetensors", "x.npz"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_load_takes_a_device_and_a_type(tmp_path, name, dtype):
    base = penstock.arange(0, 12, dtype="float32").reshape(3, 4)
    values = penstock.tensor([0.1, 1e300, -2.5], dtype="float64")
    content = {"a": base, "values": values, "int": penstock.arange(0, 5), "empty": penstock.zeros(0, 4)}
    path = tmp_path / name
    penstock.save(content, path)
    on_host = penstock.load(path, dtype=dtype)
    archive = penstock.open(path)
    for there in (
        penstock.load(path, "cuda", dtype=dtype),
        archive.load("cuda:0", dtype=dtype),
        {key: archive[key].load("cuda:0", dtype=dtype) for key in content},
        penstock.load_async(path, device="cuda", dtype=dtype).result(),
        penstock.load(path.read_bytes(), "cuda", dtype=dtype),
    ):
        for key, tensor in on_host.items():
            assert there[key].device == "cuda:0"
            assert there[key].dtype == (dtype if key != "int" else "int64")
            assert there[key].cpu().tolist() == tensor.tolist()
    part = archive["a"][1:, ::2].load("cuda", dtype=dtype)
    assert part.cpu().tolist() == penstock.load(path)["a"].to(dtype=dtype)[1:, ::2].tolist()


@needs_device
def test_a_load_of_another_type_to_a_device_is_refused_as_on_the_host(tmp_path):
    path = tmp_path / "x.safetensors"
    penstock.save({"fits": penstock.tensor([1.0]), "large": penstock.tensor([1e300], dtype="float64")}, path)
    before = penstock.device.memory_stats("cuda")["in_use_bytes"]
    for options in (
        {"dtype": "float32", "strict": True},
        {"dtype": "int32"},
        {"dtype": "float16", "mmap": True},
        {"strict": True},
    ):
        with pytest.raises(penstock.Error) as there:
            penstock.load(path, "cuda", **options)
        with pytest.raises(penstock.Error) as here:
            penstock.load(path, **options)
        assert type(there.value) is type(here.value)
        assert (there.value.message, there.value.tensor) == (here.value.message, here.value.tensor)
    assert penstock.device.memory_stats("cuda")["in_use_bytes"] == before
    assert penstock.load(path, "cuda", key="fits", dtype="float16", strict=True).cpu().tolist() == [1]


INTERRUPTED = """
    import os, signal, sys, threading, time, penstock
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = penstock.device.memory_stats("cuda")["in_use_bytes"]
    sent = []
    def send():
        time.sleep(0.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send).start()
    try:
        penstock.load(sys.argv[1], device="cuda")
    except KeyboardInterrupt:
        print(time.monotonic() - sent[0])
    {then}
"""


# The work itself may end a little later than the call.
RELEASED = """
while penstock.device.memory_stats("cuda")["in_use_bytes"] > before:
    time.sleep(0.01)
"""


@needs_simulator
@pytest.mark.parametrize("then", ["pass", RELEASED.strip()], ids=["and_ends", "and_goes_on"])
def test_a_load_to_a_slow_device_answers_ctrl_c(tmp_path, then):
    path = tmp_path / "x.npy"
    penstock.save(penstock.zeros((100 << 20,), dtype="uint8"), path)
    environment = os.environ | {"PENSTOCK_SIM_BYTES_PER_SECOND": str(20 << 20)}
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED).replace("{then}", then), str(path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) < 5


FORKED = """
    import os, sys, penstock
    there = penstock.ones(4).cuda()
    child = os.fork()
    if child == 0:
        for call in (lambda: there.cpu(), lambda: there + there, lambda: penstock.load(sys.argv[1], device="cuda")):
            try:
                call()
            except penstock.DeviceFailedError as error:
                print(error, flush=True)
        print(penstock.load(sys.argv[1]).tolist(), flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), there.cpu().tolist())
"""


@needs_device
def test_a_forked_worker_is_refused_and_may_use_the_cpu(tmp_path):
    path = tmp_path / "x.npy"
    penstock.save(penstock.arange(3), path)
    command = [sys.executable, "-c", textwrap.dedent(FORKED), str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    *refusals, loaded, last = ended.stdout.splitlines()
    assert len(refusals) == 3
    assert all("forked" in refusal for refusal in refusals)
    assert loaded == "[0, 1, 2]"
    assert last == "0 [1.0, 1.0, 1.0, 1.0]"


@needs_device
def test_what_is_loaded_over_is_read_first(tmp_path):
    for name, value in (("a", 1.0), ("b", 7.0)):
        np.save(tmp_path / f"{name}.npy", np.full(1000, value, np.float32))
    place = penstock.load(tmp_path / "a.npy", device="cuda:0")
    doubled = place * 2
    with penstock.open(tmp_path / "b.npy") as archive:
        _core._load_into(archive, [0], [place])
    assert set(doubled.tolist()) == {2.0}
    assert set(place.tolist()) == {7.0}


def on_the_device(sample):
    return penstock.tensor(np.asarray(sample), device="cuda:0")


@needs_device
@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_samples_that_a_function_puts_on_a_device_are_an_error_that_says_so(workers):
    data = penstock.rows(np.zeros((4, 3))).map(on_the_device)
    with pytest.raises(penstock.DeviceMismatchError, match=r"sample 0 .*lies on cuda:0, .*give the loader a device"):
        list(penstock.DataLoader(data, 2, num_workers=1, workers=workers))


@pytest.mark.parametrize("call", ["memory_stats", "device_properties", "Stream", "synchronize", "empty_cache"])
def test_devices_are_taken_by_their_index(call):
    with pytest.raises(penstock.Error, match="cuda:99"):
        getattr(penstock.device, call)(99)
    with pytest.raises(penstock.InvalidArgumentError, match="device -1"):
        getattr(penstock.device, call)(-1)


def test_memory_caps_are_counts():
    with pytest.raises(penstock.InvalidArgumentError, match="bytes=-1"):
        penstock.device.set_memory_cap("cpu", -1)
