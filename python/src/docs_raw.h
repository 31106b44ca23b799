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

inline constexpr const char* kDocuments = R"(The documents in files of tokens, each a tensor.

They are slices of one array that is not read ahead, so `windows` takes them, joined or kept apart.
Where documents lie is read now: Megatron's index, or all tokens of files that do not say it.

Parameters
----------
source
    A file of Megatron's ("NAME.idx", "NAME.bin" or "NAME"); a file of llm.c's; a glob or a list of
    these, whose documents follow each other; or an array of tokens that is not loaded, such as
    `raw` gives, with `begin`.
sequences
    Take each sequence of Megatron's for itself. A document is several of them joined.
begin
    The token that each document begins with, where the file does not say where documents lie.
    None: that of the tokenizer which the file of llm.c is for. What comes before the first one is a
    document too.
mmap
    Whether the tokens are mapped or read, as for `rows`.

Returns
-------
Dataset

Raises
------
CorruptError, TruncatedError
    Where an index says what cannot be.

Examples
--------
>>> documents = penstock.documents("corpus/wiki_text_document")
>>> shards = penstock.documents("fineweb_train_*.bin"))";

}  // namespace penstock::python::docs
