#pragma once

// Docstrings of penstock.Writer.

namespace penstock::python::docs {

inline constexpr const char* kWriter = R"(A file that is written piece by piece.

    with penstock.Writer("features.npy") as writer:
        for block in blocks:
            writer.append(block)

    with penstock.Writer("model.safetensors") as writer:
        writer.add("weight", weight)

    with penstock.Writer("train-000.tar") as writer:
        writer.add_sample({"__key__": "0001", "npy": image, "cls": 3})

An `.npy` grows along its first dimension and may be larger than memory; `.npz`, `.safetensors` and
`.pt` are written tensor by tensor, a `.tar` sample by sample. The file appears whole at the end of
the block, or not at all where an exception left it; a file that was there before then stays as it
was. Without a block, call `finish`.

Arrays of any library are taken, on any device and in any order of elements and bytes; elements are
written in C order. An error in an argument leaves the writer as it was, and it can go on. After an
error of the system, such as a full disk, it has dropped its file. Threads may share a writer; their
calls follow each other.

Parameters
----------
path
    Where the file goes; a URL (`s3://`, `gs://`) for an object that is sent in parts.
format
    "npy", "npz", "pt", "safetensors" or "tar". By default chosen by the extension of `path`.
resume
    `.npy` only: go on behind the rows of the file that is there, or begin a new one where there is
    none. The file itself is appended to. Until the new rows are whole, and after a process that was
    killed, readers see the old ones. Objects in stores cannot be appended to.
dtype, row_shape
    `.npy` only: what the rows are. By default as the first rows are, or those of the file that is
    resumed.
compress
    Deflate the members of an `.npz`.
metadata
    A dict of texts to keep in a `.safetensors`.
sync
    Wait until the file is on the disk.

Raises
------
InvalidArgumentError
    For an extension that names no format.
UnsupportedError
    For options that the format does not have, and to resume an array in Fortran order, one without
    dimensions, a file with several arrays, or one that another writer appends to.
DTypeMismatchError, ShapeMismatchError
    Where the file that is resumed has other rows than were declared.
OSError
    Errors of the file system.)";

inline constexpr const char* kWriterAddSample = R"(Adds a sample to a `.tar`, which `shards` reads.

Parameters
----------
sample
    A dict by field, or an array (the field "npy"). "__key__" is its name; samples without one are
    numbered. A field is written as its last extension says ("mask.npy", "cls", "meta.json"); one
    without a known extension gets that of its value: npy for arrays, cls for integers, txt for
    texts, json for lists, dicts and other numbers, bin for bytes.

Raises
------
InvalidArgumentError
    For a key with a dot behind its last "/", or the one of the sample before.
UnsupportedError
    For a file that is no `.tar`, and for what a field of that name does not hold.)";

inline constexpr const char* kWriterAppend = R"(Adds rows to the `.npy`, or to the tensor that `begin` began.

Parameters
----------
rows
    An array of shape (n, ...). The first rows of an `.npy` fix dtype and shape.

Raises
------
DTypeMismatchError, ShapeMismatchError
    For rows of another dtype or shape, and for a scalar.)";

inline constexpr const char* kWriterAppendRow = R"(Adds one row: `append` of a block of one.

Parameters
----------
row
    An array of the shape that a row has.

Raises
------
DTypeMismatchError, ShapeMismatchError
    For a row of another dtype or shape.)";

inline constexpr const char* kWriterAdd = R"(Adds a whole tensor to an `.npz`, `.safetensors` or `.pt`.

Parameters
----------
name
    The tensor's name in the file.
tensor
    An array.

Raises
------
InvalidArgumentError
    For a name that is there already.
UnsupportedError
    For a dtype that the format does not have, and for an `.npy`.)";

inline constexpr const char* kWriterBegin = R"(Begins a tensor that need not fit in memory; `append` gives its rows.

Parameters
----------
name
    The tensor's name in the file.
dtype
    Its dtype.
shape
    Its shape: shape[0] rows in all.

Raises
------
InvalidArgumentError
    For a name that is there already.
ShapeMismatchError
    For a scalar, and where the tensor before lacks rows.
UnsupportedError
    For a dtype that the format does not have, and for an `.npy`.)";

inline constexpr const char* kWriterFinish = R"(Completes the file, which then appears, and closes the writer.

The end of the `with` block does this too.

Raises
------
InvalidArgumentError
    For an `.npy` that got no rows and was not told what they are.
ShapeMismatchError
    Where the tensor that was begun lacks rows.)";

inline constexpr const char* kWriterDiscard = R"(Closes the writer without the file.

A file that was there before stays as it was. May be called at any time.)";

}  // namespace penstock::python::docs
