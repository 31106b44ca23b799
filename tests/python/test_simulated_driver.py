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
DRIVER = HERE.parents[1] / "build/release/tests/simulator/libpenstock_simulated_cuda.so"
FILES = ["test_devices.py", "test_device_ops.py"]


@pytest.mark.skipif("PENSTOCK_LIBCUDA" in os.environ, reason="PENSTOCK_LIBCUDA names a driver already")
@pytest.mark.skipif(not DRIVER.exists(), reason="no simulated driver: ninja -C build/release penstock_simulated_cuda")
@pytest.mark.parametrize("mode", ["eager", "lazy", "reorder", "delay"])
def test_what_needs_a_device(mode):
    environment = os.environ | {
        "PENSTOCK_LIBCUDA": str(DRIVER),
        "PENSTOCK_SIM_MODE": mode,
        "PENSTOCK_SIM_DEVICES": "2",
        "PENSTOCK_SIM_AUDIT": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *(str(HERE / name) for name in FILES)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "skipped" not in ended.stdout, ended.stdout
