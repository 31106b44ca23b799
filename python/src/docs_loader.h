#pragma once

// Docstrings of the loader.

namespace penstock::python::docs {

inline constexpr const char* kDataLoader = R"(Iterates over a dataset in batches that threads prepare ahead.

A batch has its samples' structure: a Tensor, a dict, a tuple for zip(), lists for strings.
Batches are the same bit by bit for any number of workers, and their order follows from seed and
epoch alone. Each pass over the loader is the next epoch; a pass that was broken off begins again.
An error belongs to one batch: the loop can go on with `next(iterator)`.

It pickles, where its dataset and samplers do, and copies: the other one goes on where this one
stands, and writes no trace. After a fork make a new loader in the child.

Parameters
----------
dataset
    A Dataset, or a dataset of penstock.torch that holds one.
batch_size
    How many samples a batch has.
shuffle
    Permute the order anew for each epoch.
sampler
    A Sampler or any iterable of indices, which decides the order in place of `shuffle`.
num_workers
    How many threads prepare batches. "auto" takes one for each processor, and more while they
    wait for storage and more of them bring more; 0 works in the loop itself.
collate
    How samples become a batch: stack() unless given, pad(), pad_to(), ragged() or samples().
drop_last
    Leave out the last batch where it is smaller.
batch_sampler
    A BatchSampler or any iterable of lists of indices, in place of `batch_size`, `shuffle`,
    `sampler` and `drop_last`.
prefetch_factor
    How many batches are prepared ahead for each worker at most.
seed
    Of what is drawn at random.
memory_budget
    How many bytes are prepared ahead at most.
timeout
    How many seconds to wait for a batch before TimeoutError; 0: for ever.
device
    Where batches go.
trace
    A file for what each thread did and when: a Chrome trace, which ui.perfetto.dev opens. close()
    and write_trace() write it.)";

inline constexpr const char* kSetEpoch = R"(Begins that epoch from its first batch.

Parameters
----------
epoch
    Its number, from 0.)";

inline constexpr const char* kStateDict = R"(Where the iteration stands, after the last batch handed out.

It is enough to go on exactly under any number of workers, and of ranks of a DistributedSampler
where what all have taken are whole batches of theirs.

Returns
-------
dict of int and str)";

inline constexpr const char* kLoadStateDict = R"(The next iteration goes on from there.

Parameters
----------
state
    What state_dict() gave.

Raises
------
ValueError
    For the state of another dataset, batch_size, shuffle or sampler.)";

inline constexpr const char* kStats = R"(Counts, bytes and seconds since the loader was made.

Seconds of workers add up over all of them. "limit" says in a sentence what the iteration cannot
be faster than, "bottleneck" in a word, "workers_because" why there are so many workers.

Returns
-------
dict
    It prints as a few lines for people.)";

}  // namespace penstock::python::docs
