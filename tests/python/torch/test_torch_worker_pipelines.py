"""Pipelines of penstock.torch drawn at random give the same batches whoever makes them, from any batch on: the caller,
threads, processes, or a trial of both."""

import random
import sys

import pytest
import torch
import torch.utils.data as torch_data
import torch_worker_functions as functions
from torch_worker_pairs import rows, same

import penstock.torch as pt

pytestmark = [
    pytest.mark.skipif(
        not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
    ),
    pytest.mark.filterwarnings("ignore::penstock.torch.datasets._taken_apart.NotNativeWarning"),
]


def a_dataset(draw):
    """And whether it has functions of batches, which take tensors."""
    data = rows(draw.randint(1, 12))
    for _ in range(draw.randint(0, 3)):
        kind = draw.choice(["twice", "noisy", "subset", "concat"])
        if kind == "twice":
            data = data.map(functions.twice) if hasattr(data, "map") else data
        elif kind == "noisy":
            data = data.map(functions.noisy, seeded=True) if hasattr(data, "map") else data
        elif kind == "subset":
            data = torch_data.Subset(data, [draw.randrange(len(data)) for _ in range(draw.randint(1, 12))])
        else:
            data = torch_data.ConcatDataset([data, rows(3).map(functions.twice)])
    has_batches = hasattr(data, "map") and draw.random() < 0.3
    return (data.map(functions.batch_noisy, batched=True, seeded=True) if has_batches else data), has_batches


def a_pipeline(draw):
    data, has_batches = a_dataset(draw)
    options = {"batch_size": draw.randint(1, 5), "shuffle": draw.random() < 0.5, "drop_last": draw.random() < 0.2}
    if draw.random() < 0.2 and not has_batches:
        options["collate_fn"] = draw.choice([functions.collated, list])
    elif draw.random() < 0.2:
        options["collate_fn"] = pt.pad()
    return data, options


def compare(count, seed):
    draw = random.Random(seed)
    for number in range(count):
        data, options = a_pipeline(draw)
        order = draw.randrange(1000)

        def loader(options=options, data=data, order=order, **more):
            torch.manual_seed(order)
            return pt.DataLoader(data, **options, **more)

        expected = list(loader())
        assert same(list(loader(num_workers=2)), expected), number
        ways = [{"num_workers": draw.randint(1, 3), "workers": draw.choice(["processes", "auto"])} for _ in range(2)]
        first = loader(**ways[0])
        stop = draw.randint(0, len(expected))
        iterator = iter(first)
        assert same([next(iterator) for _ in range(stop)], expected[:stop]), (number, ways)
        state = first.state_dict()
        del iterator, first
        if stop < len(expected):
            again = loader(**ways[1])
            again.load_state_dict(state)
            assert same(list(again), expected[stop:]), (number, ways)


def test_random_pipelines_do_not_depend_on_who_makes_the_batches():
    compare(60, 7)


@pytest.mark.nightly
def test_many_random_pipelines_do_not_depend_on_who_makes_the_batches():
    compare(2000, 8)


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_a_closure_is_named_however_processes_start(monkeypatch, context):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    number = 3

    def closure(sample):
        return sample + number

    loader = pt.DataLoader(rows().map(closure), 2, num_workers=1, workers="processes", multiprocessing_context=context)
    with pytest.raises(TypeError, match=r"cannot be sent to a worker process: .*closure"):
        list(loader)


def test_a_function_may_iterate_a_loader_with_processes():
    expected = list(pt.DataLoader(rows(2).map(functions.nested), 2))
    found = list(pt.DataLoader(rows(2).map(functions.nested), 2, num_workers=1, workers="processes"))
    assert same(found, expected)


def test_tensors_that_lie_nowhere():
    found = list(pt.DataLoader(rows(4), 2, collate_fn=functions.on_meta, num_workers=1, workers="processes"))
    assert [batch.device.type for batch in found] == ["meta", "meta"]
