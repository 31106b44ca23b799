"""Where an iteration of penstock.torch.DataLoader stands, and how another one goes on from there.

A position does not hold the order of an epoch. It holds the states of the random generators from which the order was
drawn and the number of batches taken since. To go on, the sampler is run again under these generators, and as many
batches as were taken are dropped. The iterators make positions, `_progress.py` keeps them, and `state_dict()` gives
them out as plain data.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.utils.data as torch_data

from penstock._core import _resumed_batch
from penstock._text import abbreviated, plural
from penstock.torch.loader._drawn import Drawn, require_same
from penstock.torch.loader._epochs import epoch_of
from penstock.torch.loader._order import (
    Generators,
    batches_of,
    counts_epochs,
    dataset_name_of,
    keeps_state,
    order_name,
    order_of,
    own_generator,
    replicas_of,
    samples_of,
    seed_of,
)
from penstock.torch.loader._random_states import generator_state, text_of
from penstock.torch.loader._settings import Settings, drawn_from
from penstock.torch.loader._worker_states import load_state, state_of

_KIND = "penstock.torch.DataLoader"


def draw_base_seed(generator: torch.Generator | None) -> int:
    """The number that each of torch's iterators draws before its sampler draws anything."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


@dataclass(eq=False)  # tensors have no one answer to ==
class Position:
    """A place in an epoch: the random state that the epoch began with, the sampler's epoch, and how
    many batches were taken since. Of `num_replicas` ranks each has taken that many, of `batches` in an epoch.

    These decide the order for every sampler that draws from the loader's generator (`random`), from
    torch's global one (`torch_random`, or `random` where the loader has no generator of its own) or
    from its own `generator`. A sampler that has `state_dict` is asked for its own state as well.

    The sampler is ahead of what was taken: it has given `drawn` batches, and has no more if it is
    `ended`. `later` has the states of the generators at the moment when the state was taken; the
    following epochs are drawn from these. Before an epoch has `begun` they are all there is.

    `restarts` counts the epochs of persistent workers before this one. They draw no base seed, so this number is all
    that tells them apart. `begins` says how often the sampler's iterator was made: torch makes a
    second one where it has workers, so that a sampler that draws when its iterator is made has drawn
    twice. `pending` has the places of batches that were drawn and not given, where others overtook
    them. `python` is what torch's own iterators know besides. `indices` is a checksum of what a sampler of the
    program's own gave (`_drawn.py`), and `dataset` tells the dataset from others of equal size, where it is a native
    one. `seed` is that of an order that ranks share.
    """

    random: torch.Tensor
    batch: int
    samples: int | None
    sampler_epoch: int | None = None
    sampler: dict[str, Any] | None = None
    set_aside: list[tuple[int, str, str]] = field(default_factory=list)
    batch_size: int | None = None
    sampler_random: torch.Tensor | None = None
    draws_seed: bool = True
    torch_random: torch.Tensor | None = None
    num_replicas: int = 1
    order: str | None = None
    drawn: int | None = None
    ended: bool = False
    later: dict[str, torch.Tensor] | None = None
    begun: bool = True
    python: dict[str, Any] | None = None
    begins: int = 1
    pending: list[int] | None = None
    restarts: int = 0
    batches: int | None = None
    indices: str | None = None
    dataset: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        self.set_aside = self.set_aside or []  # None in a state that somebody else wrote

    @staticmethod
    def now(settings: Settings, *, draws_seed: bool = True, restarts: int = 0) -> Position:
        """The beginning of an epoch that begins now. `draws_seed`: whether the iterator draws a base seed first."""
        generator = settings.generator
        torch_random = torch.get_rng_state()
        random = generator.get_state() if isinstance(generator, torch.Generator) else torch_random
        own = own_generator(settings)
        return Position(
            random,
            0,
            samples_of(settings),
            epoch_of(counts_epochs(settings)),
            state_of(keeps_state(settings)),
            settings.set_aside.listed(),
            settings.batch_size,
            None if own is None else own.get_state(),
            draws_seed,
            None if random is torch_random else torch_random,
            replicas_of(settings),
            order_name(settings),
            0,
            later=Generators(settings).states(settings),
            begun=False,
            begins=2 if draws_seed and settings.num_workers else 1,
            restarts=restarts,
            batches=batches_of(settings),
            dataset=dataset_name_of(settings),
            seed=seed_of(settings),
        )

    def sample_seed(self) -> int:
        """What the random transforms of samples are drawn from: another number in each epoch, and the same one when an
        epoch is resumed."""
        state = self.random.numpy().tobytes() + str(self.restarts).encode()
        return int.from_bytes(hashlib.blake2b(state, digest_size=8).digest(), "little")

    def before(self) -> Position:
        """The same epoch, before its first batch."""
        return replace(self, batch=0, drawn=0, ended=False, pending=None, indices=None)

    def after(
        self, batch: int, drawn: int, ended: bool, settings: Settings, pending: list[int] | None, indices: str | None
    ) -> Position:
        """The place after `batch` batches of this epoch, when the sampler has given `drawn`, whose checksum is
        `indices`."""
        in_order = pending is None or pending == list(range(batch, batch + len(pending)))
        return replace(
            self,
            pending=None if in_order else pending,
            batch=batch,
            drawn=max(drawn, self.drawn or 0),
            ended=ended or self.ended,
            set_aside=settings.set_aside.listed(),
            later=Generators(settings).states(settings),
            begun=True,
            indices=indices if in_order else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """The position as plain data, with the generators as text."""
        out = {"kind": _KIND, **vars(self)}
        out.update({name: text_of(out[name]) for name in _GENERATORS if out[name] is not None})
        return {**out, "later": self.later and {name: text_of(state) for name, state in self.later.items()}}

    @staticmethod
    def from_dict(state: dict[str, Any], settings: Settings) -> Position:
        fields = dict(state) if isinstance(state, dict) else {}
        if fields.pop("kind", None) != _KIND:
            raise ValueError(f"found {type(state).__name__} without kind={_KIND!r}, expected what state_dict() gave")
        try:
            position = Position(**_with_generators(fields))
        except TypeError as error:
            raise ValueError(f"the state is not one of {_KIND}: {error}") from None
        for name, is_right in _RIGHT.items():
            if not is_right(getattr(position, name)):
                told = abbreviated(repr(getattr(position, name)))
                raise ValueError(f"the state's {name!r} is {told}, which is not what state_dict() gives")
        return position._of_ranks(settings)

    def _of_ranks(self, settings: Settings) -> Position:
        """The same place for this loader, which may be one of another number of ranks. ValueError where it cannot go on
        from there."""
        ranks, each = replicas_of(settings), settings.batch_size
        if self.batch and each is None and self.batch_size is not None:
            raise ValueError(
                f"the state was taken with batches of {self.batch_size}, but this loader has no batch_size; go on with "
                "the same one, or from the beginning of an epoch"
            )
        samples = samples_of(settings)
        known = self.samples if samples is None else samples  # nobody compares what one of them does not know
        own = (0, known or 0, each or 0, ranks, 0, order_name(settings), dataset_name_of(settings) or "")
        taken = (
            self.batch,
            (known if self.samples is None else self.samples) or 0,
            self.batch_size or 0,
            self.num_replicas,
            self.batches or 0,
            self.order or "",
            self.dataset or "",
        )
        is_ended = self.num_replicas != ranks and self.batch == self.batches
        batch = _resumed_batch(taken, own, len(settings.index_sampler) if is_ended else None)
        if self.batch > 0:
            self._require_drawn_alike(settings)
        if self.batch == 0 or self.num_replicas == ranks:
            return self
        if self.pending is not None:
            raise ValueError(
                f"the state is one of {plural(self.num_replicas, 'rank')} whose batches overtook each other "
                f"(in_order=False), which {plural(ranks, 'rank')} cannot go on from; go on with {self.num_replicas}"
            )
        return replace(
            self,
            batch=batch,
            drawn=batch,
            num_replicas=ranks,
            batch_size=settings.batch_size,
            batches=batches_of(settings),
            ended=False,
            indices=None,
        )

    def _require_drawn_alike(self, settings: Settings) -> None:
        """ValueError where the order would be drawn from another seed, or from another of the generators: the rest of
        the epoch would be that of another order. Other samplers than these are told by what they give."""
        seed = seed_of(settings)
        if None not in (seed, self.seed) and seed != self.seed:
            raise ValueError(
                f"the state was taken in an order of the seed {self.seed}, and that of this loader has the seed {seed} "
                "and other indices; go on with the same one"
            )
        had = self.torch_random is not None, self.sampler_random is not None
        has = isinstance(settings.generator, torch.Generator), own_generator(settings) is not None
        if had != has and type(order_of(settings)) is torch_data.RandomSampler:
            raise ValueError(
                "the state was taken of a loader whose order was drawn from another generator; give this one, and its "
                "sampler, a generator where that had one, and none where it had none"
            )

    def load(self, settings: Settings) -> None:
        """Tells the sampler its epoch. Between epochs it also sets the generators and the sampler to where they stood.

        What the program seeds or tells them after this and before it iterates counts.
        """
        counting = counts_epochs(settings)
        if self.sampler_epoch is not None and counting is not None:
            counting.set_epoch(self.sampler_epoch)
        if not self.begun:
            self._load_sampler(keeps_state(settings))
            Generators(settings).put(self.later or {})

    def settle(self, settings: Settings) -> None:
        """Takes back what was drawn between loading a state and beginning its epoch. A seed that
        the program has set since then stays."""
        Generators(settings).put(self.later or {}, where_not_seeded=True)

    def _load_sampler(self, sampler: Any) -> None:
        """Sets the sampler to where it was when the epoch began. That state may be the end of the epoch before; then
        the sampler begins anew when it is iterated once."""
        if self.sampler is None or sampler is None:
            return
        load_state(sampler, self.sampler)
        if next(iter(sampler), None) is not None:
            load_state(sampler, self.sampler)

    def restore(self, settings: Settings) -> tuple[Iterator[Any], Drawn]:
        """The index sampler's iterator after `batch` batches, and the checksum of these. ValueError where there are not
        that many.

        The sampler is run again under the generators that the epoch began with. These are then set to where they stood
        when the state was taken, so that the following epochs are those of a program that was not stopped. torch's
        global generator is not changed where nothing of the loader is drawn from it.
        """
        generators, later = Generators(settings), dict(self.later or {})
        later.setdefault("torch", torch.get_rng_state())
        own = settings.generator is not None
        begin = {"loader": self.random if own else None, "sampler": self.sampler_random}
        try:
            self._load_sampler(keeps_state(settings))
            generators.put({**begin, "torch": self.torch_random if own else self.random})
            indices = drawn_from(settings)
            if self.draws_seed:
                draw_base_seed(settings.generator)
            if self.begins > 1:
                indices = drawn_from(settings)
            return self._advance(indices, settings)
        finally:
            generators.put(later)

    def _advance(self, indices: Iterator[Any], settings: Settings) -> tuple[Iterator[Any], Drawn]:
        """Runs the sampler as far as it had been drawn from. Samplers draw what the whole epoch follows from when they
        give the first index, so that at least one is asked for."""
        indices = _Begun(indices)
        drawn = list(itertools.islice(indices, self.batch + 1 if self.drawn is None else max(self.drawn, self.batch)))
        if self.ended:
            drawn += itertools.islice(indices, 1)
        pending = range(self.batch, len(drawn)) if self.pending is None else self.pending
        if len(drawn) < max([self.batch, *(place + 1 for place in pending)]):
            raise ValueError(
                f"the state stands after batch {self.batch}, but the epoch has fewer; go on with the same batch_size, "
                "drop_last and sampler"
            )
        if self.batch > 0:
            require_same(self.indices, drawn, settings)
        taken = Drawn.of(settings, drawn[: self.batch])
        return itertools.chain([drawn[place] for place in pending], indices), taken


class _Begun:
    """An iterator that is not asked for an iterator again: a sampler that is its own begins anew then."""

    __slots__ = ("_indices",)

    def __init__(self, indices: Iterator[Any]) -> None:
        self._indices = indices

    def __iter__(self) -> _Begun:
        return self

    def __next__(self) -> Any:
        return next(self._indices)


_GENERATORS = ("random", "sampler_random", "torch_random")


def _with_generators(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with the texts of generators as states. ValueError for other texts."""
    later = fields.get("later")
    if fields.get("random") is None or not _is_dict(later):
        raise ValueError("'random' or 'later' in the state is not the state of a random generator")
    try:
        states = {name: generator_state(fields[name]) for name in _GENERATORS if fields.get(name) is not None}
        later = later and {name: generator_state(text) for name, text in later.items()}
    except ValueError as error:
        raise ValueError(f"the state's 'random' or 'later' cannot be read: {error}") from None
    return {**fields, **states, "later": later}


def _is_count(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and value >= least


def _are_set_aside(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, (list, tuple)) and list(map(type, entry)) == [int, str, str] for entry in value
    )


def _is_dict(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_pythons(value: Any) -> bool:
    """Whether this can be what torch's iterators keep (`_torch_iterators.py`). The program's own states in it may be
    anything."""
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    workers, given = value.get("workers", []), value.get("given", [])
    return (
        all(_is_count(value.get(name, 0)) for name in ("num_workers", "last_worker"))
        and isinstance(value.get("base_seed", 0), int)
        and isinstance(given, list)
        and all(map(_is_count, given))
        and isinstance(workers, list)
        and all(isinstance(state, (list, tuple)) and len(state) == 5 and _is_dict(state[4]) for state in workers)
    )


_RIGHT: dict[str, Callable[[Any], Any]] = {
    "batch": _is_count,
    "samples": lambda value: value is None or _is_count(value),
    "set_aside": _are_set_aside,
    "batch_size": lambda value: value is None or isinstance(value, int),
    "num_replicas": lambda value: _is_count(value, 1),
    "order": lambda value: value is None or isinstance(value, str),
    "drawn": lambda value: value is None or _is_count(value),
    "python": _is_pythons,
    "begins": lambda value: _is_count(value, 1) and value <= 2,
    "restarts": _is_count,
    "batches": lambda value: value is None or _is_count(value),
    "indices": lambda value: value is None or (isinstance(value, str) and re.fullmatch(r"\d+:\d+:[0-9a-f]{8}", value)),
    "dataset": lambda value: value is None or isinstance(value, str),
    "seed": lambda value: value is None or isinstance(value, int),
    "pending": lambda value: value is None or (isinstance(value, list) and all(map(_is_count, value))),
}
