#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "format/format.h"
#include "format/pt/pickle/pickle_vm.h"
#include "format/pt/pickle/structure.h"
#include "format/pt/pickle/world.h"

namespace penstock::format::pickle {

/// Reads one pickle into `index`: structure, entries, unknown names, and the storages that `outside` adds. `base`: the
/// file's offset of bytes[0], for errors. Gives the bytes it takes; with `whole`, bytes behind its end are kCorrupt.
/// kTruncated where `bytes` end before it, kLimit beyond `limits`, by default those of as many bytes. Errors have the
/// offset, not the path.
std::size_t read_pickle(std::span<const std::byte> bytes, std::uint64_t base, Index& index, Outside& outside,
                        bool swapped = false, bool whole = true, const std::optional<Limits>& limits = {},
                        const Decode& decode = {});

}  // namespace penstock::format::pickle
