#pragma once

// Docstrings of the samplers.

namespace penstock::python::docs {

inline constexpr const char* kSampler = R"(The order of samples, decided by (seed, epoch) alone.

A DataLoader passes its own seed and epoch. Iterating over a sampler by itself gives the order of
seed 0 and of the epoch that set_epoch() chose, which is 0 at first.

For an order of your own, derive from this class or from one of the samplers. Override
`order(seed, epoch)`, which gives the indices of an epoch, or `__iter__`; and `__len__` if the
number is known. Classes of your own are pickled with their attributes.)";

inline constexpr const char* kSamplerOrder = R"(The indices of one epoch.

Parameters
----------
seed
    The seed of all random numbers.
epoch
    The number of the epoch, from 0.

Returns
-------
list of int)";

inline constexpr const char* kSamplerSetEpoch = R"(Chooses the epoch that iterating gives.

Parameters
----------
epoch
    Its number, from 0. A DataLoader sets it when it iterates.)";

inline constexpr const char* kSequentialSampler = R"(0, 1, ... up to the size of a dataset.

Parameters
----------
dataset
    A dataset, or its size.)";

inline constexpr const char* kRandomSampler = R"(A permutation for each epoch: PyTorch's, for seed + epoch.

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
    memory, which is else 4 bytes a sample, and begins at once. It is another one than PyTorch's.)";

inline constexpr const char* kNodeLocalSampler = R"(An order in which every node reads the same samples in each epoch.

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
    Each part in another order each epoch; else in the order of its indices.)";

inline constexpr const char* kDistributedSampler = R"(The part of one rank of an order that all ranks agree on.

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
    Permute the order anew for each epoch.
drop_last
    Cut the order so that it can be split evenly. Otherwise it is made longer, by repeating it from
    its start.)";

inline constexpr const char* kSubsetSampler = R"(The given indices.

Parameters
----------
indices
    An iterable of indices.
shuffle
    Permute them anew for each epoch; otherwise they come in this order.)";

inline constexpr const char* kWeightedSampler = R"(Index i with a probability proportional to weights[i].

Parameters
----------
weights
    Any number of weights: finite, not negative, not all zero.
num_samples
    How many indices an epoch has.
replacement
    Draw each index independently of the others; otherwise none comes twice.)";

inline constexpr const char* kBatchSampler = R"(An epoch as batches of indices.

Parameters
----------
sampler
    A Sampler or an iterable of indices; without `batch_size` an iterable of lists of indices,
    which are the batches.
batch_size
    How many indices a batch has.
drop_last
    Leave out the last batch if it is smaller.

Derive from this class for batches of your own: override `batches(seed, epoch)` or `__iter__`.)";

inline constexpr const char* kBatches = R"(All batches of one epoch.

Parameters
----------
seed
    The seed of all random numbers.
epoch
    The number of the epoch, from 0.

Returns
-------
list of lists of int)";

}  // namespace penstock::python::docs
