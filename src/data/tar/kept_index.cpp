// The file holds, for each shard: its place, its version, the number of its begins, and the begins. A text has its
// length before it; numbers are little-endian, as in memory. A change of this layout, or of what counts as a sample,
// must change the magic.
#include "data/tar/kept_index.h"

#include <new>
#include <set>
#include <system_error>
#include <utility>

#include "core/cursor.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "format/tar/header.h"
#include "io/locations.h"
#include "io/remote/remote.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr std::string_view kMagic = "PSTKTAR1";

/// Empty for one that is not kept, because it may have a secret in it.
std::string place_of(const std::string& path) {
  return core::shown_path(path) == path ? io::absolute(path) : std::string();
}

}  // namespace

bool may_be_begins(std::span<const std::uint64_t> begins, std::uint64_t bytes) noexcept {
  if (begins.empty()) return false;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const bool is_end = i + 1 == begins.size();
    if (!is_end && begins[i] % format::kTarBlock != 0) return false;
    if (i > 0 && begins[i] <= begins[i - 1]) return false;
  }
  return begins.size() == 1 ? begins[0] == 0 : begins[begins.size() - 2] < bytes;
}

std::string KeptIndex::version_of(const penstock::Source& source) {
  if (const auto version = source.version()) {
    return core::format("{}/{}/{}/{}", version->device, version->inode, version->size, version->modified);
  }
  const std::string name = io::remote::version_name(*source);
  return name.empty() ? name : core::format("{}/{}", source.size(), name);
}

KeptIndex::KeptIndex(const TarIndexOptions& options, std::span<const std::string> paths) : is_kept_(options.is_kept) {
  if (!is_kept_) return;
  for (const std::string& path : paths) names_.push_back(place_of(path));
  for (const std::string& name : names_) key_.append(name).push_back('\0');
  file_.emplace(options.path, kMagic, "shards", key_);
  try {
    read(file_->read());
  } catch (const Error&) {
    known_.clear();
  } catch (const std::bad_alloc&) {
    known_.clear();
  }
}

void KeptIndex::read(std::span<const std::byte> content) {
  core::Cursor cursor(content);
  while (!cursor.at_end()) {
    const std::string name(cursor.take_text(static_cast<std::size_t>(cursor.u64())));
    KnownShard known{.version = std::string(cursor.take_text(static_cast<std::size_t>(cursor.u64()))), .begins = {}};
    const std::uint64_t count = cursor.u64();
    if (count > cursor.remaining() / sizeof(std::uint64_t))
      throw Error(ErrorCode::kCorrupt, "this is no index of shards");
    for (std::uint64_t i = 0; i < count; ++i) known.begins.push_back(cursor.u64());
    known_.insert_or_assign(name, std::move(known));
  }
}

std::optional<std::vector<std::uint64_t>> KeptIndex::find(std::size_t number, const std::string& version,
                                                          std::uint64_t bytes) const {
  if (!is_kept_ || names_[number].empty() || version.empty()) return std::nullopt;
  const auto found = known_.find(names_[number]);
  if (found == known_.end() || found->second.version != version) return std::nullopt;
  if (!may_be_begins(found->second.begins, bytes)) return std::nullopt;
  return found->second.begins;
}

void KeptIndex::keep(std::span<const TarShard> shards, std::span<const std::string> versions) const {
  if (!is_kept_) return;
  KeptContent content;
  bool is_new = false;
  std::set<std::string_view> written;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string& version = versions[i];
    if (names_[i].empty() || version.empty() || !written.insert(names_[i]).second) continue;
    const auto known = known_.find(names_[i]);
    is_new = is_new || known == known_.end() || known->second.version != version;
    content.add_text(names_[i]);
    content.add_text(version);
    content.add_number<std::uint64_t>(shards[i].begins.size());
    for (const std::uint64_t begin : shards[i].begins) content.add_number(begin);
  }
  if (is_new) file_->write(content.bytes());
}

}  // namespace penstock::data
