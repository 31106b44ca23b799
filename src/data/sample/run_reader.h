#pragma once

// Reads of payload from files that are not mapped, into the slots of a batch.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/sample/copied_files.h"
#include "data/sample/file_runs.h"
#include "data/sample/sample.h"
#include "data/sample/work.h"

namespace penstock::data {

/// Collects runs of bytes and reads them. Samples that follow each other in the file and in the batch take one read.
/// Servers are asked for all runs at once (read_at_once). Throws SampleError; kCancelled as
/// CallContext::check_cancelled. Not thread-safe.
class RunReader {
 public:
  /// `runs`: what a thread keeps from batch to batch.
  RunReader(const CallContext& call, Figures& figures, std::vector<FileRun>& runs, CopiedFiles& files)
      : call_(call), figures_(figures), runs_(runs), files_(files) {
    runs_.clear();
  }

  void add(const InFile& from, std::byte* to, std::uint64_t bytes, std::size_t position);
  void read();

 private:
  void read_local(const FileRun& run);

  const CallContext& call_;
  Figures& figures_;
  std::vector<FileRun>& runs_;
  CopiedFiles& files_;
  const HeldFile* last_ = nullptr;  ///< the file that was asked what its reads cost
  std::uint64_t most_ = 0;          ///< bytes of one read of it
};

}  // namespace penstock::data
