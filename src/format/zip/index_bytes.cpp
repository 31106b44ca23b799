#include "format/zip/index_bytes.h"

#include "format/zip/end.h"
#include "format/zip/reader.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::uint64_t kShortFile = std::uint64_t{256} << 10;  // not worth asking
constexpr std::uint64_t kShortDirectory = std::uint64_t{64} << 10;
constexpr std::uint64_t kMemberHead = 256;  // its own header, and that of an `.npy`

}  // namespace

std::uint64_t zip_index_bytes(const ByteSource& source, std::string_view read_whole) {
  if (source.size() <= kShortFile) return source.size();
  try {
    ZipBytes archive(source);
    const ZipPlace directory = find_zip_directory(archive, {});
    if (directory.bytes > kShortDirectory) return source.size();
    std::uint64_t bytes = directory.bytes;
    for (const ZipEntry& member : list_zip_members(source).entries) {
      bytes += kMemberHead;
      if (!read_whole.empty() && member.name.ends_with(read_whole)) bytes += member.size;
    }
    return bytes;
  } catch (const Error&) {
    return source.size();  // whoever reads it says what is wrong
  }
}

}  // namespace penstock::format
