#pragma once

// `--json` of a command that takes several files: what is said of one, or a list of what is said of each, with those
// that cannot be read at its end.

#include <optional>

#include "cli/json/json.h"
#include "cli/tensor_files.h"

namespace penstock::cli {

class JsonOfFiles {
 public:
  /// Writes nothing unless it is wanted.
  JsonOfFiles(bool is_wanted, const ChosenFiles& chosen) : chosen_(chosen) {
    if (!is_wanted) return;
    out_.emplace();
    if (!chosen_.is_single) out_->begin_array();
  }

  explicit operator bool() const noexcept { return out_.has_value(); }
  JsonWriter& operator*() noexcept { return *out_; }

  /// Call once, behind the files that could be read.
  void finish() {
    if (!out_) return;
    for (const Refused& refused : chosen_.refused) write_json(*out_, error_json(refused.error, refused.path));
    if (!chosen_.is_single) out_->end();
    out_->finish();
  }

 private:
  const ChosenFiles& chosen_;
  std::optional<JsonWriter> out_;
};

}  // namespace penstock::cli
