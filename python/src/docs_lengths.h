#pragma once

// Docstrings of lengths, buckets, packed sequences, and parts and mixtures of datasets.

namespace penstock::python::docs {

inline constexpr const char* kLengths =
    R"(How long each sample is: the size of one of its dimensions, from headers alone.

No payload is read. Behind map() nobody knows without calling the function, which is an
UnsupportedError: take the lengths of the dataset below.

Parameters
----------
dataset
    The dataset whose samples are meant.
dim
    The dimension whose size is the length; negative ones count from the last.
key
    The part of a dict that is meant; by default the only tensor that has this dimension.

Returns
-------
list of int)";

inline constexpr const char* kLengthBuckets = R"(A batch sampler whose batches have samples of about one length.

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
    not go round among the ranks.
num_replicas
    Ranks. Each gets one of so many batches that follow each other in length.
rank
    Which of them this is.
too_long
    What becomes of a sample that is longer than max_tokens: "raise" names it, "alone" makes it a
    batch, "skip" leaves it out.

Returns
-------
BatchSampler)";

inline constexpr const char* kPackSequences =
    R"(Sequences that share rows of one length, so that nearly nothing is padding.

Sequences are samples of one dimension and type; their lengths come from headers. The longest goes
first, and each into the fullest row that has room. Every rank and every run has the same rows.
Sample i is a dict of one row: "tokens", "positions" (int64, of each token in its sequence) and
"segments" (int64, which counts sequences from 1). Behind the last sequence both are 0.

Parameters
----------
dataset
    The sequences. Those without elements are in no row.
length
    Elements of a row.
too_long
    What becomes of a sequence that is longer: "raise" names it, "cut" leaves out what lies beyond,
    "split" makes it several.
value
    What fills rows behind their last sequence.
key
    The part of a dict that is the sequence.
cu_seqlens
    Add "cu_seqlens" (int32: where in the row each sequence begins, and the last one ends) and
    "max_seqlen" (an int: the elements of the longest), as attention over sequences of different
    length takes them. What fills a row counts as one more sequence there. All rows have as many
    numbers; behind the last sequence each is the length of the row.

Returns
-------
Dataset)";

inline constexpr const char* kTake = R"(The first samples, or all where there are fewer.

Parameters
----------
count
    How many.

Returns
-------
Dataset)";

inline constexpr const char* kSkip = R"(All but the first samples; none where there are fewer.

Parameters
----------
count
    How many.

Returns
-------
Dataset)";

inline constexpr const char* kRepeat = R"(All samples, several times one behind the other.

Random steps below draw the same for each repetition of a sample; those that follow draw anew.

Parameters
----------
times
    How often.

Returns
-------
Dataset)";

inline constexpr const char* kMix = R"(Samples of several datasets in exact shares.

Of the first n samples, every dataset has given its share of n, up to less than one more or less.
Each gives its samples in their order. The order depends on sizes and weights alone.

Parameters
----------
datasets
    The datasets.
weights
    A number of 0 or more for each; shares are to each other as these.
end
    "first" ends before a dataset would give a sample again. "all" ends when every dataset has given
    all of its samples; those that are used up begin again.
size
    Samples of the mixture, in place of `end`.

Returns
-------
Dataset)";

inline constexpr const char* kWithLabels =
    R"(Each sample, which is a file, as the tuple of itself and its label, joined by file name.

A name in the table stands for the file whose path ends with it: "7.npy", "cat/7.npy", or "cat/7"
without the extension. It labels all files that it stands for: with files of one name in several
folders, write the folder too. Where several names stand for a file, the longest counts. Labels that
are all whole numbers are integers, and those that are all numbers floats. Others are classes: the
label is the number of the class, and `classes` has the names. A file without a label, or with an
empty one, is a ValueError; names that stand for no file are fine.

Parameters
----------
dataset
    A dataset of files.
table
    A CSV file whose first line names its columns, or a dict of labels by file name.
file
    The column with the file names; by default the first.
label
    The column with the labels; by default the second.

Returns
-------
Dataset)";

}  // namespace penstock::python::docs
