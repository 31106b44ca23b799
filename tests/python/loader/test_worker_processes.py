"""Functions in worker processes: what they give is what threads give, and whatever they do, the loader goes on or says
what was wrong, and leaves nothing behind."""

import gc
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import worker_functions as functions

import penstock

COUNT = 11
PROCESSES = {"num_workers": 2, "workers": "processes"}

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
)


def rows(count=COUNT):
    return penstock.rows(np.arange(count * 3, dtype="float32").reshape(count, 3) // 3)


def listed(value):
    """Content that == compares, with the types of arrays."""
    if isinstance(value, penstock.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: listed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [listed(item) for item in value]
    return value


def batches(loader):
    return [listed(batch) for batch in loader]


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


MAPS = {
    "map": lambda data: data.map(functions.twice),
    "identity": lambda data: data.map(functions.same_memory),
    "dict": lambda data: data.map(functions.as_dict),
    "chain": lambda data: data.map(functions.in_place).map(functions.twice),
    "seeded": lambda data: data.map(functions.noisy, seeded=True),
    "seeded chain": lambda data: data.map(functions.noisy, seeded=True).map(functions.noisy, seeded=True),
    "batched": lambda data: data.map(functions.twice, batched=True),
    "batched seeded": lambda data: data.map(functions.noisy, seeded=True).map(
        functions.batch_noisy, batched=True, seeded=True
    ),
    "own": lambda data: penstock.dataset(COUNT, functions.number),
    "own mapped": lambda data: penstock.dataset(COUNT, functions.number).map(functions.twice),
    "zip": lambda data: penstock.zip(data, data.map(functions.twice)),
    "subset": lambda data: penstock.subset(data.map(functions.twice), [3, 1, 4, 1, 5]),
    "native behind": lambda data: data.map(functions.twice).scale(3.0),
}


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


def random_pipeline(draw):
    data = rows(draw.randint(1, 12))
    batched = False
    for _ in range(draw.randint(1, 4)):
        kinds = ["twice", "noisy", "subset", "scale", "zip"]
        kind = draw.choice(["batched"] if batched else [*kinds, "batched"])
        if kind == "twice":
            data = data.map(functions.in_place)
        elif kind == "noisy":
            data = data.map(functions.noisy, seeded=True)
        elif kind == "subset":
            data = penstock.subset(data, [draw.randrange(len(data)) for _ in range(draw.randint(1, 12))])
        elif kind == "scale":
            data = data.scale(0.5)
        elif kind == "zip":
            return penstock.zip(data, data.map(functions.same_memory)), draw.random() < 0.5
        else:
            batched = True
            data = data.map(functions.batch_noisy, batched=True, seeded=True)
    return data, draw.random() < 0.5


def compare_random_pipelines(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        data, shuffle = random_pipeline(draw)
        options = {"batch_size": draw.randint(1, 5), "shuffle": shuffle, "seed": draw.randrange(100)}
        expected = batches(penstock.DataLoader(data, num_workers=0, **options))
        assert batches(penstock.DataLoader(data, num_workers=2, **options)) == expected
        with penstock.DataLoader(data, num_workers=draw.randint(1, 3), workers="processes", **options) as loader:
            stop = draw.randint(0, len(expected))
            iterator = iter(loader)
            taken = [listed(next(iterator)) for _ in range(stop)]
            state = loader.state_dict()
        assert taken == expected[:stop]
        if stop < len(expected):
            with penstock.DataLoader(data, num_workers=1, workers="processes", **options) as again:
                again.load_state_dict(state)
                assert batches(again) == expected[stop:]


def test_random_pipelines_are_the_same_in_threads_and_processes():
    compare_random_pipelines(25, 7)


@pytest.mark.nightly
def test_many_random_pipelines():
    compare_random_pipelines(2000, 8)


def test_they_run_in_as_many_processes():
    with penstock.DataLoader(rows(200).map(functions.process), 2, **PROCESSES) as loader:
        pids = {pid for batch in loader for pid in batch.tolist()}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2


def test_without_workers_the_caller_calls():
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


def test_a_function_that_hangs_is_waited_for_as_long_as_timeout_says():
    loader = penstock.DataLoader(rows().map(functions.hangs), 3, timeout=0.5, **PROCESSES)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(TimeoutError):
        next(iterator)
    begin = time.monotonic()
    loader.close()
    assert time.monotonic() - begin < 10


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


def test_workers_have_the_environment_and_few_descriptors(monkeypatch):
    monkeypatch.setenv("PENSTOCK_TEST_OF_WORKERS", "of now")
    with penstock.DataLoader(rows(1).map(functions.environment), 1, **PROCESSES) as loader:
        assert batches(loader) == [(list, ["of now"])]
    with open(__file__), penstock.DataLoader(rows(1).map(functions.descriptors), 1, **PROCESSES) as loader:
        assert next(iter(loader)).item() <= 6  # standard ones, the socket, and the folder that is listed


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(ValueError, match="expected 'threads' or 'processes'"):
        penstock.DataLoader(rows(), workers="process")
    with pytest.raises(ValueError, match="stream"):
        penstock.DataLoader(penstock.stream([np.zeros(1)]), workers="processes")


def test_a_loader_pickles_with_them():
    loader = pickle.loads(pickle.dumps(penstock.DataLoader(rows().map(functions.process), 3, **PROCESSES)))
    assert os.getpid() not in {pid for batch in loader for pid in batch.tolist()}


def run_program(tmp_path, text, *, environment=None, **kwargs):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    folder = str(pathlib.Path(__file__).parent)
    # Without cloudpickle, as most installations are.
    env = {**os.environ, "PYTHONPATH": folder, **(environment or {})}
    return subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, env=env, **kwargs)


WITHOUT_CLOUDPICKLE = "import sys; sys.modules['cloudpickle'] = None\n"


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


def test_a_main_module_without_a_guard_gets_an_error_that_says_so(tmp_path):
    done = run_program(
        tmp_path,
        WITHOUT_CLOUDPICKLE
        + """
import numpy as np, penstock

def function(sample):
    return sample

data = penstock.rows(np.zeros((3, 1))).map(function)
print(len(list(penstock.DataLoader(data, 2, num_workers=1, workers="processes"))))
""",
    )
    assert done.returncode != 0
    assert "__name__" in done.stderr.splitlines()[-1] or "__name__" in done.stderr


PROGRAM = """
import sys, numpy as np, penstock, worker_functions as functions

if __name__ == "__main__":
    data = penstock.rows(np.arange(100.0).reshape(100, 1)).map(getattr(functions, sys.argv[1]))
    loader = penstock.DataLoader(data, 2, num_workers=2, workers="processes")
    for number, batch in enumerate(loader):
        print(number, flush=True)
"""


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
