// Runs the machine over the bytes of a pickle and makes what is left on its stack the structure of the index.

#include "format/pt/pickle/read_pickle.h"

#include <string>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

namespace {

/// Runs the machine. A call of an unknown name may be followed by opcodes that only make sense for its result, so the
/// error of a pickle that seems wrong lists the unknown names.
Cell* run(Machine& machine, const World& world) {
  try {
    return machine.run();
  } catch (const Error& error) {
    if (world.unknown().empty() || error.code() != ErrorCode::kCorrupt) throw;
    constexpr std::size_t kMost = 5;
    std::string names;
    std::size_t count = 0;
    for (const std::string& name : world.unknown()) {
      if (count++ == kMost) break;
      names += (names.empty() ? "" : ", ") + core::quoted(name);
    }
    if (world.unknown().size() > kMost) names += core::format(" and {} more", world.unknown().size() - kMost);
    throw Error(error.code(),
                core::format("{} (before that the pickle names {}, which nothing here knows; nothing was run)",
                             error.message(), names),
                {error.path(), error.offset(), error.tensor()});
  }
}

}  // namespace

std::size_t read_pickle(std::span<const std::byte> bytes, std::uint64_t base, Index& index, Outside& outside,
                        bool swapped, bool whole, const std::optional<Limits>& given, const Decode& decode) {
  const Limits limits = given.value_or(Limits::of(bytes.size()));
  CellArena arena(limits.cells, limits.text_slack + 8 * bytes.size());
  World world(arena, index, outside, swapped);
  Machine machine(bytes, base, arena, world, limits);
  Cell* root = run(machine, world);
  if (whole && machine.consumed() != bytes.size()) {
    throw Error(ErrorCode::kCorrupt,
                core::format("{} the end of the pickle",
                             core::counted(bytes.size() - machine.consumed(), "byte follows", "bytes follow")),
                {.offset = base + machine.consumed()});
  }
  build_structure(root, world, decode);
  return machine.consumed();
}

}  // namespace penstock::format::pickle
