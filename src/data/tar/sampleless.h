#pragma once

// Shards whose members all belong to no sample, most likely because they were packed under other names. Where one of
// several is such, a warning names it; where all are, that is an error.

#include <string>
#include <vector>

#include "format/tar/sample_name.h"

namespace penstock::data {

class Sampleless {
 public:
  /// A shard that was walked over to its end. `strays` are those of one without a sample.
  void add(const std::string& path, bool has_samples, const format::TarStrays& strays);
  /// Some shard has a sample.
  void found_sample() noexcept { has_samples_ = true; }
  /// What is to be warned of now, each once: nothing before a sample was found.
  std::vector<std::string> take_warnings();
  /// For behind the last shard: kUnsupported where no shard had a sample and one had members.
  void require_samples() const;

 private:
  struct Found {
    std::string path;
    std::string text;
  };
  std::vector<Found> found_;
  bool has_samples_ = false;
};

}  // namespace penstock::data
