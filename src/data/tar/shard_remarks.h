#pragma once

// What the program is told of shards that are readable and yet not as they should be. Of one whose members all belong
// to no sample, most likely because they were packed under other names: where all shards are such, that is an error.
// Of one that ends behind a member without the zeros that end an archive, because samples may be missing.

#include <string>
#include <vector>

#include "format/tar/sample_name.h"

namespace penstock::data {

class ShardRemarks {
 public:
  /// A shard that was walked over to its end. `strays` are those of one without a sample; `has_end` is what
  /// TarSampleWalk says.
  void add(const std::string& path, bool has_samples, const format::TarStrays& strays, bool has_end);
  /// Some shard has a sample.
  void found_sample() noexcept { has_samples_ = true; }
  /// What is to be warned of now, each once: nothing before a sample was found.
  std::vector<std::string> take_warnings();
  /// For behind the last shard: kUnsupported where no shard had a sample and one had members.
  void require_samples() const;

 private:
  struct Sampleless {
    std::string path;
    std::string text;
  };
  std::vector<Sampleless> sampleless_;
  std::vector<std::string> cut_;  ///< whole warnings
  bool has_samples_ = false;
};

}  // namespace penstock::data
