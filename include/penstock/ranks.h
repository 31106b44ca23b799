#pragma once

/// Which of several processes this one is. `ranks()` finds it out where a launcher (torchrun, Slurm, MPI) has said it;
/// LoaderOptions::ranks deals the order of an epoch out by it.

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/standard.h"

namespace penstock {

/// One process of `size` that share a dataset. Plain data.
struct Ranks {
  std::int64_t rank = 0;  ///< of this process, from 0
  std::int64_t size = 1;
  std::optional<std::int64_t> local_rank = {};  ///< among the processes of this machine, where that is known
  std::optional<std::int64_t> local_size = {};  ///< processes of this machine
  std::string source = "arguments";             ///< who says so, for people

  /// "rank 1 of 4 (RANK and WORLD_SIZE)".
  std::string to_string() const;
};

/// What the environment says: RANK and WORLD_SIZE (torchrun), else SLURM_PROCID and SLURM_NTASKS (not in an interactive
/// shell of Slurm), else OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, else PMI_RANK and PMI_SIZE; without any of them
/// rank 0 of 1. An outer launcher that starts an inner one once for each machine is no contradiction (torchrun under
/// Slurm). kInvalidArgument for variables that contradict each other or are no ranks; it names both.
Ranks ranks();

}  // namespace penstock
