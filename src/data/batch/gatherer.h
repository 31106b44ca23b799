#pragma once

// Copies of payload that lies in memory or in mapped files, into the slots of a batch.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/sample/copied_files.h"
#include "data/sample/work.h"
#include "io/copy/gather.h"

namespace penstock::data {

class HeldFile;

/// Collects rows of equal size and copies them together, because that is faster than one by one. Where one of them lies
/// in a mapped file, all are copied under one guard, because each guard costs a system call. Throws SampleError;
/// kCancelled as CallContext::check_cancelled. Not thread-safe.
class Gatherer {
 public:
  /// Of a row: the file that it is mapped from, or null for memory that stays, and the position of its sample.
  struct Origin {
    const HeldFile* file;
    std::size_t position;
  };
  /// What a thread keeps from batch to batch.
  struct Rows {
    std::vector<io::GatherRow> rows;
    std::vector<Origin> origins;
  };

  Gatherer(const CallContext& call, Rows& rows, CopiedFiles& files);

  void add(std::byte* to, const std::byte* from, std::uint64_t bytes, const Origin& origin) {
    if (rows_.size() == kRowsAtOnce || bytes != bytes_) {
      flush();
      bytes_ = bytes;
    }
    if (origin.file != nullptr && origin.file != last_file_) note(origin);
    rows_.push_back({to, from});
    origins_.push_back(origin);
  }
  /// `count` samples, of which `origin` is the first, whose rows of `bytes` follow each other on both sides.
  void add_run(std::byte* to, const std::byte* from, std::uint64_t bytes, std::size_t count, const Origin& origin);
  void flush();

 private:
  /// They are few, so that a stop of the loader is answered soon.
  static constexpr std::size_t kRowsAtOnce = 1024;

  [[noreturn]] void throw_first_bad() const;
  void note(const Origin& origin);

  const CallContext& call_;
  std::vector<io::GatherRow>& rows_;
  std::vector<Origin>& origins_;
  CopiedFiles& files_;
  std::uint64_t bytes_ = 0;
  const HeldFile* last_file_ = nullptr;
};

}  // namespace penstock::data
