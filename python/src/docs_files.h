#pragma once

// Docstrings of what opens, reads and writes files.

namespace penstock::python::docs {

inline constexpr const char* kLoad = R"(Everything in a tensor file.

Nothing in the file is run: objects of unknown classes become penstock.Opaque.

Parameters
----------
path
    The file's path, or its content: bytes, a memoryview, a memory map, or a file opened in mode
    "rb", which is read from its current position. `bytes` without a zero byte are taken for a
    path, because every tensor file has a zero byte and no path has one.
device
    Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
mmap
    Map the file instead of reading it. The tensors are read-only.
verify
    Check recorded checksums.
direct
    Read past the page cache with O_DIRECT (True, where the file system can) or through it (False).
    By default, cached bytes come from the cache and all others are read past it.
gds
    Fill a device by GPUDirect Storage. By default as PENSTOCK_GDS says.
threads
    How many threads read. By default chosen for the file and the machine.
key
    The part of the content to read: a key, several keys with dots between them
    ("optimizer.state.0"), or a list of keys and positions. Nothing else is read.
prefix
    Take only the keys of a dict that begin with this, and remove it from them.
report
    A dict to fill with how the file was read: "route", "why" in a sentence, bytes and seconds; by
    URL also "remote_requests" and other counts.
progress
    True for a bar on a terminal and in a notebook, or a function (bytes done, total). It is called
    in this thread, and what it raises stops the load.
dtype
    What floating-point and complex tensors become while they are read, as by torch's
    Module.to(dtype); integers and bools stay. A load needs little more memory than its result.
    Not together with mmap.
strict
    Raise where a value does not fit into `dtype` (1e300 into float32). By default it becomes
    infinite, as with NumPy.
shape, offset, order
    One of them says that the file has no header, as `raw` has them. Then `dtype` is what the
    elements in the file are, and nothing is converted. A file that has a header is refused here.

Returns
-------
A Tensor for a file of one bare array, a dict for `.npz` and `.safetensors`; for `.pt` whatever
was saved.

Raises
------
penstock.Error
    It is also the built-in exception of the same kind: FileNotFoundError, ValueError, ...

Examples
--------
>>> state = penstock.load("model.pt")
>>> state = penstock.load(response.content)
>>> with open("model.pt", "rb") as file:
...     state = penstock.load(file))";

inline constexpr const char* kOpen = R"(Opens a tensor file and reads its index, whatever its size and extension.

Payload is not read, except in a file of up to 64 KiB, which is read whole.

Parameters
----------
path
    A path, bytes in memory or an open file, as `load` takes them. Bytes are shared, not copied,
    and stay alive with the archive and its entries.
mode
    "r" reads. "r+" gives a WritableArchive, whose tensors are changed in place.
verify
    Check recorded checksums when entries are loaded.

Returns
-------
Archive or WritableArchive

Examples
--------
>>> with penstock.open("model.pt") as archive:
...     rows = archive["encoder.weight"][:128].load())";

inline constexpr const char* kSave = R"(Writes tensors to a file that NumPy, PyTorch and safetensors read.

The file, or the object of a store, appears whole or not at all.

Parameters
----------
obj
    A Tensor or an array of any library; dicts of them; for `.pt` nested dicts, lists, tuples,
    numbers and strings too.
path
    Where the file goes: a path, or a URL of s3:// or gs://. What is there already is replaced. With
    "/" at its end it is the folder of a distributed checkpoint, which torch.distributed.checkpoint
    loads.
format
    "npy", "npz", "pt", "safetensors" or "dcp", such a folder. By default chosen by the extension of
    `path`.
compress
    Deflate an `.npz`.
metadata
    A dict of texts to keep in a `.safetensors`.
sync
    Wait until the file is on the disk. Without it, saving is as fast as numpy.save and torch.save,
    but the file may be lost when the machine loses power. Changes nothing for a URL.
progress
    True for a bar on a terminal and in a notebook, or a function (bytes done, total). It is called
    in this thread, and what it raises stops the save, so that no file appears.)";

inline constexpr const char* kArchive = R"(Archive()
--

An opened file: its index, and none of its payload.

A mapping from names to lazy tensors, which load on request. Made by `penstock.open`. Any number of
threads may use it.)";

inline constexpr const char* kLazyTensor = R"(LazyTensor()
--

A tensor of an archive, or a slice of one, that is not loaded.

Slicing reads nothing, and `load` reads only the bytes of the slice. A lazy tensor keeps the file
open.)";

inline constexpr const char* kArchiveLoad = R"(Everything, nested as in the file.

Parameters
----------
device
    Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
mmap
    Map the file instead of reading it. The tensors are read-only.
direct
    Read past the page cache with O_DIRECT (True) or through it (False). By default, cached bytes
    come from the cache and all others are read past it.
gds
    Fill a device by GPUDirect Storage. By default as PENSTOCK_GDS says.
threads
    How many threads read. By default chosen for the file and the machine.
report
    A dict to fill with how the file was read.
progress
    True for a bar on a terminal and in a notebook, or a function (bytes done, total), called in
    this thread. What it raises stops the load.
dtype
    What floating-point and complex tensors become while they are read, as by torch's
    Module.to(dtype); integers and bools stay. A load needs little more memory than its result.
    Not together with mmap.
strict
    Raise where a value does not fit into `dtype` (1e300 into float32). By default it becomes
    infinite, as with NumPy.

Returns
-------
What `penstock.load` gives for the file.)";

inline constexpr const char* kLazyTensorLoad = R"(The tensor, or the slice of it.

Parameters
----------
device
    Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
mmap
    Map the file instead of reading it. The tensors are read-only.
direct
    Read past the page cache with O_DIRECT (True) or through it (False). By default, cached bytes
    come from the cache and all others are read past it.
gds
    Fill a device by GPUDirect Storage. By default as PENSTOCK_GDS says.
threads
    How many threads read. By default chosen for the file and the machine.
report
    A dict to fill with how the file was read.
dtype
    What floating-point and complex tensors become while they are read, as by torch's
    Module.to(dtype); integers and bools stay. A load needs little more memory than its result.
    Not together with mmap.
strict
    Raise where a value does not fit into `dtype` (1e300 into float32). By default it becomes
    infinite, as with NumPy.

Returns
-------
Tensor)";

}  // namespace penstock::python::docs
