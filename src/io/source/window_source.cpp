#include "io/source/window_source.h"

#include <memory>
#include <utility>

#include "io/source/own_read.h"
#include "io/source/source.h"

namespace penstock::io {
namespace {

class WindowSource final : public ByteSource {
 public:
  WindowSource(Source of, std::uint64_t offset, std::uint64_t length)
      : of_(std::move(of)), offset_(offset), length_(length) {
    require_inside(*of_, offset, length);
  }

  const std::string& name() const noexcept override { return of_.name(); }
  std::uint64_t size() const noexcept override { return length_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    require_inside(*this, offset, into.size());
    of_.read(offset_ + offset, into);
  }
  Buffer memory() const override {
    const Buffer all = memory_of(*of_);
    return all ? all.part(static_cast<std::size_t>(offset_), static_cast<std::size_t>(length_)) : Buffer();
  }
  WindowPlace place() const noexcept { return {&of_, offset_}; }

 private:
  Source of_;
  std::uint64_t offset_;
  std::uint64_t length_;
};

}  // namespace

Source window_of(Source of, std::uint64_t offset, std::uint64_t length) {
  return std::make_shared<WindowSource>(std::move(of), offset, length);
}

WindowPlace window_place(const ByteSource& source) noexcept {
  const auto* const window = dynamic_cast<const WindowSource*>(&source);
  return window == nullptr ? WindowPlace{} : window->place();
}

}  // namespace penstock::io
