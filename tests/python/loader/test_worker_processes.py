"""Functions in worker processes: what they give is what threads give, and whatever they do, the loader goes on or says
what was wrong, and leaves nothing behind."""

import gc
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

import pytest
import worker_functions as functions
from waiting import patient
from worker_pairs import COUNT, MAPS, PROCESSES, batches, rows
from worker_programs import PROGRAM, WITHOUT_CLOUDPICKLE, run_program

import penstock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
    ),
]


def stat_of(pid):
    """The fields of its state behind the name: what it does, and its parent."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["Z", "0"]


def below(root):
    """The processes below another one."""
    parents = {int(name): int(stat_of(name)[1]) for name in os.listdir("/proc") if name.isdigit()}
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return found - {root}


def children():
    """The processes below this one, without the servers that start workers."""
    return {pid for pid in below(os.getpid()) if "_processes._server" not in command_of(pid) or not is_server(pid)}


def is_server(pid):
    return int(stat_of(pid)[1]) == os.getpid()


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def shared_files():
    """What torch and multiprocessing make there."""
    return [name for name in os.listdir("/dev/shm") if name.startswith(("torch_", "psm_"))]


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    # Tests before this one may have left servers of multiprocessing's, and others use /dev/shm at the same time.
    files, processes = set(shared_files()), children()
    yield
    gc.collect()
    wait_until(lambda: children() <= processes)
    wait_until(lambda: set(shared_files()) <= files)
    assert not [name for name in os.listdir("/proc/self/fd") if "memfd:penstock" in _target(name)]


def _target(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


@pytest.mark.parametrize("name", MAPS)
def test_batches_are_those_of_threads(name):
    data = MAPS[name](rows())
    expected = batches(penstock.DataLoader(data, 3, shuffle=True, seed=5, num_workers=0))
    loader = penstock.DataLoader(data, 3, shuffle=True, seed=5, **PROCESSES)
    assert batches(loader) == expected
    other = batches(loader)  # of the next epoch
    assert sorted(map(str, other)) != sorted(map(str, expected)) or name in {"zip", "subset"} or len(other) > 0


def test_collation_and_shapes_of_any_kind():
    data = rows().map(functions.grown)
    expected = batches(penstock.DataLoader(data, 4, num_workers=0, collate=penstock.pad()))
    assert batches(penstock.DataLoader(data, 4, collate=penstock.pad(), **PROCESSES)) == expected
    expected = batches(penstock.DataLoader(rows(), 4, num_workers=0, collate_fn=functions.stacked))
    assert batches(penstock.DataLoader(rows(), 4, collate_fn=functions.stacked, **PROCESSES)) == expected


def test_they_run_in_as_many_processes():
    with penstock.DataLoader(rows(200).map(functions.process), 2, **PROCESSES) as loader:
        pids = {pid for batch in loader for pid in batch.tolist()}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2


def test_without_workers_the_caller_calls():
    with pytest.warns(UserWarning, match=r"starts none with num_workers=0"):
        loader = penstock.DataLoader(rows().map(functions.process), num_workers=0, workers="processes")
    assert {batch.tolist()[0] for batch in loader} == {os.getpid()}


def test_what_a_function_keeps_is_not_written_over():
    loader = penstock.DataLoader(rows(40).map(functions.keeping), 4, **PROCESSES)
    assert [batch.tolist()[0][0] for batch in loader] == [float(first) for first in range(0, 40, 4)]


def test_a_batch_that_is_kept_is_not_written_over():
    kept = list(penstock.DataLoader(rows(400), 4, collate_fn=functions.stacked, **PROCESSES))
    assert [batch["x"].tolist()[0][0] for batch in kept] == [float(first) for first in range(0, 400, 4)]


def test_huge_results():
    sizes = [batch.nbytes for batch in penstock.DataLoader(rows(3).map(functions.huge), 1, **PROCESSES)]
    assert sizes == [40_000_000] * 3


@pytest.mark.parametrize("function", [functions.forking, functions.threading_])
def test_functions_may_fork_and_start_threads(function):
    data = rows().map(function)
    assert len(batches(penstock.DataLoader(data, 4, **PROCESSES))) == 3


def test_a_function_that_returns_from_a_fork_too_is_called_once():
    for _ in range(5):
        with penstock.DataLoader(rows(40).map(functions.forks_and_returns), 4, timeout=60, **PROCESSES) as loader:
            assert batches(loader) == batches(penstock.DataLoader(rows(40).map(functions.twice), 4, num_workers=0))
    data = rows().map(functions.forks_and_raises)
    with penstock.DataLoader(data, 4, timeout=60, **PROCESSES) as loader, pytest.raises(ValueError, match="0"):
        list(loader)


def test_a_function_may_iterate_a_loader_with_processes():
    data = rows(4).map(functions.nested)
    expected = batches(penstock.DataLoader(rows(4).map(functions.nested), 2, num_workers=0))
    assert batches(penstock.DataLoader(data, 2, **PROCESSES)) == expected


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (functions.raises, ValueError, "no four"),
        (functions.raises_unpicklable, penstock.UserCodeError, "LocalError: stays there"),
        (functions.raises_missing, FileNotFoundError, "/no/such/file"),
        (functions.nothing, penstock.UnsupportedError, "gave None"),
        (functions.generator, penstock.DTypeMismatchError, "generator"),
        (functions.ends_process, penstock.UserCodeError, "ended with exit code 3"),
        (functions.is_killed, penstock.UserCodeError, "was killed by SIGKILL"),
        (functions.leaves_a_child, penstock.UserCodeError, "ended with exit code 7"),
        (functions.closes_everything, penstock.UserCodeError, "ended with exit code 0.* all descriptors closed"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_errors_name_the_sample_and_the_loader_goes_on(function, error, text):
    data = rows().map(function)
    loader = penstock.DataLoader(data, 3, **PROCESSES)
    iterator = iter(loader)
    if function not in {functions.nothing, functions.generator}:
        assert next(iterator).shape == (3, 3)
    with pytest.raises(error, match=text) as raised:
        next(iterator)
    assert "sample 4" in str(raised.value) or "sample 0" in str(raised.value) or raised.value.__notes__
    if function in {functions.nothing, functions.generator}:
        return
    assert next(iterator).shape == (3, 3)
    with penstock.DataLoader(data, 3, on_error="skip", **PROCESSES) as lenient:
        assert sum(len(batch) for batch in lenient) == COUNT - 1
        assert [index for index, _, _ in lenient.set_aside] == [4]


def test_an_exception_has_the_workers_traceback():
    with pytest.raises(ValueError, match="no four") as raised:
        list(penstock.DataLoader(rows().map(functions.raises), 3, **PROCESSES))
    causes, error = [], raised.value
    while error is not None:
        causes.append(str(error))
        error = error.__cause__
    assert 'raise ValueError("no four")' in causes[-1]


def test_an_exception_that_takes_more_than_a_text_keeps_its_type():
    with pytest.raises(functions.OddError) as raised:
        list(penstock.DataLoader(rows().map(functions.raises_odd), 3, **PROCESSES))
    assert raised.value.args == (4, "odd")


def test_an_exception_may_have_no_text():
    data = rows().map(functions.raises_textless)
    with pytest.raises(functions.TextlessError) as raised:
        list(penstock.DataLoader(data, 3, num_workers=2))
    assert raised.value.args == (4,)
    with pytest.raises(penstock.UserCodeError, match="TextlessError: an exception without a text"):
        list(penstock.DataLoader(data, 3, **PROCESSES))


def test_bytes_come_as_what_they_were():
    data = rows().map(functions.octets)
    expected = batches(penstock.DataLoader(data, 3, num_workers=2))
    assert batches(penstock.DataLoader(data, 3, **PROCESSES)) == expected
    first = next(iter(penstock.DataLoader(data, 3, **PROCESSES)))
    assert {key: {type(item) for item in items} for key, items in first.items()} == {
        "array": {bytearray},
        "bytes": {bytes},
        "empty": {bytearray},
    }


def test_what_functions_leak_ends_with_their_process():
    def held():
        status = pathlib.Path("/proc/self/status").read_text().split()
        return len(os.listdir("/proc/self/fd")), int(status[status.index("Threads:") + 1])

    data = rows(60).map(functions.leaks)
    expected = batches(penstock.DataLoader(rows(60), 3, num_workers=0))
    with penstock.DataLoader(rows(4).map(functions.twice), 1, **PROCESSES) as loader:
        list(loader)  # whatever stays for good is there now
    before, others = held(), children()
    with penstock.DataLoader(data, 3, **PROCESSES) as loader:
        assert batches(loader) == expected
        assert batches(loader) == expected
    assert children() == others
    assert held() == before


@pytest.mark.parametrize(
    ("function", "error"), [(functions.exits, SystemExit), (functions.interrupts, KeyboardInterrupt)]
)
def test_what_ends_a_program_is_raised_as_in_threads(function, error):
    with pytest.raises(error):
        list(penstock.DataLoader(rows().map(function), 3, **PROCESSES))


def test_what_does_not_pickle_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match=r"<lambda> cannot be sent to a worker process.*workers='threads'"):
        list(penstock.DataLoader(rows().map(lambda sample: sample), 3, **PROCESSES))


@pytest.mark.parametrize("function", [functions.hangs, functions.deadlocks])
def test_a_function_that_hangs_is_waited_for_as_long_as_timeout_says(function):
    loader = penstock.DataLoader(rows().map(function), 3, timeout=0.5, **PROCESSES)
    iterator = iter(loader)
    next(patient(iterator))  # workers may take longer than the timeout to start
    with pytest.raises(TimeoutError):
        next(iterator)
    begin = time.monotonic()
    loader.close()
    assert time.monotonic() - begin < 60  # and not for ever


def test_a_loop_may_be_left_before_functions_have_arrived(tmp_path):
    """They are sent again then, and the worker has them already."""
    path = tmp_path / "arriving"
    data = rows().map(functions.SlowToArrive(str(path)))
    expected = batches(penstock.DataLoader(data, 3, num_workers=0))
    with penstock.DataLoader(data, 3, num_workers=1, workers="processes", timeout=0.02) as loader:
        iterator = patient(iter(loader), path.exists)
        assert next(iterator) is None
        del iterator
        assert batches(patient(iter(loader))) == expected


def test_the_server_is_started_anew_where_it_was_killed():
    data = rows().map(functions.twice)
    expected = batches(penstock.DataLoader(data, 3, num_workers=0))
    assert batches(penstock.DataLoader(data, 3, **PROCESSES)) == expected
    from penstock._processes import _launcher

    for server in _launcher._servers.values():
        server._popen.kill()
        server._popen.wait()
    assert batches(penstock.DataLoader(data, 3, **PROCESSES)) == expected


def test_a_stopped_worker_ends_with_the_loader():
    loader = penstock.DataLoader(rows(1000).map(functions.slow), 1, **PROCESSES)
    before = children()
    iterator = iter(loader)
    next(iterator)
    workers = children() - before
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    loader.close()
    assert not workers & children()


def test_a_stopped_server_does_not_keep_a_loader_from_ending():
    from penstock._processes import _launcher

    data = rows().map(functions.twice)
    expected = batches(penstock.DataLoader(data, 3, num_workers=0))
    loader = penstock.DataLoader(data, 3, **PROCESSES)
    assert batches(loader) == expected
    for server in _launcher._servers.values():
        server._control.settimeout(0.5)
        os.kill(server._popen.pid, signal.SIGSTOP)
    loader.close()
    assert batches(penstock.DataLoader(data, 3, **PROCESSES)) == expected


def test_workers_have_the_environment_and_few_descriptors(monkeypatch):
    monkeypatch.setenv("PENSTOCK_TEST_OF_WORKERS", "of now")
    with penstock.DataLoader(rows(1).map(functions.environment), 1, **PROCESSES) as loader:
        assert batches(loader) == [(list, ["of now"])]
    with open(__file__), penstock.DataLoader(rows(1).map(functions.descriptors), 1, **PROCESSES) as loader:
        assert next(iter(loader)).item() <= 6  # standard ones, the socket, and the folder that is listed


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(ValueError, match="expected 'threads', 'processes' or 'auto'"):
        penstock.DataLoader(rows(), workers="process")


def test_stats_say_what_they_do():
    with penstock.DataLoader(rows(40).map(functions.slow), 4, **PROCESSES) as loader:
        list(loader)
        stats = loader.stats()
    assert stats["worker_calls"] == 40
    assert 1 <= stats["worker_processes"] == stats["worker_processes_started"] <= 2
    assert 40 * 0.05 <= stats["worker_function_seconds"] <= stats["function_seconds"]
    assert stats["worker_bytes"] > 0
    assert "penstock_loader_worker_calls_total 40" in stats.prometheus()
    assert "worker_calls" not in penstock.DataLoader(rows()).stats()


def test_a_trace_has_a_lane_for_each(tmp_path):
    path = tmp_path / "trace.json"
    with penstock.DataLoader(rows(40).map(functions.slow), 4, trace=path, **PROCESSES) as loader:
        list(loader)
        seconds = loader.stats()["worker_function_seconds"]
        count = loader.stats()["worker_processes"]
    events = json.loads(path.read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M" and "tid" in event}
    own = [event for event in events if event["ph"] == "X" and lanes[event["tid"]].startswith("process ")]
    assert len({event["tid"] for event in own}) == count
    assert {event["name"] for event in own} == {"function"}
    assert sum(event["dur"] for event in own) / 1e6 == pytest.approx(seconds, rel=0.01)
    assert all(0 <= event["args"]["sample"] < 40 for event in own)
    calling = [event for event in events if event["ph"] == "X" and lanes[event["tid"]].startswith("worker ")]
    called = {event["args"]["sample"] for event in calling if event["name"] == "function"}
    assert called  # the threads' own lanes show that they wait for it


def test_the_memory_of_calls_and_answers_counts_for_memory_budget():
    def most(budget):
        data = rows(24).map(functions.megabyte)
        with penstock.DataLoader(data, 1, prefetch_factor=8, memory_budget=budget, **PROCESSES) as loader:
            iterator = iter(loader)
            next(iterator)
            settled = None
            while settled != (settled := loader.stats()["batches"]):
                time.sleep(1)  # until nothing more is prepared
            rest = sum(1 for _ in iterator)
            assert rest == 23
            return settled, loader.stats()["worker_bytes"]

    prepared, shared = most(8_200_000)
    assert 2 << 20 <= shared <= 4 << 20
    assert prepared <= 7  # 9 if the shared memory did not count
    assert most(64 << 20)[0] == 17


def test_a_loader_pickles_with_them():
    loader = pickle.loads(pickle.dumps(penstock.DataLoader(rows().map(functions.process), 3, **PROCESSES)))
    assert os.getpid() not in {pid for batch in loader for pid in batch.tolist()}


def test_functions_of_the_main_module(tmp_path):
    done = run_program(
        tmp_path,
        WITHOUT_CLOUDPICKLE
        + """
import numpy as np, penstock

class MainError(Exception):
    pass

def function(sample):
    if sample[0].item() == 2:
        raise MainError("of main")
    print("called", flush=True)
    return sample.numpy() * 2

if __name__ == "__main__":
    data = penstock.rows(np.arange(3.0).reshape(3, 1)).map(function)
    loader = penstock.DataLoader(data, 2, num_workers=1, workers="processes")
    iterator = iter(loader)
    print(next(iterator).tolist())
    try:
        next(iterator)
    except MainError as error:
        print(error)
""",
    )
    assert done.returncode == 0, done.stderr
    assert "[[0.0], [2.0]]" in done.stdout
    assert done.stdout.count("called") == 2
    assert "of main (at sample 2" in done.stdout


def test_a_main_module_is_not_run_again_to_measure(tmp_path):
    done = run_program(
        tmp_path,
        WITHOUT_CLOUDPICKLE
        + """
import time
import numpy as np, penstock

def function(sample):
    return sample.numpy() + 1

print("main")
data = penstock.rows(np.zeros((3, 1))).map(function)
loader = penstock.DataLoader(data, 2, num_workers=1, workers="auto")
end = time.monotonic() + 100
while "each worker would have to run" not in loader.explain() and time.monotonic() < end:
    assert [batch.tolist() for batch in loader] == [[[1.0], [1.0]], [[1.0]]]
print(loader.explain())
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "main"
    assert len(done.stdout.splitlines()) == 2
    assert "threads call the functions: " in done.stdout


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_a_main_module_without_a_guard_gets_an_error_that_says_so(tmp_path, batched, shuffle):
    done = run_program(
        tmp_path,
        WITHOUT_CLOUDPICKLE
        + f"""
import numpy as np, penstock

def function(sample):
    return sample

data = penstock.rows(np.zeros((300, 1))).map(function, batched={batched})
print(len(list(penstock.DataLoader(data, 2, shuffle={shuffle}, num_workers=1, workers="processes"))))
""",
    )
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.startswith("RuntimeError: ")][-1]
    assert "__name__" in said
    assert said.count("(at batch 0") == int(batched)  # and not that of the worker's own loader


def test_a_function_behind_the_guard_gets_an_error_that_says_so(tmp_path):
    done = run_program(
        tmp_path,
        WITHOUT_CLOUDPICKLE
        + """
import numpy as np, penstock

if __name__ == "__main__":
    def function(sample):
        return sample

    data = penstock.rows(np.zeros((3, 1))).map(function)
    list(penstock.DataLoader(data, 2, num_workers=1, workers="processes"))
""",
    )
    assert done.returncode != 0
    said = done.stderr.splitlines()[-1]
    assert said.startswith("RuntimeError: a worker process does not find")
    assert "'function'" in said
    assert "not under `if __name__" in said


def test_workers_end_when_their_parent_is_killed(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    program = subprocess.Popen([sys.executable, path, "slow"], stdout=subprocess.PIPE, text=True, env=env)
    program.stdout.readline()
    workers = below(program.pid)
    assert workers
    program.kill()
    program.wait()
    wait_until(lambda: all(stat_of(pid)[0] == "Z" for pid in workers))
    program.stdout.close()


def test_few_descriptors_are_enough(tmp_path):
    program = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n" + PROGRAM
    program = program.replace("sys.argv[1]", "'twice'")
    done = run_program(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 50


def test_what_functions_print_is_seen(tmp_path):
    done = run_program(tmp_path, PROGRAM.replace("sys.argv[1]", "'printing'"))
    assert done.returncode == 0, done.stderr
    assert "sample 99" in done.stdout


def test_a_program_that_raises_while_workers_call_ends(tmp_path):
    done = run_program(tmp_path, PROGRAM.replace("sys.argv[1]", "'slow'") + "        raise ValueError('here')\n")
    assert done.returncode == 1
    assert "ValueError: here" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_ctrl_c_ends_the_loop_soon(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, path, "slow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as program:
        program.stdout.readline()
        program.send_signal(signal.SIGINT)
        program.wait(timeout=30)
        assert "KeyboardInterrupt" in program.stderr.read()
