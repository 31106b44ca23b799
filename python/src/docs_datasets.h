#pragma once

// Docstrings of datasets.

namespace penstock::python::docs {

inline constexpr const char* kDataset = R"(Dataset()
--

A fixed sequence of samples: of rows(), files(), packed(), dataset(), zip(), concat() or subset().

It knows where sample i lies and reads nothing until a loader or `dataset[i]` asks. Any number of
threads may use it. Pickling keeps what it was made of, such as paths, and no file's bytes; the
files are looked up again when it is unpickled.)";

inline constexpr const char* kDescribe = R"(What a sample is, for messages: "clips/0007.pt".

Parameters
----------
index
    Which sample; negative ones count from the end.

Returns
-------
str)";

inline constexpr const char* kRows = R"(Samples are the rows (dimension 0) of one large array.

An uncompressed file is not read ahead: it is mapped, or each row is read when it is wanted.
Checksums in the file are not verified. Reading a sample raises ChangedError when the file was
written to since it was opened, and TruncatedError when it was cut.

Parameters
----------
source
    A path; a Source of penstock.remote; a LazyTensor of an archive; a Tensor or an array of any
    library; or a list of numbers, of nested lists of numbers, of strings, or of arrays of one
    shape. Strings stay text: a batch has a list of them. Of another sequence (a column of a Hugging
    Face dataset) all items are read now. A numpy.memmap is not read: one of mode "r" is mapped from
    its file as a path is, and pickles as that; one that may be written to is memory as it stands.
key
    Which tensor of the file, if it has several.
mmap
    Whether the file is mapped (True) or each row is read (False). None: mapped if it fits into the
    memory that this process may use (machine, control group).
dtype
    The type that tensors of floating-point and complex numbers get, as by torch's Module.to(dtype).
    Integers and bools stay; `cast` converts these. "promote" takes the type that the types of all
    samples promote to, which it finds in headers.
strict
    Raise where a value does not fit into the type, as `cast` does.
shape, offset, order
    One of them says that the file has no header, as `raw` has them. Then `dtype` is what the
    elements in the file are, and nothing is converted. A file that has a header is refused here.

Returns
-------
Dataset

Examples
--------
>>> pairs = penstock.zip(penstock.rows("images.npy"), penstock.rows([0, 1, 1, 0]))
>>> samples = penstock.rows("train.bin", dtype="uint16", shape=(-1, 512)))";

inline constexpr const char* kFiles =
    R"(Each file is a sample: one tensor, or the dict, list or tuple of tensors and scalars in it.

Parameters
----------
pattern
    A file, a folder, a glob (`**` for any depth) or a list of paths. The order of a folder or
    glob is by name.
keys
    Take only these keys of each file's dict, as a dict. A key is a name, several names with dots
    between them ("model.w", where a name that has dots itself is found first), or an integer.
index
    Keep the list of files, in the user's cache folder (True) or in a file of your own. Next time,
    only folders that changed are listed. The file may be deleted at any time.
exclude
    One or several folders and files to leave out of the list: a name or glob at any depth
    ("lost+found", "tmp*"), or the end of a path ("old/raw").
raw
    The bytes of each file are its sample, as a tensor of uint8, for a decoder of your own in
    `map`. A folder still stands for its tensor files: name others by a glob ("images/*.ppm").
class_folders
    A sample is a tuple of what the file holds and the number of its class: the first folder below
    the part that all paths share ("train/cat/1.pt" of "train/*/*.pt"). `classes` has the names.
dtype
    The type that tensors of floating-point and complex numbers get, as by torch's Module.to(dtype).
    Integers and bools stay, unless `keys` names them. "promote" takes the type that the types of
    all samples promote to, which it finds in headers.
strict
    Raise where a value does not fit into the type, as `cast` does.
source
    A function that opens a file of the list of paths, which may be any text: it is given the path
    and gives the file's bytes, a Source of `penstock.remote`, another path, or an open file. It is
    called in the loader's threads. For stores that Penstock does not know.

Returns
-------
Dataset)";

inline constexpr const char* kPacked = R"(The samples that `pack` or the command `penstock pack` wrote.

The files are not read ahead. Numbers come back as tensors without dimensions, which makes no
difference in batches.

Parameters
----------
pattern
    A folder, a glob or a file: the samples of every file that it matches, one after the other.
mmap
    As for `rows`. None decides by the size of all files together.

Returns
-------
Dataset)";

inline constexpr const char* kPack =
    R"(Writes the samples of a dataset, in order, into a few large `.safetensors` files.

Tensors and numbers of equal shape are stacked. Tensors that differ in dimension 0 lie end to end,
with an array of offsets. Text and None are refused. `packed` gives the samples back. Or into tar
shards, which keep texts and bytes too, and which `shards` and WebDataset read.

Parameters
----------
dataset
    What to write.
folder
    A new folder. It appears with all files or not at all. Or a prefix of a bucket (s3:// or gs://)
    that has no objects: all are uploaded before the first of them appears.
shard_bytes
    About how large each file becomes.
format
    "safetensors", or "tar": each part of a sample becomes a member by the rules of
    `Writer.add_sample`, and samples without a "__key__" are numbered.
verify
    Check recorded checksums.
progress
    True for a bar on a terminal and in a notebook, or a function (samples done, total), called in
    this thread. What it raises stops the work, so that no folder appears.

Returns
-------
dict
    How many "samples", "shards" and "bytes" were written.)";

inline constexpr const char* kConcat = R"(All samples of this one, then of the others in turn.

Parameters
----------
others
    Datasets.

Returns
-------
Dataset)";

inline constexpr const char* kSubset = R"(The samples at `indices`, in that order; repeats are fine.

Parameters
----------
dataset
    The dataset to take samples from.
indices
    An iterable, array or tensor of indices; negative ones count from the end.

Returns
-------
Dataset)";

}  // namespace penstock::python::docs
