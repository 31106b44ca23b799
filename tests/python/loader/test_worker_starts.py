"""The ways to start worker processes: "forkserver", "spawn" and "fork"."""

import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
import worker_functions as functions
from worker_pairs import PROCESSES, batches, rows
from worker_programs import PROGRAM, WITHOUT_CLOUDPICKLE, run_program

import penstock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
    ),
]

FORK = PROGRAM.replace('workers="processes"', 'workers="processes", multiprocessing_context="fork"')


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_batches_are_those_of_threads(context):
    data = rows().map(functions.noisy, seeded=True)
    expected = batches(penstock.DataLoader(data, 3, num_workers=0))
    with penstock.DataLoader(data, 3, multiprocessing_context=context, **PROCESSES) as loader:
        assert batches(loader) == expected


def test_a_way_that_there_is_not():
    with pytest.raises(ValueError, match="expected 'forkserver', 'spawn' or 'fork'"):
        penstock.DataLoader(rows(), multiprocessing_context="thread")
    with pytest.raises(ValueError, match="found multiprocessing_context=3"):
        penstock.DataLoader(rows(), multiprocessing_context=3)


def test_a_closure_does_not_get_to_a_new_interpreter(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with (
        pytest.raises(TypeError, match="cannot be sent to a worker process"),
        penstock.DataLoader(
            rows().map(functions.at_four(print)), multiprocessing_context="spawn", **PROCESSES
        ) as loader,
    ):
        list(loader)


@pytest.mark.parametrize("context", ["forkserver", "fork", pytest.param("spawn", marks=pytest.mark.nightly)])
def test_odd_functions_are_what_they_are_in_threads(tmp_path, context):
    program = pathlib.Path(__file__).with_name("worker_oddities.py").read_text()
    done = run_program(tmp_path, program, arguments=[context])
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("sample ")]
    assert [line for line in lines if not line.endswith(" ok")] == ["done"], done.stderr
    assert len(lines) > 30


def test_a_fork_is_of_the_program_itself(tmp_path):
    """As it was when the loader was made, also for a worker that takes the place of one that ended."""
    program = FORK.replace("    data = ", "    functions.of_program = 5\n    data = ")
    program = program.replace("getattr(functions, sys.argv[1])", "functions.program_until_four")
    program = program.replace('context="fork")', 'context="fork", on_error="skip")\n    functions.of_program = 0')
    done = run_program(tmp_path, program.replace("print(number, flush=True)", "print(*batch.tolist())"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["5"] * 99


def test_what_is_not_printed_yet_is_printed_once(tmp_path):
    done = run_program(
        tmp_path,
        FORK.replace("    data = ", "    print('before', end='')\n    data = ").replace("sys.argv[1]", "'twice'"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("before") == 1


def test_a_function_of_the_main_module_and_a_worker_that_ends(tmp_path):
    program = FORK.replace("getattr(functions, sys.argv[1])", "functions.ends_process").replace(
        'context="fork"', 'context="fork", on_error="skip"'
    )
    done = run_program(tmp_path, WITHOUT_CLOUDPICKLE + program + "    print(loader.set_aside)\n")
    assert done.returncode == 0, done.stderr
    assert "[(4, " in done.stdout


def test_forks_end_when_their_parent_is_killed(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(FORK)
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    program = subprocess.Popen([sys.executable, path, "slow"], stdout=subprocess.PIPE, text=True, env=env)
    program.stdout.readline()
    workers = below(program.pid)
    program.kill()
    program.wait()
    program.stdout.close()
    deadline = time.monotonic() + 20
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < deadline, "a fork outlives its program"
        time.sleep(0.01)


def below(pid):
    """Its children and theirs."""
    task = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    children = task.read_text().split() if task.exists() else []
    return children + [other for child in children for other in below(child)]


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_no_fork_while_threads_may_hold_locks():
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="of the program")
    thread.start()
    try:
        with pytest.raises(ValueError, match=r"while other threads run \(.*of the program.*\).*'forkserver'"):
            penstock.DataLoader(rows(), multiprocessing_context="fork", **PROCESSES)
    finally:
        done.set()
        thread.join()
    with penstock.DataLoader(rows(100).map(functions.twice), num_workers=2) as other:
        next(iter(other))
        with pytest.raises(ValueError, match="penstock-load"):
            penstock.DataLoader(rows(), multiprocessing_context="fork", **PROCESSES)
