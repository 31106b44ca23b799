#include "data/scan/kept_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "core/cursor.h"
#include "core/environment.h"
#include "core/fnv1a.h"
#include "core/format.h"
#include "io/copy/crc32.h"
#include "io/file/atomic_file.h"
#include "io/file/file_url.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::data {
namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHead = kMagicBytes + sizeof(std::uint64_t) + sizeof(std::uint32_t);

/// $XDG_CACHE_HOME/penstock, by its specification only when absolute, else ~/.cache/penstock; none without a home.
std::optional<std::filesystem::path> cache_folder() {
  const auto absolute = [](const char* name) -> std::optional<std::filesystem::path> {
    const char* const value = core::environment(name);
    if (value == nullptr || value[0] != '/') return std::nullopt;
    return value;
  };
  if (const auto cache = absolute("XDG_CACHE_HOME")) return *cache / "penstock";
  if (const auto home = absolute("HOME")) return *home / ".cache" / "penstock";
  return std::nullopt;
}

}  // namespace

KeptFile::KeptFile(std::string path, std::string_view magic, std::string_view kind, std::string_view key)
    : path_(io::local_path(path)), magic_(magic), is_cache_(path_.empty()) {
  if (!is_cache_) return;
  // Keys of one hash share a file, which is no harm, because the key itself is in it.
  if (const auto folder = cache_folder()) path_ = *folder / core::format("{}-{:016x}.index", kind, core::fnv1a(key));
}

/// The head is checked against the size of the file before anything is read or allocated, so a damaged number cannot
/// ask for any amount of memory.
std::vector<std::byte> KeptFile::read() const {
  if (path_.empty()) return {};
  try {
    const penstock::Source source = open_source(path_);
    std::array<std::byte, kHead> bytes{};
    source.read(0, bytes);
    core::Cursor head(bytes);
    if (head.take_text(kMagicBytes) != magic_ || head.u64() != source.size() - kHead) return {};
    std::vector<std::byte> content(static_cast<std::size_t>(source.size() - kHead));
    source.read(kHead, content);
    if (io::crc32(0, content) != head.u32()) return {};
    return content;
  } catch (const Error&) {
    return {};
  } catch (const std::bad_alloc&) {
    // What does not fit into memory was not written by us.
    return {};
  }
}

/// Whether the file may be one of ours, even a cut one or one with a damaged byte in its magic.
bool KeptFile::may_be_own() const {
  const std::string_view any_version = magic_.substr(0, kMagicBytes - 1);
  std::string head;
  try {
    const penstock::Source source = open_source(path_);
    head.resize(static_cast<std::size_t>(std::min<std::uint64_t>(any_version.size(), source.size())));
    source.read(0, std::as_writable_bytes(std::span(head)));
  } catch (const Error&) {
    // The file cannot be read now. Writing then replaces it, or fails and says why.
    return true;
  }
  std::size_t other = 0;
  for (std::size_t i = 0; i < head.size(); ++i) other += head[i] != any_version[i] ? 1 : 0;
  return other == 0 || (other == 1 && head.size() == any_version.size());
}

void KeptFile::write(std::span<const std::byte> content) const {
  if (path_.empty()) return;
  std::error_code error;
  if (!is_cache_ && std::filesystem::exists(path_, error) && !may_be_own()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "this file is not an index of Penstock's, and would be written over; name another for the index, or delete "
        "it",
        {.path = path_});
  }
  const std::uint64_t bytes = content.size();
  const std::uint32_t crc = io::crc32(0, content);
  try {
    if (is_cache_) std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    io::AtomicFile file(path_, false);
    file.write_text(magic_);
    file.write(std::as_bytes(std::span(&bytes, 1)));
    file.write(std::as_bytes(std::span(&crc, 1)));
    file.write(content);
    file.commit();
  } catch (const Error& failed) {
    // Without the file the next run only takes longer. But a wrong path of the caller is an error.
    if (!is_cache_ && failed.code() != ErrorCode::kIo) throw;
  }
}

}  // namespace penstock::data
