// Runs the machine over the bytes of a pickle and makes what is left on its stack the structure of the index.

#include "format/pt/pickle/read_pickle.h"

#include <algorithm>
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

std::uint32_t NoStorages::storage(std::string_view /*key*/, std::uint64_t /*nbytes*/, std::uint64_t /*itemsize*/) {
  throw Error(ErrorCode::kCorrupt, "the pickle refers to a tensor's storage, where plain values were expected");
}

std::size_t read_pickle(std::span<const std::byte> bytes, std::uint64_t base, Index& index, Outside& outside,
                        const ReadOptions& options) {
  const Limits limits = options.limits.value_or(Limits::of(bytes.size()));
  CellArena arena(limits.cells, limits.text_slack + 8 * bytes.size());
  World world(arena, index, outside, options.swapped, options.object_lists);
  Machine machine(bytes, base, arena, world, limits);
  Cell* root = run(machine, world);
  if (options.whole && machine.consumed() != bytes.size()) {
    throw Error(ErrorCode::kCorrupt,
                core::format("{} the end of the pickle",
                             core::counted(bytes.size() - machine.consumed(), "byte follows", "bytes follow")),
                {.offset = base + machine.consumed()});
  }
  build_structure(root, world, options.decode);
  return machine.consumed();
}

Limits limits_of(const ZipEntry& record, std::string_view path) {
  Limits limits = Limits::of(record.size);
  if (record.method != kZipDeflate) return limits;
  // A reference to a cell takes more memory than the byte that asks for it, too.
  constexpr std::uint64_t kAnyRatio = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMostRatio = 64;
  if (record.size / kMostRatio > record.compressed_size && record.size > kAnyRatio) {
    throw Error(
        ErrorCode::kLimit,
        core::format("the pickle inflates from {} to {}, far more than one of tensors would; store it undeflated",
                     core::counted(record.compressed_size, "byte"), record.size),
        {std::string(path), record.data_offset, std::string(record.name)});
  }
  // A pickle that deflates as most do shrinks about twenty times.
  constexpr std::uint64_t kCellsPerByte = 32;
  limits.cells = std::min<std::uint64_t>(limits.cells, Limits::kAlways + kCellsPerByte * record.compressed_size);
  return limits;
}

}  // namespace penstock::format::pickle
