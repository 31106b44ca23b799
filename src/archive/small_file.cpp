#include "archive/small_file.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "io/source/source.h"

namespace penstock::archive {
namespace {

class ReadAlready final : public ByteSource {
 public:
  ReadAlready(SourcePtr source, Buffer content) : source_(std::move(source)), content_(std::move(content)) {}

  const std::string& name() const noexcept override { return source_->name(); }
  std::uint64_t size() const noexcept override { return content_.size(); }
  int descriptor() const noexcept override { return source_->descriptor(); }
  std::optional<FileVersion> version() const noexcept override { return source_->version(); }
  Buffer memory() const override { return content_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    io::require_inside(*this, offset, into.size());
    if (!into.empty()) std::memcpy(into.data(), content_.data() + offset, into.size());
  }

 private:
  SourcePtr source_;
  Buffer content_;
};

}  // namespace

Buffer small_content(const ByteSource& source) {
  if (source.size() > kReadWhole || source.memory()) return {};
  Buffer content = Buffer::allocate(static_cast<std::size_t>(source.size()));
  source.read(0, {content.data(), content.size()});
  return content;
}

SourcePtr read_already(SourcePtr source, Buffer content) {
  return std::make_shared<ReadAlready>(std::move(source), std::move(content));
}

}  // namespace penstock::archive
