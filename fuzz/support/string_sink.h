#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/file/atomic_file.h"

namespace penstock::fuzz {

class StringSink final : public io::ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::uint64_t position() const noexcept override { return text.size(); }

  std::string text;
};

}  // namespace penstock::fuzz
