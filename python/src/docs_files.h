#pragma once

// Docstrings of what opens, reads and writes files.

namespace penstock::python::docs {

inline constexpr const char* kLoad = R"(Everything in a tensor file.

Nothing in the file is run: objects of unknown classes become penstock.Opaque.

Parameters
----------
path
    The file's path; or its content: bytes, a memoryview, a memory map, or a file opened in mode
    "rb", which is read from where it stands. `bytes` without a zero byte are a path, since every
    tensor file has one and no path has.
device
    Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
mmap
    Map the file instead of reading it, which gives read-only tensors.
verify
    Check recorded checksums.
direct
    Read past the page cache with O_DIRECT (True, where the file system can) or through it (False).
    Unless given: past it for what it does not hold.
gds
    Fill a device by GPUDirect Storage. Unless given: as PENSTOCK_GDS says.
threads
    How many threads read; chosen by the machine unless given.
key
    The part of the content to read: a key, several keys with dots between them
    ("optimizer.state.0"), or a list of keys and positions. Nothing else is read.
prefix
    Take only the keys of a dict that begin with this, and cut it off them.
report
    A dict that is filled with how the file was read: "route", "why" in a sentence, bytes and
    seconds.

Returns
-------
A Tensor for one bare array, a dict for `.npz` and `.safetensors`, for `.pt` what was saved.

Raises
------
penstock.Error
    And the built-in exception of the same kind: FileNotFoundError, ValueError, ...

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
verify
    Check recorded checksums when entries are loaded.

Returns
-------
Archive

Examples
--------
>>> with penstock.open("model.pt") as archive:
...     rows = archive["encoder.weight"][:128].load())";

inline constexpr const char* kSave = R"(Writes tensors to a file that NumPy, PyTorch and safetensors read.

The file appears whole or not at all.

Parameters
----------
obj
    A Tensor or an array of any library; dicts of them; for `.pt` nested dicts, lists, tuples,
    numbers and strings too.
path
    Where the file goes.
format
    "npy", "npz", "pt" or "safetensors"; by the extension of `path` unless given.
compress
    Deflate an `.npz`.
metadata
    Texts by their names, for `.safetensors`.
sync
    Wait until the disk has the file. Without it saving is faster, as numpy.save and torch.save
    are, but a machine that loses power may lose the file.)";

inline constexpr const char* kArchive = R"(Archive()
--

An opened file: its index, and none of its payload.

A mapping from names to lazy tensors, which load on request; `penstock.open` makes it. Any number
of threads may use it.)";

inline constexpr const char* kLazyTensor = R"(LazyTensor()
--

A tensor of an archive, or a slice of one, that is not loaded.

Slicing reads nothing; `load` reads only the bytes of the slice. It keeps the file open.)";

inline constexpr const char* kArchiveLoad = R"(Everything, nested as in the file.

Parameters
----------
device
    Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
mmap
    Map the file instead of reading it, which gives read-only tensors.
direct
    Read past the page cache with O_DIRECT (True) or through it (False). Unless given: past it for
    what it does not hold.
gds
    Fill a device by GPUDirect Storage. Unless given: as PENSTOCK_GDS says.
threads
    How many threads read; chosen by the machine unless given.
report
    A dict that is filled with how the file was read.

Returns
-------
What `penstock.load` gives for the file.)";

inline constexpr const char* kLazyTensorLoad = R"(The tensor, or the slice of it.

Parameters
----------
device
    Where the tensors go: "cpu", "cuda", "cuda:1", a Device.
mmap
    Map the file instead of reading it, which gives read-only tensors.
direct
    Read past the page cache with O_DIRECT (True) or through it (False). Unless given: past it for
    what it does not hold.
gds
    Fill a device by GPUDirect Storage. Unless given: as PENSTOCK_GDS says.
threads
    How many threads read; chosen by the machine unless given.
report
    A dict that is filled with how the file was read.

Returns
-------
Tensor)";

}  // namespace penstock::python::docs
