#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/forks.h"
#include "io/file/output.h"

namespace penstock::io {

/// Outputs of which the last one tells of the others, or makes them whole: an index behind its shards. Up to that one,
/// those that have their names are taken back when this goes. Behind it nothing is, nor where nobody knows whether it
/// has come: what it may name must stay. A forked child takes nothing back.
class OutputSet {
 public:
  OutputSet() = default;
  ~OutputSet();
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;

  /// Commits one that has a name of its own.
  void commit(std::string path, Output& output);
  /// Commits the last one.
  void commit_last(Output& output);

 private:
  std::vector<std::string> committed_;
  const std::uint64_t forks_ = core::forks();
};

}  // namespace penstock::io
