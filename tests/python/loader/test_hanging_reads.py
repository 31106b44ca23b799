"""A read that hangs, as on a network storage that is gone, keeps no program from ending.

Memory whose pages a `userfaultfd` is to bring makes one: who touches a page waits until it comes.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import ctypes, mmap, platform, signal, struct, sys, threading, time
import numpy as np
import penstock

kind, workers, ending = sys.argv[1], int(sys.argv[2]), sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
ROWS, PAGE = 8, mmap.PAGESIZE
region = mmap.mmap(-1, ROWS * PAGE)
address = ctypes.addressof(ctypes.c_char.from_buffer(region))
SYSCALL, USER_MODE_ONLY = {"x86_64": 323, "aarch64": 282}[platform.machine()], 1
faults = libc.syscall(SYSCALL, USER_MODE_ONLY)
def ask(request, *fields):
    if libc.ioctl(faults, ctypes.c_ulong(request), ctypes.create_string_buffer(struct.pack("=QQQQ", *fields))) != 0:
        sys.exit(77)
if faults < 0:
    sys.exit(77)
HANGS = 0 if workers == 0 else 3
def bring(first, count):
    ask(0xC020AA04, address + first * PAGE, count * PAGE, 0, 0)
ask(0xC018AA3F, 0xAA, 0, 0, 0)
ask(0xC020AA00, address, ROWS * PAGE, 1, 0)
if HANGS:
    bring(0, HANGS)

rows = np.frombuffer(region, np.uint8).reshape(ROWS, PAGE)
options = {"batch_size": 1, "num_workers": workers}
if ending == "timeout":
    options["timeout"] = 0.3
if kind == "native":
    loader = penstock.DataLoader(penstock.rows(rows), **options)
else:
    import penstock.torch as pt
    dataset = pt.Rows(rows)
    loader = pt.DataLoader(dataset.map(lambda row: row) if kind == "mapped" else dataset, **options)
batches = iter(loader)
taken = 0
if ending != "timeout":
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1)
try:
    for _ in batches:
        taken += 1
except (penstock.TimedOutError, KeyboardInterrupt) as error:
    print(type(error).__name__, taken)
if ending == "dropped":
    del batches, loader
    print("dropped")
if ending == "comes back":
    for use in (loader.state_dict, lambda: next(iter(loader))):
        try:
            use()
        except penstock.CancelledError as error:
            print("still hangs" in str(error))
    bring(HANGS, ROWS - HANGS)
    while True:
        try:
            print(len(list(loader)))
            break
        except penstock.CancelledError:
            time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("kind", "workers", "ending"),
    [
        ("native", 0, "dropped"),
        ("native", 0, "comes back"),
        ("native", 2, "dropped"),
        ("native", 2, "timeout"),
        ("torch", 0, "dropped"),
        ("torch", 2, "timeout"),
        ("torch", 2, "at exit"),
        ("mapped", 2, "timeout"),
    ],
)
def test_programs_end(kind, workers, ending):
    if kind != "native":
        pytest.importorskip("torch")
    begin = time.monotonic()
    command = [sys.executable, "-c", PROGRAM, kind, str(workers), ending]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 77:
        pytest.skip("this system gives no userfaultfd")
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - begin < 100  # and not for ever
    said = "KeyboardInterrupt" if ending != "timeout" else "TimedOutError" if kind == "native" else "LoaderTimeoutError"
    last = {"dropped": ["dropped"], "comes back": ["True", "True", "8"]}.get(ending, [])
    assert done.stdout.splitlines() == [f"{said} {0 if workers == 0 else 3}", *last]
