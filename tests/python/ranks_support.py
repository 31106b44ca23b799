"""What tests of ranks share: several loaders of one process that stand for the ranks of a program."""

from __future__ import annotations

import itertools
import os

import penstock

LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "TORCHELASTIC_", "SLURM_", "OMPI_COMM_", "PMI_", "MPI_")


def without_launchers(monkeypatch):
    for name in list(os.environ):
        if name.startswith(LAUNCHERS):
            monkeypatch.delenv(name)


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


def values_of(batch):
    """A batch of numbers as (value, whether it counts)."""
    values, valid = batch if isinstance(batch, (tuple, list)) and len(batch) == 2 else (batch, None)
    numbers = [int(value) for value in values.reshape(-1).tolist()]
    return list(zip(numbers, [True] * len(numbers) if valid is None else valid.tolist(), strict=True))


def in_order(steps, *, whole):
    """The values of the steps of all ranks in the order that they share; those that are repeated left out. `whole`:
    batches were dealt out, else samples."""
    out = []
    for step in steps:
        lists = [values_of(batch) for batch in step]
        assert whole or len({len(values) for values in lists}) == 1, "all ranks have batches of one size"
        turns = flat(lists) if whole else flat(zip(*lists, strict=True))
        out += [value for value, counts in turns if counts]
    return out


class World:
    """The loaders of all ranks of a program. `make(ranks)` makes one."""

    def __init__(self, make, size, state=None, *, whole=False):
        self.whole = whole
        self.loaders = [make(penstock.Ranks(rank, size)) for rank in range(size)]
        for loader in self.loaders if state is not None else ():
            loader.load_state_dict(state)
        self.iterators = [iter(loader) for loader in self.loaders]

    def take(self, steps=10_000):
        """What comes in the next steps, up to the end of the epoch."""
        taken = []
        for _ in range(steps):
            step = [next(iterator, None) for iterator in self.iterators]
            assert len({batch is None for batch in step}) == 1, "all ranks take as many steps"
            if step[0] is None:
                break
            taken.append(step)
        return in_order(taken, whole=self.whole)

    def epoch(self):
        self.iterators = [iter(loader) for loader in self.loaders]
        return self.take()

    def state(self):
        states = [loader.state_dict() for loader in self.loaders]
        assert all(state == states[0] for state in states), "any rank's state is that of all"
        return states[0]
