#include "data/loader/stream_options.h"

#include <string>

#include "data/sampler/rank_sources.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

void require(bool holds, const char* message) {
  if (!holds) throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

LoaderOptions as_endless(LoaderOptions options) {
  require(
      !options.shuffle,
      "a stream comes in its own order, so shuffle cannot reorder all of it; give it a window: stream.shuffle(1000)");
  require(!options.sampler && !options.batch_sampler, "a stream comes in its own order, and takes no sampler");
  require(options.on_error == OnError::kRaise || options.on_error == OnError::kSkip,
          "a stream has no other sample to put in the place of a bad one; use on_error \"raise\" or \"skip\"");
  if (!options.ranks) {
    require(options.remainder == Remainder::kPad,
            "a remainder is what ranks cannot share evenly; give the loader its `ranks` too");
    return options;
  }
  require_ranks(*options.ranks);
  require(options.ranks->size == 1 || options.on_error == OnError::kRaise,
          "on_error \"skip\" may leave a batch out on one rank alone, and the others would wait for it; use \"raise\" "
          "with several ranks");
  require(options.remainder != Remainder::kExact || !options.drop_last,
          "drop_last leaves samples out, and the remainder \"exact\" none; leave one of them out");
  options.ranks.reset();
  options.remainder = Remainder::kPad;
  return options;
}

}  // namespace penstock::data
