"""Functions that worker processes import."""

import os
import signal
import sys
import threading
import time

import numpy as np

import penstock


def array(sample):
    return np.asarray(sample)


def mirrored(sample):
    return np.asarray(sample)[::-1]


def pair_of_rows(sample):
    values = np.asarray(sample)
    return {"small": values[:1], "large": values * 2, "text": str(values[0])}


def other_shape_at_40(sample):
    values = np.asarray(sample)
    return values[:512] if values[0] == 40 else values


def other_type_at_40(sample):
    values = np.asarray(sample)
    return values.astype("int32") if values[0] == 40 else values


def raises_at_40(sample):
    if np.asarray(sample)[0] == 40:
        raise ValueError("no forty")
    return np.asarray(sample) + 1


def ends_at_40(sample):
    if np.asarray(sample)[0] == 40:
        os._exit(3)
    return np.asarray(sample) + 1


def slowly_twice(sample):
    time.sleep(0.002)
    return np.asarray(sample) * 2


def twice(sample):
    return np.asarray(sample) * 2


def as_dict(sample):
    values = np.asarray(sample)
    return {"x": values * 2, "text": f"{values.flat[0]}", "pair": (1, 2.5), "half": values.astype("float16")}


def other_shapes(sample):
    values = np.asarray(sample)
    return values[: 1 + int(values[0]) % 2]


def as_masked(sample):
    """An array of a subclass."""
    return np.ma.masked_less(np.asarray(sample), 3)


def grown(sample):
    values = np.asarray(sample)
    return np.zeros(int(values.flat[0]) + 1, dtype="int32")


def noisy(sample, random):
    return np.asarray(sample) + random.random()


def batch_noisy(batch, random):
    return np.asarray(batch) + random.random()


def number(index):
    return np.full(3, index, dtype="float32")


def wide_number(index):
    return np.full(1024, index, dtype="float32")


def stacked(samples):
    return {"x": np.stack([np.asarray(sample) for sample in samples]), "count": len(samples)}


def summed(pair):
    return np.asarray(pair[0]) + np.asarray(pair[1])[:1]


def is_small(sample):
    return bool(np.asarray(sample).flat[0] < 8)


def counted(samples):
    return {"count": len(samples), "last": samples[-1]}


def process(sample):
    return np.int64(os.getpid())


of_program = 0  # what a program sets while it runs


def program_until_four(sample):
    ends_process(sample)
    return np.int64(of_program)


class SlowToArrive:
    """A function that tells by a file that it is being unpickled, and takes its time."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return _arrived, (self.path,)

    def __call__(self, sample):
        return np.asarray(sample) * 2


def _arrived(path):
    with open(path, "w"):
        pass
    time.sleep(0.5)
    return SlowToArrive(path)


kept = []


def keeping(sample):
    """Keeps what it is given, which no later call may change."""
    kept.append((sample, float(np.asarray(sample).flat[0])))
    assert all(np.asarray(one).flat[0] == first for one, first in kept)
    return sample


def same_memory(sample):
    values = np.asarray(sample)
    return {"a": values, "b": values[::-1], "c": sample}


def in_place(sample):
    values = np.asarray(sample)
    values += 1
    return values


def huge(sample):
    return np.ones(40_000_000, dtype="uint8")


def nothing(sample):
    return None


def generator(sample):
    yield sample


def printing(sample):
    print(f"sample {int(np.asarray(sample).flat[0])}")
    return sample


def forking(sample):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return sample


def swells(sample):
    return np.zeros(1 + 200_000 * int(np.asarray(sample).flat[0]), dtype="uint8")


def forks_and_returns(sample):
    """In both processes."""
    os.fork()
    return np.asarray(sample) * 2


def forks_and_raises(sample):
    os.fork()
    raise ValueError(int(np.asarray(sample).flat[0]))


def leaves_a_child(sample):
    """A child that outlives the worker, and has its descriptors."""
    if np.asarray(sample).flat[0] == 4 and os.fork() == 0:
        time.sleep(3)
        os._exit(0)
    if np.asarray(sample).flat[0] == 4:
        os._exit(7)
    return sample


def threading_(sample):
    found = []
    thread = threading.Thread(target=lambda: found.append(np.asarray(sample) * 2))
    thread.start()
    thread.join()
    return found[0]


def at_four(act):
    def function(sample):
        if np.asarray(sample).flat[0] == 4:
            act()
        return sample

    return function


class OddError(Exception):
    def __init__(self, number, text):
        super().__init__(number, text)


class LocalError(Exception):
    def __reduce__(self):
        raise TypeError("does not pickle")


def raises(sample):
    if np.asarray(sample).flat[0] == 4:
        raise ValueError("no four")
    return sample


def raises_odd(sample):
    if np.asarray(sample).flat[0] == 4:
        raise OddError(4, "odd")
    return sample


def raises_unpicklable(sample):
    if np.asarray(sample).flat[0] == 4:
        raise LocalError("stays there")
    return sample


def raises_missing(sample):
    if np.asarray(sample).flat[0] == 4:
        os.stat("/no/such/file")
    return sample


def exits(sample):
    if np.asarray(sample).flat[0] == 4:
        sys.exit(3)
    return sample


def interrupts(sample):
    if np.asarray(sample).flat[0] == 4:
        raise KeyboardInterrupt
    return sample


def ends_process(sample):
    if np.asarray(sample).flat[0] == 4:
        os._exit(3)
    return sample


def is_killed(sample):
    if np.asarray(sample).flat[0] == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return sample


def hangs(sample):
    if np.asarray(sample).flat[0] == 4:
        time.sleep(1000)
    return sample


def slow_here(sample):
    """Takes its time in the program's own process alone."""
    if os.environ["PENSTOCK_TEST_PROCESS"] == str(os.getpid()):
        time.sleep(0.1)  # far longer than a worker process takes, also on a busy machine
    return sample


def slow_there(sample):
    if os.environ["PENSTOCK_TEST_PROCESS"] != str(os.getpid()):
        time.sleep(0.1)  # far longer than a worker process takes, also on a busy machine
    return sample


def deadlocks(sample):
    if np.asarray(sample).flat[0] == 4:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    return sample


leaked = []


def leaks_descriptors(sample):
    while True:
        leaked.append(os.dup(0))


def megabyte(sample):
    return np.ones(1_000_000, dtype="uint8")


def slow(sample):
    time.sleep(0.05)
    return sample


def nested(sample):
    rows = penstock.rows(np.asarray(sample).reshape(-1, 1)).map(twice)
    batches = list(penstock.DataLoader(rows, batch_size=8, num_workers=1, workers="processes"))
    return np.asarray(batches[0])


def environment(sample):
    return os.environ.get("PENSTOCK_TEST_OF_WORKERS", "")


def descriptors(sample):
    return len(os.listdir("/proc/self/fd"))


def has_passed(sample):
    """Whether it is called in another process than the one whose number the sample is."""
    return int(np.asarray(sample).flat[0]) != os.getpid()


def is_even(sample):
    return np.asarray(sample).flat[0] % 2 == 0  # of NumPy


def judges_badly(sample):
    number = np.asarray(sample).flat[0]
    if number == 5:
        raise ValueError("no five")
    return number % 3 > 0


def judges_and_adds(sample):
    """Changes what it is given, too."""
    values = np.asarray(sample)
    values += 1
    return values.flat[0] % 3 != 0


def refuses_some(sample):
    number = np.asarray(sample).flat[0]
    if number % 5 == 4:
        raise ValueError("not this one")
    return number % 2 < 1.5


def judge_ends(sample):
    if np.asarray(sample).flat[0] == 5:
        os._exit(4)
    return True


def judge_interrupts(sample):
    if np.asarray(sample).flat[0] == 5:
        raise KeyboardInterrupt
    return True


def noisy_is_small(sample):
    return float(np.asarray(sample).sum()) % 1 < 0.6


def leaks(sample):
    """Memory, descriptors and threads."""
    leaked.extend([bytearray(1 << 20), os.dup(0)])
    threading.Thread(target=time.sleep, args=(1000,)).start()
    return sample


def closes_everything(sample):
    if np.asarray(sample).flat[0] == 4:
        os.closerange(3, 4096)
    return sample


def octets(sample):
    return {"array": bytearray(b"ab"), "bytes": b"cd", "empty": bytearray()}


class TextlessError(Exception):
    def __init__(self, number, text):
        super().__init__(number)
        self.text = text

    def __str__(self):
        raise RuntimeError("it has no text")


def raises_textless(sample):
    if np.asarray(sample).flat[0] == 4:
        raise TextlessError(4, "odd")
    return sample


def nothing_passes(sample):
    return False


def kept_slowly(sample):
    time.sleep(0.001)
    return True
