#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/file/output.h"
#include "io/remote/location.h"
#include "io/remote/object.h"
#include "io/remote/part_sender.h"

namespace penstock::io::remote {

/// An object on its way into a store: up to one part (kLeastPart) by one request, more in parts, which several threads
/// send while the next ones are written. The object appears by `commit`, whole or not at all. Where that is not called,
/// or fails, the parts are taken back; those of a process that is killed are invisible, and stay until a rule of the
/// bucket ends them.
class Upload final : public Output {
 public:
  Upload(Location object, OutputOptions options);
  ~Upload() override;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// Waits where the store is slower. Throws what a part failed by; kCancelled.
  void write(std::span<const std::byte> bytes) override;
  std::uint64_t position() const noexcept override { return position_; }
  void prepare() override;
  void commit() override;

 private:
  void begin();
  void next_part();
  void send();

  const Location object_;
  const OutputOptions options_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> pending_;
  std::size_t number_ = 1;  // of the part that is being filled
  std::size_t size_ = kLeastPart;
  std::uint64_t expected_ = 0;
  std::string id_;  // of the upload; empty: nothing is to be taken back
  std::unique_ptr<PartSender> sender_;
  std::optional<std::vector<Part>> parts_;  // when all are there
};

}  // namespace penstock::io::remote
