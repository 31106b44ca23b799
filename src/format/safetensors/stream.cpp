// A `.safetensors`, tensor by tensor. Its header comes first and lists everything, so it cannot be written first. The
// first bytes of the data are held in memory, and a file that stays that small gets the header that it needs. When
// there are more, room for a header is left at the start of the file. Only where the header outgrows that, the data is
// moved once more at the end.
//
// The format has no gaps, and torch reads a tensor only where it lies aligned. So tensors that would put the next one
// off are kept in a file of their own and follow behind all others, those with wide elements first.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "format/safetensors/header.h"
#include "format/safetensors/safetensors.h"
#include "io/file/atomic_file.h"
#include "io/file/front_output.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// The widest element of the format.
constexpr std::uint64_t kAlignment = 8;
constexpr std::size_t kHeld = std::size_t{4} << 20;
/// The file's first bytes, for the header and its length, where more than kHeld follows: some 600 tensors.
constexpr std::size_t kReserved = 64 * 1024;
constexpr std::size_t kPiece = std::size_t{1} << 20;

class SafetensorsStream final : public StreamWriter {
 public:
  SafetensorsStream(std::string_view path, const WriterOptions& options)
      : file_(io::open_front_output(path, {.sync = options.sync})),
        scratch_(std::filesystem::absolute(io::scratch_path(path))),
        metadata_(options.metadata) {
    make_safetensors_header({}, metadata_);  // whose texts are checked here
  }

  void check(const std::string& name, const DType& dtype, const Shape& shape) const override {
    shape_of_values(shape, require_safetensors(name, dtype, shape.rank()));
  }

  void begin(const std::string& name, const DType& dtype, const Shape& shape) override {
    const SafetensorsDType& row = require_safetensors(name, dtype, shape.rank());
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * dtype.itemsize();
    is_odd_ = bytes % kAlignment != 0;
    std::vector<SafetensorsTensor>& list = is_odd_ ? odd_ : even_;
    const std::uint64_t begin = list.empty() ? 0 : list.back().end;
    list.push_back({.name = name,
                    .dtype = &row,
                    .foreign_dtype = {},
                    .shape = shape_of_values(shape, row),
                    .begin = begin,
                    .end = core::checked_add<std::uint64_t>(begin, bytes, "data")});
  }

  void write(std::span<const std::byte> bytes) override {
    if (is_odd_) {
      if (!odd_file_) odd_file_.emplace(scratch_.string(), false);
      odd_file_->write(bytes);
    } else if (held_ && held_->size() + bytes.size() <= kHeld) {
      held_->insert(held_->end(), bytes.begin(), bytes.end());
    } else {
      if (held_) spill();
      file_->write(bytes);
    }
  }

  void end(const Shape&) override {}

  void finish() override {
    std::stable_sort(odd_.begin(), odd_.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
      return a.dtype->bits > b.dtype->bits;
    });
    std::string header = make_safetensors_header(placed(), metadata_);
    if (held_) {
      write_header(header);
      file_->write(*held_);
    } else if (header.size() + sizeof(std::uint64_t) <= kReserved) {
      header.resize(kReserved - sizeof(std::uint64_t), ' ');
    }
    append_odd();
    if (!held_) put_in_front(header);
    file_->commit();
  }

 private:
  /// All tensors, with their places in the file.
  std::vector<SafetensorsTensor> placed() const {
    std::vector<SafetensorsTensor> out = even_;
    for (SafetensorsTensor tensor : odd_) {
      const std::uint64_t bytes = tensor.end - tensor.begin;
      tensor.begin = out.empty() ? 0 : out.back().end;
      tensor.end = core::checked_add<std::uint64_t>(tensor.begin, bytes, "data");
      out.push_back(std::move(tensor));
    }
    return out;
  }

  void spill() {
    file_->write(std::vector<std::byte>(kReserved));
    file_->write(*held_);
    held_.reset();
  }

  void write_header(const std::string& header) {
    const std::uint64_t length = header.size();
    file_->write(std::as_bytes(std::span(&length, 1)));
    file_->write_text(header);
  }

  void append_odd() {
    std::vector<std::byte> piece;
    for (const SafetensorsTensor& tensor : odd_) {
      for (std::uint64_t at = tensor.begin; at < tensor.end; at += piece.size()) {
        piece.resize(std::min<std::uint64_t>(kPiece, tensor.end - at));
        odd_file_->read_back(at, piece);
        file_->write(piece);
      }
    }
  }

  /// Over the reserved room, from which the data moves away where it does not do.
  void put_in_front(const std::string& header) {
    const std::uint64_t length = header.size();
    std::string front(sizeof length, '\0');
    std::memcpy(front.data(), &length, sizeof length);
    front += header;
    file_->replace_front(kReserved, std::as_bytes(std::span(front)));
  }

  std::unique_ptr<io::FrontOutput> file_;
  std::filesystem::path scratch_;  ///< whole: the program may have another working folder when it is needed
  std::optional<std::map<std::string, std::string>> metadata_;
  std::vector<SafetensorsTensor> even_;
  std::vector<SafetensorsTensor> odd_;      ///< whose places are those in `odd_file_`
  std::optional<io::AtomicFile> odd_file_;  ///< never committed
  std::optional<std::vector<std::byte>> held_{std::in_place};
  bool is_odd_ = false;
};

}  // namespace

std::unique_ptr<StreamWriter> stream_safetensors(std::string_view path, const WriterOptions& options) {
  return std::make_unique<SafetensorsStream>(path, options);
}

}  // namespace penstock::format
