"""Loaders that go on where a state says."""

from __future__ import annotations

import itertools
import signal

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT

import penstock
import penstock.torch as pt


def test_a_state_of_other_batches_is_refused(tmp_path):
    np.save(tmp_path / "r.npy", np.arange(10))
    loader = pt.DataLoader(pt.Rows(tmp_path / "r.npy"), batch_size=3)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="batches of 3"):
        pt.DataLoader(pt.Rows(tmp_path / "r.npy"), batch_size=2).load_state_dict(state)
    for wrong in ({"batch": -1}, {"batch": None}, {"random": None}):
        with pytest.raises(ValueError, match="state"):
            loader.load_state_dict({**state, **wrong})
    loader.load_state_dict({**state, "batch": 10**9})
    with pytest.raises(ValueError, match="the epoch has fewer"):
        next(iter(loader))


def with_generators(of_loader, of_sampler):
    """A loader that draws from the one or the other, or from torch's global one."""
    data = pt.Rows(np.arange(12))
    generator = torch.Generator().manual_seed(1)
    if of_sampler:
        return pt.DataLoader(data, 2, sampler=td.RandomSampler(data, generator=generator))
    return pt.DataLoader(data, 2, shuffle=True, generator=generator if of_loader else None)


@pytest.mark.parametrize("before", [(False, False), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("now", [(False, False), (True, False), (False, True)], ids=str)
def test_an_order_goes_on_from_the_generator_that_it_was_drawn_from(before, now):
    loader = with_generators(*before)
    batches = iter(loader)
    next(batches)
    state, rest = loader.state_dict(), [batch.tolist() for batch in batches]
    other = with_generators(*now)
    if before == now:
        other.load_state_dict(state)
        assert [batch.tolist() for batch in other] == rest
    else:
        with pytest.raises(ValueError, match="another generator"):
            other.load_state_dict(state)


@pytest.mark.parametrize("data", [pt.Rows(np.arange(24)), td.TensorDataset(torch.arange(24))], ids=["native", "torch"])
def test_lists_of_another_size_are_refused(data):
    def loader(size):
        sampler = td.BatchSampler(td.SequentialSampler(range(24)), size, False)
        return pt.DataLoader(data, batch_size=None, sampler=sampler)

    first = loader(3)
    next(iter(first))
    same, other = loader(3), loader(4)
    same.load_state_dict(first.state_dict())
    assert len(list(same)) == 7
    other.load_state_dict(first.state_dict())
    with pytest.raises(ValueError, match="other indices"):
        next(iter(other))


def test_an_order_of_more_samples_is_refused():
    def loader(count):
        generator = torch.Generator().manual_seed(3)
        return pt.DataLoader(pt.Rows(np.arange(24)), 2, sampler=td.RandomSampler(range(count), generator=generator))

    first = loader(10)
    next(iter(first))
    same, other = loader(10), loader(12)
    same.load_state_dict(first.state_dict())
    assert len(list(same)) == 4
    other.load_state_dict(first.state_dict())
    with pytest.raises(ValueError, match="other indices"):
        next(iter(other))


class Large:
    """Batches of which only the middle is `swapped`."""

    def __init__(self, kind, swapped):
        self.kind, self.swapped = kind, swapped

    def __len__(self):
        return 2

    def __iter__(self):
        order = torch.arange(4000)
        if self.swapped:
            order[900:1100] = order[900:1100].flip(0)
        yield from map(self.kind, order.split(2000))


@pytest.mark.parametrize("kind", [torch.clone, torch.Tensor.numpy, torch.Tensor.tolist], ids=["torch", "numpy", "list"])
def test_batches_of_other_indices_in_their_middle_are_refused(kind):
    def loader(swapped):
        return pt.DataLoader(pt.Rows(np.arange(4000)), batch_sampler=Large(kind, swapped))

    first = loader(False)
    next(iter(first))
    for swapped in (False, True):
        other = loader(swapped)
        other.load_state_dict(first.state_dict())
        if swapped:
            with pytest.raises(ValueError, match="other indices"):
                next(iter(other))
        else:
            assert next(iter(other)).tolist() == list(range(2000, 4000))


ODD = [
    None,
    -1,
    3,
    10**30,
    "x",
    "QUJD",
    [],
    [1],
    [-1],
    [10**20],
    {},
    {"torch": "QUJD"},
    1.5,
    [[1, 2, 3, 4, 5]],
    [[None]],
]


@pytest.mark.parametrize("dataset", [pt.Rows(np.arange(20)), list(range(20))], ids=["native", "Python's"])
def test_odd_states_are_value_errors_or_states(dataset):
    """As from a file that was edited; a state has no pickles."""

    def make():
        return pt.DataLoader(dataset, 3, shuffle=True, generator=torch.Generator().manual_seed(1))

    loader = make()
    batches = iter(loader)
    next(batches)
    states = [loader.state_dict(), (list(batches), loader.state_dict())[1]]
    refused = set()
    for state, odd in itertools.product(states, ODD):
        python = {**(state["python"] or {}), "workers": [], "num_workers": 0}
        changed = [(name, {**state, name: odd}) for name in state]
        changed += [(f"python.{name}", {**state, "python": {**python, name: odd}}) for name in python]
        for name, one in changed:
            again = make()
            try:
                again.load_state_dict(one)
                list(again)
            except ValueError:
                refused.add(name)
    assert refused >= {"batch", "random", "later", "samples", "set_aside", "pending", "begins", "python.workers"}


def test_a_state_of_another_order_is_refused(tmp_path):
    np.save(tmp_path / "r.npy", np.arange(10))
    rows = pt.Rows(tmp_path / "r.npy")
    shuffled = pt.DataLoader(rows, batch_size=3, shuffle=True)
    next(iter(shuffled))
    state = shuffled.state_dict()
    for sampler in (None, range(10), td.DistributedSampler(rows, 1, 0)):
        with pytest.raises(ValueError, match="shuffle and sampler"):
            pt.DataLoader(rows, batch_size=3, sampler=sampler).load_state_dict(state)
        pt.DataLoader(rows, batch_size=3, sampler=sampler).load_state_dict({**state, "batch": 0})
        pt.DataLoader(rows, batch_size=3, sampler=sampler).load_state_dict({**state, "order": None})
    pt.DataLoader(rows, batch_size=3, sampler=td.RandomSampler(rows)).load_state_dict(state)


class TestResume:
    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("with_generator", [False, True])
    @pytest.mark.parametrize("taken", [0, 1, 4, 7])
    def test_goes_on_exactly(self, folder, taken, with_generator, workers):
        def make(workers):
            generator = torch.Generator().manual_seed(9) if with_generator else None
            return pt.DataLoader(pt.Files(folder), 8, shuffle=True, num_workers=workers, generator=generator)

        torch.manual_seed(4)
        loader = make(workers)
        iterator = iter(loader)
        for _ in range(taken):
            next(iterator)
        state = loader.state_dict()
        rest = [b["y"].tolist() for b in iterator]
        following = [[b["y"].tolist() for b in loader] for _ in range(2)]

        torch.manual_seed(99)
        again = make(2 - workers)
        again.load_state_dict(state)
        assert again.state_dict()["batch"] == taken
        assert [b["y"].tolist() for b in again] == rest
        assert [[b["y"].tolist() for b in again] for _ in range(2)] == following

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("kind", ["random", "weighted", "subset", "batch", "batch distributed"])
    def test_samplers_with_a_generator_of_their_own(self, folder, kind, workers):
        def make(seed):
            dataset, generator = pt.Files(folder, keys="y"), torch.Generator().manual_seed(seed)
            random = td.RandomSampler(dataset, generator=generator)
            options = {
                "random": lambda: {"sampler": random, "batch_size": 8},
                "weighted": lambda: {
                    "sampler": td.WeightedRandomSampler([1.0] * COUNT, 40, generator=generator),
                    "batch_size": 8,
                },
                "subset": lambda: {"sampler": td.SubsetRandomSampler(range(30), generator=generator), "batch_size": 8},
                "batch": lambda: {"batch_sampler": td.BatchSampler(random, 8, True)},
                "batch distributed": lambda: {
                    "batch_sampler": td.BatchSampler(td.DistributedSampler(dataset, 2, 0), 8, False)
                },
            }[kind]()
            return pt.DataLoader(dataset, num_workers=workers, **options)

        loader = make(5)
        list(loader)
        if kind == "batch distributed":
            loader.batch_sampler.sampler.set_epoch(3)
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        rest = [b["y"].tolist() for b in iterator]
        following = [[b["y"].tolist() for b in loader] for _ in range(2)]
        again = make(99)
        again.load_state_dict(state)
        assert [b["y"].tolist() for b in again] == rest
        assert [[b["y"].tolist() for b in again] for _ in range(2)] == following

    def test_after_the_last_batch_the_next_epoch_begins(self, folder):
        make = lambda: pt.DataLoader(  # noqa: E731
            pt.Files(folder), 20, shuffle=True, generator=torch.Generator().manual_seed(9)
        )
        loader = make()
        list(loader)
        state = loader.state_dict()
        expected = [[b["y"].tolist() for b in loader] for _ in range(3)]
        again = make()
        again.load_state_dict(state)
        assert [[b["y"].tolist() for b in again] for _ in range(3)] == expected

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("kind", ["shuffle", "weighted", "weighted beside a generator"])
    @pytest.mark.parametrize(
        ("taken", "restored"), [(0, True), (3, True), (7, True), (8, True), (0, False), (3, False)]
    )
    def test_the_epochs_behind_it_are_others(self, folder, taken, restored, kind, workers):
        """They are drawn from torch's global random state, which programs restore, or seed as they did before."""

        def make():
            options = {"shuffle": True} if kind == "shuffle" else {"sampler": weighted}
            if kind == "weighted beside a generator":
                options["generator"] = torch.Generator().manual_seed(9)
            return pt.DataLoader(pt.Files(folder, keys="y"), 8, num_workers=workers, **options)

        weighted = td.WeightedRandomSampler([1.0] * COUNT, COUNT)
        torch.manual_seed(4)
        loader = make()
        batches = iter(loader)
        for _ in range(taken):
            if next(batches, None) is None:
                batches = loader
        state, random = loader.state_dict(), torch.get_rng_state()
        expected = [[b["y"].tolist() for b in epoch] for epoch in (batches, loader, loader)]
        assert expected[1] != expected[2]

        torch.manual_seed(4)
        again = make()
        again.load_state_dict(state)
        if restored:
            torch.set_rng_state(random)
        assert [[b["y"].tolist() for b in again] for _ in range(3)] == expected

    def test_survives_torch_save(self, folder, tmp_path):
        loader = pt.DataLoader(pt.Files(folder), 8, sampler=td.DistributedSampler(pt.Files(folder), 2, 0))
        loader.sampler.set_epoch(3)
        iterator = iter(loader)
        next(iterator)
        torch.save(loader.state_dict(), tmp_path / "state.pt")
        expected = [[b["y"].tolist() for b in epoch] for epoch in (iterator, loader, loader)]
        again = pt.DataLoader(pt.Files(folder), 8, sampler=td.DistributedSampler(pt.Files(folder), 2, 0))
        again.load_state_dict(torch.load(tmp_path / "state.pt"))
        assert [[b["y"].tolist() for b in again] for _ in range(3)] == expected

    @pytest.mark.parametrize("state", [{}, None, {"kind": "other"}, {"kind": "penstock.torch.DataLoader", "x": 1}])
    def test_refuses_what_is_no_state(self, folder, state):
        with pytest.raises(ValueError, match="state"):
            pt.DataLoader(pt.Files(folder)).load_state_dict(state)

    def test_refuses_another_datasets(self, folder):
        state = pt.DataLoader(pt.Rows(np.zeros(4))).state_dict()
        with pytest.raises(ValueError, match="4 samples, but this one has 53"):
            pt.DataLoader(pt.Files(folder)).load_state_dict(state)

    @pytest.mark.parametrize("workers", [0, 1, 3])
    @pytest.mark.parametrize("taken", [1, 7, 8, 9, 10])
    def test_mapped_ones_say_what_they_gave(self, tmp_path, taken, workers):
        np.save(tmp_path / "r.npy", np.arange(37))
        dataset = pt.Rows(tmp_path / "r.npy").map(lambda row: row + 1)
        loader = pt.DataLoader(dataset, batch_size=4, num_workers=workers)
        batches = iter(loader)
        for _ in range(taken):
            next(batches)
        state = loader.state_dict()
        assert state["batch"] == taken
        resumed = pt.DataLoader(dataset, batch_size=4)
        resumed.load_state_dict(state)
        for epoch in (batches, loader, loader):
            assert [batch.tolist() for batch in resumed] == [batch.tolist() for batch in epoch]

    @pytest.mark.parametrize(
        "sampler",
        [
            lambda rows: td.RandomSampler(rows),
            lambda rows: td.RandomSampler(rows, replacement=True, num_samples=50),
            lambda rows: td.WeightedRandomSampler([1.0] * len(rows), 50),
        ],
        ids=["random", "replacement", "weighted"],
    )
    def test_samplers_of_torchs_generator_beside_a_loaders_own(self, tmp_path, sampler):
        np.save(tmp_path / "r.npy", np.arange(37))
        rows = pt.Rows(tmp_path / "r.npy")

        def make():
            return pt.DataLoader(rows, 8, sampler=sampler(rows), generator=torch.Generator().manual_seed(1))

        torch.manual_seed(0)
        loader = make()
        batches = iter(loader)
        for _ in range(2):
            next(batches)
        state = loader.state_dict()
        expected = [[batch.tolist() for batch in epoch] for epoch in (batches, loader, loader)]
        torch.manual_seed(5)
        resumed = make()
        resumed.load_state_dict(state)
        assert [[batch.tolist() for batch in resumed] for _ in range(3)] == expected

    @pytest.mark.parametrize("workers", [0, 2])
    def test_the_program_says_the_epoch_of_a_sampler(self, tmp_path, workers):
        np.save(tmp_path / "r.npy", np.arange(37))

        def make():
            rows = pt.Rows(tmp_path / "r.npy")
            return pt.DataLoader(rows, 4, sampler=td.DistributedSampler(rows, 2, 0), num_workers=workers)

        def epoch(loader, number):
            loader.sampler.set_epoch(number)
            return torch.cat(list(loader)).tolist()

        loader = make()
        first = epoch(loader, 0)
        state = loader.state_dict()
        expected = [epoch(loader, 1), epoch(loader, 2)]
        resumed = make()
        resumed.load_state_dict(state)
        assert [epoch(resumed, 1), epoch(resumed, 2)] == expected
        assert expected[0] != first

        loader.sampler.set_epoch(7)
        batches = iter(loader)
        next(batches)
        resumed = make()
        resumed.load_state_dict(loader.state_dict())
        assert torch.cat(list(resumed)).tolist() == torch.cat(list(batches)).tolist()

    def test_other_ranks_go_on_where_all_have_taken_whole_batches(self, tmp_path):
        np.save(tmp_path / "r.npy", np.arange(120))
        rows = pt.Rows(tmp_path / "r.npy")

        def rank(number, of):
            return pt.DataLoader(rows, 4, sampler=td.DistributedSampler(rows, of, number))

        seen = []
        for number in range(2):
            loader = rank(number, 2)
            batches = iter(loader)
            seen += next(batches).tolist() + next(batches).tolist()
        state = loader.state_dict()
        for number in range(4):
            resumed = rank(number, 4)
            resumed.load_state_dict(state)
            seen += torch.cat(list(resumed)).tolist()
        assert sorted(seen) == list(range(120))
        next(batches)
        with pytest.raises(ValueError, match="after batch 3 of each of 2 ranks"):
            rank(0, 4).load_state_dict(loader.state_dict())


def test_what_a_signals_handler_raises_loses_no_batch(tmp_path):
    from penstock.torch.loader._reads import Reads

    class StopError(Exception):
        pass

    def stop(number, frame):
        if frame.f_code is Reads._fetch.__code__:
            raise StopError

    np.save(tmp_path / "x.npy", np.arange(64).repeat(1 << 14).reshape(64, -1))
    loader = pt.DataLoader(pt.Rows(tmp_path / "x.npy"), 16, num_workers=1, prefetch_factor=1)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for delay in (0.0005, 0.002, 0.005, 0.01):
            got, batches = [], iter(loader)
            signal.setitimer(signal.ITIMER_REAL, delay)
            while True:
                try:
                    batch = next(batches, None)
                except StopError:
                    assert loader.state_dict()["batch"] == len(got)
                    continue
                if batch is None:
                    break
                got.append(int(batch[0, 0]))
            assert got == [0, 16, 32, 48]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
def test_random_transforms_change_with_the_epoch_and_resume(options):
    dataset = pt.Dataset(penstock.rows(torch.arange(64 * 32).reshape(64, 32)).random_crop(4))
    torch.manual_seed(3)
    loader = pt.DataLoader(dataset, 8, **options)
    epochs = [torch.cat(list(loader)) for _ in range(3)]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not torch.equal(epochs[one], epochs[other])
    torch.manual_seed(3)
    loader = pt.DataLoader(dataset, 8, **options)
    assert torch.equal(torch.cat(list(loader)), epochs[0])
    between = loader.state_dict()
    batches = iter(loader)
    head = [next(batches) for _ in range(3)]
    within = loader.state_dict()
    torch.rand(7)
    for state, got in ((between, []), (within, head)):
        resumed = pt.DataLoader(dataset, 8, **options)
        resumed.load_state_dict(state)
        assert torch.equal(torch.cat([*got, *resumed]), epochs[1])
        assert torch.equal(torch.cat(list(resumed)), epochs[2])
