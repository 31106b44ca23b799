"""Threads that use Penstock, and share its objects, at the same time (at_once.py)."""

from __future__ import annotations

import collections
import copy
import itertools
import os
import pickle
import subprocess
import sys
import sysconfig
import textwrap

import pytest
from at_once import ROUNDS, THREADS, N, at_once, may_hear, rows

import penstock


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of each format with the same tensors."""
    folder = tmp_path_factory.mktemp("threads")
    whole = content()
    for name in ("all.npz", "all.pt", "all.safetensors"):
        penstock.save(whole, folder / name)
    penstock.save(whole, folder / "deflated.npz", compress=True)
    return folder


def content():
    return {f"layer{i}": penstock.arange(i, i + 600).reshape(20, 30) for i in range(6)}


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
            assert "layer5" in archive
            assert archive.get("none") is None
            assert sorted(archive.structure) == sorted(archive.keys())
            return repr(archive)

        at_once(*[reads] * THREADS)


def test_an_archive_is_closed_while_others_read_it(folder):
    """They get what they asked for, or hear that it is closed."""

    def attempt():
        archive = penstock.open(folder / "all.pt")

        def reads():
            with may_hear("the archive is closed"):
                for _ in range(50):
                    assert len(archive.keys()) == len(archive.values()) == len(archive.items()) == 6
                    assert archive.structure["layer1"].shape == (20, 30)
                    assert (archive.format, archive.path) == ("pt", str(folder / "all.pt"))
                    is_content(archive.load())

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
            assert (array[2, 1], numpy.asarray(shared[1])[0]) == (17, 8)
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
            with may_hear("taken already"):
                taken.append(penstock.from_dlpack(capsule))

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
            assert len(loaded) in (100, 5100)
            assert set(loaded) == {ord("x")}

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
                    assert 0 < writer.rows <= 100
                    assert writer.is_open

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
            with may_hear("was discarded"):
                for _ in range(100):
                    output.write(b"x" * 10_000)
                    output.tell()

        at_once(writes, writes, output.discard, rounds=1)

    for number in range(5 * ROUNDS):
        attempt(number)
    assert list(tmp_path.iterdir()) == []


# --- the module's functions ---


def test_functions_of_the_module_are_called_by_several_threads(folder):
    loader = penstock.DataLoader(penstock.rows(rows()), 4)
    list(loader)
    count = penstock.device.transfers()

    def asks():
        for _ in range(20):
            assert penstock.device.memory_stats("cpu")["in_use_bytes"] >= 0
            penstock.device.empty_cache("cpu")
            penstock.device.synchronize("cpu")
            assert penstock.device.device_count() >= 0
            penstock.device.set_current_device("cpu")
            assert penstock.device.current_device() is not None
            assert penstock.device.transfer_stats()["host_to_device"]["copies"] >= 0
            with count:
                pass
            assert count.stats()["host_to_device"]["copies"] >= 0
            assert "penstock" in loader.stats().prometheus()
            stream = penstock.device.Stream("cpu")
            with stream:
                stream.record().synchronize()

    at_once(*[asks] * THREADS)
