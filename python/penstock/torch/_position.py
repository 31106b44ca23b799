"""Where an iteration of penstock.torch.DataLoader stands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.data as torch_data

if TYPE_CHECKING:
    from penstock.torch.loader import DataLoader

__all__ = ["Position", "draw_base_seed"]

_DEALING = (torch_data.DistributedSampler.__iter__,)
_KIND = "penstock.torch.DataLoader"


def draw_base_seed(generator: torch.Generator | None) -> int:
    """The number that each of torch's iterators draws before its sampler draws anything."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def _source(loader: DataLoader[Any]) -> Any:
    """What the order of the samples comes from."""
    if loader.batch_size is None and loader.batch_sampler is not None:  # the caller's own
        return getattr(loader.batch_sampler, "sampler", loader.batch_sampler)
    return loader.sampler


def _own_generator(loader: DataLoader[Any]) -> torch.Generator | None:
    """The generator that the sampler draws from, if that is not the loader's."""
    generator = getattr(_source(loader), "generator", None)
    return generator if isinstance(generator, torch.Generator) and generator is not loader.generator else None


def _replicas(loader: DataLoader[Any]) -> int:
    """How many ranks share an order that is dealt out in turn."""
    sampler = _source(loader)
    dealt = isinstance(sampler, torch_data.DistributedSampler) and type(sampler).__iter__ in _DEALING
    return sampler.num_replicas if dealt else 1


def _order(loader: DataLoader[Any]) -> str:
    """What decides the order: the class of torch's samplers; those of others are not told apart."""
    sampler = _source(loader)
    kind = type(sampler)
    if kind.__module__.partition(".")[0] != "torch":
        return "own"
    shuffles = getattr(sampler, "shuffle", None)  # DistributedSampler's
    return kind.__name__ if shuffles is None else f"{kind.__name__}(shuffle={bool(shuffles)})"


def _samples(loader: DataLoader[Any]) -> int:
    assert loader.native is not None
    return len(loader.native)


class Position:
    """The random state that the epoch began with, the sampler's epoch, and how many batches were taken since.

    With `num_replicas` ranks each of them has taken as many.

    The order of an epoch follows from these for every sampler that draws from the loader's generator (`random`), from
    torch's global one (`torch_random`, or `random` where the loader has none of its own) or from its own `generator`;
    one that has `state_dict` is asked for its own.
    """

    def __init__(
        self,
        random: torch.Tensor,
        batch: int,
        samples: int,
        sampler_epoch: int | None = None,
        sampler: dict[str, Any] | None = None,
        set_aside: list[tuple[int, str, str]] | None = None,
        batch_size: int | None = None,
        sampler_random: torch.Tensor | None = None,
        draws_seed: bool = True,
        torch_random: torch.Tensor | None = None,
        num_replicas: int = 1,
        order: str | None = None,
    ) -> None:
        self.random = random
        self.batch = batch
        self.samples = samples
        self.sampler_epoch = sampler_epoch
        self.sampler = sampler
        self.set_aside = set_aside or []
        self.batch_size = batch_size
        self.sampler_random = sampler_random
        self.draws_seed = draws_seed
        self.torch_random = torch_random
        self.num_replicas = num_replicas
        self.order = order

    @staticmethod
    def now(loader: DataLoader[Any], *, draws_seed: bool = True) -> Position:
        """At the beginning of an epoch that begins now; `draws_seed`: with the drawing of a base seed."""
        generator = loader.generator
        torch_random = torch.get_rng_state()
        random = generator.get_state() if isinstance(generator, torch.Generator) else torch_random
        sampler, own_generator = _source(loader), _own_generator(loader)
        return Position(
            random,
            0,
            _samples(loader),
            getattr(sampler, "epoch", None),
            sampler.state_dict() if hasattr(sampler, "state_dict") else None,
            loader.set_aside,
            loader.batch_size,
            None if own_generator is None else own_generator.get_state(),
            draws_seed,
            None if random is torch_random else torch_random,
            _replicas(loader),
            _order(loader),
        )

    def after(self, batch: int, set_aside: list[tuple[int, str, str]]) -> Position:
        return Position(**{**vars(self), "batch": batch, "set_aside": set_aside})

    def to_dict(self) -> dict[str, Any]:
        return {"kind": _KIND, **vars(self)}

    @staticmethod
    def from_dict(state: dict[str, Any], loader: DataLoader[Any]) -> Position:
        fields = dict(state) if isinstance(state, dict) else {}
        if fields.pop("kind", None) != _KIND:
            raise ValueError(f"found {type(state).__name__} without kind={_KIND!r}, expected what state_dict() gave")
        try:
            position = Position(**fields)
        except TypeError as error:
            raise ValueError(f"the state is not one of {_KIND}: {error}") from None
        if not isinstance(position.batch, int) or position.batch < 0:
            raise ValueError(f"the state's 'batch' is {position.batch!r}, expected how many batches were taken")
        if not isinstance(position.random, torch.Tensor):
            raise ValueError("the state's 'random' is no tensor, expected the state of a random generator")
        if position.batch > 0 and position.batch_size not in {None, loader.batch_size}:
            raise ValueError(
                f"the state is one of batches of {position.batch_size}, but this loader makes batches of "
                f"{loader.batch_size}; go on with the same batch_size, or from the beginning of an epoch"
            )
        if position.batch > 0 and position.order not in {None, _order(loader)}:
            raise ValueError(
                f"the state is one in the order of {position.order}, but this loader has {_order(loader)}; go on with "
                "the same shuffle and sampler, or from the beginning of an epoch"
            )
        if position.samples != _samples(loader):
            raise ValueError(
                f"the state is one of a dataset of {position.samples} samples, but this one has {_samples(loader)}; "
                "go on with the dataset it was taken from"
            )
        return position._of_ranks(_replicas(loader))

    def _of_ranks(self, ranks: int) -> Position:
        """Where as many samples were taken by so many ranks. ValueError where those are no whole batches."""
        if self.batch == 0 or self.num_replicas == ranks:
            return self
        batch, left = divmod(self.batch * self.num_replicas, ranks)
        if left:
            raise ValueError(
                f"the state is one after batch {self.batch} of each of {self.num_replicas} ranks, which {ranks} ranks "
                f"cannot go on from with whole batches; go on with {self.num_replicas}, or from a state after more or "
                "fewer batches"
            )
        return Position(**{**vars(self), "batch": batch, "num_replicas": ranks})

    def restore_epoch(self, loader: DataLoader[Any]) -> None:
        """Tells the sampler its epoch. Another that the program tells it before it iterates counts."""
        sampler = _source(loader)
        if self.sampler_epoch is not None and hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self.sampler_epoch)

    def restore(self, loader: DataLoader[Any]) -> tuple[Iterator[Any], bool]:
        """The index sampler's iterator after `batch` batches, and whether there were that many.

        torch's global random state is left as it was, so that a resumed program draws what it would have drawn. Where
        it is what this epoch began with, as in a program that restored it or seeded it as before, it is left as the
        epoch would have, so that the next one is not this one again.
        """
        sampler, own_generator = _source(loader), _own_generator(loader)
        if own_generator is not None and self.sampler_random is not None:
            own_generator.set_state(self.sampler_random)
        if self.sampler is not None and hasattr(sampler, "load_state_dict"):
            sampler.load_state_dict(self.sampler)
        torch_random: torch.Tensor | None = self.random
        if loader.generator is not None:
            loader.generator.set_state(self.random)
            torch_random = self.torch_random
        before = after = torch.get_rng_state()
        if torch_random is not None:
            torch.set_rng_state(torch_random)
        try:
            beginnings = [torch.get_rng_state()]
            indices = iter(loader._index_sampler)
            if self.draws_seed:
                draw_base_seed(loader.generator)
            beginnings.append(torch.get_rng_state())
            advanced = self._advance(indices)
            if any(torch.equal(before, beginning) for beginning in beginnings):
                after = torch.get_rng_state()
            return advanced
        finally:
            torch.set_rng_state(after)

    def _advance(self, indices: Iterator[Any]) -> tuple[Iterator[Any], bool]:
        for _ in range(self.batch):
            if next(indices, None) is None:
                return indices, False
        # The first index is when samplers draw what the whole epoch follows from.
        return itertools.chain(list(itertools.islice(indices, 1)), indices), True
