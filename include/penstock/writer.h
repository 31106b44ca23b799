#pragma once

/// Writes a file piece by piece: an `.npy` that grows along its first dimension and may be larger than memory, or
/// `.npz`, `.safetensors` and `.pt` tensor by tensor, or a `.tar` sample by sample. The file, or the object in a store
/// (s3://, gs://, az://), appears whole or not at all.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/shape.h"
#include "penstock/tensor.h"
#include "penstock/text_view.h"
#include "penstock/value.h"

namespace penstock {

struct WriterOptions {
  /// "npy", "npz", "pt", "safetensors" or "tar". Empty: chosen by the extension of the path, as `save` does it.
  std::string format = {};
  /// `.npy` only (kUnsupported for others): go on behind the rows of the file that is there, or begin a new one where
  /// there is none. The file itself is appended to, so that nothing is copied. Its header tells of the new rows only
  /// when `finish` has written all of them: until then, and after a process that was killed, readers see the old rows.
  /// Objects in stores cannot be appended to: kUnsupported where there is one.
  Flag resume = false;
  /// `.npy` only: what the rows are. Unset: as the first rows are, or those of the file that is resumed. kDTypeMismatch
  /// and kShapeMismatch where that file has others.
  std::optional<DType> dtype = {};
  std::optional<Shape> row_shape = {};
  /// Deflate the members of an `.npz`; kUnsupported for other formats.
  Flag compress = false;
  /// `__metadata__` of safetensors; kUnsupported for other formats unless it is empty.
  std::optional<std::map<std::string, std::string>> metadata = {};
  /// Flush the file to the disk before it appears under its name, or before its header tells of new rows.
  Flag sync = true;
};

/// One file that is being written. What it holds is in memory for no longer than a call takes; of `.safetensors` up to
/// 4 MiB stay there, so that small files get a header that fits. What goes to a store is sent in parts, of which ten
/// are in memory. Elements are written in C order, tensors on a device are copied to the host, and a `requires_grad` is
/// not kept. A `.safetensors` gets the tensors whose bytes are no multiple of 8 behind all others, because torch reads
/// only what is aligned.
///
/// An error in an argument leaves the writer as it was, and it can go on. After an error of the system, such as a full
/// disk, it has dropped its file, and every further call says so (kInvalidArgument). In a forked child every call is
/// kInvalidArgument, because the file is its parent's. A move-only handle; one thread at a time. Errors name the path
/// and the tensor.
class Writer {
 public:
  /// No file: a writer that is closed, as one that was moved from is.
  Writer() noexcept;
  /// kUnsupported for URLs of http(s) and hf. Errors of the file system or the store, and
  /// kInvalidArgument for an extension that names no format. To resume: kUnsupported for an array in Fortran order or
  /// one without dimensions, for a file with other arrays behind the first, and while another writer appends to it; the
  /// errors of `open` for what is no whole `.npy`.
  explicit Writer(TextView path, const WriterOptions& options = {});
  Writer(Writer&& other) noexcept;
  Writer& operator=(Writer&& other) & noexcept;
  /// Discards the file where `finish` was not called.
  ~Writer();

  /// Adds the rows `rows[0]`, `rows[1]`, ... to the `.npy`, or to the tensor that `begin` began. The first rows of a
  /// `.npy` fix dtype and shape; kDTypeMismatch and kShapeMismatch for others later, and for a scalar, which has no
  /// rows.
  void append(const Tensor& rows);
  /// Adds one row: `append` of a block of one.
  void append_row(const Tensor& row);

  /// Adds a whole tensor to an `.npz`, `.safetensors`, `.pt` or `.tar` (kUnsupported for `.npy`). kInvalidArgument for
  /// a name that is there already, kUnsupported for a dtype that the format does not have.
  void add(TextView name, const Tensor& tensor);
  /// Begins a tensor that need not fit in memory: `append` gives its rows, shape[0] of them in all (kShapeMismatch
  /// for more, and when the next tensor or `finish` comes before). Otherwise as `add`. kShapeMismatch for a scalar.
  void begin(TextView name, const DType& dtype, const Shape& shape);

  /// Adds a sample to a `.tar` (kUnsupported for others): a dict by field, as `shards` gives it, or a tensor, the field
  /// "npy". "__key__" is its name; samples without one are numbered. A field whose last extension says no kind gets
  /// one by its value: npy for tensors, cls for integers, txt for texts, json for lists, dicts and other numbers, bin
  /// for bytes. kInvalidArgument for a key with a dot behind its last '/', or one that the sample before has too.
  void add_sample(const Value& sample);

  /// Completes the file, which then appears under its name, and closes the writer. kInvalidArgument for an `.npy` that
  /// got no rows and was not told what they are.
  void finish();
  /// Closes the writer without the file. A file that was there before stays as it was. May be called at any time.
  void discard() noexcept;

  /// Whether neither finish() nor discard() was called, and no error of the system came.
  bool is_open() const noexcept;
  /// Rows of the `.npy` so far, with those that it had before; else rows of the tensor that `begin` began last.
  std::int64_t rows() const noexcept;
  /// Bytes of elements that this writer was given.
  std::uint64_t nbytes() const noexcept;
  const std::string& path() const& noexcept;
  const std::string& path() const&& = delete;

 private:
  class Impl;
  Impl& impl() &;

  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
