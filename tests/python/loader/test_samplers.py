"""The order of samples: our samplers beside torch's, and those of users."""

import gc
import itertools
import json
import pickle
import weakref

import numpy as np
import pytest
from loader_data import N

import penstock

torch = pytest.importorskip("torch")


def test_samplers():
    assert list(penstock.SequentialSampler(4)) == [0, 1, 2, 3]
    assert len(penstock.SequentialSampler(range(7))) == 7
    random = penstock.RandomSampler(10)
    assert random.order(seed=1) == [5, 6, 1, 2, 0, 8, 9, 3, 7, 4]  # torch's own golden value
    assert sorted(random) == list(range(10))
    assert len(penstock.RandomSampler(10, replacement=True, num_samples=25)) == 25
    assert list(penstock.SubsetSampler([3, 1])) == [3, 1]
    assert sorted(penstock.SubsetSampler([3, 1, 2], shuffle=True)) == [1, 2, 3]
    assert set(penstock.WeightedSampler([0, 1, 0], 5)) == {1}
    assert list(penstock.BatchSampler(penstock.SequentialSampler(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(penstock.BatchSampler(penstock.SequentialSampler(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(penstock.BatchSampler([[3], [1, 2]])) == [[3], [1, 2]]
    assert list(penstock.BatchSampler([5, 6, 7], 2)) == [[5, 6], [7]]
    with pytest.raises(ValueError, match="weight"):
        penstock.WeightedSampler([0.0], 1)


def test_distributed_sampler_as_torch():
    for shuffle in (False, True):
        for drop_last in (False, True):
            for rank in range(3):
                peer = torch.utils.data.DistributedSampler(
                    range(10), num_replicas=3, rank=rank, shuffle=shuffle, drop_last=drop_last, seed=5
                )
                ours = penstock.DistributedSampler(10, 3, rank, shuffle=shuffle, drop_last=drop_last)
                for epoch in range(2):
                    peer.set_epoch(epoch)
                    assert ours.order(seed=5, epoch=epoch) == list(peer)
    with pytest.raises(ValueError, match="rank"):
        penstock.DistributedSampler(10, 3, 3)
    split = penstock.DistributedSampler(penstock.SubsetSampler([9, 8, 7, 6]), 2, 1, shuffle=False)
    assert list(split) == [8, 6]


@pytest.mark.parametrize("workers", [0, 2])
def test_python_samplers(folder, workers):
    labels = penstock.rows(folder / "labels.npy")
    for sampler in ([5, 3, 1], (5, 3, 1), np.array([5, 3, 1]), torch.tensor([5, 3, 1]), iter([5, 3, 1])):
        loader = penstock.DataLoader(labels, batch_size=2, sampler=sampler, num_workers=workers)
        assert len(loader) == 2
        assert [b.tolist() for b in loader] == [[5, 3], [1]]
    loader = penstock.DataLoader(labels, batch_sampler=[[1, 2], [30], [0, 5, 6]], num_workers=workers)
    assert len(loader) == 3
    assert [b.tolist() for b in loader] == [[1, 2], [30], [0, 5, 6]]


class Countdown:
    """Another order at each pass; records what it is told."""

    def __init__(self, size):
        self.size = size
        self.epochs = []
        self.passes = 0

    def set_epoch(self, epoch):
        self.epochs.append(epoch)

    def __len__(self):
        return self.size

    def __iter__(self):
        self.passes += 1
        return iter([(self.size - i + self.epochs[-1]) % N for i in range(self.size)])


@pytest.mark.parametrize("workers", [0, 2])
def test_python_samplers_are_asked_once_an_epoch(folder, workers):
    sampler = Countdown(6)
    loader = penstock.DataLoader(
        penstock.rows(folder / "labels.npy"), batch_size=3, sampler=sampler, num_workers=workers
    )
    for epoch in range(3):
        assert [b.tolist() for b in loader] == [[6 + epoch, 5 + epoch, 4 + epoch], [3 + epoch, 2 + epoch, 1 + epoch]]
    assert sampler.passes <= 4
    iterator = iter(loader)
    first = next(iterator).tolist()
    del iterator
    assert next(iter(loader)).tolist() == first


@pytest.mark.parametrize("workers", [0, 2])
def test_exceptions_of_python_samplers_arrive(folder, workers):
    class Broken:
        def __len__(self):
            return 3

        def __iter__(self):
            yield 1
            raise ZeroDivisionError("from the sampler")

    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=Broken(), num_workers=workers)
    with pytest.raises(ZeroDivisionError, match="from the sampler"):
        list(loader)
    with pytest.raises(ZeroDivisionError, match="division"):
        penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=(1 // 0 for _ in ["generator"]))


@pytest.mark.parametrize("given", [[1, 2], [1] * 6, itertools.cycle([1])], ids=["less", "more", "endless"])
@pytest.mark.parametrize("kind", ["sampler", "batch_sampler"])
def test_python_samplers_of_wrong_length(folder, kind, given):
    class Liar:
        def __len__(self):
            return 5

        def __iter__(self):
            return iter(given) if kind == "sampler" else ([i] for i in given)

    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), **{kind: Liar()})
    found, unit = "2" if given == [1, 2] else "more", "indices" if kind == "sampler" else "batches"
    with pytest.raises(ValueError, match=f"gave {found}.* expected 5 {unit}"):
        list(loader)


@pytest.mark.slow
def test_endless_samplers_without_length(folder):
    with pytest.raises(penstock.LimitError, match=r"no length and gave more than 67108864 indices.*__len__"):
        penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=itertools.cycle([0]))


def test_python_samplers_without_length(folder):
    class Three:
        def __iter__(self):
            return iter(range(3))

    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=Three(), batch_size=2)
    assert len(loader) == 2
    assert [len(batch.tolist()) for _ in range(2) for batch in loader] == [2, 1, 2, 1]


def test_indices_outside_the_dataset(folder):
    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), batch_size=2, sampler=[0, 1, N, 2])
    with pytest.raises(IndexError, match=str(N)):
        list(loader)


def test_torch_samplers(folder):
    labels = penstock.rows(folder / "labels.npy")
    sampler = torch.utils.data.DistributedSampler(range(N), num_replicas=2, rank=1, seed=3)
    loader = penstock.DataLoader(labels, batch_size=N, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        expected = list(sampler)
        assert next(iter(loader)).tolist() == expected
        loader.set_epoch(epoch + 1)


@pytest.mark.parametrize("in_batches", [False, True])
def test_the_ranks_of_torchs_distributed_sampler_are_known(folder, in_batches):
    labels = penstock.rows(folder / "labels.npy")

    def loader(rank, ranks, kind=torch.utils.data.DistributedSampler):
        sampler = kind(range(N), num_replicas=ranks, rank=rank)
        if in_batches:
            return penstock.DataLoader(labels, batch_sampler=torch.utils.data.BatchSampler(sampler, 2, False))
        return penstock.DataLoader(labels, batch_size=2, sampler=sampler)

    every = [index for batch in loader(0, 1) for index in batch.tolist()]
    ranks = [loader(rank, 2) for rank in range(2)]
    taken = [next(batches).tolist() for batches in map(iter, ranks) for _ in range(3)]
    assert sorted(itertools.chain(*taken)) == sorted(every[:12])
    state = ranks[0].state_dict()
    assert state["num_replicas"] == 2
    alone = loader(0, 1)
    alone.load_state_dict(state)
    assert [index for batch in alone for index in batch.tolist()] == every[12:]
    unstopped = loader(0, 1)
    unstopped.set_epoch(1)
    for _ in range(2):
        assert [batch.tolist() for batch in alone] == [batch.tolist() for batch in unstopped]
    with pytest.raises(ValueError, match="5 ranks"):
        loader(0, 5).load_state_dict(state)

    class Own(torch.utils.data.DistributedSampler):
        def __iter__(self):
            return iter(range(len(self)))

    assert loader(0, 2, Own).state_dict()["num_replicas"] == 1


def test_a_sampler_that_refers_to_its_loader_is_collected(folder):
    class Sampler(list):
        loader = None

    sampler = Sampler([0, 1, 2])
    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=sampler, num_workers=1)
    sampler.loader = loader
    next(iter(loader))
    ref = weakref.ref(loader)
    del loader, sampler
    gc.collect()
    assert ref() is None


class Turned(penstock.Sampler):
    """In an order that turns with each epoch."""

    def __len__(self):
        return N

    def order(self, seed, epoch):
        return [(index + epoch + seed) % N for index in range(N)]


SAMPLERS = {
    "sequential": dict,
    "random": lambda: {"shuffle": True},
    "replacement": lambda: {"sampler": penstock.RandomSampler(N, replacement=True, num_samples=30)},
    "weighted": lambda: {"sampler": penstock.WeightedSampler([1.0 + i for i in range(N)], 17)},
    "subset": lambda: {"sampler": penstock.SubsetSampler([5, 3, 8, 1, 12, 2, 9], shuffle=True)},
    "distributed": lambda: {"sampler": penstock.DistributedSampler(N, num_replicas=2, rank=1)},
    "derived": lambda: {"sampler": Turned()},
    "batches": lambda: {"batch_sampler": penstock.BatchSampler(penstock.RandomSampler(N), 3, drop_last=True)},
    "a list": lambda: {"sampler": [4, 1, 1, 0, 7, 9, 2]},
    "torch's": lambda: {"sampler": torch.utils.data.DistributedSampler(range(N), num_replicas=2, rank=0)},
}


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 2)])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_resumed_loader_goes_on_for_two_more_epochs(folder, name, before, after):
    labels = penstock.rows(folder / "labels.npy")

    def make(workers, seed):
        options = SAMPLERS[name]()
        size = {} if "batch_sampler" in options else {"batch_size": 3}
        return penstock.DataLoader(labels, seed=seed, num_workers=workers, **size, **options)

    def epoch(loader):
        return [batch.tolist() for batch in loader]

    for taken in (0, 1, 2, None):
        loader = make(before, 7)
        epoch(loader)
        batches = iter(loader)
        seen = list(itertools.islice(batches, taken))
        assert len(seen) == taken or taken is None
        state = json.loads(json.dumps(loader.state_dict()))
        rest = [epoch(batches)] if taken is not None else [epoch(loader)]
        expected = [*rest, epoch(loader), epoch(loader)]
        again = make(after, 99)  # the state brings its own seed
        again.load_state_dict(state)
        assert [epoch(again) for _ in range(3)] == expected


@pytest.mark.parametrize("machines", [1, 2, 4])
def test_a_node_local_order_keeps_machines_to_their_parts(machines):
    dataset = penstock.rows(list(range(240)))
    order = penstock.NodeLocalSampler(dataset, nodes=4, ranks_per_node=3)
    part = 240 // 4
    read = {machine: set() for machine in range(machines)}
    for rank in range(machines * 3):
        options = {"batch_size": 4, "sampler": order, "seed": 5, "ranks": (rank, machines * 3)}
        loader = penstock.DataLoader(dataset, **options)
        epochs = [[int(i) for batch in loader for i in np.asarray(batch)] for _ in range(2)]
        assert epochs[0] != epochs[1]
        read[rank // 3].update(*epochs)
    for machine, indices in read.items():
        assert {index // part for index in indices} == set(range(machine, 4, machines))
    assert sorted(set.union(*read.values())) == list(range(240))


def test_node_local_orders_are_copied_and_checked():
    order = penstock.NodeLocalSampler(100, 4, shuffle=False)
    assert pickle.loads(pickle.dumps(order)).order(1, 2) == order.order(1, 2)
    assert sorted(order.order()) == list(range(100))
    assert order.order()[:5] == [0, 25, 50, 75, 1]
    for refused in (lambda: penstock.NodeLocalSampler(5, 0), lambda: penstock.NodeLocalSampler(5, 2, 0)):
        with pytest.raises(penstock.InvalidArgumentError, match="at least one node"):
            refused()


@pytest.mark.parametrize(
    "mask",
    [[True, False, True], np.array([True, False, True]), torch.tensor([True, False, True])],
    ids=["list", "numpy", "torch"],
)
def test_a_mask_is_no_list_of_indices(mask):
    rows = penstock.rows([10, 11, 12])
    for wrong in ({"sampler": mask}, {"batch_sampler": [mask]}):
        with pytest.raises(penstock.DTypeMismatchError, match="expected a whole number"):
            list(penstock.DataLoader(rows, 1 if "batch_sampler" in wrong else 3, **wrong))
    with pytest.raises(penstock.DTypeMismatchError, match=r"expected (a )?whole number"):
        penstock.subset(rows, mask)


def test_a_compact_order_is_walked_without_a_list_of_it():
    order = penstock.RandomSampler(10**12, compact=True)  # a list of it would take 40 TB
    first = list(itertools.islice(iter(order), 10_000))
    assert len(set(first)) == 10_000
    assert all(0 <= index < 10**12 for index in first)
    batches = list(itertools.islice(iter(penstock.BatchSampler(order, 64)), 100))
    assert [index for batch in batches for index in batch] == first[:6400]


def test_a_walk_keeps_the_order_of_its_epoch():
    order = penstock.RandomSampler(9_000)
    walk = iter(order)
    head = list(itertools.islice(walk, 5_000))
    order.set_epoch(1)
    assert head + list(walk) == order.order(0, 0)
    assert list(order) == order.order(0, 1)


def test_arguments_that_nothing_follows_are_refused():
    for make, said in (
        (lambda: penstock.BatchSampler([[0, 1], [2]], drop_last=True), "drop_last without a batch_size"),
        (lambda: penstock.length_buckets([1, 2], [2], batch_size=2, dim=1), "dim= or key= beside lengths"),
        (lambda: penstock.length_buckets([1, 2], [2], batch_size=2, key="x"), "dim= or key= beside lengths"),
        (lambda: penstock.length_buckets([1, 2], [2], batch_size=2, too_long="skip"), "too_long without max_tokens"),
        (lambda: penstock.stack(dim=1), "dim=1 without tensors"),
        (lambda: penstock.DataLoader(penstock.rows([1]), multiprocessing_context="spawn"), "starts no processes"),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=said):
            make()
