#pragma once

// Docstrings of what reads files without a header, and files of tokens.

namespace penstock::python::docs {

inline constexpr const char* kRaw = R"(The array in a file without a header, not loaded: what numpy.memmap opens.

Nothing of the file is read, so its content is not looked at either: a `.npy` is bytes here, its
header too. Slice it, load it, or give it to `rows`.

Parameters
----------
path
    The file's path or URL, a Source of penstock.remote, or bytes.
dtype
    What the elements are: a name ("uint16", "bfloat16"), a type of NumPy or torch, or NumPy's
    text, which may say the byte order (">u2").
shape
    One size may be -1: as many as the rest of the file has. None: one dimension, to the end. The
    file may be longer than an array whose sizes are all given.
offset
    Bytes in front of the first element.
order
    "C", or "F" where the elements of the first dimension lie together.

Returns
-------
LazyTensor

Raises
------
ShapeMismatchError
    Where -1 does not divide the rest of the file; it says how many bytes are left over.
TruncatedError
    Where the file is shorter than the array.

Examples
--------
>>> tokens = penstock.raw("train.bin", "uint16")
>>> samples = penstock.rows(penstock.raw("train.bin", "uint16", (-1, 1024))))";

}  // namespace penstock::python::docs
