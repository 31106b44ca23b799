// Reading threads write wherever the plan says, so the plan is checked once before they start.

#include "io/move/check_move.h"

#include <algorithm>
#include <span>

#include "core/checked.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

void check_target(const Target& target, std::span<const Buffer> buffers) {
  if (target.buffer == kDiscard) return;
  if (target.buffer >= buffers.size())
    throw Error(ErrorCode::kInvalidArgument, "the plan names a buffer that is not there");
  const Buffer& buffer = buffers[target.buffer];
  if (!core::range_fits(target.buffer_offset, target.length, buffer.size())) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the plan fills bytes {} to {} of a buffer of {}", target.buffer_offset,
                             target.buffer_offset + target.length, buffer.size()));
  }
  if (buffer.read_only()) throw Error(ErrorCode::kInvalidArgument, "the plan fills read-only memory");
}

void check_range(const ReadRange& range, const Move& move) {
  if (range.source >= move.sources.size()) {
    throw Error(ErrorCode::kInvalidArgument, "the plan names a source that is not there");
  }
  if (!core::range_fits(range.first_target, range.target_count, move.plan.targets.size())) {
    throw Error(ErrorCode::kInvalidArgument, "a range of the plan has targets that are not there");
  }
  std::uint64_t left = range.length;
  for (const Target& target : std::span(move.plan.targets).subspan(range.first_target, range.target_count)) {
    check_target(target, move.buffers);
    if (target.length > left)
      throw Error(ErrorCode::kInvalidArgument, "a range of the plan is shorter than its targets");
    left -= target.length;
  }
  if (left != 0) throw Error(ErrorCode::kInvalidArgument, "a range of the plan is longer than its targets");
}

void check_step(const Step& step, const Move& move) {
  for (const std::uint32_t buffer : step.buffers) {
    if (buffer >= move.buffers.size()) {
      throw Error(ErrorCode::kInvalidArgument, "a step waits for a buffer that is not there");
    }
  }
}

}  // namespace

void check(const Move& move) {
  for (const ReadRange& range : move.plan.ranges) check_range(range, move);
  for (const Step& step : move.steps) check_step(step, move);
}

}  // namespace penstock::io
