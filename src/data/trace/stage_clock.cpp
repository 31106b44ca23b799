#include "data/trace/stage_clock.h"

#include "penstock/loader.h"

namespace penstock::data {

void StageClock::move_to(LoaderStats& stats) noexcept {
  double* const fields[kStages] = {&stats.open_seconds,     &stats.read_seconds,    &stats.decode_seconds,
                                   &stats.function_seconds, &stats.collate_seconds, &stats.copy_seconds,
                                   &stats.send_seconds};
  for (std::size_t i = 0; i < kStages; ++i) {
    *fields[i] += std::chrono::duration<double>(spent_[i]).count();
    spent_[i] = {};
  }
}

}  // namespace penstock::data
