// An `.npz`, member by member. Its CRC follows each member, as it is not known before.

#include <memory>

#include "format/numpy/npy_header.h"
#include "format/numpy/npy_stream.h"
#include "format/zip/reader.h"
#include "format/zip/writer.h"
#include "io/file/output.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

class NpzStream final : public StreamWriter {
 public:
  NpzStream(std::string_view path, const WriterOptions& options)
      : file_(io::open_output(path, {.sync = options.sync})), compress_(options.compress) {}

  void check(const std::string& name, const DType& dtype, const Shape& shape) const override {
    zip_.check(name + kSuffix);
    make_npy_header(dtype, shape, false);
  }
  void begin(const std::string& name, const DType& dtype, const Shape& shape) override {
    const std::string header = make_npy_header(dtype, shape, false);
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * dtype.itemsize();
    zip_.begin(name + kSuffix, header.size() + bytes, compress_);
    zip_.write(std::as_bytes(std::span(header)));
  }
  void write(std::span<const std::byte> bytes) override { zip_.write(bytes); }
  void end(const Shape&) override { zip_.end(); }
  void finish() override {
    zip_.finish();
    file_->commit();
  }

 private:
  static constexpr const char* kSuffix = ".npy";

  std::unique_ptr<io::Output> file_;
  ZipWriter zip_{*file_, ZipStyle::kNumpy};
  bool compress_;
};

}  // namespace

std::unique_ptr<StreamWriter> stream_npz(std::string_view path, const WriterOptions& options) {
  return std::make_unique<NpzStream>(path, options);
}

}  // namespace penstock::format
