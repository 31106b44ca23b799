#include "archive/inspect/block_loops_each.h"
#include "core/processor.h"

namespace penstock::archive {

const BlockLoops kBaselineLoops = kLoops;

const BlockLoops& block_loops() noexcept {
  static const BlockLoops& chosen = core::has_avx2() ? kAvx2Loops : kBaselineLoops;
  return chosen;
}

}  // namespace penstock::archive
