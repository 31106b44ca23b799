"""Pipelines drawn at random give the same batches whoever calls their functions, from any batch on: threads, processes,
a trial of both, or the caller."""

import random
import sys

import pytest
import worker_functions as functions
from worker_pairs import batches, listed, rows

import penstock

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
)


def a_dataset(draw):
    """And whether it has functions of batches."""
    data = rows(draw.randint(1, 12))
    batched = False
    for _ in range(draw.randint(1, 4)):
        kinds = ["twice", "noisy", "subset", "scale", "zip", "own"]
        kind = draw.choice(["batched"] if batched else [*kinds, "batched"])
        if kind == "twice":
            data = data.map(functions.in_place)
        elif kind == "noisy":
            data = data.map(functions.noisy, seeded=True)
        elif kind == "subset":
            data = penstock.subset(data, [draw.randrange(len(data)) for _ in range(draw.randint(1, 12))])
        elif kind == "scale":
            data = data.scale(0.5)
        elif kind == "own":
            data = penstock.zip(data, penstock.dataset(len(data), functions.number))
            return (data.map(functions.summed) if draw.random() < 0.5 else data), False
        elif kind == "zip":
            return penstock.zip(data, data.map(functions.same_memory)), False
        else:
            batched = True
            data = data.map(functions.batch_noisy, batched=True, seeded=True)
    return data, batched


FILTERS = [functions.is_small, functions.is_even, functions.noisy_is_small, functions.judges_and_adds]


def a_stream(draw):
    """And whether some of its samples are refused."""
    data = penstock.stream(rows(draw.randint(1, 12)))
    refuses = False
    for _ in range(draw.randint(1, 5)):
        kinds = ["twice", "noisy", "scale", "shuffle", "filter", "filter", "refuse", "take", "mix", "repeat"]
        kind = draw.choice(kinds)
        if kind == "twice":
            data = data.map(functions.in_place)
        elif kind == "noisy":
            data = data.map(functions.noisy, seeded=True)
        elif kind == "scale":
            data = data.scale(0.5)
        elif kind == "shuffle":
            data = data.shuffle(draw.randint(1, 5), draw.randrange(5))
        elif kind == "filter":
            data = data.filter(draw.choice(FILTERS))
        elif kind == "refuse":
            data, refuses = data.filter(functions.refuses_some), True
        elif kind == "mix":
            data = penstock.mix([data, penstock.stream(rows(3)).map(functions.twice)], [0.6, 0.4])
        elif kind == "repeat":
            data = data.repeat(2)
        else:
            data = data.take(draw.randint(1, 12))
    return data, refuses


def a_pipeline(draw):
    """Data, and options that decide what the batches are."""
    options = {"batch_size": draw.randint(1, 5), "seed": draw.randrange(100)}
    if draw.random() < 0.4:
        data, refuses = a_stream(draw)
        return data, {**options, "on_error": "skip"} if refuses else options
    data, has_batches = a_dataset(draw)
    options["shuffle"] = draw.random() < 0.5
    if draw.random() < 0.2 and not has_batches:
        options["collate_fn"] = draw.choice([functions.counted, list])
    return data, options


def compare(count, seed):
    draw = random.Random(seed)
    for number in range(count):
        data, options = a_pipeline(draw)
        expected = batches(penstock.DataLoader(data, num_workers=0, **options))
        assert batches(penstock.DataLoader(data, num_workers=2, **options)) == expected, number
        ways = [{"num_workers": draw.randint(1, 3), "workers": draw.choice(["processes", "auto"])} for _ in range(2)]
        with penstock.DataLoader(data, **ways[0], **options) as loader:
            stop = draw.randint(0, len(expected))
            iterator = iter(loader)
            assert [listed(next(iterator)) for _ in range(stop)] == expected[:stop], (number, ways)
            state = loader.state_dict()
        if stop < len(expected):
            with penstock.DataLoader(data, **ways[1], **options) as again:
                again.load_state_dict(state)
                assert batches(again) == expected[stop:], (number, ways)


@pytest.mark.slow
def test_random_pipelines_do_not_depend_on_who_calls():
    compare(60, 7)


@pytest.mark.nightly
def test_many_random_pipelines_do_not_depend_on_who_calls():
    compare(2000, 8)


def test_a_stream_is_mapped_in_processes():
    stream = penstock.stream(rows(30)).map(functions.twice).filter(functions.is_small).map(functions.process)
    with penstock.DataLoader(stream, 2, num_workers=2, workers="processes") as loader:
        pids = {pid for batch in loader for pid in batch.tolist()}
    with penstock.DataLoader(stream, 2, num_workers=2) as loader:
        here = {pid for batch in loader for pid in batch.tolist()}
    assert here
    assert pids
    assert not pids & here
