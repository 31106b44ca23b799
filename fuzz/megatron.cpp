// An index of Megatron's and its tokens: the input is the length of the index (4 bytes), the index, and the tokens.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "archive/archive_state.h"
#include "core/checked.h"
#include "penstock/load.h"
#include "support/outcome.h"
#include "support/require.h"
#include "support/scratch_folder.h"

namespace penstock::fuzz {
namespace {

using Bytes = std::span<const std::uint8_t>;

const std::filesystem::path& folder() {
  static const ScratchFolder scratch;
  return scratch.path();
}

void write(const char* name, Bytes bytes) {
  std::ofstream out(folder() / name, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

bool read(format::DocumentUnit unit) {
  const Archive archive = open(folder() / "a.idx");
  static_cast<void>(archive.load({.threads = 1}).to_string());
  const detail::ArchiveState& state = detail::ArchiveState::of(archive);
  if (state.format->documents == nullptr) return true;
  const format::Documents found = state.format->documents(state.index, unit);
  const std::int64_t tokens = archive.entries()[found.tokens].shape[0];
  require(found.starts.size() == found.lengths.size(), "documents have as many starts as lengths");
  for (std::size_t i = 0; i < found.starts.size(); ++i) {
    require(found.starts[i] >= 0 && found.lengths[i] >= 0, "a document begins or ends before the tokens");
    require(core::range_fits(static_cast<std::uint64_t>(found.starts[i]), static_cast<std::uint64_t>(found.lengths[i]),
                             static_cast<std::uint64_t>(tokens)),
            "a document lies outside of the tokens");
  }
  return true;
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  std::uint32_t length = 0;
  if (size < sizeof length) return 0;
  std::memcpy(&length, data, sizeof length);
  const auto bytes = fuzz::Bytes(data, size).subspan(sizeof length);
  const auto index = bytes.first(std::min<std::size_t>(length, bytes.size()));
  fuzz::write("a.idx", index);
  fuzz::write("a.bin", bytes.subspan(index.size()));
  for (const auto unit : {format::DocumentUnit::kDocument, format::DocumentUnit::kSequence}) {
    fuzz::attempt([unit] { return fuzz::read(unit); });
  }
  return 0;
}
