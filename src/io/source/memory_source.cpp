// Bytes in memory as a source. The memory may be a mapping of a file, which another program can shorten, so reads are
// guarded.

#include <string>
#include <string_view>
#include <utility>

#include "core/shown_url.h"
#include "io/copy/guarded.h"
#include "io/source/source.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock {
namespace {

class MemorySource final : public ByteSource {
 public:
  MemorySource(Buffer bytes, std::string_view name) : bytes_(std::move(bytes)), name_(core::shown_path(name)) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  Buffer memory() const override { return bytes_; }

  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    io::require_inside(*this, offset, into.size());
    // The buffer may be a mapping of a file that somebody cuts.
    io::guarded_copy(into.data(), bytes_.data() + offset, into.size(), name_);
  }

 private:
  Buffer bytes_;
  std::string name_;
};

}  // namespace

Source::Source() {
  static const std::shared_ptr<const ByteSource> nothing = std::make_shared<MemorySource>(Buffer(), "<no file>");
  impl_ = nothing;
}

Source memory_source(Buffer bytes, std::string name) {
  if (bytes.device() != Device{}) {
    throw Error(ErrorCode::kDeviceMismatch, "a memory source needs host memory; copy the bytes to the host first",
                {.path = std::move(name)});
  }
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

}  // namespace penstock
