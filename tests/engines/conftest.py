"""Tests inside the engines that people run, in the environment build/engines (script/bootstrap --engines).

    script/test engines          # or: build/engines/bin/python -m pytest tests/engines

A module is skipped by the name of its engine where that is not installed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

os.environ |= {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "OMP_NUM_THREADS": "1",
    # Classes and functions of tests go to workers by the name of their module.
    "PYTHONPATH": os.path.dirname(__file__),
}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def started(folder: Path, name: str, *arguments: str) -> subprocess.Popen:
    command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus=1", "--disable-usage-stats"]
    command += [f"--resources={json.dumps({name: 1})}", "--object-store-memory=150000000"]
    command += [f"--dashboard-agent-listen-port={free_port()}", *arguments]
    with open(folder / f"{name}.log", "w") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def ended(node: subprocess.Popen) -> None:
    node.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        node.wait(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(node.pid, signal.SIGKILL)
    node.wait()


@pytest.fixture(scope="session")
def cluster():
    """Two nodes of Ray on this machine, `one` and `two`, with a processor each."""
    ray = pytest.importorskip("ray")
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # short, because sockets lie in it
    address = f"127.0.0.1:{free_port()}"
    nodes = [
        started(
            folder, "one", "--head", "--include-dashboard=false", f"--temp-dir={folder}", f"--port={address[10:]}",
            "--node-ip-address=127.0.0.1",
        )
    ]  # fmt: skip
    try:
        wait_for(lambda: "started" in (folder / "one.log").read_text(), nodes, folder)
        nodes.append(started(folder, "two", f"--address={address}", "--node-ip-address=127.0.0.1"))
        ray.init(address, log_to_driver=False, logging_level="ERROR")
        wait_for(lambda: sum(node["Alive"] for node in ray.nodes()) == 2, nodes, folder)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        yield address
    finally:
        ray.shutdown()
        for node in reversed(nodes):
            ended(node)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(done, nodes, folder: Path) -> None:
    until = time.monotonic() + 300
    while not done():
        dead = [node for node in nodes if node.poll() is not None]
        if dead or time.monotonic() > until:
            raise RuntimeError("".join(log.read_text() for log in sorted(folder.glob("*.log"))))
        time.sleep(0.1)


@pytest.fixture
def folder(tmp_path) -> Path:
    """20 small `.npy` of 3 rows each, and a larger one."""
    (tmp_path / "small").mkdir()
    for i in range(20):
        np.save(tmp_path / f"small/{i:02d}.npy", np.arange(12.0).reshape(3, 4) + 100 * i)
    np.save(tmp_path / "large.npy", np.arange(300_000, dtype=np.float32).reshape(-1, 3))
    return tmp_path
