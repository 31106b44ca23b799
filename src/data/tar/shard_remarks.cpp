#include "data/tar/shard_remarks.h"

#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "penstock/error.h"

namespace penstock::data {

void ShardRemarks::add(const std::string& path, bool has_samples, const format::TarStrays& strays, bool has_end) {
  has_samples_ = has_samples_ || has_samples;
  const std::string shown = core::shown_path(path);
  if (!has_end) {
    cut_.push_back(core::format(
        "{}: the shard has no end (blocks of zeros) behind its last member: it was cut, or the program that writes it "
        "has not ended, so that samples may be missing, and parts of the last one; copy or write it again",
        shown));
  }
  if (!has_samples && !strays.empty()) sampleless_.push_back({shown, strays.to_string()});
}

std::vector<std::string> ShardRemarks::take_warnings() {
  if (!has_samples_) return {};
  std::vector<std::string> out = std::exchange(cut_, {});
  for (const Sampleless& found : sampleless_) out.push_back(core::format("{}: the shard {}", found.path, found.text));
  sampleless_.clear();
  return out;
}

void ShardRemarks::require_samples() const {
  if (has_samples_ || sampleless_.empty()) return;
  const std::size_t more = sampleless_.size() - 1;
  const std::string others =
      more == 0 ? std::string()
                : core::format(" ({} like it)", core::counted(more, "more shard is", "more shards are"));
  throw Error(ErrorCode::kUnsupported, core::format("the shard {}{}", sampleless_.front().text, others),
              {.path = sampleless_.front().path});
}

}  // namespace penstock::data
