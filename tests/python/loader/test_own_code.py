"""The program's own functions in the pipeline: datasets, maps, filters and collation in Python."""

import collections
import collections.abc
import copy
import errno
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import traceback
import weakref

import numpy as np
import pytest
from ctrl_c import answers_ctrl_c
from waiting import are_collected

import penstock
from penstock._batches.functions import generator, idle_generators

COUNT = 11


def number(index):
    return np.full(3, index, "f4")


def numbers(count=COUNT):
    return penstock.dataset(count, number)


def folder_of(folder):
    for i in range(COUNT):
        np.save(folder / f"{i:02}.npy", number(i))
    return penstock.files(folder)


def twice(sample):
    return sample.numpy() * 2


def noisy(sample, random):
    return sample.numpy() + random.random(3, "f4")


def batch_twice(batch):
    return batch.numpy() * 2


# A dataset is one line here, and a transform one there.
DATASETS = {
    "files": folder_of,
    "function": lambda folder: numbers(),
    "list": lambda folder: penstock.dataset([number(i) for i in range(COUNT)]),
    "subset": lambda folder: penstock.subset(numbers(40), [3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8]),
}
TRANSFORMS = {
    "none": lambda dataset: dataset,
    "map": lambda dataset: dataset.map(twice),
    "chain": lambda dataset: dataset.map(twice).map(twice),
    "seeded": lambda dataset: dataset.map(noisy, seeded=True),
    "filter": lambda dataset: dataset.filter(lambda sample: sample[0].item() % 2 == 0),
    "batched": lambda dataset: dataset.map(batch_twice, batched=True),
    "batched_seeded": lambda dataset: dataset.map(
        lambda batch, random: batch.numpy() * random.random(), batched=True, seeded=True
    ),
}


@pytest.fixture(params=[(d, t) for d in DATASETS for t in TRANSFORMS], ids=lambda pair: "-".join(pair))
def dataset(request, tmp_path):
    made, transform = request.param
    return TRANSFORMS[transform](DATASETS[made](tmp_path))


def listed(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_batches_are_the_same_for_any_number_of_workers(dataset, workers):
    alone = penstock.DataLoader(dataset, 3, shuffle=True, num_workers=0, seed=4)
    others = penstock.DataLoader(dataset, 3, shuffle=True, num_workers=workers, seed=4)
    for _ in range(2):
        assert listed(alone) == listed(others)


def test_goes_on_from_each_position(dataset):
    loader = penstock.DataLoader(dataset, 3, shuffle=True, num_workers=2, seed=4)
    states, batches = [loader.state_dict()], []
    for batch in loader:
        batches.append(batch.tolist())
        states.append(loader.state_dict())
    for taken, state in enumerate(states[:-1]):
        again = penstock.DataLoader(dataset, 3, shuffle=True, num_workers=taken % 3, seed=4)
        again.load_state_dict(state)
        assert listed(again) == batches[taken:]


def test_samples_are_those_of_the_batches():
    mapped = numbers().map(twice)
    batches = penstock.DataLoader(mapped, num_workers=1)
    assert [mapped[i].tolist() for i in range(COUNT)] == [batch[0].tolist() for batch in batches]


def test_samples_of_any_kind():
    samples = [{"x": np.ones(2), "y": 3, "name": "a"}, {"x": np.zeros(2), "y": 4, "name": "b"}]
    (batch,) = penstock.DataLoader(penstock.dataset(samples), 2)
    assert batch["x"].shape == (2, 2)
    assert batch["y"].tolist() == [3, 4]
    assert batch["name"] == ["a", "b"]
    assert penstock.dataset([1, 2.5])[1] == 2.5
    assert penstock.dataset(["cat", "dog"])[0] == "cat"


def test_a_function_is_called_in_the_workers():
    threads = set()

    def note(sample):
        threads.add(threading.get_ident())
        return sample

    listed(penstock.DataLoader(numbers().map(note), 2, num_workers=2))
    assert threads
    assert threading.get_ident() not in threads


class OddError(Exception):
    def __init__(self, number, text):
        super().__init__(number, text)
        self.number = number


def bad_at_five(sample):
    if sample[0].item() == 5:
        raise ValueError("five is odd")
    return sample


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_exception_keeps_its_type_and_names_sample_and_file(tmp_path, workers):
    loader = penstock.DataLoader(folder_of(tmp_path).map(bad_at_five), 4, num_workers=workers)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match=r"five is odd \(at sample 5.*05\.npy") as caught:
        next(batches)
    assert type(caught.value) is ValueError
    assert "bad_at_five" in "".join(traceback.format_exception(caught.value))
    assert next(batches).shape == (3, 3), "the loader goes on"
    with pytest.raises(ValueError, match="sample 5"):
        loader.dataset[5]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes came with Python 3.11")
def test_an_exception_that_takes_more_than_a_text_gets_a_note():
    def odd(sample):
        raise OddError(3, "three")

    with pytest.raises(OddError) as caught:
        numbers().map(odd)[2]
    assert caught.value.number == 3
    assert "sample 2" in caught.value.__notes__[0]


def test_errors_of_penstock_keep_their_kind():
    def load(sample):
        return penstock.load("/nowhere.npy")

    with pytest.raises(penstock.NotFoundError, match="sample 1"):
        numbers().map(load)[1]


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda sample: None, penstock.UnsupportedError, "sample 2 .*None"),
        (lambda sample: object(), penstock.DTypeMismatchError, "sample 2 .*object"),
        (lambda sample: {1, 2}, penstock.UnsupportedError, "sample 2 "),
        (lambda: 1, TypeError, "sample 2 "),
    ],
)
def test_what_is_no_sample_names_it(function, error, text):
    with pytest.raises(error, match=text):
        numbers().map(function)[2]


def test_wrong_calls_are_refused_at_once():
    with pytest.raises(penstock.DTypeMismatchError, match="int where map"):
        numbers().map(3)
    with pytest.raises(penstock.DTypeMismatchError, match="dataset"):
        penstock.dataset("abc")
    with pytest.raises(penstock.InvalidArgumentError, match="-1"):
        penstock.dataset(-1, number)
    with pytest.raises(penstock.InvalidArgumentError, match="whole batches"):
        numbers().map(batch_twice, batched=True)[0]
    with pytest.raises(penstock.InvalidArgumentError, match="collate_fn"):
        penstock.DataLoader(numbers(), collate=penstock.stack(), collate_fn=list)
    with pytest.raises(penstock.InvalidArgumentError, match="on_error='skipp'"):
        penstock.DataLoader(numbers(), on_error="skipp")


def test_collate_fn_makes_the_batch():
    loader = penstock.DataLoader(numbers(), 4, num_workers=2, collate_fn=lambda samples: {"n": len(samples)})
    assert list(loader) == [{"n": 4}, {"n": 4}, {"n": 3}]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_function_may_ask_its_loader_where_it_stands(workers):
    def told(sample):
        assert len(loader) == COUNT
        assert 0 <= loader.state_dict()["batch"] <= COUNT
        return sample + 100 * loader.epoch

    loader = penstock.DataLoader(numbers().map(told), num_workers=workers)
    for epoch in range(2):
        assert [batch.numpy().max() for batch in loader] == [100 * epoch + index for index in range(COUNT)]


@pytest.mark.parametrize(
    "moves",
    [
        lambda loader, iterator: next(iterator),
        lambda loader, iterator: iter(loader),
        lambda loader, iterator: loader.set_epoch(3),
        lambda loader, iterator: loader.load_state_dict(loader.state_dict()),
    ],
)
def test_a_function_that_moves_its_loader_is_refused(moves):
    """Without workers the thread that makes the batch would wait for itself; with some it is another thread."""
    loader = penstock.DataLoader(numbers().map(lambda sample: moves(loader, iterator)), num_workers=0)
    iterator = iter(loader)
    for _ in range(2):  # the first batch is made in another thread than the others
        with pytest.raises(penstock.InvalidArgumentError, match="take another loader there"):
            next(iterator)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_functions_of_batches_raise_names_the_batch(workers):
    def odd(batch):
        raise ValueError("odd")

    for loader in (
        penstock.DataLoader(numbers().map(odd, batched=True), 2, num_workers=workers),
        penstock.DataLoader(numbers(), 2, num_workers=workers, collate_fn=odd),
    ):
        with pytest.raises(ValueError, match=r"odd \(at batch 0 \(samples 0, 1\)\)"):
            next(iter(loader))


def test_filter_finds_its_size_once():
    calls = []

    def keep(sample):
        calls.append(sample)
        return sample[0].item() > 7

    kept = numbers().filter(keep)
    assert len(kept) == 3
    assert len(calls) == COUNT
    assert kept[0].tolist() == [8, 8, 8]
    assert len(calls) == COUNT
    with pytest.raises(ValueError, match="five"):
        numbers().map(bad_at_five).filter(lambda sample: True)


def test_seeded_functions_draw_what_numpy_draws():
    def draw(sample, random):
        return random.integers(1 << 40, size=2)

    loader = penstock.DataLoader(numbers().map(draw, seeded=True), 1, num_workers=2, seed=5)
    loader.set_epoch(3)
    for index, batch in enumerate(loader):
        counter = np.array([0, 0, 0, index], "u8")
        philox = np.random.Philox(key=np.array([5, 3], "u8"), counter=counter)
        assert batch[0].tolist() == np.random.Generator(philox).integers(1 << 40, size=2).tolist()


def test_a_generator_is_used_again_for_the_next_call():
    for which in range(3):

        def draw(sample, random, which=which):
            return (random.random(), random.integers(9, dtype="i4"), random.normal())[which]

        dataset = penstock.dataset(5, lambda i: i).map(draw, seeded=True)
        idle_generators.clear()
        first = [batch.tolist() for batch in penstock.DataLoader(dataset, 1, num_workers=2, seed=3)]
        assert 1 <= len(idle_generators) <= 2
        assert [batch.tolist() for batch in penstock.DataLoader(dataset, 1, num_workers=0, seed=3)] == first
        assert [[draw(None, generator(3, 0, index, 0))] for index in range(5)] == first


@pytest.mark.parametrize(
    ("keep", "bits_of"),
    [
        (lambda random: random, lambda kept: kept.bit_generator),
        (lambda random: random.bit_generator, lambda kept: kept),
        (lambda random: random.random, lambda kept: kept.__self__.bit_generator),
    ],
    ids=["itself", "its bit generator", "a method"],
)
def test_a_generator_that_a_function_keeps_is_its_own(keep, bits_of):
    kept = []

    def draw(sample, random):
        kept.append(keep(random))
        return 1

    list(penstock.DataLoader(penstock.dataset(4, lambda i: i).map(draw, seeded=True), 1, num_workers=0))
    assert [bits_of(each).state["state"]["counter"].tolist() for each in kept] == [[0, 0, 0, i] for i in range(4)]


def test_a_seeded_function_may_read_samples_of_another():
    inner = penstock.dataset(3, lambda i: i).map(lambda sample, random: random.random(), seeded=True)

    def outer(sample, random):
        before = random.random()
        return before, inner[sample], random.random()

    for index in range(3):
        own = generator(0, 0, index, 0)
        expected = own.random(), generator(0, 0, index, 0).random(), own.random()
        assert penstock.dataset(3, lambda i: i).map(outer, seeded=True)[index] == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_on_error(workers):
    def batches(on_error):
        loader = penstock.DataLoader(numbers(8).map(bad_at_five), 2, num_workers=workers, on_error=on_error)
        return loader, list(loader)

    def firsts(values):
        return [batch.tolist()[0][0] if len(batch) == 1 else [row[0] for row in batch.tolist()] for batch in values]

    loader, skipped = batches("skip")
    assert firsts(skipped) == [[0, 1], [2, 3], 4, [6, 7]]
    assert [(index, what) for index, what, _ in loader.set_aside] == [(5, "<dataset>[5]")]
    assert "five is odd" in loader.set_aside[0][2]
    assert firsts(batches("replace")[1])[2] == [4, 6]
    _, masked = batches("mask")
    assert masked[2][1].tolist() == [True, False]
    assert firsts([masked[2][0]]) == [[4, 6]]


def raised_at_five(error):
    """A loader that skips, of samples of which the sixth raises `error`."""

    def mapped(sample):
        if sample[0].item() == 5:
            raise error
        return sample

    return penstock.DataLoader(numbers(8).map(mapped), 2, on_error="skip")


@pytest.mark.parametrize("error", [
    OSError(errno.EMFILE, "text in any language"),
    penstock.InputOutputError("text in any language", errno=errno.ENFILE),
    penstock.InputOutputError("text in any language", errno=errno.EHOSTDOWN),
    penstock.InputOutputError("a URL that nobody answers", http_status=0),
    penstock.PermissionDeniedError("a URL", http_status=403),
])  # fmt: skip
def test_what_the_process_or_a_server_lacks_says_nothing_of_samples(error):
    loader = raised_at_five(error)
    with pytest.raises(type(error)) as raised:
        list(loader)
    assert raised.value.errno == error.errno
    assert getattr(raised.value, "http_status", None) == getattr(error, "http_status", None)
    assert loader.set_aside == []


@pytest.mark.parametrize("error", [
    ValueError(f"the notes say: {os.strerror(errno.EMFILE)}"),
    penstock.InputOutputError(f"the notes say: {os.strerror(errno.EHOSTDOWN)}"),
    penstock.InputOutputError("damaged, see https://example.com/format"),
])  # fmt: skip
def test_an_error_that_quotes_the_system_is_of_its_sample(error):
    loader = raised_at_five(error)
    assert [len(batch) for batch in loader] == [2, 2, 1, 2]
    assert [index for index, _, _ in loader.set_aside] == [5]


def test_pickles_and_copies_of_functions_that_pickle():
    dataset = numbers().map(twice).map(noisy, seeded=True)
    loader = penstock.DataLoader(dataset, 3, num_workers=1, collate_fn=len, on_error="skip")
    for other in (pickle.loads(pickle.dumps(loader)), copy.copy(loader)):
        assert list(other) == [3, 3, 3, 2]
    assert pickle.loads(pickle.dumps(dataset))[4].tolist() == dataset[4].tolist()
    kept = dataset.filter(lambda sample: sample[0].item() > 10)
    assert len(pickle.loads(pickle.dumps(kept))) == len(kept)


class Holder:
    """A program's class whose loader calls its methods."""

    def __init__(self):
        self.loader = penstock.DataLoader(numbers().map(self.mapped), 2, num_workers=2, collate_fn=self.collated)

    def mapped(self, sample):
        return sample

    def collated(self, samples):
        return len(samples)


def test_circles_through_functions_are_collected():
    holder = Holder()
    next(iter(holder.loader))
    gone = weakref.ref(holder)
    del holder
    assert are_collected([gone])


def test_ctrl_c_interrupts_a_slow_function(tmp_path):
    for workers in (0, 2):
        answers_ctrl_c(
            tmp_path,
            "slow = penstock.dataset(100, lambda i: time.sleep(0.1) or i)\n"
            f"loader = penstock.DataLoader(slow, num_workers={workers})",
            "list(loader)",
        )


def test_a_program_ends_while_workers_call_its_functions():
    code = """
        import time, penstock
        loader = penstock.DataLoader(penstock.dataset(1000, lambda i: time.sleep(0.001) or i), 8, num_workers=2)
        batches = iter(loader)
        next(batches)
        print("done")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=4)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_functions_are_counted():
    loader = penstock.DataLoader(numbers().map(twice), 2, num_workers=1)
    list(loader)
    assert loader.stats()["function_seconds"] > 0


def test_pack_takes_the_programs_samples(tmp_path):
    dataset = numbers().map(twice)
    penstock.pack(dataset, tmp_path / "shards")
    packed = penstock.packed(tmp_path / "shards")
    assert [packed[i].tolist() for i in range(COUNT)] == [dataset[i].tolist() for i in range(COUNT)]


def test_classes_of_folders(tmp_path):
    for name in ("dog", "cat"):
        (tmp_path / name).mkdir()
        for i in range(3):
            np.save(tmp_path / name / f"{i}.npy", number(i))
    labelled = penstock.files(tmp_path / "*" / "*.npy", class_folders=True)
    assert labelled.classes == ["cat", "dog"]
    assert labelled[4][1] == 1
    (batch,) = penstock.DataLoader(labelled, 6)
    assert batch[1].tolist() == [0, 0, 0, 1, 1, 1]
    assert penstock.subset(labelled, [0]).classes == ["cat", "dog"]
    assert len(labelled.paths) == 6
    with pytest.raises(AttributeError):
        numbers().classes  # noqa: B018
    with pytest.raises(penstock.InvalidArgumentError, match="no class's folder"):
        penstock.files(tmp_path / "cat", class_folders=True)


def test_raw_files_are_their_bytes(tmp_path):
    (tmp_path / "a.ppm").write_bytes(b"P6 1 1")
    raw = penstock.files(tmp_path / "*.ppm", raw=True)
    assert bytes(raw[0].numpy()) == b"P6 1 1"
    decoded = raw.map(lambda sample: int(bytes(sample.numpy()).split()[1]))
    (batch,) = penstock.DataLoader(decoded, 1)
    assert batch.tolist() == [1]
    assert pickle.loads(pickle.dumps(raw))[0].tolist() == raw[0].tolist()


class OnDemand:
    """A dataset of another library: it says what was asked of it."""

    def __init__(self, count):
        self.count, self.asked = count, []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        self.asked.append(index)
        return {"n": index}


def test_another_librarys_dataset_is_asked_when_a_sample_is_wanted():
    given = OnDemand(1000)
    dataset = penstock.dataset(given)
    assert len(dataset) == 1000
    assert given.asked == []
    assert dataset[7]["n"] == 7
    assert given.asked == [7]
    copied = pickle.loads(pickle.dumps(dataset))
    assert next(iter(penstock.DataLoader(copied, 2, num_workers=1)))["n"].tolist() == [0, 1]
    assert penstock.dataset(dataset) is dataset
    with pytest.raises(TypeError, match="stream"):
        penstock.dataset(penstock.stream([1, 2]))


def test_containers_of_python_are_samples_at_once():
    for given in (collections.deque([1, 2, 3]), range(1, 4), (1, 2, 3), np.array([1, 2, 3]), iter([1, 2, 3])):
        dataset = penstock.dataset(given)
        assert [int(dataset[i]) for i in range(3)] == [1, 2, 3]


class Column(collections.abc.Sequence):
    """A column that reads when it is asked, as those of Hugging Face's datasets."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


@pytest.mark.parametrize("items", [[3, 1, 2], ["a", "b"], [[1.0, 2.0], [3.0, 4.0]], np.arange(6).reshape(3, 2)])
def test_a_column_is_rows(items):
    rows, expected = (penstock.rows(given) for given in (Column(items), items))
    assert len(rows) == len(expected)
    for one, other in zip(rows, expected, strict=True):
        assert np.array_equal(one, other)
    assert len(pickle.loads(pickle.dumps(rows))) == len(items)
    assert penstock.rows(range(4))[3].item() == 3
