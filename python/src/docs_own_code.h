#pragma once

// Docstrings of datasets and transforms of the program's own code.

namespace penstock::python::docs {

inline constexpr const char* kOwnDataset =
    R"(Samples of your own: a list of them, what a function gives for an index, or another dataset.

A sample is a number, a text, an array of any library, or a dict, list or tuple of them.

Parameters
----------
samples
    A list of samples, which may differ in shape, type and structure: they stay in memory. Or a
    dataset of any library, with `__len__` and `__getitem__`: each sample is asked for when it is
    wanted, as by `get`. With `get`: how many there are.
get
    Called with an index from 0 to samples - 1, in the loader's worker threads; each call has the
    interpreter's lock for itself alone.

Returns
-------
Dataset

Examples
--------
>>> clips = penstock.dataset([numpy.ones(3), numpy.ones(5)])
>>> squares = penstock.dataset(1000, lambda index: index * index))";

inline constexpr const char* kMap = R"(Each sample (or each batch) as a function makes it from the one that was read.

It is called in the loader's worker threads, which take the interpreter's lock for the call alone;
order, resuming and memory stay as they are without it. What it raises arrives with its own type,
and with the sample and its file in the text; the loader can go on behind it. Several maps run in
the order in which they were asked for.

Parameters
----------
function
    Called with each sample: Tensors, numbers and texts, nested as they were read. It gives a sample
    (arrays of any library will do), for the same sample always the same: it may be called again.
batched
    Whether it is called with whole batches instead, behind their collation.
seeded
    Whether it is called with a numpy.random.Generator as well, made from the loader's seed, the
    epoch and the sample's index: the same for any number of workers and in a resumed run.

Returns
-------
Dataset

Examples
--------
>>> noise = lambda x, random: x.numpy() + random.normal()
>>> noisy = penstock.files("clips").map(noise, seeded=True))";

inline constexpr const char* kFilter = R"(The samples for which a function is true, in their order.

They are found now: every sample is read once, so that the length is known.

Parameters
----------
keep
    Called with each sample. What it raises, and a sample that cannot be read, ends the search.

Returns
-------
Dataset)";

}  // namespace penstock::python::docs
