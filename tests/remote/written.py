"""What tests that write share."""

from __future__ import annotations

import subprocess

from conftest import client_of

MEGA = 1 << 20


def bytes_of(server, key: str) -> bytes:
    return bytes(client_of(server).get(key).bytes())


def run(command, *arguments, code: int = 0) -> str:
    """What the command says: its output, or its errors where it is to fail."""
    done = subprocess.run([command, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=60, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr
