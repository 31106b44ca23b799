#include "cli/terminal/progress.h"

#include <algorithm>
#include <exception>

#include "cli/terminal/terminal.h"
#include "core/format.h"

namespace penstock::cli {

Progress::~Progress() {
  try {
    show_progress({});
  } catch (const std::exception&) {
    // Nobody reads it.
  }
}

void Progress::at(std::uint64_t done, const std::string& more) {
  constexpr std::chrono::milliseconds kPeriod(200);
  const auto now = Clock::now();
  if (now - told_ < kPeriod) return;
  told_ = now;
  const double share = total_ == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  show_progress(core::format("{} {:.0f} %{}{} ", what_, std::min(99.0, 100 * share), left(share), more));
}

/// ", 12 s left", once it can be told.
std::string Progress::left(double share) const {
  constexpr double kLeastSeconds = 2;
  constexpr double kMinute = 60;
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  if (seconds < kLeastSeconds || share <= 0) return {};
  const double more = seconds * (1 - share) / share;
  return more < 2 * kMinute ? core::format(", {:.0f} s left", more) : core::format(", {:.0f} min left", more / kMinute);
}

}  // namespace penstock::cli
