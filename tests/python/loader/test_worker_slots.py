"""Results of worker processes in the memory of their batch: written there by the worker, and by nobody else."""

import gc
import os
import pathlib
import signal
import sys
import time

import numpy as np
import pytest
import worker_functions as functions
from worker_pairs import PROCESSES, batches

import penstock
import penstock.sharing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
    ),
]
WIDE = 1024  # elements of 4 bytes: slots of such a size are awaited


def wide(count=120):
    return penstock.rows(np.arange(count, dtype="float32")[:, None] + np.zeros(WIDE, dtype="float32"))


def shared_with_workers():
    """(begin, end) of what this process has of the memory that batches share with workers."""
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in lines if "memfd:penstock" in line]


def address_of(tensor):
    return np.asarray(tensor).__array_interface__["data"][0]


def is_shared(tensor):
    return any(begin <= address_of(tensor) < end for begin, end in shared_with_workers())


@pytest.mark.parametrize(
    "function",
    [functions.twice, functions.mirrored, functions.pair_of_rows, functions.raises_at_40],
    ids=["twice", "mirrored", "dict", "raises"],
)
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace", "mask"])
def test_batches_are_those_of_threads(function, on_error):
    if function is functions.raises_at_40 and on_error == "raise":
        pytest.skip("it raises")
    data = wide().map(function)
    options = {"batch_size": 8, "shuffle": True, "seed": 3, "on_error": on_error}
    expected = batches(penstock.DataLoader(data, num_workers=0, **options))
    loader = penstock.DataLoader(data, **options, **PROCESSES)
    assert batches(loader) == expected
    loader.set_epoch(0)
    assert batches(loader) == expected


def test_batches_lie_in_memory_that_workers_write_to():
    loader = penstock.DataLoader(wide().map(functions.twice), 8, **PROCESSES)
    places = [is_shared(batch) for batch in loader]
    assert all(places[len(places) // 2 :])
    assert all(is_shared(batch) for batch in loader)
    loader = penstock.DataLoader(penstock.dataset(120, functions.wide_number), 8, **PROCESSES)
    *_, last = loader
    assert is_shared(last)
    with pytest.raises(penstock.InvalidArgumentError, match="of this process alone"):  # nobody else may attach to it
        penstock.sharing.share(last)


def test_what_no_process_makes_is_no_such_memory():
    assert not any(is_shared(batch) for batch in penstock.DataLoader(wide(), 8, **PROCESSES))


def test_slots_are_given_back_with_their_batch():
    before = {begin for begin, _ in shared_with_workers()}
    loader = penstock.DataLoader(wide(800).map(functions.twice), 8, **PROCESSES)
    for batch in loader:
        del batch
    most = loader.stats()["buffers_allocated"]
    for batch in loader:
        del batch
    assert loader.stats()["buffers_allocated"] <= most + 2
    assert most < 30
    own = {begin for begin, _ in shared_with_workers()} - before
    loader.close()
    del loader
    gc.collect()
    deadline = time.monotonic() + 20
    while own & {begin for begin, _ in shared_with_workers()}:
        assert time.monotonic() < deadline, "memory of batches outlives its loader"
        time.sleep(0.01)


def test_batches_that_are_kept_take_one_descriptor():
    loader = penstock.DataLoader(wide(2000).map(functions.twice), 8, **PROCESSES)
    before = len(os.listdir("/proc/self/fd"))
    kept = list(loader)
    assert len(os.listdir("/proc/self/fd")) <= before + 16
    loader.close()
    del loader
    for number, batch in enumerate(kept):  # also when the workers are gone
        assert np.asarray(batch)[:, 5].tolist() == [2.0 * (8 * number + i) for i in range(8)]
        batch += 1


@pytest.mark.parametrize("function", [functions.other_shape_at_40, functions.other_type_at_40])
def test_a_result_of_another_form_is_what_it_is_in_threads(function):
    data = wide().map(function)
    for options in ({}, {"on_error": "skip"}, {"collate": penstock.pad()}, {"collate": penstock.samples()}):
        found = []
        for workers in ({"num_workers": 0}, PROCESSES):
            loader = penstock.DataLoader(data, 8, **options, **workers)
            got, iterator = [], iter(loader)
            while True:
                try:
                    got.append(batches([next(iterator)]))
                except StopIteration:
                    break
                except penstock.Error as error:
                    got.append((type(error), str(error)))
            found.append(got)
        assert found[0] == found[1]


def test_a_worker_that_ends_costs_its_own_sample_alone():
    data = wide().map(functions.ends_at_40)
    with penstock.DataLoader(data, 8, on_error="skip", **PROCESSES) as loader:
        for _ in range(2):
            seen = np.concatenate([np.asarray(batch)[:, -1] for batch in loader])
            assert seen.tolist() == [float(i + 1) for i in range(120) if i != 40]


def test_a_loop_that_is_left_does_not_change_later_batches():
    """Calls that were under way then write to memory that no later batch has."""
    loader = penstock.DataLoader(wide(400).map(functions.slowly_twice), 8, **PROCESSES)
    for _ in range(6):
        loader.set_epoch(0)
        for number, batch in enumerate(loader):
            assert np.asarray(batch)[:, 7].tolist() == [2.0 * (8 * number + i) for i in range(8)]
            if number == 3:
                break


def test_a_fork_of_the_program_leaves_batches_as_they_are():
    loader = penstock.DataLoader(wide().map(functions.twice), 8, **PROCESSES)
    kept = list(loader)
    child = os.fork()
    if child == 0:
        try:
            del kept
            gc.collect()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert np.asarray(kept[-1])[:, 3].tolist() == [2.0 * i for i in range(112, 120)]
    assert batches(loader) == batches(kept)


def test_a_limit_of_files_lengths_is_kept(tmp_path):
    """Memory of batches would be a longer file than the program may have."""
    from worker_programs import PROGRAM, run_program

    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n" + PROGRAM
    program = program.replace("sys.argv[1]", "'twice'").replace("(100, 1)", "(100, 1) + np.zeros((1, 4096))")
    done = run_program(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 50


def test_workers_may_be_stopped_and_go_on():
    loader = penstock.DataLoader(wide(400).map(functions.slowly_twice), 8, **PROCESSES)
    iterator = iter(loader)
    first = next(iterator)
    pids = loader_pids(loader)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    rest = list(iterator)
    assert len(rest) == 49
    seen = np.concatenate([np.asarray(batch)[:, 0] for batch in [first, *rest]])
    assert seen.tolist() == [2.0 * i for i in range(400)]


def loader_pids(loader):
    pids = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                command = pathlib.Path(f"/proc/{name}/cmdline").read_bytes()
                state = pathlib.Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                parent = pathlib.Path(f"/proc/{state[1]}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if b"_processes._server" in command and parent[1] == str(os.getpid()):
                pids.append(int(name))
    assert pids
    return pids
