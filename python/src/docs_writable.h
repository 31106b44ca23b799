#pragma once

// Docstrings of penstock.WritableArchive.

namespace penstock::python::docs {

inline constexpr const char* kWritableArchive = R"(WritableArchive()
--

A file whose tensors are changed in place. Made by `penstock.open(path, mode="r+")`.

    with penstock.open("model.safetensors", mode="r+") as model:
        numpy.asarray(model["bias"])[:] = 0

A mapping from names to tensors that are views of the file: what is written to them is written to
it. For tensors that lie in the file as their values are, in an `.npy` (which has `tensor` alone), a
`.safetensors` or a zipped `.pt`. The file is not changed whole or not at all: readers see each
change at once. The checksums of a `.pt` are compared when a tensor is first asked for. Those of
tensors that were changed are mended by `flush`, `close` and the end of the block, and are wrong
before. Tensors must not be written to after that.)";

inline constexpr const char* kWritableGet = R"(The tensor of a name, as a view of the file.

Parameters
----------
name
    The tensor's name.

Raises
------
KeyNotFoundError
    Where there is no such tensor.
UnsupportedError
    Where the file does not hold it as its values are: compressed, in the other byte order, not
    aligned.
ChecksumError
    Where its bytes do not have the checksum that the file records. With `verify=False` it is given
    all the same, and its checksum is never mended.)";

inline constexpr const char* kWritableFlush = R"(Mends the checksums and waits until everything is on the disk.)";

inline constexpr const char* kWritableClose =
    R"(`flush`, and the end of this archive: it gives no tensors after that.)";

}  // namespace penstock::python::docs
