"""Threads that share loaders, samplers, streams and datasets (at_once.py)."""

from __future__ import annotations

import gc
import pickle
import weakref

import pytest
from at_once import ROUNDS, THREADS, N, at_once, may_hear, rows
from waiting import are_collected

import penstock


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """N small files."""
    folder = tmp_path_factory.mktemp("files")
    for i in range(N):
        penstock.save({"x": rows()[i], "y": penstock.tensor(i)}, folder / f"{i:02}.safetensors")
    return folder


def labels_of(batch):
    return batch["y"].tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_that_share_an_iterator_get_each_batch_once(folder, workers):
    loader = penstock.DataLoader(penstock.files(folder), 2, shuffle=True, num_workers=workers)

    def looks_on():
        for _ in range(30):
            assert 0 <= loader.state_dict()["batch"] <= N // 2
            assert loader.stats()["batches"] >= 0
            assert (len(loader), loader.set_aside) == (N // 2, [])
            assert loader.epoch >= 0

    for _ in range(ROUNDS):
        iterator = iter(loader)
        takes = [lambda iterator=iterator: [labels_of(batch) for batch in iterator]] * THREADS
        given = at_once(*takes, looks_on, rounds=1)[:THREADS]
        assert sorted(label for (batches,) in given for batch in batches for label in batch) == list(range(N))


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_that_begin_iterations_of_one_loader_end_each_others(folder, workers):
    loader = penstock.DataLoader(penstock.files(folder), 2, num_workers=workers)

    def iterates():
        for _ in range(5):
            with may_hear("this iteration ended when another began", "was stopped"):
                labels = [label for batch in loader for label in labels_of(batch)]
                assert labels == list(range(N - len(labels), N))  # it goes on where a state was put back

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
    dataset = penstock.files(folder).map(doubled)
    sampler = Backwards(N)

    def iterates():
        loader = penstock.DataLoader(dataset, 3, sampler=sampler, collate_fn=joined, num_workers=2)
        batches = list(loader)
        assert [label for batch in batches for label in labels_of(batch)] == list(range(N - 1, -1, -1))
        assert batches[0]["x"].tolist() == [2 * value for value in rows()[N - 1].tolist()]

    at_once(*[iterates] * THREADS)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.slow
def test_a_loader_is_closed_while_others_iterate(folder, workers):
    def attempt():
        loader = penstock.DataLoader(penstock.files(folder).map(doubled), 2, sampler=Backwards(N), num_workers=workers)

        def iterates():
            with may_hear("is closed", "stopped", "ended when another began"):
                while True:
                    for batch in loader:
                        labels_of(batch)

        at_once(iterates, iterates, loader.close, loader.close, rounds=1)
        with pytest.raises(penstock.Error, match="is closed"):
            loader.stats()

    for _ in range(3 * ROUNDS):
        attempt()


@pytest.mark.slow
def test_loaders_that_lead_back_to_their_functions_are_collected(folder):
    """By the garbage collector, whose threads see nothing of the workers that call the functions meanwhile."""
    gone = []

    def makes():
        for _ in range(5):
            holder = {}

            def function(sample, holder=holder):
                return {"x": sample["x"] + len(holder), "y": penstock.tensor(sample["y"].item())}

            dataset = penstock.files(folder).map(function)
            loader = holder["loader"] = penstock.DataLoader(
                dataset, 2, collate_fn=lambda samples, holder=holder: joined(samples), num_workers=2
            )
            holder["iterator"] = iterator = iter(loader)
            assert labels_of(next(iterator)) == [0, 1]
            gone.append(weakref.ref(loader))
            del loader, iterator, dataset, function, holder

    at_once(makes, makes, lambda: [gc.collect() for _ in range(20)])
    assert are_collected(gone)


def test_a_sampler_is_shared():
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


def test_what_a_shared_sampler_raises_arrives():
    class Raises(penstock.Sampler):
        def __len__(self):
            return N

        def __iter__(self):
            raise LookupError("no order today")

    sampler = penstock.DistributedSampler(Raises(), 2, 1, shuffle=False)

    def asks():
        for _ in range(20):
            with pytest.raises((LookupError, penstock.Error), match=r"no order today|raised an exception"):
                sampler.order()

    at_once(*[asks] * THREADS)


def test_samples_of_a_stream_that_threads_walk_are_given_once():
    for _ in range(ROUNDS):
        stream = penstock.stream(lambda: iter(range(200)))
        walk = penstock._core._StreamWalk(stream._native)
        given = at_once(*[lambda walk=walk: list(walk)] * THREADS, rounds=1)
        assert sorted(sample for (samples,) in given for sample in samples) == list(range(200))


def test_loaders_of_one_stream():
    shared = penstock.stream(lambda: ({"y": penstock.tensor(i)} for i in range(N))).map(dict).shuffle(4)
    expected = [labels_of(batch) for batch in penstock.DataLoader(shared, 3)]

    def iterates():
        assert [labels_of(batch) for batch in penstock.DataLoader(shared, 3, num_workers=2)] == expected

    at_once(*[iterates] * THREADS)


def test_datasets_are_indexed_and_pickled_by_several_threads(folder):
    dataset = penstock.zip(penstock.files(folder), penstock.rows(rows()))

    def reads():
        for i in range(0, N, 5):
            sample, row = dataset[i]
            assert (sample["y"].item(), row.tolist()) == (i, rows()[i].tolist())
        assert len(pickle.loads(pickle.dumps(dataset))) == N
        assert dataset[2:6][0]["y"].tolist() == [2, 3, 4, 5]
        assert penstock.lengths(penstock.rows(rows())) == [8] * N

    at_once(*[reads] * THREADS)
