"""What decides the order of a loader's samples, and the random generators that it is drawn from.

`_position.py` asks this of the loader that a state was taken of and of the one that goes on.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
import torch.utils.data as torch_data

from penstock._asked import attribute, has
from penstock._core import _dataset_name as dataset_name
from penstock.torch.datasets._stream import Stream
from penstock.torch.loader._dealing import DEALING, DRAWING, DealtOrder, DealtSampler
from penstock.torch.loader._epochs import epoch_of
from penstock.torch.loader._settings import Settings
from penstock.torch.loader._worker_states import has_state

_SETTLED = (torch_data.SequentialSampler.__iter__, *DEALING)


def _samplers(settings: Any) -> list[Any]:
    """What decides the order of the samples, of all ranks where they share one: the caller's own batch sampler, then
    the sampler in it. Of a loader or its settings."""
    if settings.batch_size is None and settings.batch_sampler is not None:
        batches = _of_all_ranks(settings.batch_sampler)
        return [batches, batches.sampler] if has(batches, "sampler") else [batches]
    return [_of_all_ranks(settings.sampler)]


def order_of(settings: Any) -> Any:
    """The last of them, which decides the order of the samples, as far as one by itself does. It is asked for often."""
    if settings.batch_size is None and settings.batch_sampler is not None:
        return _samplers(settings)[-1]
    sampler = settings.sampler
    return sampler.order if isinstance(sampler, DealtOrder) else sampler


def keeps_state(settings: Any) -> Any:
    """The sampler that has a state of its own, or None."""
    return next((each for each in _samplers(settings) if has_state(each)), None)


def _of_all_ranks(sampler: Any) -> Any:
    return sampler.order if isinstance(sampler, DealtOrder) else sampler


def counts_epochs(settings: Settings) -> Any:
    """What stands at an epoch and is told it: a stream, or a sampler that decides the order; or None."""
    if isinstance(settings.dataset, Stream):
        return settings.dataset
    count = (each for each in _samplers(settings) if has(each, "set_epoch") and epoch_of(each) is not None)
    return next(count, None)


def own_generator(settings: Settings) -> torch.Generator | None:
    """The generator that the sampler draws from, if that is not the loader's."""
    generator = attribute(order_of(settings), "generator")
    if generator is None or generator is settings.generator:  # asking for torch's class takes longer
        return None
    return generator if isinstance(generator, torch.Generator) else None


def replicas_of(settings: Settings) -> int:
    """How many ranks share an order that is dealt out in turn."""
    if settings.dealing is not None:
        return settings.dealing.ranks.size
    sampler = order_of(settings)
    return sampler.num_replicas if _is_dealing(sampler) else 1


def _is_dealing(sampler: Any) -> bool:
    """Whether its order follows from its seed and epoch alone."""
    return isinstance(sampler, torch_data.DistributedSampler) and type(sampler).__iter__ in DEALING


def seed_of(settings: Settings) -> int | None:
    """The seed of an order that follows from it and the epoch alone."""
    sampler = order_of(settings)
    return int(sampler.seed) if _is_dealing(sampler) and sampler.shuffle else None


def order_name(settings: Settings) -> str:
    """What decides the order: the class of torch's samplers; those of others are told apart by their checksums."""
    sampler = order_of(settings)
    kind = torch_data.DistributedSampler if type(sampler) is DealtSampler else type(sampler)
    if kind.__module__.partition(".")[0] != "torch":
        return "own"
    if kind is torch_data.RandomSampler and sampler.replacement:
        return "RandomSampler(replacement=True)"
    shuffles = attribute(sampler, "shuffle")  # DistributedSampler's
    return kind.__name__ if shuffles is None else f"{kind.__name__}(shuffle={bool(shuffles)})"


def batches_of(settings: Settings) -> int | None:
    """The number of batches in an epoch of one rank, where ranks share an order."""
    is_dealt = settings.dealing is not None or isinstance(order_of(settings), torch_data.DistributedSampler)
    return len(settings.index_sampler) if is_dealt else None


def samples_of(settings: Settings) -> int | None:
    """The number of samples; None for a dataset that does not know it."""
    if settings.native is not None:
        return len(settings.native)
    if isinstance(settings.dataset, torch_data.IterableDataset):
        return None
    try:
        return len(settings.dataset)
    except Exception:  # whatever the program's class raises there; torch does not ask beside a sampler
        return None


def dataset_name_of(settings: Settings) -> str | None:
    """What tells a native dataset from others of equal size: the names of some of its samples."""
    return None if settings.native is None else dataset_name(settings.native)


def _follows_torch(settings: Settings) -> bool:
    """Whether something of this loader is drawn from torch's global generator. Only then may a position put that
    generator back: the ranks of a distributed program each have their own, and may load one common state."""
    sampler = order_of(settings)
    kind = type(sampler)
    if isinstance(settings.dataset, torch_data.IterableDataset) or (kind in DRAWING and sampler.generator is None):
        return True
    if replicas_of(settings) > 1 or isinstance(sampler, torch_data.DistributedSampler):
        return False
    if settings.native is None and settings.num_workers > 0 and settings.generator is None:
        return True  # the seeds of the workers
    if settings.native is not None and settings.native._draws and settings.generator is None:
        return True  # random transforms, by `sample_seed`
    if kind in DRAWING or getattr(kind, "__iter__", None) in _SETTLED:
        return False
    return isinstance(sampler, torch_data.Sampler) or inspect.isgeneratorfunction(getattr(kind, "__iter__", None))


class Generators:
    """The generators that a loader's order is drawn from: its own, its sampler's and torch's global one."""

    def __init__(self, settings: Settings) -> None:
        given = settings.generator
        own = given if given is not None and isinstance(given, torch.Generator) else None
        self._all = {"loader": own, "sampler": own_generator(settings), "torch": torch.default_generator}

    def states(self, settings: Settings) -> dict[str, torch.Tensor]:
        """Their states now. torch's global one is left out unless something of the loader is drawn from it."""
        follows = _follows_torch(settings)
        return {
            name: generator.get_state()
            for name, generator in self._all.items()
            if generator is not None and (name != "torch" or follows)
        }

    def put(self, states: Mapping[str, torch.Tensor | None], *, where_not_seeded: bool = False) -> None:
        """Sets the generators to these states.

        With `where_not_seeded`, a generator that the program has seeded since it had its state keeps its new seed.
        """
        for name, generator in self._all.items():
            state = states.get(name)
            if generator is None or state is None:
                continue
            try:
                if not (where_not_seeded and _is_seeded_anew(generator, state)):
                    generator.set_state(state)
            except RuntimeError as error:
                raise ValueError(f"the state's {name!r} is not the state of a random generator: {error}") from None


def _is_seeded_anew(generator: torch.Generator, state: torch.Tensor) -> bool:
    """Whether the program has seeded the generator since it had this state. Drawing numbers does not change what
    `initial_seed` gives, so that a changed seed, or a generator that has drawn nothing since it was seeded, shows it.
    """
    before = torch.Generator(generator.device)
    before.set_state(state)
    seed = generator.initial_seed()
    return seed != before.initial_seed() or torch.equal(
        generator.get_state(), torch.Generator(generator.device).manual_seed(seed).get_state()
    )
