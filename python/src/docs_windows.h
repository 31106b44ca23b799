#pragma once

// Docstrings of slices and windows.

namespace penstock::python::docs {

inline constexpr const char* kSlices =
    R"(Slices of the array that rows() took the samples of: documents, sentences, recordings.

Sample i is the rows from starts[i] on, lengths[i] of them, as one tensor. Nothing is read for it,
and lengths(), length_buckets(), pad() and ragged() know the lengths without reading. The index
takes 16 bytes a slice, and 8 where each begins where the one before ends. Slices may overlap, leave
rows out, be empty and stand in any order; one that is not inside the array is an IndexError.

Parameters
----------
starts
    Where each slice begins. None: where the one before ends; then the lengths must add up to the
    rows of the array, else it is a ValueError.
lengths
    How many rows each has, as list, array or tensor.

Returns
-------
Dataset)";

inline constexpr const char* kWindows =
    R"(Windows of one length: of the array that rows() took the samples of, or of its slices().

Window i begins at row i * stride; rows at the end that fill no further window are in none. Shuffle,
ranks and positions are those of the loader, as for any dataset. No index of windows is kept: at
most 8 bytes a slice. An array, or slices, that are shorter than a window are a ValueError.

Parameters
----------
length
    Rows of a window.
stride
    Rows from where a window begins to where the next one does; by default the length.
shift
    0: samples are the windows. Above 0: samples are tuples (x, y), and y is the window so many rows
    further on; with 1 the next token for each token.
join
    Of slices alone. None: a window lies within one slice, and slices that are shorter have none;
    the repr says how many these are. "ordered": windows are those of all slices put together in
    their order. "shuffled": the same, in an order of the slices that follows from the loader's seed
    and the epoch, as Megatron makes samples of documents; `dataset[i]` has seed and epoch 0.

Returns
-------
Dataset)";

inline constexpr const char* kRandomWindows =
    R"(Windows that begin anywhere, drawn anew in each epoch.

The place is drawn from the loader's seed, the epoch and the sample's index: the same for any number
of workers, and in a resumed run. All places are equally likely: of the array, or of its slices,
where no window lies over the end of one. `dataset[i]` draws as epoch 0 of seed 0.

Parameters
----------
length
    Rows of a window.
count
    Samples of an epoch.
shift
    As for windows().

Returns
-------
Dataset)";

}  // namespace penstock::python::docs
