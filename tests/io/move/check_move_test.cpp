#include "io/move/check_move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "support/errors.h"
#include "support/whole_file.h"

namespace penstock::io {
namespace {

using test::WholeFile;
using testing::HasSubstr;

struct Spoilt {
  const char* name;
  std::function<void(WholeFile&)> spoil;
  const char* message;
};

class CheckMove : public testing::TestWithParam<Spoilt> {};

TEST_P(CheckMove, Refuses) {
  WholeFile whole(1000);
  check(whole.move);
  GetParam().spoil(whole);
  const auto error = test::error_of([&] { check(whole.move); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Moves, CheckMove,
    testing::Values(
        Spoilt{"NoSource", [](WholeFile& w) { w.move.sources = {}; }, "a source that is not there"},
        Spoilt{"NoBuffer", [](WholeFile& w) { w.move.buffers = {}; }, "a buffer that is not there"},
        Spoilt{"NoTargets", [](WholeFile& w) { w.move.plan.targets.clear(); }, "targets that are not there"},
        Spoilt{"TargetsBeyondTheLast", [](WholeFile& w) { w.move.plan.ranges[0].first_target = ~std::size_t{0}; },
               "targets that are not there"},
        Spoilt{"BehindTheBuffer", [](WholeFile& w) { w.move.plan.targets[0].buffer_offset = 1; },
               "bytes 1 to 1001 of a buffer of 1000"},
        Spoilt{"OffsetThatOverflows", [](WholeFile& w) { w.move.plan.targets[0].buffer_offset = ~std::uint64_t{0}; },
               "of a buffer of 1000"},
        Spoilt{"ShortTarget", [](WholeFile& w) { w.move.plan.targets[0].length = 999; }, "longer than its targets"},
        Spoilt{"LongTarget", [](WholeFile& w) { w.move.plan.targets[0].length = 1001; },
               "bytes 0 to 1001 of a buffer of 1000"},
        Spoilt{"ShortRange", [](WholeFile& w) { w.move.plan.ranges[0].length = 999; }, "shorter than its targets"},
        Spoilt{"ReadOnly",
               [](WholeFile& w) { w.buffers[0] = Buffer::wrap(w.bytes.data(), w.bytes.size(), nullptr, true); },
               "read-only memory"},
        Spoilt{"StepWithoutBuffer",
               [](WholeFile& w) {
                 w.move.steps = {{{7}, [] {}}};
               },
               "a step waits for a buffer that is not there"}),
    [](const auto& spoilt) { return std::string(spoilt.param.name); });

TEST(CheckMoves, DiscardedBytesNeedNoBuffer) {
  WholeFile whole(1000);
  whole.move.plan.targets[0].buffer = kDiscard;
  whole.move.buffers = {};
  check(whole.move);
}

}  // namespace
}  // namespace penstock::io
