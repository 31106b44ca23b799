"""`penstock doctor`: what it says of machines with and without devices."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "penstock")
SIMULATOR = BUILD / "tests" / "simulator" / "libpenstock_simulated_cuda.so"
SPEEDS = ["pinned_to_device", "device_to_pinned", "pageable_to_device"]

needs_simulator = pytest.mark.skipif(not SIMULATOR.exists(), reason=f"{SIMULATOR} is not built")


def run(*args: object, code: int = 0, before=None, **environment: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PENSTOCK_LIBCUDA": "/nowhere/libcuda.so.1", **environment}
    command = [PROGRAM, "doctor", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=before)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture
def file(tmp_path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(100_000))
    return tmp_path / "x.npy"


def diagnosis(file: Path, **environment: str) -> dict:
    return json.loads(run(file, "--json", **environment).stdout)


def file_system_of(path: Path) -> str:
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True).stdout.strip()


def advice_on(found: dict, about: str) -> str:
    return " ".join(entry["text"] for entry in found["advice"] if entry["about"] == about)


def test_without_a_driver_it_says_why(file):
    found = diagnosis(file)
    assert found["driver"] == {"devices": 0}
    assert "/nowhere/libcuda.so.1" in advice_on(found, "driver.devices")


def test_without_a_folder_for_temporary_files_the_rest_is_measured(file):
    found = json.loads(run("--json", TMPDIR="/no/such/folder").stdout)
    assert found["file"]["path"] == "/no/such/folder"
    assert "no file could be made in /no/such/folder" in advice_on(found, "file.read_cached")
    assert found["memory"]["copy_by_one_thread"] > 0


def test_measures_the_file_that_is_named(file):
    found = diagnosis(file)
    assert found["file"]["path"] == str(file)
    assert found["file"]["bytes_read"] == file.stat().st_size
    assert found["file"]["read_cached"] > 0
    assert found["file"]["route_cached"].startswith("read: ")
    assert found["memory"]["copy_by_one_thread"] > 0


def test_cached_is_measured_through_the_cache(tmp_path):
    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.write(os.urandom(8 << 20))
        os.fsync(file.fileno())  # or the kernel keeps its pages
    found = diagnosis(path)["file"]
    if not found.get("route_uncached", "").startswith("direct: "):
        pytest.skip(f"no direct reads on the {file_system_of(tmp_path)} of {tmp_path}: {found.get('route_uncached')}")
    assert found["route_cached"].startswith("read: ")
    assert ": 0% was not cached" in found["route_cached"]


def test_limits_are_those_of_the_process(file):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))

    found = json.loads(run(file, "--json", before=lower).stdout)
    assert found["limits"]["open_files"] == 200
    assert found["limits"]["open_files_at_most"] == 300
    assert "ulimit -n" in advice_on(found, "limits.open_files")
    assert found["limits"]["processors"] == len(os.sched_getaffinity(0))


def test_a_folder_is_left_as_it_was(tmp_path):
    assert "read cached" in run(tmp_path).stdout
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_not_there_is_an_error():
    assert "/nowhere/x.npy" in run("/nowhere/x.npy", code=1).stderr


@needs_simulator
def test_every_device_is_measured(file):
    found = diagnosis(file, PENSTOCK_LIBCUDA=str(SIMULATOR), PENSTOCK_SIM_DEVICES="2", PENSTOCK_SIM_AUDIT="1")
    assert found["driver"] == {"devices": 2, "version": "13.0"}
    for device in ("cuda:0", "cuda:1"):
        assert found[device]["name"] == "Simulated CUDA device"
        assert found[device]["memory"] >= found[device]["memory_free"] > 0
        assert all(found[device][speed] > 0 for speed in SPEEDS)


@needs_simulator
def test_what_multiplies_matrices_is_named(file):
    library = SIMULATOR.with_name("libpenstock_simulated_cublas.so")
    driver = {"PENSTOCK_LIBCUDA": str(SIMULATOR), "PENSTOCK_SIM_AUDIT": "1"}
    found = diagnosis(file, **driver, PENSTOCK_LIBCUBLAS=str(library))
    assert found["cuda:0"]["products"] == f"cuBLAS 13.0.0 ({library})"
    assert advice_on(found, "cuda:0.products") == ""
    found = diagnosis(file, **driver, PENSTOCK_LIBCUBLAS="/nowhere/libcublas.so.12")
    assert found["cuda:0"]["products"] == "Penstock's own kernel"
    assert "/nowhere/libcublas.so.12" in advice_on(found, "cuda:0.products")


@needs_simulator
def test_a_device_that_fails_is_a_problem_of_its_own(file):
    found = diagnosis(file, PENSTOCK_LIBCUDA=str(SIMULATOR), PENSTOCK_SIM_FAULTS="cuMemcpyAsync:*:999")
    assert found["cuda:0"]["usable"] is False
    assert "cuMemcpyAsync" in advice_on(found, "cuda:0.usable")
    assert found["memory"]["copy_by_one_thread"] > 0


@needs_simulator
def test_a_device_without_memory_is_a_problem(file):
    found = diagnosis(file, PENSTOCK_LIBCUDA=str(SIMULATOR), PENSTOCK_SIM_MEMORY=str(8 << 20))
    assert found["cuda:0"]["usable"] is False
    assert advice_on(found, "cuda:0.usable")


@needs_simulator
def test_people_get_a_table(file):
    out = run(file, PENSTOCK_LIBCUDA=str(SIMULATOR)).stdout
    assert "pinned to device" in out
    assert "GB/s" in out or "MB/s" in out
