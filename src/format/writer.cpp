// Checks what a program gives to a Writer, and hands the elements to the format (stream_writer.h) in C order and in
// pieces. Arguments are checked before anything is written, so that a wrong one changes nothing. After an error while
// writing, nobody knows what the file holds, and it is dropped.

#include "penstock/writer.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/checked.h"
#include "core/counted.h"
#include "core/forks.h"
#include "core/format.h"
#include "format/format.h"
#include "format/stream_writer.h"
#include "penstock/error.h"
#include "penstock/save.h"

namespace penstock {
namespace {

/// What does not lie in order is copied, about this much at a time.
constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;

/// Sizes that a program declares: kInvalidArgument, and kLimit for more bytes than there can be.
void require_sizes(const Shape& shape, const DType& dtype) {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 0; })) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the shape {} has a negative size; every size must be known", shape.to_string()));
  }
  try {
    core::checked_mul<std::uint64_t>(static_cast<std::uint64_t>(shape.numel()), dtype.itemsize(), "the tensor");
  } catch (const Error&) {
    throw Error(ErrorCode::kLimit, core::format("the shape {} of {} takes more bytes than a file can have",
                                                shape.to_string(), dtype.name()));
  }
}

[[noreturn]] void throw_closed() { throw Error(ErrorCode::kInvalidArgument, "the writer is closed; begin a new one"); }

Shape with_rows(const Shape& row, std::int64_t rows) { return row.prepend(rows); }

std::string shape_of_rows(const Shape& row) {
  std::string text = core::format("(n, {})", fmt::join(row.dims(), ", "));
  return row.rank() == 0 ? "(n,)" : text;
}

}  // namespace

class Writer::Impl {
 public:
  Impl(std::string_view path, const WriterOptions& options);

  void append(const Tensor& rows);
  void append_row(const Tensor& row);
  void add(std::string_view name, const Tensor& tensor);
  void add_sample(const Value& sample);
  void begin(std::string_view name, const DType& dtype, const Shape& shape);
  void finish();
  void discard() noexcept {
    stream_.reset();
    current_.reset();
  }

  bool is_open() const noexcept { return stream_ != nullptr; }
  std::int64_t rows() const noexcept { return rows_; }
  std::uint64_t nbytes() const noexcept { return nbytes_; }
  const std::string& path() const noexcept { return path_; }

 private:
  /// The tensor that rows go to.
  struct Current {
    std::string name;
    DType dtype;
    Shape row;
    std::int64_t limit;  ///< of rows; those of a tensor that was begun must all come
  };

  template <class Act>
  void guarded(const std::string& tensor, Act act);
  template <class Act>
  void writing(Act act);
  void require_open() const;
  void begin_rows(const DType& dtype, const Shape& row);
  void require_fits(const Tensor& rows, const char* what) const;
  void require_named(const std::string& name) const;
  void end_current();
  void write(const Tensor& tensor);
  void write_rows(const Tensor& rows);

  std::string path_;
  const format::Format* format_;
  std::unique_ptr<format::StreamWriter> stream_;
  std::optional<DType> declared_dtype_;
  std::optional<Shape> declared_row_;
  std::optional<Current> current_;
  std::set<std::string, std::less<>> names_;
  std::int64_t rows_ = 0;
  std::uint64_t nbytes_ = 0;
  std::string failure_;
  const std::uint64_t forks_ = core::forks();
};

Writer::Impl::Impl(std::string_view path, const WriterOptions& options)
    : path_(path), declared_dtype_(options.dtype), declared_row_(options.row_shape) {
  guarded({}, [&] {
    format_ = &format::format_to_write(
        path, {.format = options.format, .compress = options.compress, .metadata = options.metadata});
    if (format_->stream == nullptr) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("{} is written as a whole, by save, and not piece by piece", format_->name));
    }
    if (!format_->is_one_tensor && (options.resume || options.dtype || options.row_shape)) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("{} of a .{} is not possible: only an .npy grows by rows",
                               options.resume ? "resume" : "a dtype or row shape", format_->name));
    }
    if (declared_row_) require_sizes(*declared_row_, declared_dtype_.value_or(DType::uint8));
    stream_ = format_->stream(path_, options);
    if (const auto present = stream_->present()) {
      current_ = Current{{}, present->dtype, present->shape.drop_front(1), present->limit};
      rows_ = present->shape[0];
      if (declared_dtype_ && *declared_dtype_ != current_->dtype) {
        throw Error(ErrorCode::kDTypeMismatch, core::format("the file has rows of {}, and {} was declared",
                                                            current_->dtype.name(), declared_dtype_->name()));
      }
      if (declared_row_ && *declared_row_ != current_->row) {
        throw Error(ErrorCode::kShapeMismatch, core::format("the file has rows of shape {}, and {} was declared",
                                                            current_->row.to_string(), declared_row_->to_string()));
      }
    } else if (declared_dtype_ && declared_row_) {
      begin_rows(*declared_dtype_, *declared_row_);
    }
  });
}

/// Errors get the path, and the tensor where there is one.
template <class Act>
void Writer::Impl::guarded(const std::string& tensor, Act act) {
  try {
    act();
  } catch (const Error& error) {
    throw error.within({.path = path_, .tensor = tensor});
  }
}

/// Where `act` fails, the file is dropped, and its space is free at once.
template <class Act>
void Writer::Impl::writing(Act act) {
  try {
    act();
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    failure_ = ours != nullptr ? ours->message() : error.what();
    discard();
    throw;
  }
}

void Writer::Impl::require_open() const {
  if (core::forks() != forks_) {
    // Both processes would write at one place of one file.
    throw Error(ErrorCode::kInvalidArgument, "the writer was made before this process was forked; begin another one");
  }
  if (stream_) return;
  if (!failure_.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the writer dropped its file after an error ({}); begin a new one", failure_));
  }
  throw_closed();
}

void Writer::Impl::begin_rows(const DType& dtype, const Shape& row) {
  stream_->check({}, dtype, with_rows(row, 0));
  writing([&] { stream_->begin({}, dtype, with_rows(row, 0)); });
  current_ = Current{{}, dtype, row, std::numeric_limits<std::int64_t>::max()};
}

void Writer::Impl::require_fits(const Tensor& rows, const char* what) const {
  const Shape row = rows.shape().drop_front(1);
  const DType& dtype = current_ ? current_->dtype : declared_dtype_.value_or(rows.dtype());
  const Shape& expected = current_ ? current_->row : declared_row_.value_or(row);
  if (rows.dtype() != dtype) {
    throw Error(ErrorCode::kDTypeMismatch, core::format("found {} of {}, expected {}: convert them first", what,
                                                        rows.dtype().name(), dtype.name()));
  }
  if (row != expected) {
    const bool one = rows.shape() == expected;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("found {} of shape {}, expected {}{}", what, rows.shape().to_string(),
                             shape_of_rows(expected), one ? ": append_row adds a single row" : ""));
  }
  const std::int64_t limit = current_ ? current_->limit : std::numeric_limits<std::int64_t>::max();
  if (rows.shape()[0] <= limit - rows_) return;
  throw Error(
      ErrorCode::kShapeMismatch,
      format_->is_one_tensor
          ? core::format("the file's header has no room for more than {} rows: load the array and save it anew", limit)
          : core::format("{} and {} are given, where {} were declared", core::counted(rows_, "row"), rows.shape()[0],
                         limit));
}

void Writer::Impl::append(const Tensor& rows) {
  guarded(current_ ? current_->name : std::string(), [&] {
    require_open();
    if (!rows.defined()) throw Error(ErrorCode::kInvalidArgument, "the tensor is undefined");
    if (rows.rank() == 0) {
      throw Error(ErrorCode::kShapeMismatch,
                  "found a scalar, which has no rows: append takes a block of rows, and append_row a single one");
    }
    write_rows(rows);
  });
}

void Writer::Impl::append_row(const Tensor& row) {
  guarded(current_ ? current_->name : std::string(), [&] {
    require_open();
    if (!row.defined()) throw Error(ErrorCode::kInvalidArgument, "the tensor is undefined");
    if (current_ && row.shape() != current_->row) {
      throw Error(
          ErrorCode::kShapeMismatch,
          core::format("found a row of shape {}, expected {}{}", row.shape().to_string(), current_->row.to_string(),
                       row.rank() == current_->row.rank() + 1 ? ": append adds a block of rows" : ""));
    }
    write_rows(row.contiguous().reshape(with_rows(row.shape(), 1)));
  });
}

void Writer::Impl::write_rows(const Tensor& rows) {
  if (!current_ && !format_->is_one_tensor) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("no tensor was begun: begin(name, dtype, shape) and append its rows, or add a whole "
                             "tensor; only an .npy is rows alone"));
  }
  require_fits(rows, "rows");
  if (!current_) begin_rows(rows.dtype(), rows.shape().drop_front(1));
  write(rows);
  rows_ += rows.shape()[0];
}

void Writer::Impl::require_named(const std::string& name) const {
  if (format_->is_one_tensor) {
    throw Error(ErrorCode::kUnsupported, "an .npy holds one array without a name: append rows to it");
  }
  if (names_.contains(name)) {
    throw Error(ErrorCode::kInvalidArgument, "a tensor of this name was written already; rename one");
  }
}

void Writer::Impl::begin(std::string_view given, const DType& dtype, const Shape& shape) {
  const std::string name(given);
  guarded(name, [&] {
    require_open();
    require_named(name);
    if (shape.rank() == 0) {
      throw Error(ErrorCode::kShapeMismatch, "a scalar has no rows to append: add it as a whole");
    }
    require_sizes(shape, dtype);
    stream_->check(name, dtype, shape);
    end_current();
    writing([&] { stream_->begin(name, dtype, shape); });
    names_.insert(name);
    current_ = Current{name, dtype, shape.drop_front(1), shape[0]};
    rows_ = 0;
  });
}

void Writer::Impl::add(std::string_view given, const Tensor& tensor) {
  const std::string name(given);
  guarded(name, [&] {
    require_open();
    require_named(name);
    if (!tensor.defined()) throw Error(ErrorCode::kInvalidArgument, "the tensor is undefined");
    stream_->check(name, tensor.dtype(), tensor.shape());
    end_current();
    writing([&] { stream_->begin(name, tensor.dtype(), tensor.shape()); });
    names_.insert(name);
    write(tensor);
    writing([&] { stream_->end(tensor.shape()); });
  });
}

void Writer::Impl::add_sample(const Value& sample) {
  guarded({}, [&] {
    require_open();
    if (!format_->holds_samples) {
      throw Error(
          ErrorCode::kUnsupported,
          core::format("a .{} holds tensors and no samples; write a .tar, or add tensors by name", format_->name));
    }
    end_current();
    writing(stream_->sample(sample));
  });
}

void Writer::Impl::end_current() {
  if (!current_) return;
  if (!format_->is_one_tensor && rows_ != current_->limit) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("the tensor has {} of the {} rows that were declared: append the others first", rows_,
                             current_->limit),
                {.tensor = current_->name});
  }
  writing([&] { stream_->end(with_rows(current_->row, rows_)); });
  current_.reset();
}

void Writer::Impl::write(const Tensor& tensor) {
  writing([&] {
    if (tensor.is_contiguous() || tensor.rank() == 0) {
      const Tensor host = tensor.to(Device{}).contiguous();
      stream_->write({host.data(), host.nbytes()});
    } else if (tensor.numel() != 0) {
      const std::int64_t rows = tensor.shape()[0];
      const std::uint64_t row_bytes = std::max<std::uint64_t>(1, tensor.nbytes() / static_cast<std::uint64_t>(rows));
      const auto step = static_cast<std::int64_t>(std::max<std::uint64_t>(1, kPiece / row_bytes));
      for (std::int64_t row = 0; row < rows; row += std::min(step, rows - row)) {
        const Tensor part = tensor.slice(0, row, row + std::min(step, rows - row)).to(Device{}).contiguous();
        stream_->write({part.data(), part.nbytes()});
      }
    }
    nbytes_ += tensor.nbytes();
  });
}

void Writer::Impl::finish() {
  guarded({}, [&] {
    require_open();
    if (format_->is_one_tensor && !current_) {
      throw Error(ErrorCode::kInvalidArgument,
                  "no rows were appended, so their type is not known: declare dtype and row shape for an array "
                  "without rows");
    }
    end_current();
    writing([&] { stream_->finish(); });
    stream_.reset();
  });
}

Writer::Writer() noexcept = default;
Writer::Writer(TextView path, const WriterOptions& options) : impl_(std::make_unique<Impl>(path, options)) {}
Writer::Writer(Writer&& other) noexcept = default;
Writer& Writer::operator=(Writer&& other) & noexcept = default;
Writer::~Writer() = default;

Writer::Impl& Writer::impl() & {
  if (!impl_) throw_closed();
  return *impl_;
}

void Writer::append(const Tensor& rows) { impl().append(rows); }
void Writer::append_row(const Tensor& row) { impl().append_row(row); }
void Writer::add(TextView name, const Tensor& tensor) { impl().add(name, tensor); }
void Writer::add_sample(const Value& sample) { impl().add_sample(sample); }
void Writer::begin(TextView name, const DType& dtype, const Shape& shape) { impl().begin(name, dtype, shape); }
void Writer::finish() { impl().finish(); }
void Writer::discard() noexcept {
  if (impl_) impl_->discard();
}
bool Writer::is_open() const noexcept { return impl_ && impl_->is_open(); }
std::int64_t Writer::rows() const noexcept { return impl_ ? impl_->rows() : 0; }
std::uint64_t Writer::nbytes() const noexcept { return impl_ ? impl_->nbytes() : 0; }
const std::string& Writer::path() const& noexcept {
  static const std::string none;
  return impl_ ? impl_->path() : none;
}

}  // namespace penstock
