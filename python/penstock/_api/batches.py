"""The order of samples, and how they become a batch."""

from __future__ import annotations

import penstock._core as _core
from penstock._api import methods_of

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Iterable, Sized
    from typing import Any

    from penstock._core import BatchSampler, Collate, Dataset, Sampler


def ragged(cu_seqlens: bool = False, keys: str | Iterable[str] | None = None) -> Collate:
    """Keeps the tensors of a batch apart: each becomes a list of tensors.

    Parameters
    ----------
    cu_seqlens
        Join them instead. Each becomes a dict of "values", all one behind the other along dimension 0;
        "cu_seqlens", int32 of batch + 1 numbers: sample i has the rows from cu_seqlens[i] to
        cu_seqlens[i + 1]; and "max_seqlen", an int, the rows of the longest. This is what attention
        over sequences of different length takes. Tensors without dimensions are stacked.
    keys
        Join only these keys of a dict, and stack the others.
    """
    return _core.ragged(cu_seqlens, keys)


def samples() -> Collate:
    """Keeps the samples of a batch apart: the batch is a list of them as they are."""
    return _core.samples()


def pad(
    dim: int = 0,
    mode: str = "zero",
    value: float = 0.0,
    lengths: bool = False,
    mask: bool = False,
    keys: str | Iterable[str] | None = None,
    dims: Iterable[int] | None = None,
) -> Collate:
    """Pads samples to the longest of the batch, then stacks them.

    Parameters
    ----------
    dim
        The dimension of a sample that is padded, at its end.
    mode
        "zero", "constant", "reflect" or "replicate".
    value
        The value that "constant" fills with.
    lengths
        Make of each padded tensor a dict of "values" and "lengths" (int64).
    mask
        Make of each padded tensor a dict of "values" and "mask" (bool), true where a sample has
        elements.
    keys
        Only these keys of a dict are padded; the others are stacked.
    dims
        Several dimensions, in place of `dim`, each to the longest of the batch. "lengths" then has a
        row for each sample, with a number for each dimension, and "mask" has all of them.
    """
    return _core.pad(dim, mode, value, lengths, mask, keys, dims)


def pad_to(
    length: int | Iterable[int],
    dim: int = 0,
    mode: str = "zero",
    value: float = 0.0,
    lengths: bool = False,
    mask: bool = False,
    keys: str | Iterable[str] | None = None,
    dims: Iterable[int] | None = None,
) -> Collate:
    """Pads or cuts samples to one length, or pads them to one size, then stacks them.

    Elements beyond the cut are not read. A list of sizes is for several dimensions: then nothing is
    cut, and a sample that is larger is an error that names it.

    Parameters
    ----------
    length
        The size that dimension `dim` of each sample gets, or a list of sizes.
    dim
        The dimension of a sample that is padded or cut, at its end.
    mode
        "zero", "constant", "reflect" or "replicate".
    value
        The value that "constant" fills with.
    lengths
        Make of each tensor a dict of "values" and "lengths" (int64): the length of each sample after
        the cut.
    mask
        Make of each tensor a dict of "values" and "mask" (bool), true where a sample has elements.
    keys
        Only these keys of a dict are padded or cut; the others are stacked.
    dims
        The dimensions that a list of sizes is for; by default the last ones.
    """
    return _core.pad_to(length, dim, mode, value, lengths, mask, keys, dims)


def length_buckets(
    dataset: Dataset | Iterable[int],
    boundaries: Iterable[int] | None = None,
    *,
    max_tokens: int | None = None,
    batch_size: int | None = None,
    dim: int = 0,
    key: str | None = None,
    shuffle: bool = True,
    drop_last: bool = False,
    num_replicas: int = 1,
    rank: int = 0,
    too_long: str = "raise",
) -> BatchSampler:
    """A batch sampler whose batches have samples of about one length.

    pad() then pads little. Lengths come from headers, as of lengths(). Every epoch has as many batches,
    decided by (seed, epoch), so that a loader goes on exactly where it stood. Give boundaries,
    max_tokens or both; and beside boundaries batch_size, max_tokens or both.

    Parameters
    ----------
    dataset
        The dataset, or the lengths of its samples as list, array or tensor.
    boundaries
        Bucket i has the lengths from boundaries[i - 1] on and below boundaries[i]. One more bucket lies
        in front and one behind.
    max_tokens
        The most that a padded batch may have: samples times the longest of its bucket. Without
        boundaries samples are sorted by length, and each batch is as large as its longest allows.
    batch_size
        Samples in a batch, at most.
    dim
        The dimension whose size is the length.
    key
        The part of a dict that is meant.
    shuffle
        Shuffle samples within buckets (or of one length), and the batches.
    drop_last
        Leave out the last batch of each bucket where it has room for more samples, and batches that do
        not go round among the ranks. Without boundaries no batch is left out for its size, because
        that would always be the one of the longest samples.
    num_replicas
        Ranks. Each gets one of so many batches that follow each other in length.
    rank
        Which of them this is.
    too_long
        What becomes of a sample that is longer than max_tokens: "raise" names it, "alone" makes it a
        batch, "skip" leaves it out.
    """
    return _core._LengthBuckets(
        dataset, boundaries, max_tokens, batch_size, dim, key, shuffle, drop_last, num_replicas, rank, too_long
    )


@methods_of(_core.Sampler)
class SamplerMethods:
    """The order of samples, decided by (seed, epoch) alone.

    A DataLoader passes its own seed and epoch. Iterating over a sampler by itself gives the order of
    seed 0 and of the epoch that set_epoch() chose, which is 0 at first.

    For an order of your own, derive from this class or from one of the samplers. Override
    `order(seed, epoch)`, which gives the indices of an epoch, or `__iter__`; and `__len__` if the
    number is known. Classes of your own are pickled with their attributes.
    """

    def __init__(self) -> None: ...

    def order(self: Sampler, seed: int = 0, epoch: int = 0) -> list[int]:
        """The indices of one epoch.

        Parameters
        ----------
        seed
            The seed of all random numbers.
        epoch
            The number of the epoch, from 0.
        """
        return self._order(seed, epoch)

    def set_epoch(self: Sampler, epoch: int) -> None:
        """Chooses the epoch that iterating gives.

        Parameters
        ----------
        epoch
            Its number, from 0. A DataLoader sets it when it iterates.
        """
        self._set_epoch(epoch)


class SequentialSampler(_core.SequentialSampler):
    """0, 1, ... up to the size of a dataset.

    Parameters
    ----------
    dataset
        A dataset, or its size.
    """

    __slots__ = ()

    def __init__(self, dataset: Sized | int) -> None:
        super().__init__(dataset)


class RandomSampler(_core.RandomSampler):
    """A permutation for each epoch: PyTorch's, for seed + epoch.

    Parameters
    ----------
    dataset
        A dataset, or its size.
    replacement
        Draw each index independently of the others.
    num_samples
        How many indices an epoch has. By default the size of the dataset.
    compact
        Compute each index when it is asked for, and keep none. The order of an epoch then takes no
        memory, which is else 4 bytes a sample, and begins at once. It is another one than PyTorch's.
    """

    __slots__ = ()

    def __init__(
        self, dataset: Sized | int, replacement: bool = False, num_samples: int | None = None, compact: bool = False
    ) -> None:
        super().__init__(dataset, replacement, num_samples, compact)


class DistributedSampler(_core.DistributedSampler):
    """The part of one rank of an order that all ranks agree on.

    Rank `rank` takes every num_replicas-th sample, and all ranks take the same number of them.

    Parameters
    ----------
    dataset
        A dataset, its size, or another Sampler, whose order is split.
    num_replicas
        How many ranks there are.
    rank
        Which one this is, from 0.
    shuffle
        Permute the order anew for each epoch. That of another sampler is split as it is.
    drop_last
        Cut the order so that it can be split evenly. Otherwise it is made longer, by repeating it from
        its start.
    """

    __slots__ = ()

    def __init__(
        self,
        dataset: Sized | int | Sampler,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset, num_replicas, rank, shuffle, drop_last)


class NodeLocalSampler(_core.NodeLocalSampler):
    """An order in which every node reads the same samples in each epoch.

    So the node's disk cache or memory holds what it reads. The indices are cut into `nodes` contiguous
    parts, and the order takes `ranks_per_node` of each part in turn. Dealt out to the ranks of as many
    nodes (`DataLoader(..., ranks="auto")`), node k has part k. With fewer nodes that divide `nodes`,
    each has several parts, so choose a number that many others divide. The order is the same for any
    number of ranks, and each sample comes once. Where parts do not divide evenly, the last few samples
    may go to other nodes.

    Parameters
    ----------
    dataset
        A dataset, or its size.
    nodes
        Parts that the indices are cut into.
    ranks_per_node
        Neighbouring ranks that share a part.
    shuffle
        Each part in another order each epoch; else in the order of its indices.
    """

    __slots__ = ()

    def __init__(self, dataset: Sized | int, nodes: int, ranks_per_node: int = 1, shuffle: bool = True) -> None:
        super().__init__(dataset, nodes, ranks_per_node, shuffle)


class SubsetSampler(_core.SubsetSampler):
    """The given indices.

    Parameters
    ----------
    indices
        An iterable of indices.
    shuffle
        Permute them anew for each epoch; otherwise they come in this order.
    """

    __slots__ = ()

    def __init__(self, indices: Iterable[int], shuffle: bool = False) -> None:
        super().__init__(indices, shuffle)


class WeightedSampler(_core.WeightedSampler):
    """Index i with a probability proportional to weights[i].

    Parameters
    ----------
    weights
        Any number of weights: finite, not negative, not all zero.
    num_samples
        How many indices an epoch has.
    replacement
        Draw each index independently of the others; otherwise none comes twice.
    """

    __slots__ = ()

    def __init__(self, weights: Iterable[float], num_samples: int, replacement: bool = True) -> None:
        super().__init__(weights, num_samples, replacement)


@methods_of(_core.BatchSampler)
class BatchSamplerMethods:
    """An epoch as batches of indices.

    Parameters
    ----------
    sampler
        A Sampler or an iterable of indices; without `batch_size` an iterable of lists of indices,
        which are the batches.
    batch_size
        How many indices a batch has.
    drop_last
        Leave out the last batch if it is smaller; for `batch_size` alone.

    Derive from this class for batches of your own: override `batches(seed, epoch)` or `__iter__`.
    """

    def __init__(
        self, sampler: Sampler | Iterable[Any], batch_size: int | None = None, drop_last: bool = False
    ) -> None: ...

    def batches(self: BatchSampler, seed: int = 0, epoch: int = 0) -> list[list[int]]:
        """All batches of one epoch.

        Parameters
        ----------
        seed
            The seed of all random numbers.
        epoch
            The number of the epoch, from 0.
        """
        return self._batches(seed, epoch)

    def set_epoch(self: BatchSampler, epoch: int) -> None:
        """Chooses the epoch that iterating gives.

        Parameters
        ----------
        epoch
            Its number, from 0. A DataLoader sets it when it iterates.
        """
        self._set_epoch(epoch)
