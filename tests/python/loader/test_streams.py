"""penstock.stream: samples without a length, and loaders over them."""

import itertools
import json
import pickle
import weakref

import numpy as np
import pytest
from waiting import are_collected, comes_true

import penstock

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")


def counting(size=20, begin=0):
    def samples():
        for number in range(begin, begin + size):
            yield np.array([number])

    return samples


def module_level():
    yield from range(6)


def values(loader):
    return [batch.numpy().ravel().tolist() for batch in loader]


def flat(batches):
    return [value for batch in batches for value in batch]


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_batches_come_in_order_whatever_the_workers(workers):
    stream = penstock.stream(counting(10))
    loader = penstock.DataLoader(stream, batch_size=4, num_workers=workers)
    for epoch in range(2):
        assert loader.epoch == epoch
        assert values(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert values(penstock.DataLoader(stream, batch_size=4, num_workers=workers, drop_last=True))[-1] == [4, 5, 6, 7]


def test_sources_of_every_kind():
    assert list(penstock.stream(iter([1, 2]))) == [1, 2]
    assert list(penstock.stream([1, 2])) == [1, 2]
    assert list(penstock.stream(lambda: [1, 2])) == [1, 2]
    assert list(penstock.stream(range(3))) == [0, 1, 2]
    assert [int(x) for x in penstock.stream(penstock.rows(np.arange(3)))] == [0, 1, 2]
    assert list(penstock.stream(lambda start: range(start, 5), seekable=True).skip(3)) == [3, 4]
    assert list(penstock.stream([])) == []
    assert list(penstock.stream([{"a": 1, "b": ["x", 2.5]}])) == [{"a": 1, "b": ["x", 2.5]}]


class Rewound:
    """Its own iterator, which begins anew whenever it is asked for one."""

    def __iter__(self):
        self.place = -1
        return self

    def __next__(self):
        self.place += 1
        if self.place == 5:
            raise StopIteration
        return self.place


def test_an_iterator_is_asked_for_an_iterator_once():
    for source in (Rewound(), lambda: iter(Rewound())):
        assert values(penstock.DataLoader(penstock.stream(source).take(9), batch_size=3)) == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (3, TypeError),
        ("clips", TypeError),
        (np.arange(3), TypeError),
        ({"a": 1}, TypeError),
        (None, TypeError),
        (lambda: np.arange(3), TypeError),
        (lambda: 3, TypeError),
        (lambda: None, TypeError),
        ([None], TypeError),
        ([object()], TypeError),
    ],
    ids=["int", "str", "array", "dict", "none", "gives_array", "gives_int", "gives_none", "none_in", "object_in"],
)
def test_what_is_no_source_is_refused(source, error):
    with pytest.raises((error, penstock.Error)) as found:
        list(penstock.DataLoader(penstock.stream(source)))
    assert str(found.value)


def test_methods_and_functions():
    stream = penstock.stream(counting(9)).map(lambda x: int(x.numpy()[0]))
    assert list(stream.take(2)) == [0, 1]
    assert list(stream.skip(7)) == [7, 8]
    assert list(stream.take(2).repeat(2)) == [0, 1, 0, 1]
    assert list(stream.take(2).repeat().take(5)) == [0, 1, 0, 1, 0]
    assert list(stream.filter(lambda x: x % 2)) == [1, 3, 5, 7]
    assert sorted(stream.shuffle(4)) == list(range(9))
    assert list(stream.shuffle(4, 1)) == list(stream.shuffle(4, seed=1)) != list(stream.shuffle(4, 2))
    mixed = penstock.mix([stream, penstock.stream(["a", "b", "c"])], [2, 1])
    assert list(mixed) == [0, "a", 1, 2, "b", 3, 4, "c", 5, 6]
    loader = penstock.DataLoader(penstock.stream(counting(4)).cast("float32").scale(0.5), batch_size=4, dtype="float64")
    assert [batch.numpy().tolist() for batch in loader] == [[[0.0], [0.5], [1.0], [1.5]]]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.take(-1),
        lambda s: s.skip(-2),
        lambda s: s.repeat(-1),
        lambda s: s.shuffle(0),
        lambda s: s.shuffle(-5),
        lambda s: penstock.mix([s], [float("nan")]),
        lambda s: penstock.mix([s, s], [1]),
        lambda s: penstock.mix([s], [1], size=-1),
        lambda s: penstock.stream(iter([1])).repeat(3),
        lambda s: penstock.DataLoader(s, shuffle=True),
        lambda s: penstock.DataLoader(s, sampler=[1, 2]),
        lambda s: penstock.DataLoader(s, on_error="mask"),
        lambda s: penstock.DataLoader(s, dtype="promote"),
        lambda s: next(iter(penstock.stream([]).repeat())),
    ],
)
def test_bad_arguments_are_value_errors(call):
    with pytest.raises(penstock.InvalidArgumentError, match=r"\w"):
        call(penstock.stream(counting(3)))


def test_what_needs_a_length_is_a_type_error():
    stream = penstock.stream(counting(3))
    with pytest.raises(TypeError, match="no length"):
        len(penstock.DataLoader(stream))
    with pytest.raises(TypeError, match="no length"):
        penstock.zip(stream, stream)
    with pytest.raises(TypeError):
        len(stream)
    with pytest.raises(TypeError, match="beside streams"):
        penstock.mix([stream, penstock.rows(np.arange(2))], [1, 1])
    assert len(list(penstock.DataLoader(stream))) == 3


def test_a_window_beyond_its_memory_says_what_to_do():
    stream = penstock.stream(lambda: itertools.repeat(np.zeros(1000))).shuffle(10**9, memory=100_000)
    with pytest.raises(penstock.OutOfMemoryError, match="smaller window"):
        next(iter(penstock.DataLoader(stream)))


@pytest.mark.parametrize("workers", [0, 3])
def test_a_state_goes_on_exactly(workers):
    stream = (
        penstock.stream(counting(30)).shuffle(7, 5).map(lambda x, rng: x.numpy() * 100 + rng.integers(99), seeded=True)
    )
    whole = flat(values(penstock.DataLoader(stream, batch_size=4, num_workers=workers, seed=3)))
    loader = penstock.DataLoader(stream, batch_size=4, num_workers=workers, seed=3)
    iterator = iter(loader)
    begun = [value for _ in range(3) for value in next(iterator).numpy().ravel().tolist()]
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["order"] == "stream"
    assert state["read"] == 18  # 12 given, and those in the window when the last one was drawn
    other = penstock.DataLoader(stream, batch_size=4, num_workers=1)
    other.load_state_dict(state)
    assert begun + flat(values(other)) == whole


@pytest.mark.parametrize("seekable", [False, True])
def test_a_class_of_iterators_is_called_for_each_epoch(seekable):
    class Numbers:
        def __init__(self, start=0):
            self.numbers = iter(range(start, 5))

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.numbers)

    loader = penstock.DataLoader(penstock.stream(Numbers, seekable=seekable), batch_size=2, num_workers=0)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4]]


def test_a_generator_is_read_once_and_up_to_the_place():
    loader = penstock.DataLoader(penstock.stream(counting(10)()), batch_size=3, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    assert flat([batch.numpy().ravel().tolist() for batch in iterator]) == list(range(3, 10))
    with pytest.raises(ValueError, match="can be read once"):
        next(iter(loader))
    fresh = penstock.DataLoader(penstock.stream(counting(10)()), batch_size=3)
    fresh.load_state_dict(state)
    assert flat(values(fresh)) == list(range(3, 10))
    changed = penstock.DataLoader(penstock.stream(counting(2)()), batch_size=3)
    changed.load_state_dict(state)
    with pytest.raises(penstock.ChangedError, match="has changed"):
        next(iter(changed))


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_have_their_type_and_name_the_sample(workers):
    def failing():
        yield 0
        yield 1
        raise KeyError("no such clip")

    loader = penstock.DataLoader(penstock.stream(failing, name="clips.tar"), num_workers=workers)
    iterator = iter(loader)
    assert [next(iterator).numpy().tolist(), next(iterator).numpy().tolist()] == [[0], [1]]
    with pytest.raises(KeyError, match=r"sample 2 \(clips.tar\[2\]\)"):
        next(iterator)
    assert list(iterator) == []  # a generator that raised has ended
    bad = penstock.stream(counting(6)).map(lambda x: 1 // (int(x.numpy()[0]) % 3))
    with pytest.raises(ZeroDivisionError, match="sample 0"):
        next(iter(penstock.DataLoader(bad, num_workers=workers)))
    skipping = penstock.DataLoader(bad, batch_size=6, num_workers=workers, on_error="skip")
    assert values(skipping) == [[1, 0, 1, 0]]
    assert [index for index, _, _ in skipping.set_aside] == [0, 3]


def test_ranks_take_turns():
    seen = [
        flat(values(penstock.DataLoader(penstock.stream(counting(8)), batch_size=2, ranks=(rank, 3), remainder="drop")))
        for rank in range(3)
    ]
    assert seen == [[0, 3], [1, 4], [2, 5]]
    masks = [
        mask.numpy().tolist()
        for _, mask in penstock.DataLoader(penstock.stream(counting(4)), batch_size=2, ranks=(1, 3), remainder="exact")
    ]
    assert masks == [[True, False]]


def test_streams_and_loaders_pickle():
    stream = penstock.stream(module_level).take(5).map(abs)
    assert list(pickle.loads(pickle.dumps(stream))) == list(range(5))
    loader = penstock.DataLoader(penstock.mix([stream, stream.shuffle(2)], [1, 1]), batch_size=2)
    expected = values(loader)
    assert values(pickle.loads(pickle.dumps(loader))) != []
    loader.set_epoch(0)
    assert values(pickle.loads(pickle.dumps(loader))) == expected


def test_generators_are_closed_and_nothing_is_kept():
    closed = []

    class Source:
        def __init__(self):
            self.loader = penstock.DataLoader(penstock.stream(self.samples), num_workers=1)

        def samples(self):
            try:
                yield from range(1000)
            finally:
                closed.append(True)

    source = Source()
    next(iter(source.loader))
    alive = weakref.ref(source)
    del source
    assert are_collected([alive])
    assert comes_true(lambda: closed)


def test_a_function_that_asks_its_own_iterator_is_refused():
    walks = []

    def own():
        yield np.array([0])
        yield next(walks[-1])

    for stream in (penstock.stream(own), penstock.stream(counting()).map(lambda sample: next(walks[-1]))):
        walks.append(iter(stream))
        with pytest.raises(penstock.InvalidArgumentError, match="take another iterator there"):
            list(walks[-1])


def test_a_loader_of_an_endless_stream_is_left_at_any_time():
    def endless():
        number = 0
        while True:
            yield number
            number += 1

    with penstock.DataLoader(penstock.stream(endless), batch_size=2, num_workers=2) as loader:
        assert [batch.numpy().tolist() for batch, _ in zip(loader, range(3), strict=False)] == [[0, 1], [2, 3], [4, 5]]
        assert loader.stats()["samples"] >= 6


def test_batched_functions_and_own_collation():
    stream = penstock.stream([1, 2, 3])
    loader = penstock.DataLoader(stream, batch_size=3, collate_fn=lambda samples: sum(samples))
    assert list(loader) == [6]
    assert [float(b) for b in penstock.DataLoader(stream.map(lambda b: b.sum(), batched=True), batch_size=3)] == [6.0]
    assert values(
        penstock.DataLoader(penstock.stream([np.ones(2), np.ones(3)]), batch_size=2, collate=penstock.pad())
    ) == [[1, 1, 0, 1, 1, 1]]


def test_a_dataset_brings_its_own_names_and_places():
    rows = penstock.rows([1, 2])
    for given in ({"name": "clips"}, {"seekable": True}):
        with pytest.raises(penstock.InvalidArgumentError, match="beside a dataset"):
            penstock.stream(rows, **given)
