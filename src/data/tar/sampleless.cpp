#include "data/tar/sampleless.h"

#include "core/counted.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "penstock/error.h"

namespace penstock::data {

void Sampleless::add(const std::string& path, bool has_samples, const format::TarStrays& strays) {
  has_samples_ = has_samples_ || has_samples;
  if (!has_samples && !strays.empty()) found_.push_back({core::shown_path(path), strays.to_string()});
}

std::vector<std::string> Sampleless::take_warnings() {
  std::vector<std::string> out;
  if (!has_samples_) return out;
  for (const Found& found : found_) out.push_back(core::format("{}: the shard {}", found.path, found.text));
  found_.clear();
  return out;
}

void Sampleless::require_samples() const {
  if (has_samples_ || found_.empty()) return;
  const std::size_t more = found_.size() - 1;
  const std::string others =
      more == 0 ? std::string()
                : core::format(" ({} like it)", core::counted(more, "more shard is", "more shards are"));
  throw Error(ErrorCode::kUnsupported, core::format("the shard {}{}", found_.front().text, others),
              {.path = found_.front().path});
}

}  // namespace penstock::data
