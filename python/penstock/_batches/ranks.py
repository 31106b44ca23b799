"""Which of several processes this one is, and whether all of them are about to read the same.

C++ reads the variables of launchers (`_core._ranks`). What only Python knows is here: an initialised torch.distributed
and a worker of Ray Train, which are looked up and never imported.
"""

from __future__ import annotations

import sys

from penstock._core import _ranks, _require_ranks
from penstock.errors import InvalidArgumentError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TORCH = "torch.distributed"


class Ranks:
    """One process of several that share a dataset. Cannot be changed.

    Parameters
    ----------
    rank
        Which one this is, from 0.
    size
        How many there are.
    local_rank
        Which one of those on this machine it is; None where that is not known.
    local_size
        How many are on this machine; None where that is not known.
    source
        Who says so, for people.
    """

    __module__ = "penstock"

    __slots__ = ("local_rank", "local_size", "rank", "size", "source")
    rank: int
    size: int
    local_rank: int | None
    local_size: int | None
    source: str

    def __init__(
        self,
        rank: int,
        size: int,
        *,
        local_rank: int | None = None,
        local_size: int | None = None,
        source: str = "arguments",
    ) -> None:
        _require_ranks(rank, size, source)
        rank, size = int(rank), int(size)
        for name, value in zip(self.__slots__, (local_rank, local_size, rank, size, source), strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Ranks cannot be changed; make new ones in place of setting {name}")

    def _parts(self) -> tuple[Any, ...]:
        return self.rank, self.size, self.local_rank, self.local_size, self.source

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, Ranks) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return made, self._parts()

    def __repr__(self) -> str:
        names = ("rank", "size", "local_rank", "local_size", "source")
        return f"Ranks({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def made(rank: int, size: int, local_rank: int | None, local_size: int | None, source: str) -> Ranks:
    """The same of its parts, for pickles and for C++."""
    return Ranks(rank, size, local_rank=local_rank, local_size=local_size, source=source)


def ranks(rank: int | None = None, size: int | None = None) -> Ranks:
    """Which of several processes this one is.

    The first of these that there is: the arguments; torch.distributed, if the program has
    initialised it; Ray Train, in its workers; RANK and WORLD_SIZE, which torchrun sets; SLURM_PROCID
    and SLURM_NTASKS, except in an interactive shell; the variables of Open MPI; PMI_RANK and
    PMI_SIZE. Without any of them it is rank 0 of 1. Nothing is imported to find out.

    Parameters
    ----------
    rank
        Which one this is, from 0, where the program knows better than its environment.
    size
        How many there are; given with `rank`.

    Returns
    -------
    Ranks
        `source` says where it comes from.

    Raises
    ------
    InvalidArgumentError
        For sources that contradict each other. It names both.
    """
    if rank is not None or size is not None:
        if rank is None or size is None:
            raise TypeError(f"found rank={rank!r} and size={size!r}, expected both or neither")
        return Ranks(rank, size)
    distributed = _distributed()
    if distributed is None and (of_ray := _of_ray()) is not None:
        return of_ray
    known = None if distributed is None else (distributed.get_rank(), distributed.get_world_size())
    return made(*_ranks(known, _TORCH))


def _distributed() -> Any:
    """torch.distributed, where this process belongs to a group of it."""
    distributed: Any = sys.modules.get(_TORCH)
    there = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return distributed if there and distributed.get_rank() >= 0 else None


def _of_ray() -> Ranks | None:
    """Of a worker of Ray Train. It inherits the variables of whoever started Ray on its machine, which say nothing
    about it."""
    train: Any = sys.modules.get("ray.train")
    if train is None:
        return None
    try:
        context = train.get_context()
        rank, size = context.get_world_rank(), context.get_world_size()
        local = context.get_local_rank(), context.get_local_world_size()
    except (AttributeError, RuntimeError, DeprecationWarning):  # not in a train function; the last one: in Ray Tune
        return None
    return made(rank, size, *local, "ray.train")


def resolved(given: Any) -> Ranks | None:
    """The argument `ranks` of a loader."""
    if given is None or isinstance(given, Ranks):
        return given
    if isinstance(given, str) and given == "auto":
        return ranks()
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return Ranks(*given)
    raise TypeError(f'found ranks={given!r}, expected "auto", a pair (rank, size) or what penstock.ranks() gives')


def compare(found: Ranks | None, gather: Any, told: dict[str, Any], dataset: Any) -> None:
    """Raises InvalidArgumentError where ranks were told different things and there is a way to ask them.

    `gather`: a function that takes a text and gives the texts of all ranks, or None for that of torch.distributed if
    the ranks come from there, or False. `told`: what each rank was told. `dataset`: a Dataset, which says what its
    samples are, or None.
    """
    if found is None or gather is False:
        if callable(gather):
            raise TypeError("gather compares the ranks of a loader; give it its ranks too")
        return
    if gather is None:
        gather = _gather_of_torch() if found.source == _TORCH else None
    elif not callable(gather):
        raise TypeError(f"found gather={gather!r}, expected a function, False or None")
    if gather is None or found.size == 1:
        return
    own = {
        "rank": found.rank,
        "the number of ranks": found.size,
        **told,
        **_names(dataset),
    }
    import json

    texts = list(gather(json.dumps(own)))
    _require_alike([json.loads(text) for text in texts], found)


def _names(dataset: Any | None) -> dict[str, str]:
    """The names of some samples, spread over the dataset, without folders: machines may have them elsewhere."""
    if dataset is None or len(dataset) == 0:
        return {}
    chosen = sorted({i * (len(dataset) - 1) // 15 for i in range(16)})
    return {f"what sample {i} is": dataset.describe(i).rsplit("/", 1)[-1] for i in chosen}


def _require_alike(all_told: list[dict[str, Any]], found: Ranks) -> None:
    if len(all_told) != found.size:
        raise InvalidArgumentError(f"gather gave {len(all_told)} texts, expected those of {found.size} ranks")
    seen = [told["rank"] for told in all_told]
    if sorted(seen) != list(range(found.size)):
        raise InvalidArgumentError(
            f"the processes call themselves ranks {seen}, expected each of 0 to {found.size - 1} once"
        )
    all_told.sort(key=lambda told: int(told["rank"]))
    first = all_told[0]
    for told in all_told[1:]:
        for name in first:
            if name != "rank" and told.get(name, "nothing") != first[name]:
                raise InvalidArgumentError(
                    f"the ranks disagree on {name}: rank 0 has {first[name]!r}, and rank {told['rank']} has "
                    f"{told.get(name, 'nothing')!r}; give all ranks the same dataset, seed and options"
                )


_GATHERED = 0


def _gather_of_torch() -> Callable[[str], list[str]] | None:
    distributed = _distributed()
    if distributed is None:
        return None
    on_host = "cpu" in str(distributed.get_backend_config())
    return _all_gathered if on_host else _through_store


def _all_gathered(text: str) -> list[str]:
    distributed = _distributed()
    out = [""] * distributed.get_world_size()
    distributed.all_gather_object(out, text)
    return out


def _through_store(text: str) -> list[str]:
    """By the store that the group met in: a group of NCCL alone would want a device, which may not be chosen yet."""
    global _GATHERED
    _GATHERED += 1
    distributed = _distributed()
    store = distributed.distributed_c10d._get_default_store()
    store.set(f"penstock/{_GATHERED}/{distributed.get_rank()}", text)
    return [store.get(f"penstock/{_GATHERED}/{rank}").decode() for rank in range(distributed.get_world_size())]
