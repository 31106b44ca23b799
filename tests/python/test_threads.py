"""Threads of a program that use Penstock, and share its objects, at the same time.

With an interpreter without its lock (CPython 3.14t) they truly run at once; with one that has it they prove that values
are right however threads take turns. PENSTOCK_STRESS=20 repeats each twenty times as often (script/tsan_python).
"""

from __future__ import annotations

import collections
import copy
import gc
import itertools
import os
import pickle
import random
import subprocess
import sys
import sysconfig
import textwrap
import threading
import weakref

import pytest

import penstock

ROUNDS = int(os.environ.get("PENSTOCK_STRESS", "1"))
THREADS = 4
N = 24


def at_once(*works, rounds=ROUNDS, collect=True):
    """Calls each work in a thread of its own, all from one moment on, `rounds` times; gives what they returned.

    The garbage collector runs meanwhile. What a work raises is raised here.
    """
    begin = threading.Barrier(len(works))
    given, raised = [[] for _ in works], []
    over = threading.Event()

    def run(place):
        try:
            for _ in range(rounds):
                begin.wait(timeout=60)
                given[place].append(works[place]())
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            raised.append(error)
            begin.abort()

    def collects():
        while not over.wait(0.01):
            gc.collect()

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(works))]
    collector = threading.Thread(target=collects, daemon=True)
    if collect:
        collector.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    over.set()
    if collect:
        collector.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if raised:
        raise raised[0]
    return [results for results in given if results]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of each format with the same tensors, a .npy of N rows, and N small files."""
    folder = tmp_path_factory.mktemp("threads")
    whole = content()
    for name in ("all.npz", "all.pt", "all.safetensors"):
        penstock.save(whole, folder / name)
    penstock.save(whole, folder / "deflated.npz", compress=True)
    penstock.save(rows(), folder / "rows.npy")
    (folder / "files").mkdir()
    for i in range(N):
        penstock.save({"x": rows()[i], "y": penstock.tensor(i)}, folder / "files" / f"{i:02}.safetensors")
    return folder


def content():
    return {f"layer{i}": penstock.arange(i, i + 600).reshape(20, 30) for i in range(6)}


def rows():
    return penstock.arange(N * 8).reshape(N, 8)


def is_content(loaded):
    expected = content()
    assert sorted(loaded) == sorted(expected)
    assert all(tensor.equal(expected[name]) for name, tensor in loaded.items())
    return True


# --- the interpreter ---


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has its lock for good")
def test_the_interpreters_lock_stays_off():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import sys, penstock; print(sys._is_gil_enabled())"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


FIRST_USES = {
    "errors": "try: penstock.load(b'no file\\0')\nexcept penstock.Error as error: str(error), error.code",
    "reprs": "repr(penstock.zeros(3)), penstock.zeros(3)._repr_html_()",
    "pickles": "import pickle; pickle.loads(pickle.dumps(penstock.rows(penstock.zeros(3))))",
    "loaders": "loader = penstock.DataLoader(penstock.rows(penstock.zeros(8)), 2); list(loader); dict(loader.stats())",
    "files": "penstock.save({'a': penstock.zeros(3)}, path); penstock.load(path)['a']",
    "functions": "list(penstock.DataLoader(penstock.rows(penstock.zeros(4)).map(lambda x: x + 1), num_workers=2))",
    "signatures": "import inspect; inspect.signature(penstock.load); penstock.load.__doc__",
    "streams": "list(penstock.stream(lambda: iter([1, 2, 3])))",
    "background": "penstock.save_async({'a': penstock.zeros(3)}, path).result(); penstock.load_async(path).result()",
}


@pytest.mark.parametrize("uses", ["each", "all"])
def test_parts_that_are_imported_at_their_first_use(tmp_path, uses):
    """In a new process, whose threads import Penstock itself at once too."""
    code = """
        import sys, threading
        folder, uses = sys.argv[1], sys.argv[2:]
        begin, raised = threading.Barrier(len(uses)), []

        def use(number, text):
            try:
                begin.wait()
                import penstock
                exec(text, {"penstock": penstock, "path": f"{folder}/{number}.safetensors"})
            except BaseException as error:
                raised.append(repr(error))

        threads = [threading.Thread(target=use, args=part) for part in enumerate(uses)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(*raised, sep="\\n")
    """
    texts = list(FIRST_USES.values())
    for chosen in [texts] if uses == "all" else [[text] * THREADS for text in texts]:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), tmp_path, *chosen],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.stdout.strip(), done.stderr, done.returncode) == ("", "", 0)


# --- files ---


@pytest.mark.parametrize("name", ["all.npz", "all.pt", "all.safetensors", "deflated.npz"])
@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"threads": 3}], ids=str)
def test_one_file_is_loaded_by_several_threads(folder, name, options):
    if options.get("mmap") and name.endswith(".npz"):
        options = {}
    at_once(*[lambda: is_content(penstock.load(folder / name, **options))] * THREADS)


def test_files_of_all_formats_are_loaded_and_saved_at_once(folder, tmp_path):
    numbers = itertools.count()
    shared = content()

    def loads():
        for name in ("all.npz", "all.pt", "all.safetensors"):
            is_content(penstock.load(folder / name))

    def saves():
        for suffix in ("npz", "pt", "safetensors"):
            path = tmp_path / f"{next(numbers)}.{suffix}"
            penstock.save(shared, path)
            is_content(penstock.load(path))

    def replaces():
        path = tmp_path / "same.safetensors"
        penstock.save(shared, path)
        is_content(penstock.load(path))

    def in_background():
        path = tmp_path / "same.pt"
        penstock.save_async(shared, path).result()
        is_content(penstock.load_async(path).result())

    at_once(loads, saves, replaces, in_background, loads, saves)


def test_errors_belong_to_the_thread_that_made_them(tmp_path):
    def fails(number):
        path = tmp_path / f"absent{number}.npy"
        for _ in range(20):
            with pytest.raises(penstock.Error) as caught:
                penstock.load(path)
            assert caught.value.path == str(path)
            assert isinstance(caught.value, FileNotFoundError)
            with pytest.raises(ValueError, match=f"{number}7"):
                penstock.DataLoader(penstock.rows(rows()), on_error=f"{number}7")

    at_once(*[lambda number=number: fails(number) for number in range(THREADS)])


def test_progress_is_told_to_each_thread(folder):
    def loads():
        told = []
        is_content(penstock.load(folder / "all.safetensors", progress=lambda *at: told.append(at)))
        done, total = told[-1]
        assert done == total > 0

    at_once(*[loads] * THREADS)


# --- archives ---


def test_one_archive_is_read_by_several_threads(folder):
    for name in ("all.npz", "all.pt", "all.safetensors"):
        archive = penstock.open(folder / name)

        def reads(archive=archive):
            assert len(archive) == len(archive.keys()) == 6
            is_content(archive.load())
            is_content({name: tensor.load() for name, tensor in archive.items()})
            assert archive["layer3"][4:6, 2].load().tolist() == content()["layer3"][4:6, 2].tolist()
            assert "layer5" in archive and archive.get("none") is None
            assert sorted(archive.structure) == sorted(archive.keys())
            return repr(archive)

        at_once(*[reads] * THREADS)


def test_an_archive_is_closed_while_others_read_it(folder):
    """They get what they asked for, or hear that it is closed."""

    def attempt():
        archive = penstock.open(folder / "all.pt")

        def reads():
            try:
                for _ in range(50):
                    assert len(archive.keys()) == len(archive.values()) == len(archive.items()) == 6
                    assert archive.structure["layer1"].shape == (20, 30)
                    assert archive.metadata is not None and archive.path
                    is_content(archive.load())
            except penstock.Error as error:
                assert "the archive is closed" in str(error)

        at_once(reads, reads, archive.close, rounds=1)

    for _ in range(5 * ROUNDS):
        attempt()


def test_an_archive_is_closed_by_code_that_its_structure_runs(tmp_path, monkeypatch):
    path = tmp_path / "counter.pt"
    penstock.save([penstock.zeros(2), collections.Counter(a=1), penstock.ones(3)], path)
    archive = penstock.open(path)

    def closes():
        archive.close()
        return {}

    monkeypatch.setattr(collections, "Counter", closes)
    first, counted, last = archive.structure
    assert (first.shape, counted, last.load().tolist()) == ((2,), {"a": 1}, [1, 1, 1])


# --- tensors ---


def test_one_tensor_is_viewed_and_exported_by_several_threads():
    shared = rows()

    def views():
        for _ in range(20):
            assert shared[3:5, 2].tolist() == [26, 34]
            assert shared.reshape(8, N)[1, 0].item() == N
            assert (shared + 1).sum().item() == sum(range(1, N * 8 + 1))
            assert [row[0].item() for row in shared] == list(range(0, N * 8, 8))

    def exports():
        for _ in range(20):
            assert memoryview(shared)[2, 1] == 17
            assert penstock.from_dlpack(shared)[2, 1].item() == 17
            assert penstock.asarray(memoryview(shared)).equal(shared)
            assert pickle.loads(pickle.dumps(shared)).equal(shared)
            assert copy.deepcopy(shared).equal(shared)
            assert shared.to("float32").to("int64").equal(shared)

    at_once(views, exports, views, exports)


def test_the_last_reference_goes_in_another_thread():
    handed = []

    def makes():
        for _ in range(50):
            tensor = penstock.arange(1000)
            handed.append((memoryview(tensor), tensor[5:], tensor.__dlpack__(), penstock.from_dlpack(tensor)))

    def drops():
        for _ in range(200):
            try:
                memory, part, capsule, same = handed.pop()
            except IndexError:
                continue
            assert (memory[7], part[2].item(), same[7].item()) == (7, 7, 7)
            del memory, part, same, capsule

    at_once(makes, makes, drops, drops)
    handed.clear()


def test_numpy_arrays_share_a_tensor_between_threads():
    numpy = pytest.importorskip("numpy")
    shared = rows()

    def exports():
        for _ in range(50):
            array = shared.numpy()
            assert array[2, 1] == 17 and numpy.asarray(shared[1])[0] == 8
            assert penstock.asarray(array[::2]).tolist()[1][0] == 16

    at_once(*[exports] * THREADS)


def test_rows_of_one_iterator_are_given_once():
    tensor = penstock.arange(2000)

    def attempt():
        iterator = iter(tensor)
        given = at_once(*[lambda: [row.item() for row in iterator]] * THREADS, rounds=1)
        assert sorted(value for results in given for values in results for value in values) == list(range(2000))

    for _ in range(ROUNDS):
        attempt()


def test_a_capsule_is_taken_once():
    def attempt():
        tensor = penstock.arange(8)
        capsule = tensor.__dlpack__()
        taken = []

        def takes():
            try:
                taken.append(penstock.from_dlpack(capsule))
            except penstock.Error as error:
                assert "taken already" in str(error)

        at_once(*[takes] * THREADS, rounds=1, collect=False)
        assert [tensor.tolist() for tensor in taken] == [list(range(8))]

    for _ in range(5 * ROUNDS):
        attempt()


def test_threads_that_share_a_generator_draw_different_numbers():
    generator = penstock.Generator(7)
    given = at_once(*[lambda: [tuple(penstock.rand(4, generator=generator).tolist()) for _ in range(50)]] * THREADS)
    drawn = [numbers for results in given for result in results for numbers in result]
    assert len(set(drawn)) == len(drawn)
    again = penstock.Generator(7)
    assert set(drawn) == {tuple(penstock.rand(4, generator=again).tolist()) for _ in drawn}


def test_a_bytearray_that_another_thread_resizes_is_saved(tmp_path):
    buffer = bytearray(b"x" * 100)
    numbers = itertools.count()

    def resizes():
        for _ in range(200):
            buffer.extend(b"x" * 5000)
            del buffer[100:]

    def saves():
        for _ in range(20):
            path = tmp_path / f"{next(numbers)}.pt"
            penstock.save({"a": buffer}, path)
            loaded = penstock.load(path)["a"]
            assert len(loaded) in (100, 5100) and set(loaded) == {ord("x")}

    at_once(resizes, saves, saves)


def test_a_dict_that_another_thread_changes_is_saved(tmp_path):
    shared = {"a": penstock.arange(5)}
    metadata = {"a": "1"}
    numbers = itertools.count()

    def changes():
        for i in range(300):
            shared[f"b{i % 7}"] = penstock.arange(i % 5 + 1)
            shared.pop(f"b{(i + 3) % 7}", None)
            metadata[f"b{i % 7}"] = "2"
            metadata.pop(f"b{(i + 3) % 7}", None)

    def saves():
        for _ in range(20):
            path = tmp_path / f"{next(numbers)}.safetensors"
            penstock.save(shared, path, metadata=metadata)
            archive = penstock.open(path)
            assert archive["a"].load().tolist() == list(range(5))
            assert archive.metadata["a"] == "1"

    at_once(changes, saves, saves)


# --- writers ---


def test_rows_that_several_threads_append(tmp_path):
    for turn in range(ROUNDS):
        path = tmp_path / f"{turn}.npy"
        with penstock.Writer(path, dtype="int64", row_shape=(3,)) as writer:

            def appends(first, writer=writer):
                for i in range(first, first + 25):
                    writer.append_row(penstock.tensor([i, i, i]))
                    assert 0 < writer.rows <= 100 and writer.is_open

            at_once(*[lambda first=first: appends(first) for first in (0, 25, 50, 75)], rounds=1)
        written = penstock.load(path).tolist()
        assert sorted(written) == [[i, i, i] for i in range(100)]


def test_tensors_that_several_threads_add(tmp_path):
    path = tmp_path / "added.safetensors"
    with penstock.Writer(path) as writer:

        def adds(number):
            for i in range(10):
                writer.add(f"{number}.{i}", penstock.arange(i + 1))

        at_once(*[lambda number=number: adds(number) for number in range(THREADS)], rounds=1)
    assert {name: len(tensor) for name, tensor in penstock.load(path).items()} == {
        f"{number}.{i}": i + 1 for number in range(THREADS) for i in range(10)
    }


def test_an_output_is_discarded_while_it_is_written(tmp_path):
    def attempt(number):
        output = penstock._core._Output(tmp_path / f"{number}.bin")

        def writes():
            try:
                for _ in range(100):
                    output.write(b"x" * 10_000)
                    output.tell()
            except penstock.Error as error:
                assert "was discarded" in str(error)

        at_once(writes, writes, output.discard, rounds=1)

    for number in range(5 * ROUNDS):
        attempt(number)
    assert list(tmp_path.iterdir()) == []


# --- loaders ---


def labels_of(batch):
    return batch["y"].tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_that_share_an_iterator_get_each_batch_once(folder, workers):
    loader = penstock.DataLoader(penstock.files(folder / "files"), 2, shuffle=True, num_workers=workers)

    def looks_on():
        for _ in range(30):
            assert 0 <= loader.state_dict()["batch"] <= N // 2
            assert loader.stats()["batches"] >= 0
            assert loader.epoch >= 0 and len(loader) == N // 2 and loader.set_aside == []

    for _ in range(ROUNDS):
        iterator = iter(loader)
        takes = [lambda iterator=iterator: [labels_of(batch) for batch in iterator]] * THREADS
        given = at_once(*takes, looks_on, rounds=1)[:THREADS]
        assert sorted(label for (batches,) in given for batch in batches for label in batch) == list(range(N))


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_that_begin_iterations_of_one_loader_end_each_others(folder, workers):
    loader = penstock.DataLoader(penstock.files(folder / "files"), 2, num_workers=workers)
    ended = "this iteration ended when another began"

    def iterates():
        for _ in range(5):
            try:
                labels = [label for batch in loader for label in labels_of(batch)]
                assert labels == list(range(N - len(labels), N))  # it goes on where a state was put back
            except penstock.Error as error:
                assert ended in str(error) or "was stopped" in str(error)

    def goes_back():
        for _ in range(5):
            loader.load_state_dict(loader.state_dict())
            loader.set_epoch(0)

    at_once(iterates, iterates, goes_back)
    loader.set_epoch(0)
    assert [label for batch in loader for label in labels_of(batch)] == list(range(N))


class Backwards:
    """A sampler of the program's own."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __iter__(self):
        return iter(range(self.size - 1, -1, -1))


def doubled(sample):
    return {"x": sample["x"] * 2, "y": sample["y"]}


def joined(samples):
    return {"y": penstock.tensor([sample["y"].item() for sample in samples]), "x": samples[0]["x"]}


def test_loaders_of_one_dataset_with_functions_of_the_program(folder):
    dataset = penstock.files(folder / "files").map(doubled)
    sampler = Backwards(N)

    def iterates():
        loader = penstock.DataLoader(dataset, 3, sampler=sampler, collate_fn=joined, num_workers=2)
        batches = list(loader)
        assert [label for batch in batches for label in labels_of(batch)] == list(range(N - 1, -1, -1))
        assert batches[0]["x"].tolist() == [2 * value for value in rows()[N - 1].tolist()]

    at_once(*[iterates] * THREADS)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_is_closed_while_others_iterate(folder, workers):
    def attempt():
        loader = penstock.DataLoader(
            penstock.files(folder / "files").map(doubled), 2, sampler=Backwards(N), num_workers=workers
        )

        def iterates():
            try:
                while True:
                    for batch in loader:
                        labels_of(batch)
            except penstock.Error as error:
                text = str(error)
                assert "is closed" in text or "stopped" in text or "ended when another began" in text, text

        at_once(iterates, iterates, loader.close, loader.close, rounds=1)
        with pytest.raises(penstock.Error, match="is closed"):
            loader.stats()

    for _ in range(3 * ROUNDS):
        attempt()


def test_loaders_that_lead_back_to_their_functions_are_collected(folder):
    """By the garbage collector, whose threads see nothing of the workers that call the functions meanwhile."""
    gone = []

    def makes():
        for _ in range(5):
            holder = {}
            text = "kept"

            def function(sample, holder=holder):
                assert len(text) == 4 and random is not None
                return {"x": sample["x"] + len(holder), "y": sample["y"]}

            dataset = penstock.files(folder / "files").map(function)
            loader = holder["loader"] = penstock.DataLoader(
                dataset, 2, collate_fn=lambda samples, holder=holder: joined(samples), num_workers=2
            )
            holder["iterator"] = iterator = iter(loader)
            assert labels_of(next(iterator)) == [0, 1]
            gone.append(weakref.ref(loader))
            del loader, iterator, dataset, function, holder

    at_once(makes, makes, lambda: [gc.collect() for _ in range(20)])
    gc.collect()
    assert [reference() for reference in gone] == [None] * len(gone)


def test_a_sampler_is_shared(folder):
    class Own(penstock.Sampler):
        def __len__(self):
            return N

        def __iter__(self):
            return iter(range(N))

    sampler = penstock.DistributedSampler(Own(), 2, 1, shuffle=False)
    shuffled = penstock.RandomSampler(N)
    orders = [shuffled.order(3, epoch) for epoch in range(4)]
    iterated = []
    for epoch in range(4):
        shuffled.set_epoch(epoch)
        iterated.append(list(shuffled))

    def asks():
        for epoch in range(4):
            assert sampler.order(0, epoch) == list(range(1, N, 2))
            assert shuffled.order(3, epoch) == orders[epoch]
            shuffled.set_epoch(epoch)
            assert list(shuffled) in iterated
            batches = penstock.BatchSampler(sampler, 5)
            assert [index for batch in batches.batches() for index in batch] == list(range(1, N, 2))

    at_once(*[asks] * THREADS)


def test_what_a_shared_sampler_raises_arrives(folder):
    class Raises(penstock.Sampler):
        def __len__(self):
            return N

        def __iter__(self):
            raise LookupError("no order today")

    sampler = penstock.DistributedSampler(Raises(), 2, 1, shuffle=False)

    def asks():
        for _ in range(20):
            with pytest.raises((LookupError, penstock.Error), match="no order today|raised an exception"):
                sampler.order()

    at_once(*[asks] * THREADS)


def test_samples_of_a_stream_that_threads_walk_are_given_once():
    for _ in range(ROUNDS):
        stream = penstock.stream(lambda: iter(range(200)))
        walk = penstock._core._StreamWalk(stream._native)
        given = at_once(*[lambda walk=walk: list(walk)] * THREADS, rounds=1)
        assert sorted(sample for (samples,) in given for sample in samples) == list(range(200))


def test_loaders_of_one_stream(folder):
    shared = penstock.stream(lambda: ({"y": penstock.tensor(i)} for i in range(N))).map(dict).shuffle(4)
    expected = [labels_of(batch) for batch in penstock.DataLoader(shared, 3)]

    def iterates():
        assert [labels_of(batch) for batch in penstock.DataLoader(shared, 3, num_workers=2)] == expected

    at_once(*[iterates] * THREADS)


def test_datasets_are_indexed_and_pickled_by_several_threads(folder):
    dataset = penstock.zip(penstock.files(folder / "files"), penstock.rows(folder / "rows.npy"))

    def reads():
        for i in range(0, N, 5):
            sample, row = dataset[i]
            assert (sample["y"].item(), row.tolist()) == (i, rows()[i].tolist())
        assert len(pickle.loads(pickle.dumps(dataset))) == N
        assert dataset[2:6][0]["y"].tolist() == [2, 3, 4, 5]
        assert penstock.lengths(penstock.rows(rows())) == [8] * N

    at_once(*[reads] * THREADS)


# --- the module's functions ---


def test_functions_of_the_module_are_called_by_several_threads(folder):
    loader = penstock.DataLoader(penstock.rows(rows()), 4)
    list(loader)
    count = penstock.transfers()

    def asks():
        for _ in range(20):
            assert penstock.memory_stats("cpu")["in_use_bytes"] >= 0
            penstock.empty_cache("cpu")
            penstock.synchronize("cpu")
            assert penstock.device_count() >= 0
            penstock.set_current_device("cpu")
            assert penstock.current_device() is not None
            assert penstock.transfer_stats()["host_to_device"]["copies"] >= 0
            with count:
                pass
            assert count.stats()["host_to_device"]["copies"] >= 0
            assert "penstock" in loader.stats().prometheus()
            stream = penstock.Stream("cpu")
            with stream:
                stream.record().synchronize()

    at_once(*[asks] * THREADS)
