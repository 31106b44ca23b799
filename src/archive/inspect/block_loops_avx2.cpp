// Compiled for AVX2 where there is such a thing (src/CMakeLists.txt).

#include "archive/inspect/block_loops_each.h"

namespace penstock::archive {

const BlockLoops kAvx2Loops = kLoops;

}  // namespace penstock::archive
