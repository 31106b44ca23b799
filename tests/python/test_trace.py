"""The Chrome trace of a loader: valid JSON, one lane a thread, events that nest, and sums that agree with stats()."""

import json
import os
from collections import defaultdict

import numpy as np
import pytest

import penstock

STAGES = ("open", "read", "decode", "function", "collate", "copy", "send")
WITHIN_BATCH = (*STAGES, "wait for memory")
COUNT = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    for i in range(COUNT):
        np.save(folder / f"{i:03}.npy", np.full((500,), i, np.float32))
    return folder


def read(path):
    """The events of each lane by its name, and how many were dropped."""
    trace = json.loads(path.read_text())
    names, lanes = {}, defaultdict(list)
    for event in trace["traceEvents"]:
        assert event["pid"] == os.getpid()
        if event["ph"] == "M":
            names[event.get("tid")] = event["args"]["name"]
        else:
            assert event["ph"] == "X"
            assert event["dur"] >= 0
            lanes[event["tid"]].append(event)
    return {names[tid]: events for tid, events in lanes.items()}, trace["otherData"]["dropped_events"]


def seconds(events, name):
    return sum(event["dur"] for event in events if event["name"] == name) / 1e6


def require_nesting(events):
    """Any two events of a thread lie apart or one within the other, as a stack of calls would."""
    stack = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        begin, end = event["ts"], event["ts"] + event["dur"]
        while stack and stack[-1][1] <= begin + 2e-3:  # written in ns
            stack.pop()
        if stack:
            assert end <= stack[-1][1] + 2e-3, (event, stack[-1])
            assert stack[-1][0] in ("batch", "wait for batch"), (event, stack[-1])
        stack.append((event["name"], end))


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_events_nest_and_add_up_to_the_stats(folder, tmp_path, workers):
    path = tmp_path / "trace.json"
    loader = penstock.DataLoader(penstock.files(folder), 8, shuffle=True, num_workers=workers, trace=path)
    assert not path.exists()
    for _ in range(2):
        assert sum(len(batch) for batch in loader) == COUNT
    loader.write_trace()
    stats = loader.stats()
    lanes, dropped = read(path)
    assert dropped == 0
    working = ["caller"] if workers == 0 else [f"worker {i}" for i in range(workers)]
    assert set(lanes) <= {"caller", *working}
    for events in lanes.values():
        require_nesting(events)
    for stage in STAGES:
        traced = sum(seconds(lanes.get(name, []), stage) for name in working)
        assert traced == pytest.approx(stats[f"{stage}_seconds"], rel=0.01, abs=1e-5), stage
    assert seconds(lanes["caller"], "wait for batch") == pytest.approx(stats["wait_seconds"], rel=0.01, abs=1e-5)
    assert seconds(lanes["caller"], "caller") == pytest.approx(stats["caller_seconds"], rel=0.01, abs=1e-5)
    opened = [e["args"]["sample"] for name in working for e in lanes.get(name, []) if e["name"] == "read"]
    assert sorted(opened) == sorted(2 * list(range(COUNT)))
    taken = [e["args"]["batch"] for e in lanes["caller"] if e["name"] == "wait for batch"]
    assert taken == 2 * list(range(len(loader)))


def test_a_batch_holds_its_stages(folder, tmp_path):
    path = tmp_path / "trace.json"
    with penstock.DataLoader(penstock.files(folder), 8, num_workers=1, trace=str(path)) as loader:
        list(loader)
    events = read(path)[0]["worker 0"]
    batches = [e for e in events if e["name"] == "batch"]
    assert [e["args"]["batch"] for e in batches] == list(range(8))
    for batch in batches:
        end = batch["ts"] + batch["dur"]
        within = {e["name"] for e in events if batch["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end + 2e-3}
        assert within >= {"batch", "open", "read", "decode", "collate", "copy"}


def test_rows_of_large_files_are_traced(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((100, 50), np.float32))
    path = tmp_path / "trace.json"
    with penstock.DataLoader(penstock.rows(tmp_path / "rows.npy"), 10, num_workers=2, trace=path) as loader:
        list(loader)
    lanes, _ = read(path)
    assert sum(e["name"] == "copy" for events in lanes.values() for e in events) >= 10


def test_a_loop_broken_off_and_a_batch_that_fails_leave_a_whole_trace(folder, tmp_path):
    path = tmp_path / "trace.json"
    bad = tmp_path / "bad.npy"
    bad.write_bytes(b"\x93NUMPY nothing")
    names = [*(str(folder / f"{i:03}.npy") for i in range(20)), str(bad)]
    for workers in (0, 3):
        with penstock.DataLoader(penstock.files(names), 3, num_workers=workers, trace=path) as loader:
            for _ in loader:
                break
            with pytest.raises(penstock.Error, match=r"bad\.npy"):
                list(loader)
        lanes, _ = read(path)
        for events in lanes.values():
            require_nesting(events)
        assert "wait for batch" in {e["name"] for e in lanes["caller"]}


def test_a_loader_that_is_dropped_writes_its_trace(folder, tmp_path):
    path = tmp_path / "trace.json"
    loader = penstock.DataLoader(penstock.files(folder), 8, num_workers=1, trace=path)
    next(iter(loader))
    del loader
    assert read(path)[0]["caller"]


def test_a_path_that_cannot_be_written_is_an_error_at_once(folder, tmp_path):
    dataset = penstock.files(folder)
    with pytest.raises(FileNotFoundError, match="missing"):
        penstock.DataLoader(dataset, trace=tmp_path / "missing" / "x.json")
    with pytest.raises(IsADirectoryError):
        penstock.DataLoader(dataset, trace=tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(penstock.Error, match="pipe"):
        penstock.DataLoader(dataset, trace=tmp_path / "pipe")
    with pytest.raises(ValueError, match="empty trace"):
        penstock.DataLoader(dataset, trace="")
    with pytest.raises(ValueError, match="trace"):
        penstock.DataLoader(dataset).write_trace()


def test_close_tells_that_the_trace_could_not_be_written(folder, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    loader = penstock.DataLoader(penstock.files(folder), 8, num_workers=1, trace=place / "x.json")
    list(loader)
    place.rmdir()
    with pytest.raises(FileNotFoundError):
        loader.close()
    with pytest.raises(ValueError, match="closed"):
        list(loader)


def test_an_untraced_loader_makes_the_same_batches(folder, tmp_path):
    def batches(**options):
        loader = penstock.DataLoader(penstock.files(folder), 7, shuffle=True, seed=3, **options)
        return [batch.numpy().tolist() for batch in loader]

    assert batches(num_workers=2, trace=tmp_path / "t.json") == batches(num_workers=2) == batches(num_workers=0)
