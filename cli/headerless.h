#pragma once

// Files without a header do not say what they hold, so the words of the command line do. All commands that read tensors
// take these words, and open what they read here.

#include <optional>
#include <string>

#include "cli/tensor_files.h"
#include "penstock/dataset.h"
#include "penstock/load.h"
#include "penstock/raw.h"

namespace penstock::cli {

struct Arguments;

/// What --dtype, --shape, --offset and --order say of every file that a command reads.
class Headerless {
 public:
  /// Adds the options to those of a command; what contradicts itself is wrong usage. `own_dtype` is that of a command
  /// whose --dtype means something else while none of the other three is given; null: --dtype alone is enough.
  void take(Arguments& arguments, const std::string* own_dtype = nullptr);

  /// Whether files have no header.
  bool is_said() const noexcept;
  /// What lies in input_source(word), or the one array of a file without a header. kInvalidArgument for a file that has
  /// one.
  Archive open(const std::string& word) const;
  Archive open(Source source) const;
  /// The same for one of several files, of which some may have a header: they are read by it.
  Archive open_either(const std::string& word) const;

 private:
  RawLayout layout() const;

  std::string type_;
  const std::string* own_type_ = nullptr;
  std::optional<Shape> shape_;
  std::optional<std::int64_t> offset_;
  std::optional<std::string> order_;
};

// Files without a header as what a loader takes, for the commands that run one.

/// The rows of one file that is named; of several files one sample each.
Dataset headerless_samples(const TensorFiles& files, const Headerless& headerless);

}  // namespace penstock::cli
