"""A program that has odd functions called in processes that start in one way, and compares with the calling thread.

`python worker_oddities.py CONTEXT` says "ok" for each. With "fork" the program may have no thread beside its own when a
loader is made, so a test has no way to do it itself.
"""

import sys
import threading

import numpy as np
import worker_functions as functions
from worker_pairs import batches, listed, rows

import penstock

ALIKE = {
    "other shapes": lambda data: data.map(functions.other_shapes),
    "huge": lambda data: penstock.subset(data, [0, 1]).map(functions.huge),
    "None": lambda data: data.map(functions.nothing),
    "a generator": lambda data: data.map(functions.generator),
    "memory that is shared": lambda data: data.map(functions.same_memory),
    "a subclass": lambda data: data.map(functions.as_masked),
    "memory that is kept": lambda data: data.map(functions.keeping),
    "random numbers": lambda data: data.map(functions.noisy, seeded=True).map(functions.noisy, seeded=True),
    "prints": lambda data: data.map(functions.printing),
    "forks": lambda data: data.map(functions.forking),
    "threads": lambda data: data.map(functions.threading_),
    "SystemExit": lambda data: data.map(functions.exits),
    "KeyboardInterrupt": lambda data: data.map(functions.interrupts),
    "an exception": lambda data: data.map(functions.raises),
    "an exception of its own": lambda data: data.map(functions.raises_odd),
    "a missing file": lambda data: data.map(functions.raises_missing),
    "leaks": lambda data: data.map(functions.leaks),
    "nested": lambda data: penstock.subset(data, [0, 1]).map(functions.nested),
    "batched": lambda data: data.map(functions.batch_noisy, batched=True, seeded=True),
    "own": lambda data: penstock.zip(data, penstock.dataset(len(data), functions.number)),
    "a filter": lambda data: penstock.stream(data).map(functions.in_place).filter(functions.judges_badly),
}
# What the loop is told, for others than these the same as in threads.
ENDS = {
    "ends": (functions.ends_process, "ended with exit code 3"),
    "is killed": (functions.is_killed, "was killed by SIGKILL"),
    "leaves a child": (functions.leaves_a_child, "ended with exit code 7"),
    "an exception that stays there": (functions.raises_unpicklable, "LocalError: stays there"),
}
COUNT = 7


def outcomes(loader):
    """Batches and errors in their order."""
    out, iterator = [], iter(loader)
    for _ in range(2 * COUNT):
        try:
            out.append(listed(next(iterator)))
        except StopIteration:
            break
        except BaseException as error:
            out.append((type(error), str(error)))
            if not isinstance(error, Exception):  # the loop ends with it
                break
    return out


def of_processes(data, context, **options):
    return penstock.DataLoader(data, 2, num_workers=2, workers="processes", multiprocessing_context=context, **options)


def compare(context):
    for name, pipeline in ALIKE.items():
        functions.kept.clear()
        here = (lambda data: data) if name == "leaks" else pipeline  # a thread that leaks here would stay
        expected = outcomes(penstock.DataLoader(here(rows(COUNT)), 2, num_workers=0))
        functions.kept.clear()
        with of_processes(pipeline(rows(COUNT)), context) as loader:
            found = outcomes(loader)
        yield name, found == expected, (found, expected)


def ended(context):
    expected = [number for number in range(COUNT) if number != 4]
    for name, (function, text) in ENDS.items():
        with of_processes(rows(COUNT).map(function), context, on_error="skip") as loader:
            left = [int(row[0]) for batch in batches(loader) for row in batch[1]]
            aside = [(index, text in str(why)) for index, _, why in loader.set_aside]
        yield name, left == expected and aside == [(4, True)], (left, aside)


def waited_for(context):
    for function in (functions.hangs, functions.deadlocks):
        with of_processes(rows(COUNT).map(function), context, timeout=0.5) as loader:
            found = outcomes(loader)
        kinds = [one[0] for one in found if isinstance(one[0], type)]
        yield function.__name__, any(issubclass(kind, TimeoutError) for kind in kinds), found


def nameless(context):
    """Functions that have no name another interpreter would find them by."""
    number, lock = 3, threading.Lock()

    class Local:
        def __init__(self):
            self.lock = lock  # which does not pickle

        def __call__(self, sample):
            with self.lock:
                return np.asarray(sample) + number

    def closure(sample):
        return np.asarray(sample) * number

    def collated(samples):
        return {"x": np.stack([np.asarray(sample) for sample in samples]), "count": len(samples)}

    local = Local()
    pipelines = {
        "a lambda": lambda data: data.map(lambda sample: np.asarray(sample) + 1),
        "a closure": lambda data: data.map(closure),
        "a closure that draws": lambda data: data.map(lambda sample, random: random.random(), seeded=True),
        "a local class": lambda data: data.map(local),
        "its method": lambda data: data.map(local.__call__),
        "of batches": lambda data: data.map(lambda batch: np.asarray(batch) * number, batched=True),
        "own": lambda data: penstock.dataset(COUNT, lambda index: np.float32(index * number)),
        "filter": lambda data: penstock.stream(data).filter(lambda sample: np.asarray(sample)[0] > number),
    }
    for name, pipeline in pipelines.items():
        expected = outcomes(penstock.DataLoader(pipeline(rows(COUNT)), 2, num_workers=0))
        with of_processes(pipeline(rows(COUNT)), context) as loader:
            found = outcomes(loader)
        refused = all(kind is TypeError and "cannot be sent to a worker process" in text for kind, text in found)
        yield name, found == expected if context == "fork" else refused, found
    with of_processes(rows(COUNT), context, collate_fn=collated) as loader:
        found = outcomes(loader)
    yield "collate_fn", isinstance(found[0], dict) == (context == "fork"), found


def main(context):
    for part in (compare, ended, waited_for, nameless):
        for name, is_alike, what in part(context):
            print(name, "ok" if is_alike else f"differs: {what}", flush=True)


if __name__ == "__main__":
    sys.modules["cloudpickle"] = None  # as most installations are
    main(sys.argv[1])
    print("done")
