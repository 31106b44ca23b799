#pragma once

// Reads a pickle without running anything: opcodes make cells, known names of torch and NumPy make tensors, all other
// names stay names. pickle_vm.h does it, structure.h makes the result.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "format/format.h"
#include "format/pt/pickle/pickle_vm.h"
#include "format/pt/pickle/structure.h"
#include "format/pt/pickle/world.h"
#include "format/zip/reader.h"

namespace penstock::format::pickle {

struct ReadOptions {
  bool swapped = false;               ///< storages have the other byte order
  bool whole = true;                  ///< bytes behind the pickle's end are kCorrupt
  bool object_lists = false;          ///< World::object_lists
  std::optional<Limits> limits = {};  ///< by default those of as many bytes
  Decode decode = {};
};

/// Of a pickle that holds no tensors of torch's: a storage is kCorrupt.
class NoStorages final : public Outside {
 public:
  std::uint32_t storage(std::string_view key, std::uint64_t nbytes, std::uint64_t itemsize) override;
};

/// Reads one pickle into `index`: structure, entries, unknown names, and the storages that `outside` adds. `base`: the
/// file's offset of bytes[0], for errors. Gives the bytes it takes. kTruncated where `bytes` end before it, kLimit
/// beyond the limits. Errors have the offset, not the path.
std::size_t read_pickle(std::span<const std::byte> bytes, std::uint64_t base, Index& index, Outside& outside,
                        const ReadOptions& options = {});

/// The budgets of a pickle that is a record of a zip archive. kLimit for one that deflates too well: a few bytes must
/// not become gigabytes of cells.
Limits limits_of(const ZipEntry& record, std::string_view path);

}  // namespace penstock::format::pickle
