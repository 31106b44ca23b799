// A device that reads from the disk by itself (cuFile) gets the large pieces of ranges that are not in the page cache.
// Everything else for a device goes through the pinned ring: small pieces, since a request costs more than they do;
// cached ranges, since copying them is faster; and bytes with a checksum, since that is computed in host memory.

#include "io/move/device_routes.h"

#include <algorithm>

#include "core/environment.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

// A request takes some tens of microseconds before its first byte moves, whereas the ring copies many small pieces at
// once.
constexpr std::uint64_t kMinPiece = 256 * 1024;
constexpr std::uint64_t kMinDeviceRange = std::uint64_t{1} << 20;

std::span<const Target> targets_of(const Move& move, const ReadRange& range) {
  return std::span(move.plan.targets).subspan(range.first_target, range.target_count);
}

}  // namespace

std::optional<bool> gds_setting() {
  const char* const value = core::environment("PENSTOCK_GDS");
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty() || text == "auto") return std::nullopt;
  if (text == "on" || text == "off") return text == "on";
  throw Error(ErrorCode::kInvalidArgument,
              core::format("PENSTOCK_GDS is {}; set it to auto, on or off", core::quoted(text)));
}

DeviceRoutes::DeviceRoutes(const Move& move, const DeviceWrites& writes, const Checksums& checksums,
                           const Routes& routes, const EngineOptions& options)
    : writes_(writes), checksums_(checksums) {
  if (writes.empty()) return;
  const std::optional<bool> setting = options.gds ? options.gds : gds_setting();
  if (setting == false) return;
  const bool asked = setting.has_value();
  const std::span<const DeviceReader> readers =
      options.device_reader != nullptr ? std::span(options.device_reader, 1) : device_readers();
  ways_.resize(move.plan.ranges.size());
  files_.resize(move.sources.size());
  tried_.resize(move.sources.size());
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    // Cached bytes are faster copied from the cache.
    if (!asked && routes.direct(i) == nullptr) continue;
    const ReadRange& range = move.plan.ranges[i];
    if (considers(move, range)) ways_[i] = file_of(move, range, readers, asked);
  }
  if (asked && why_not_.empty() && reader_ == nullptr) {
    why_not_ = "no range has 1 MiB in pieces of 256 KiB or more";
  }
  // cuFile knows no streams: it writes at once, whatever work on that memory is still queued.
  if (reader_ != nullptr) writes.wait_for_earlier();
}

bool DeviceRoutes::takes(const Target& target) const {
  return is_large(target) && !checksums_.cover(target.buffer, target.buffer_offset, target.length);
}

/// Whether the device is to read part of a range. When only checksums prevent it, they are remembered as the reason.
bool DeviceRoutes::considers(const Move& move, const ReadRange& range) {
  std::uint64_t large = 0;
  std::uint64_t taken = 0;
  for (const Target& target : targets_of(move, range)) {
    if (is_large(target)) large += target.length;
    if (takes(target)) taken += target.length;
  }
  if (large >= kMinDeviceRange && taken < kMinDeviceRange && why_not_.empty()) {
    why_not_ = "checksums are computed in host memory";
  }
  return taken >= kMinDeviceRange;
}

bool DeviceRoutes::is_large(const Target& target) const { return target.length >= kMinPiece && writes_.has(target); }

DeviceFile* DeviceRoutes::file_of(const Move& move, const ReadRange& range, std::span<const DeviceReader> readers,
                                  bool asked) {
  std::unique_ptr<DeviceFile>& file = files_[range.source];
  if (tried_[range.source]) return file.get();  // refused once, a file is refused for every range
  tried_[range.source] = true;
  const auto targets = targets_of(move, range);
  const auto taken = std::find_if(targets.begin(), targets.end(), [this](const Target& t) { return takes(t); });
  std::string why_not;
  for (const DeviceReader& reader : readers) {
    why_not.clear();
    file = reader.open(*move.sources[range.source], writes_.buffer(*taken).device(), asked, why_not);
    if (!file) continue;
    reader_ = &reader;
    return file.get();
  }
  if (why_not_.empty()) why_not_ = std::move(why_not);
  return nullptr;
}

std::string_view DeviceRoutes::route(std::uint64_t read_bytes) const noexcept {
  return reader_ != nullptr && arrived_ * 2 > read_bytes ? reader_->name : std::string_view();
}

std::string DeviceRoutes::how() const {
  const auto file = std::find_if(files_.begin(), files_.end(), [](const auto& f) { return f != nullptr; });
  return file == files_.end() ? std::string() : core::format("{} ({})", reader_->by, (*file)->how());
}

std::string DeviceRoutes::why(std::uint64_t read_bytes) const {
  std::string reason = why_not_;
  for (const auto& file : files_) {
    if (!file) continue;
    if (std::string refusal = file->refusal(); !refusal.empty()) reason = std::move(refusal);
  }
  const std::uint64_t bytes = arrived_;
  if (bytes >= read_bytes || (bytes == 0 && reason.empty())) return {};
  const auto share = [read_bytes](std::uint64_t part) {
    return 100 * static_cast<double>(part) / static_cast<double>(read_bytes);
  };
  std::string text = bytes == 0 ? "; through the ring"
                     : route(read_bytes).empty()
                         ? core::format("; {:.0f}% through {}, the rest through the ring", share(bytes), how())
                         : core::format("; {:.0f}% through the ring", share(read_bytes - bytes));
  return reason.empty() ? text : text + ", because " + reason;
}

}  // namespace penstock::io
