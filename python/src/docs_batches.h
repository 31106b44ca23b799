#pragma once

// Docstrings of the rules by which samples become batches.

namespace penstock::python::docs {

inline constexpr const char* kCollate = R"(Collate()
--

How the samples of a batch become one: stack(), pad(), pad_to(), ragged() or samples().)";

inline constexpr const char* kStackBatches =
    R"(Makes batches of tensors of equal dtype and shape: one with a new dimension 0.

Without arguments it is the rule of a DataLoader; with tensors it stacks them now.

Returns
-------
Collate)";

inline constexpr const char* kRagged = R"(Makes batches whose tensors stay apart: each becomes a list of tensors.

Returns
-------
Collate)";

inline constexpr const char* kSamples = R"(Makes batches whose samples stay apart: a list of them as they are.

Returns
-------
Collate)";

inline constexpr const char* kPad = R"(Pads samples to the longest of the batch, then stacks them.

Parameters
----------
dim
    The dimension of a sample that is padded, at its end.
mode
    "zero", "constant", "reflect" or "replicate".
value
    What "constant" fills with.
lengths
    Make of each padded tensor a dict of "values" and "lengths" (int64).
mask
    Make of each padded tensor a dict of "values" and "mask" (bool), true where a sample has
    elements.
keys
    Only these keys of a dict are padded; the others are stacked.

Returns
-------
Collate)";

inline constexpr const char* kPadTo = R"(Pads or cuts samples to one length, then stacks them.

What lies beyond the cut is not read.

Parameters
----------
length
    What dimension `dim` of each sample becomes.
dim
    The dimension of a sample that is padded or cut, at its end.
mode
    "zero", "constant", "reflect" or "replicate".
value
    What "constant" fills with.
lengths
    Make of each tensor a dict of "values" and "lengths" (int64), what each sample has after the
    cut.
mask
    Make of each tensor a dict of "values" and "mask" (bool), true where a sample has elements.
keys
    Only these keys of a dict are padded or cut; the others are stacked.

Returns
-------
Collate)";

}  // namespace penstock::python::docs
