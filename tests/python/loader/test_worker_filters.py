"""Functions of filter in worker processes: of streams, with the maps before them, and of datasets."""

import os
import sys

import numpy as np
import pytest
import worker_functions as functions
from worker_pairs import PROCESSES, batches, listed

import penstock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
    ),
]


def numbers(count=40):
    return penstock.rows(np.arange(float(count)).reshape(count, 1))


def own(count=40):
    return penstock.stream(lambda: (np.array([float(i)]) for i in range(count)), name="own")


STREAMS = {
    "filter": lambda: own().filter(functions.is_even),
    "map before it": lambda: own().map(functions.twice).map(functions.in_place).filter(functions.judges_and_adds),
    "seeded before it": lambda: own().map(functions.noisy, seeded=True).filter(functions.noisy_is_small),
    "behind each other": lambda: own().filter(functions.is_even).filter(functions.is_small),
    "map between": lambda: own().filter(functions.is_even).map(functions.in_place).filter(functions.judges_and_adds),
    "native before it": lambda: own().scale(0.5).filter(functions.is_small).map(functions.twice),
    "cut": lambda: own().filter(functions.is_even).take(7).repeat(2),
    "mixed": lambda: penstock.mix([own().filter(functions.is_even), own(9).map(functions.twice)], [0.5, 0.5]),
    "shuffled": lambda: own().shuffle(8, 1).filter(functions.is_even).shuffle(4, 2),
    "of a dataset": lambda: penstock.stream(numbers()).filter(functions.is_even),
    "nothing kept": lambda: own().filter(functions.has_passed).filter(functions.nothing_passes),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_and_their_positions_are_those_of_threads(name):
    def loader(**ways):
        return penstock.DataLoader(STREAMS[name](), 3, seed=2, **ways)

    plain = loader(num_workers=0)
    expected, states = [], [plain.state_dict()]
    for batch in plain:
        expected.append(listed(batch))
        states.append(plain.state_dict())
    states[-1] = states[-2] if expected else states[-1]
    with loader(**PROCESSES) as there:
        found, iterator = [], iter(there)
        for number, batch in enumerate(iterator):
            found.append(listed(batch))
            if number + 1 < len(expected):
                assert there.state_dict() == states[number + 1]
        assert found == expected
    for stop in {0, len(expected) // 2, max(len(expected) - 1, 0)}:
        with loader(**PROCESSES) as again:
            again.load_state_dict(states[stop])
            assert batches(again) == expected[stop:]


@pytest.mark.parametrize("workers", ["processes", "threads"])
def test_they_and_maps_before_them_run_there(workers):
    stream = penstock.stream(lambda: (np.array([os.getpid()]) for _ in range(30)), name="own")
    with penstock.DataLoader(stream.filter(functions.has_passed), 4, num_workers=2, workers=workers) as loader:
        assert sum(len(batch) for batch in loader) == (30 if workers == "processes" else 0)
    mapped = own(30).map(functions.process).filter(functions.has_passed).map(functions.process)
    with penstock.DataLoader(mapped, 4, num_workers=2, workers=workers) as loader:
        pids = {pid for batch in loader for pid in batch.tolist()}
    assert (os.getpid() in pids) == (workers == "threads" and bool(pids))


def test_samples_are_judged_by_all_processes():
    stream = own(400).map(functions.process).filter(functions.kept_slowly)
    with penstock.DataLoader(stream, 4, **PROCESSES) as loader:
        assert len({pid for batch in loader for pid in batch.tolist()}) == 2


def of_threads(stream, **options):
    """Batches and errors, in their order."""
    return outcomes(penstock.DataLoader(stream(), 3, num_workers=0, **options))


def outcomes(loader):
    out, iterator = [], iter(loader)
    while True:
        try:
            out.append(listed(next(iterator)))
        except StopIteration:
            return out
        except Exception as error:
            out.append((type(error), str(error)))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_an_error_is_of_its_sample_and_the_loader_goes_on(on_error):
    def stream():
        return own(20).filter(functions.judges_badly)

    expected = of_threads(stream, on_error=on_error)
    with penstock.DataLoader(stream(), 3, on_error=on_error, **PROCESSES) as loader:
        assert outcomes(loader) == expected
        assert [index for index, _, _ in loader.set_aside] == ([5] if on_error == "skip" else [])
    assert ("no five" in str(expected)) == (on_error == "raise")


def test_errors_of_the_source_come_in_their_place():
    def source():
        for number in range(20):
            yield np.array([float(number)])
        raise ValueError("the source ends badly")

    def stream():
        return penstock.stream(source, name="own").filter(functions.is_even)

    with penstock.DataLoader(stream(), 3, **PROCESSES) as loader:
        found = outcomes(loader)
    assert found == of_threads(stream)
    assert "the source ends badly" in str(found)


def test_an_exception_has_the_workers_traceback():
    with pytest.raises(ValueError, match="no five") as raised:
        list(penstock.DataLoader(own(9).filter(functions.judges_badly), 3, **PROCESSES))
    causes, error = [], raised.value
    while error is not None:
        causes.append(str(error))
        error = error.__cause__
    assert 'raise ValueError("no five")' in causes[-1]


def test_a_worker_that_ends_costs_its_own_sample_alone():
    with penstock.DataLoader(own(12).filter(functions.judge_ends), 3, on_error="skip", **PROCESSES) as loader:
        kept = [number for batch in loader for number in batch.numpy()[:, 0].tolist()]
        assert [index for index, _, _ in loader.set_aside] == [5]
    assert kept == [number for number in range(12) if number != 5]


def test_what_ends_a_program_is_raised():
    with pytest.raises(KeyboardInterrupt):
        list(penstock.DataLoader(own(9).filter(functions.judge_interrupts), 3, **PROCESSES))


def test_what_does_not_pickle_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match=r"<lambda> cannot be sent to a worker process"):
        list(penstock.DataLoader(own(9).filter(lambda sample: True), 3, **PROCESSES))
    with pytest.raises(TypeError, match=r"<lambda> cannot be sent to a worker process"):
        numbers().filter(lambda sample: True, workers="processes", num_workers=1)


@pytest.mark.parametrize("ways", [PROCESSES, {"workers": "auto"}, {"num_workers": 0, "workers": "processes"}])
def test_a_dataset_keeps_the_same_samples(ways):
    data = numbers(150).map(functions.twice).map(functions.in_place)
    expected = data.filter(functions.judges_and_adds)
    found = data.filter(functions.judges_and_adds, **ways)
    assert batches(penstock.DataLoader(found, 8, num_workers=0)) == batches(
        penstock.DataLoader(expected, 8, num_workers=0)
    )


def test_a_datasets_filter_runs_there():
    pids = penstock.rows(np.full((20, 1), os.getpid()))
    assert len(pids.filter(functions.has_passed, **PROCESSES)) == 20
    assert len(pids.filter(functions.has_passed)) == 0


def test_an_error_ends_the_search():
    with pytest.raises(ValueError, match=r"no five \(at sample 5"):
        numbers().filter(functions.judges_badly, **PROCESSES)
    with pytest.raises(penstock.UserCodeError, match="exit code 4"):
        numbers().filter(functions.judge_ends, **PROCESSES)
    with pytest.raises(ValueError, match="expected 'threads', 'processes' or 'auto'"):
        numbers().filter(functions.is_even, workers="process")
