// Every launcher tells its processes who they are by environment variables of its own, and several launchers may be at
// work at once. All of them are read, in a fixed order. The first one counts, and the others must agree with it: a
// process that took the wrong rank would train on the wrong part of the data without anybody noticing. There is one
// exception: an outer launcher may start an inner one once for each machine, as Slurm does with torchrun. Then the
// outer one counts machines, and its numbers are others.
#include <array>
#include <string_view>
#include <utility>

#include "core/environment.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/sampler/rank_sources.h"
#include "penstock/error.h"

namespace penstock {

namespace {

using core::refuse;

struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr std::array kLaunchers = {
    Launcher{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    Launcher{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
    Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Launcher{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

std::string_view value_of(const char* name) {
  const char* const value = core::environment(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::optional<std::int64_t> number_in(std::string_view text) {
  const auto number = core::parse_number<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

std::int64_t number_of(const char* name) {
  if (const auto number = number_in(value_of(name))) return *number;
  refuse(
      core::format("the environment variable {} is {}, expected a whole number from 0; set it right, or give the "
                   "rank and the number of ranks yourself",
                   name, core::quoted(value_of(name))));
}

/// Slurm sets its variables in shells and batch scripts too, where a program is no task of a job step.
bool is_slurms_shell() {
  const std::string_view job = value_of("SLURM_JOB_NAME");
  return job == "bash" || job == "interactive";
}

std::optional<Ranks> said_by(const Launcher& launcher) {
  const bool is_slurm = std::string_view(launcher.rank) == "SLURM_PROCID";
  const bool has_rank = !value_of(launcher.rank).empty();
  const bool has_size = !value_of(launcher.size).empty();
  if (!has_rank && !has_size) return {};
  if (is_slurm && (!has_rank || is_slurms_shell())) return {};  // salloc: nobody is a task of it
  if (has_rank != has_size) {
    const auto [there, missing] =
        has_rank ? std::pair(launcher.rank, launcher.size) : std::pair(launcher.size, launcher.rank);
    refuse(
        core::format("the environment variable {} is set, but {} is not; set both or neither, or give the rank and "
                     "the number of ranks yourself",
                     there, missing));
  }
  Ranks out{.rank = number_of(launcher.rank),
            .size = number_of(launcher.size),
            .source = core::format("{} and {}", launcher.rank, launcher.size)};
  data::require_ranks(out);
  if (!value_of(launcher.local_rank).empty()) out.local_rank = number_of(launcher.local_rank);
  out.local_size = number_in(value_of(launcher.local_size));                      // which Slurm may write as a list
  if (is_slurm && out.local_size.value_or(1) > out.size) out.local_size.reset();  // of the job, not of this step
  if (out.local_size.value_or(1) > out.size) {
    refuse(
        core::format("the environment variable {} is {}, but {} is {}; the ranks of one machine are at most all ranks",
                     launcher.local_size, *out.local_size, launcher.size, out.size));
  }
  if (out.local_rank && *out.local_rank >= out.local_size.value_or(out.size)) {
    refuse(
        core::format("the environment variable {} is {}, but {} is {}; a local rank is less than the number of ranks",
                     launcher.local_rank, *out.local_rank, out.local_size ? launcher.local_size : launcher.size,
                     out.local_size.value_or(out.size)));
  }
  return out;
}

/// Whether `outer` starts a launcher on each machine, which starts `inner`.
bool starts(const Ranks& outer, const Ranks& inner) {
  if (inner.size % outer.size != 0) return false;
  const std::int64_t each = inner.size / outer.size;
  if (inner.local_size == each) return each > 1 || !value_of("TORCHELASTIC_RUN_ID").empty();
  return !inner.local_size && inner.source == "torch.distributed" && each > 1 && inner.rank / each == outer.rank;
}

void agree(Ranks& first, const Ranks& other) {
  if (first.rank == other.rank && first.size == other.size) {
    if (!first.local_rank) first.local_rank = other.local_rank;
    if (!first.local_size) first.local_size = other.local_size;
    return;
  }
  if (starts(other, first)) return;
  refuse(
      core::format("this is rank {} of {} by {}, but rank {} of {} by {}; unset those that are wrong, or give the rank "
                   "and the number of ranks yourself",
                   first.rank, first.size, first.source, other.rank, other.size, other.source));
}

}  // namespace

void data::require_ranks(const Ranks& ranks) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // so that positions of all ranks fit into 64 bits
  if (ranks.rank >= 0 && ranks.rank < ranks.size && ranks.size <= kMost) return;
  if (ranks.size < 1 || ranks.size > kMost) {
    refuse(core::format("found rank {} of {} ({}), expected a number of ranks from 1 to {}", ranks.rank, ranks.size,
                        ranks.source, kMost));
  }
  refuse(core::format("found rank {} of {} ({}), expected a rank from 0 to {}", ranks.rank, ranks.size, ranks.source,
                      ranks.size - 1));
}

Ranks data::reconciled(std::optional<Ranks> known) {
  if (known) require_ranks(*known);
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<Ranks> found = said_by(launcher);
    if (!found) continue;
    if (!known) {
      known = found;
    } else {
      agree(*known, *found);
    }
  }
  return known.value_or(Ranks{.local_rank = 0, .local_size = 1, .source = "no launcher"});
}

Ranks ranks() { return data::reconciled({}); }

std::string Ranks::to_string() const { return core::format("rank {} of {} ({})", rank, size, source); }

}  // namespace penstock
