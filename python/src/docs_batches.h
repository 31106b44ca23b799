#pragma once

// Docstrings of the rules by which samples become batches.

namespace penstock::python::docs {

inline constexpr const char* kCollate = R"(Collate()
--

How the samples of a batch become one: stack(), pad(), pad_to(), ragged() or samples().)";

inline constexpr const char* kStackBatches =
    R"(Makes one tensor of tensors of equal dtype and shape, with a new dimension 0.

Without arguments it returns the rule for a DataLoader; with tensors it stacks them now.

Returns
-------
Collate)";

inline constexpr const char* kRagged = R"(Keeps the tensors of a batch apart: each becomes a list of tensors.

Parameters
----------
cu_seqlens
    Join them instead. Each becomes a dict of "values", all one behind the other along dimension 0;
    "cu_seqlens", int32 of batch + 1 numbers: sample i has the rows from cu_seqlens[i] to
    cu_seqlens[i + 1]; and "max_seqlen", an int, the rows of the longest. This is what attention
    over sequences of different length takes. Tensors without dimensions are stacked.
keys
    Join only these keys of a dict, and stack the others.

Returns
-------
Collate)";

inline constexpr const char* kSamples = R"(Keeps the samples of a batch apart: the batch is a list of them as they are.

Returns
-------
Collate)";

inline constexpr const char* kPadCollate = R"(Pads samples to the longest of the batch, then stacks them.

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

Returns
-------
Collate)";

inline constexpr const char* kPadTo = R"(Pads or cuts samples to one length, or pads them to one size, then stacks them.

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

Returns
-------
Collate)";

}  // namespace penstock::python::docs
