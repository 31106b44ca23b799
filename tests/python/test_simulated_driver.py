"""What needs a device, once more on the simulated driver, in every order of work that a driver may choose.

A process finds its driver once, so each order is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SIMULATOR = HERE.parents[1] / "build/release/tests/simulator"
DRIVER = SIMULATOR / "libpenstock_simulated_cuda.so"
CUBLAS = SIMULATOR / "libpenstock_simulated_cublas.so"
CUFILE = SIMULATOR / "libpenstock_simulated_cufile.so"
FILES = [
    *(
        "test_devices.py",
        "test_device_ops.py",
        "test_cuda_array.py",
        "test_transfers.py",
        "test_dlpack.py",
        "test_moving.py",
    ),
    "torch/test_torch_devices.py",
]


@pytest.mark.skipif("PENSTOCK_LIBCUDA" in os.environ, reason="PENSTOCK_LIBCUDA names a driver already")
@pytest.mark.skipif(not DRIVER.exists(), reason="no simulated driver: ninja -C build/release penstock_simulated_cuda")
@pytest.mark.skipif(not CUBLAS.exists(), reason="no simulated cuBLAS: ninja -C build/release penstock_simulated_cublas")
@pytest.mark.skipif(not CUFILE.exists(), reason="no simulated cuFile: ninja -C build/release penstock_simulated_cufile")
# Whose products they are is nothing to the order of the work, so each order has one of the two.
@pytest.mark.parametrize(
    ("mode", "cublas"),
    [
        ("lazy", str(CUBLAS)),
        pytest.param("eager", str(CUBLAS), marks=pytest.mark.nightly),
        pytest.param("reorder", "", marks=pytest.mark.nightly),
        pytest.param("delay", "", marks=pytest.mark.nightly),
    ],
)
def test_what_needs_a_device(mode, cublas):
    environment = os.environ | {
        "PENSTOCK_LIBCUDA": str(DRIVER),
        "PENSTOCK_LIBCUBLAS": cublas,
        "PENSTOCK_LIBCUFILE": str(CUFILE),
        "PENSTOCK_SIM_MODE": mode,
        "PENSTOCK_SIM_DEVICES": "2",
        "PENSTOCK_SIM_AUDIT": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *(str(HERE / name) for name in FILES)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "skipped" not in ended.stdout, ended.stdout
