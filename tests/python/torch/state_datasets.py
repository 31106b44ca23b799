"""Datasets and samplers with states of their own, as programs for torchdata's StatefulDataLoader have them."""

from __future__ import annotations

import time

import torch
import torch.utils.data as td


def share_of(sizes):
    """The numbers of this worker; all without workers."""
    worker = td.get_worker_info()
    if worker is None:
        return range(sum(sizes))
    first = sum(sizes[: worker.id])
    return range(first, first + sizes[worker.id])


class Walk:
    """An iterator that knows its place, and the generator that it draws from."""

    def __init__(self, numbers, draws=False):
        self.numbers = numbers
        self.draws = draws
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= len(self.numbers):
            raise StopIteration
        place = int(torch.randint(len(self.numbers), ())) if self.draws else self.at
        self.at += 1
        return self.numbers[place]

    def state_dict(self):
        place = {"at": self.at}
        if self.draws:
            place["random"] = torch.get_rng_state()
        return {"place": place}

    def load_state_dict(self, state):
        self.at = state["place"]["at"]
        if self.draws:
            torch.set_rng_state(state["place"]["random"])


class Walks(td.IterableDataset):
    """The first of three workers has nothing."""

    def __init__(self, sizes=(0, 13, 8), draws=False):
        self.sizes = sizes
        self.draws = draws

    def __iter__(self):
        return Walk(share_of(self.sizes), self.draws)


class OwnWalk(Walk, td.IterableDataset):
    """A dataset that is its own iterator, once: it stays at its end."""


class Restarts(td.IterableDataset):
    """A dataset that is its own iterator, and has a place only when it was begun."""

    def __init__(self, size=20):
        self.size = size
        self.begun = 0

    def __iter__(self):
        worker = td.get_worker_info()
        part, parts = (worker.id, worker.num_workers) if worker else (0, 1)
        self.begun += 1
        self.place = {"next": self.size * part // parts, "end": self.size * (part + 1) // parts}
        return self

    def __next__(self):
        if self.place["next"] >= self.place["end"]:
            raise StopIteration
        self.place["next"] += 1
        return self.place["next"] - 1

    def state_dict(self):
        return {"place": self.place}  # itself, not a copy

    def load_state_dict(self, state):
        self.place.update(state["place"])


class Generates(td.IterableDataset):
    """A generator function that counts its epochs, and goes on behind the samples that a state knows of."""

    def __init__(self, sizes=(0, 13, 8)):
        self.sizes = sizes
        self.given = 0
        self.begin = None
        self.epoch = 0

    def __iter__(self):
        self.given, self.begin = self.begin or 0, None
        for number in share_of(self.sizes)[self.given :]:
            self.given += 1
            yield number, self.epoch
        self.given = 0
        self.epoch += 1

    def state_dict(self):
        return {"given": self.given, "epoch": self.epoch}

    def load_state_dict(self, state):
        self.begin, self.epoch = state["given"], state["epoch"]


class Stateless(td.IterableDataset):
    def __init__(self, sizes=(0, 13, 8)):
        self.sizes = sizes

    def __iter__(self):
        yield from share_of(self.sizes)


class Toggles(td.IterableDataset):
    """Gives out the dict that it goes on changing, and keeps the one that it is given."""

    def __init__(self):
        self.state = dict.fromkeys(range(4), 0)
        self.step = 0

    def __iter__(self):
        for _ in range(self.step, 20):
            self.step += 1
            key = self.step % 4
            self.state[key] = 1 - self.state[key]
            yield self.state[key]

    def state_dict(self):
        return {"state": self.state, "step": self.step}

    def load_state_dict(self, state):
        self.state, self.step = state["state"], state["step"]


class Tells(td.IterableDataset):
    """States with keys that come, go and nest; its first sample is what it was told last."""

    STATES = (
        {},
        {"a": 4},
        {"a": 4, "b": 3},
        {"b": {"x": "y"}},
        {"b": {"x": {"deep": [1, {"z": None}]}, "w": {}}},
        {"list": [], "none": None},
        {"t": torch.arange(3), "b": {"x": torch.ones(2)}},
        {},
    )

    def __init__(self):
        self.at = 0
        self.told = None

    def __iter__(self):
        yield self.told
        while self.at < len(self.STATES) - 1:
            self.at += 1
            yield self.at

    def state_dict(self):
        return self.STATES[self.at]

    def load_state_dict(self, state):
        self.told = state


class Records(td.Dataset):
    """Nested samples, which are drawn where the dataset `draws`; its state is the generator's."""

    def __init__(self, size=20, draws=False, tells=True):
        self.size = size
        self.draws = draws
        self.tells = tells

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.draws:
            index = int(torch.randint(self.size, ()))
        return {"id": index, "text": f"number {index}", "list": [index, index + 1]}

    def state_dict(self):
        return {"random": torch.get_rng_state()} if self.tells else {}

    def load_state_dict(self, state):
        if self.tells:
            torch.set_rng_state(state["random"])


class SamplesWalk(td.Sampler):
    """A sampler without a state, whose iterator has one."""

    def __init__(self, size=20):
        self.size = size

    def __iter__(self):
        return Walk(range(self.size))

    def __len__(self):
        return self.size


class SamplesAll(td.Sampler):
    """Gives out the dict that it goes on changing; the order turns with each epoch."""

    def __init__(self, size=20):
        self.size = size
        self.state = {"given": 0, "epoch": 0}
        self.begin = None

    def __len__(self):
        return self.size

    def __iter__(self):
        self.state["given"], self.begin = self.begin or 0, None
        for i in range(self.state["given"], self.size):
            self.state["given"] += 1
            yield (i * 3 + self.state["epoch"]) % self.size
        self.state["given"] = 0
        self.state["epoch"] += 1

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state
        self.begin = state["given"]


class SlowFirst(td.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 0:
            time.sleep(2)
        return index


class SlowSecond(td.IterableDataset):
    """The second of two workers begins late."""

    def __iter__(self):
        for number in share_of((5, 5)):
            if number == 5:
                time.sleep(0.5)
            yield number


class SlowSecondWalk(SlowSecond):
    def __iter__(self):
        numbers = share_of((5, 5))
        if numbers[0] == 5:
            time.sleep(0.5)
        return Walk(numbers)


class EagerNumbers(td.Sampler):
    """Draws an epoch's order when its iterator is made, each time that one is made."""

    def __init__(self, size=20, batch=None):
        self.size = size
        self.batch = batch

    def __iter__(self):
        order = torch.randperm(self.size)
        return iter(order.tolist() if self.batch is None else [part.tolist() for part in order.split(self.batch)])

    def __len__(self):
        return self.size if self.batch is None else -(-self.size // self.batch)
