"""Worker processes on systems that give them little: no memfd, hardly any /dev/shm, few descriptors, several ranks."""

import platform
import shutil
import subprocess
import sys

import pytest
import worker_functions as functions
from worker_pairs import rows
from worker_programs import PROGRAM, WITHOUT_CLOUDPICKLE, run_program

import penstock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
    ),
]

# Has the kernel answer memfd_create with an error, as the filters of some containers do.
WITHOUT_MEMFD = """
import ctypes, struct

def refuse_memfd(error):
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    load, equal, give = 0x20, 0x15, 0x06  # the number of the call; compare it; answer
    memfd_create = 319
    steps = [(load, 0, 0, 0), (equal, 0, 1, memfd_create), (give, 0, 0, 0x00050000 | error), (give, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code)))
    assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    assert libc.memfd_create(b"", 0) == -1

refuse_memfd({error})
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter knows the number of the call on x86-64 alone")
@pytest.mark.parametrize("error", [1, pytest.param(38, marks=pytest.mark.nightly)], ids=["EPERM", "ENOSYS"])
def test_a_system_that_refuses_memfd(tmp_path, error):
    done = run_program(
        tmp_path, WITHOUT_MEMFD.replace("{error}", str(error)) + PROGRAM.replace("sys.argv[1]", "'twice'")
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 50


def test_shared_memory_of_64_kb_is_enough(tmp_path):
    small = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k none /dev/shm && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*small, "true"], capture_output=True).returncode != 0:
        pytest.skip("no mounts of one's own here")
    program = PROGRAM.replace("sys.argv[1]", "'megabyte'").replace("arange(100.0).reshape(100, 1)", "zeros((9, 1))")
    done = run_program(tmp_path, program, before=small)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0", "1", "2", "3", "4"]


def test_a_program_that_ends_before_processes_are_ready_says_nothing(tmp_path):
    program = PROGRAM.replace("sys.argv[1]", "'twice'").replace("processes", "auto")
    done = run_program(tmp_path, program.replace("arange(100.0).reshape(100, 1)", "zeros((2, 1))"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_a_program_of_standard_input_names_what_cannot_be_sent(tmp_path):
    program = WITHOUT_CLOUDPICKLE + (
        "import numpy as np, penstock\ndef twice(sample): return np.asarray(sample) * 2\n"
        "data = penstock.rows(np.zeros((4, 1))).map(twice)\n"
        "list(penstock.DataLoader(data, num_workers=1, workers='processes'))\n"
    )
    done = subprocess.run([sys.executable], input=program, capture_output=True, text=True, timeout=120, check=False)
    assert "TypeError: twice cannot be sent to a worker process: it is defined where no module is" in done.stderr


WITHOUT_DESCRIPTORS = """
import os, numpy as np, penstock, worker_functions as functions

if __name__ == "__main__":
    data = penstock.rows(np.arange(40.0).reshape(40, 1)).map(functions.swells)
    loader = penstock.DataLoader(data, num_workers=1, prefetch_factor=1, workers="processes")
    iterator = iter(loader)
    next(iterator)
    held = []
    try:
        while True:
            held.append(os.dup(0))
    except OSError:
        pass
    try:
        print(sum(1 for _ in iterator))
    except OSError as error:
        [os.close(one) for one in held]
        print(error.errno, error)
    print(len(list(loader)))
"""


def test_a_program_without_descriptors_for_answers_is_told_so(tmp_path):
    done = run_program(tmp_path, WITHOUT_DESCRIPTORS, before=["prlimit", "--nofile=128"])
    assert done.stderr == ""
    what, whole = done.stdout.splitlines()
    assert what.startswith("24 ")
    assert "too many open files" in what
    assert whole == "40"


@pytest.mark.nightly
def test_four_ranks_on_one_machine(tmp_path):
    program = PROGRAM.replace("num_workers=2", "num_workers=2, ranks=(int(sys.argv[2]), 4), gather=False")
    path = tmp_path / "ranks.py"
    path.write_text(
        "import subprocess, sys\nrunning = [subprocess.Popen([sys.executable, sys.argv[1], 'twice', str(rank)]) "
        "for rank in range(4)]\nsys.exit(max(one.wait() for one in running))\n"
    )
    ranks = tmp_path / "rank.py"
    ranks.write_text(program)
    done = run_program(tmp_path, path.read_text().replace("sys.argv[1]", repr(str(ranks))))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4 * 13


def test_a_function_that_takes_all_descriptors_is_an_error_that_says_so():
    data = rows(1).map(functions.leaks_descriptors)
    with pytest.raises(OSError, match="Too many open files"):
        list(penstock.DataLoader(data, num_workers=1, workers="processes"))
