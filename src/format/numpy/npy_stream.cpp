// An `.npy` that grows. NumPy leaves room in the header for a longer count, so the header is written first, with the
// rows that are there, and once more when all rows are written. A file that is resumed is appended to in place: until
// its header tells of them, the new rows are bytes behind the array, which no reader looks at.

#include "format/numpy/npy_stream.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/system_error.h"
#include "format/numpy/npy_array.h"
#include "format/numpy/npy_growth.h"
#include "io/file/file_descriptor.h"
#include "io/file/front_output.h"
#include "io/file/output.h"
#include "io/file/write_at.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

class NewNpy final : public StreamWriter {
 public:
  explicit NewNpy(std::unique_ptr<io::FrontOutput> file) : file_(std::move(file)) {}

  void check(const std::string&, const DType& dtype, const Shape& shape) const override {
    make_npy_header(dtype, shape, false);
  }
  void begin(const std::string&, const DType& dtype, const Shape& shape) override {
    dtype_ = dtype;
    const std::string header = make_npy_header(dtype, shape, false);
    header_ = header.size();
    file_->write_text(header);
  }
  void write(std::span<const std::byte> bytes) override { file_->write(bytes); }
  void end(const Shape& shape) override {
    const std::string header = make_npy_header(dtype_, shape, false);
    file_->replace_front(header_, std::as_bytes(std::span(header)));
  }
  void finish() override { file_->commit(); }

 private:
  std::unique_ptr<io::FrontOutput> file_;
  DType dtype_;
  std::size_t header_ = 0;  ///< its bytes
};

class ResumedNpy final : public StreamWriter {
 public:
  ResumedNpy(io::FileDescriptor file, std::string_view path, bool sync)
      : file_(std::move(file)), path_(path), sync_(sync), owner_(::getpid()) {
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw Error(ErrorCode::kUnsupported, "another writer appends to this file; wait until it has finished", {path_});
    }
    read_header();
  }
  ResumedNpy(const ResumedNpy&) = delete;
  ResumedNpy& operator=(const ResumedNpy&) = delete;
  /// What was appended and not told of is cut off. A process that was forked has no part in it.
  ~ResumedNpy() override {
    if (owner_ != ::getpid()) return;
    [[maybe_unused]] const int cut = grew_ ? ::ftruncate(file_.get(), static_cast<off_t>(begin_)) : 0;
    ::flock(file_.get(), LOCK_UN);  // a child has the descriptor too, and would keep the lock
  }

  void check(const std::string&, const DType&, const Shape&) const override {}
  void begin(const std::string&, const DType&, const Shape&) override {}
  void write(std::span<const std::byte> bytes) override {
    const std::size_t width = header_.byte_swapped ? header_.dtype.swap_width() : 1;
    if (width <= 1) return append(bytes);
    std::vector<std::byte> swapped;
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kSwapPieces * width));
      swapped.assign(piece.begin(), piece.end());
      ops::swap_bytes(swapped, width);
      append(swapped);
      bytes = bytes.subspan(piece.size());
    }
  }
  void end(const Shape& shape) override {
    const std::string grown = with_npy_rows(text_, shape[0], path_);
    if (sync_ && ::fdatasync(file_.get()) != 0) fail(errno, "cannot flush the rows to the disk");
    // From here on the header may tell of the new rows, so they stay.
    if (const int error = write_front(grown); error != 0) {
      grew_ = write_front(text_) == 0;
      fail(error, "cannot write the header");
    }
    grew_ = false;
  }
  void finish() override {
    if (sync_ && ::fsync(file_.get()) != 0) {
      fail(errno, "the file is written, but it cannot be flushed to the disk");
    }
  }
  std::optional<Rows> present() const override { return Rows{header_.dtype, header_.shape, npy_row_limit(text_)}; }

 private:
  static constexpr std::size_t kSwapPieces = 16 * 1024;

  void read_header() {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) fail(errno, "cannot look at the file");
    if (S_ISDIR(status.st_mode)) {
      throw Error(ErrorCode::kIsDirectory, "this is a folder where a file is to be resumed; name a file in it",
                  {path_});
    }
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::kUnsupported, "only a plain file can be resumed; name another path", {path_});
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto head = [this](std::span<std::byte> out) { return read_at(0, out); };
    std::array<std::byte, kUsualNpyHeader> start;
    const std::size_t count = head(start);
    header_ = read_npy_header(std::span<const std::byte>(start).first(count), head, size, path_);
    text_.resize(header_.size);
    head(std::as_writable_bytes(std::span(text_)));
    begin_ = end_ = header_.size + header_.payload;
    require_growable();
    std::array<std::byte, kNpyPrefix> behind;
    if (is_npy(std::span<const std::byte>(behind).first(read_at(end_, behind)))) {
      throw Error(ErrorCode::kUnsupported,
                  "another array follows the first one in this file, where rows would go: save the first one alone",
                  {path_, end_});
    }
  }

  void require_growable() const {
    if (header_.has_objects) {
      throw Error(ErrorCode::kUnsafe, "the array holds Python objects, stored as a pickle: rows cannot be added to it",
                  {path_});
    }
    if (header_.shape.rank() == 0) {
      throw Error(ErrorCode::kUnsupported, "the array is a scalar, which has no rows to add to", {path_});
    }
    const std::span<const std::int64_t> row = header_.shape.dims().subspan(1);
    const bool is_flat = std::all_of(row.begin(), row.end(), [](std::int64_t dim) { return dim == 1; });
    if (header_.fortran_order && !is_flat) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("the array of shape {} is in Fortran order, whose rows do not lie together: load it and "
                               "save it in C order first",
                               header_.shape.to_string()),
                  {path_});
    }
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t count =
          ::pread(file_.get(), out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
      if (count == 0) break;
      if (count < 0 && errno != EINTR) fail(errno, "cannot read the file");
      if (count > 0) filled += static_cast<std::size_t>(count);
    }
    return filled;
  }

  void append(std::span<const std::byte> bytes) {
    // What a writer that was killed left behind the array may reach farther than the rows to come.
    if (!std::exchange(grew_, true) && ::ftruncate(file_.get(), static_cast<off_t>(begin_)) != 0) {
      fail(errno, "cannot cut off what lies behind the array");
    }
    if (const int error = io::write_at(file_.get(), end_, bytes); error != 0) fail(error, "cannot write the file");
    end_ += bytes.size();
  }

  int write_front(std::string_view header) { return io::write_at(file_.get(), 0, std::as_bytes(std::span(header))); }

  [[noreturn]] void fail(int error, std::string_view what) const { core::throw_errno(error, what, {.path = path_}); }

  io::FileDescriptor file_;
  std::string path_;
  bool sync_;
  pid_t owner_;
  NpyHeader header_;
  std::string text_;         ///< the header's bytes
  std::uint64_t begin_ = 0;  ///< where the first new row goes
  std::uint64_t end_ = 0;
  bool grew_ = false;  ///< there is something to cut off
};

}  // namespace

std::unique_ptr<StreamWriter> stream_npy(std::string_view path, const WriterOptions& options) {
  io::OutputOptions how{.sync = options.sync};
  if (!options.resume) return std::make_unique<NewNpy>(io::open_front_output(path, how));
  how.existing = io::Existing::kRefuse;  // somebody may write the object meanwhile
  io::FileDescriptor file = io::open_to_append(path);
  if (file) return std::make_unique<ResumedNpy>(std::move(file), path, options.sync);
  return std::make_unique<NewNpy>(io::open_front_output(path, how));
}

}  // namespace penstock::format
