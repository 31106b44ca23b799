#pragma once

// The front_output.h of files: AtomicFile, of which the front is written last.

#include <cstdint>
#include <span>
#include <string>

#include "io/file/atomic_file.h"
#include "io/file/front_output.h"

namespace penstock::io {

/// A file whose first bytes are known last. Where they become more, the others are moved in the file.
class FrontFile final : public FrontOutput {
 public:
  /// As AtomicFile.
  FrontFile(std::string path, bool sync) : file_(std::move(path), sync) {}

  void write(std::span<const std::byte> bytes) override { file_.write(bytes); }
  std::uint64_t position() const noexcept override { return file_.position() + grown_; }
  void replace_front(std::uint64_t size, std::span<const std::byte> front) override;
  void prepare() override { file_.prepare(); }
  void commit() override { file_.commit(); }
  bool may_be_there() const noexcept override { return file_.may_be_there(); }
  bool is_its_own() const noexcept override { return file_.is_its_own(); }

 private:
  AtomicFile file_;
  std::uint64_t grown_ = 0;
};

}  // namespace penstock::io
