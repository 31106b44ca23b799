#pragma once

// The output (io/file/output.h) that is an object in a store. object.h has its requests, part_sender.h sends large ones
// in parts.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/forks.h"
#include "io/file/front_output.h"
#include "io/file/output.h"
#include "io/remote/location.h"
#include "io/remote/object.h"
#include "io/remote/part_sender.h"

namespace penstock::io::remote {

/// An upload of which all parts are there.
struct PreparedParts {
  std::string id;
  std::vector<UploadedPart> parts;
};

/// An object on its way into a store: up to one part (kLeastPart) by one request, more in parts, which several threads
/// send while the next ones are written. The object appears by `commit`, whole or not at all. Where that is not called,
/// or fails, the parts are taken back; those of a process that is killed are invisible, and stay until a rule of the
/// bucket ends them. A process that was forked meanwhile has no part in it.
class Upload final : public FrontOutput {
 public:
  /// `changes_front`: replace_front will be called.
  Upload(Location object, OutputOptions options, bool changes_front = false);
  /// An upload that was handed over: there is only `commit` left to do.
  Upload(Location object, PreparedParts prepared, Existing existing);
  ~Upload() override;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// Waits where the store is slower. Throws what a part failed by; kCancelled.
  void write(std::span<const std::byte> bytes) override;
  std::uint64_t position() const noexcept override { return position_; }
  /// The first part, which waits for this, may become larger than the others by it.
  void replace_front(std::uint64_t size, std::span<const std::byte> front) override;
  void prepare() override;
  void commit() override;
  bool may_be_there() const noexcept override { return may_be_there_; }
  bool is_its_own() const noexcept override { return false; }
  /// Sends everything, and leaves it to whoever gets this, maybe in another process, to complete the object
  /// or to take the parts back: by an Upload made from it.
  PreparedParts hand_over();

 private:
  void begin();
  void next_part();
  void send();
  void require_own_process() const;

  const Location object_;
  const OutputOptions options_;
  const bool changes_front_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> pending_;
  std::vector<std::byte> first_;  // part, where its front changes
  std::size_t number_ = 1;        // of the part that is being filled
  std::size_t size_ = kLeastPart;
  std::uint64_t expected_ = 0;
  std::string id_;  // of the upload; empty: nothing is to be taken back
  std::unique_ptr<PartSender> sender_;
  std::optional<std::vector<UploadedPart>> parts_;  // when all are there
  bool may_be_there_ = false;
  const std::uint64_t forks_ = core::forks();  // the threads are those of one process
};

}  // namespace penstock::io::remote
