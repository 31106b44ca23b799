"""What tests that write share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from conftest import S3, client_of
from fault_proxy import Fault

MEGA = 1 << 20


def bytes_of(server, key: str) -> bytes:
    return bytes(client_of(server).get(key).bytes())


def kill_in_third_part(faulty, program: str, dialect=S3) -> None:
    """Runs a program that uploads in parts, and kills it while the store keeps it waiting for an answer."""
    third = dialect.at("partNumber=3")
    faulty.faults = [Fault(hang=True, target=third)]
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        while not any(third in request.target for request in faulty.requests):
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)


def run(command, *arguments, code: int = 0) -> str:
    """What the command says: its output, or its errors where it is to fail."""
    done = subprocess.run([command, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=60, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr
