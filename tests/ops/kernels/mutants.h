#pragma once

#include <vector>

#include "simulator/ptx/kernels.h"

namespace penstock::simulator::ptx {

/// Those of mutants.txt, translated.
extern const std::vector<Mutant> kMutants;

}  // namespace penstock::simulator::ptx
