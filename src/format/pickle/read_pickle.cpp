#include "format/pickle/read_pickle.h"

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::format::pickle {

std::size_t read_pickle(std::span<const std::byte> bytes, std::uint64_t base, Index& index, Outside& outside,
                        bool swapped, bool whole, const std::optional<Limits>& given, const Decode& decode) {
  const Limits limits = given.value_or(Limits::of(bytes.size()));
  CellArena arena(limits.cells, limits.text_slack + 8 * bytes.size());
  World world(arena, index, outside, swapped);
  Machine machine(bytes, base, arena, world, limits);
  Cell* root = machine.run();
  if (whole && machine.consumed() != bytes.size()) {
    throw Error(ErrorCode::kCorrupt,
                core::format("{} bytes follow the end of the pickle", bytes.size() - machine.consumed()),
                {.offset = base + machine.consumed()});
  }
  build_structure(root, world, decode);
  return machine.consumed();
}

}  // namespace penstock::format::pickle
