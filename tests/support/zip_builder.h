#pragma once

// Zip archives with any lie in any field.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/copy/crc32.h"
#include "support/bytes.h"

namespace penstock::test {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// One member. What is not set is as it should be.
struct ZipMember {
  std::string name = "a";
  std::string data = "hello";  ///< before compression
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::optional<std::string> stored = {};  ///< the bytes in the file; data when not set

  std::string before = {};      ///< bytes in front that belong to nothing
  std::string descriptor = {};  ///< bytes behind
  std::optional<std::string> local_name = {};
  std::optional<std::uint16_t> local_flags = {};
  std::optional<std::uint16_t> local_method = {};
  std::optional<std::uint32_t> local_signature = {};
  std::optional<std::uint32_t> local_crc = {};
  std::optional<std::uint32_t> local_compressed = {};
  std::optional<std::uint32_t> local_size = {};
  std::string local_extra = {};

  std::optional<std::uint32_t> signature = {};
  std::optional<std::uint32_t> crc = {};
  std::optional<std::uint32_t> compressed = {};
  std::optional<std::uint32_t> size = {};
  std::optional<std::uint32_t> offset = {};
  std::string extra = {};
  std::string comment = {};
  std::uint16_t disk = 0;
};

struct ZipEnd {
  std::string before_directory = {};
  std::string after_directory = {};
  std::optional<std::uint16_t> count = {};
  std::optional<std::uint16_t> disk_count = {};
  std::optional<std::uint32_t> directory_bytes = {};
  std::optional<std::uint32_t> directory_offset = {};
  std::uint16_t disk = 0;
  std::optional<std::uint16_t> comment_bytes = {};
  std::string comment = {};
  std::string after = {};

  bool zip64 = false;
  std::uint64_t record_bytes = 44;
  std::optional<std::uint64_t> count64 = {};
  std::optional<std::uint64_t> directory_bytes64 = {};
  std::optional<std::uint64_t> directory_offset64 = {};
  std::uint32_t disk64 = 0;
  std::optional<std::uint64_t> record_offset = {};
  std::uint32_t disks = 1;
};

inline std::uint32_t crc_of(std::string_view text) { return io::crc32(0, bytes_of(text)); }

/// A zip64 extra field of these values.
inline std::string zip64_field(const std::vector<std::uint64_t>& values) {
  std::string out;
  put<std::uint16_t>(out, 1);
  put(out, static_cast<std::uint16_t>(values.size() * 8));
  for (const std::uint64_t value : values) put(out, value);
  return out;
}

/// A data descriptor with its signature: 16 bytes for T = uint32_t, 24 for uint64_t.
template <class T>
std::string descriptor_of(std::string_view data, T compressed, T size) {
  std::string out;
  put<std::uint32_t>(out, 0x08074b50);
  put(out, crc_of(data));
  put(out, compressed);
  put(out, size);
  return out;
}
template <class T>
std::string descriptor_of(std::string_view data) {
  return descriptor_of<T>(data, static_cast<T>(data.size()), static_cast<T>(data.size()));
}

inline std::string build_zip(const std::vector<ZipMember>& members, const ZipEnd& end = {}) {
  std::string out;
  std::string directory;
  for (const ZipMember& member : members) {
    const std::string& stored = member.stored ? *member.stored : member.data;
    const auto compressed = static_cast<std::uint32_t>(stored.size());
    const auto size = static_cast<std::uint32_t>(member.data.size());
    const std::string& local_name = member.local_name ? *member.local_name : member.name;
    out += member.before;
    const auto offset = static_cast<std::uint32_t>(out.size());
    put<std::uint32_t>(out, member.local_signature.value_or(0x04034b50));
    put<std::uint16_t>(out, 20);
    put<std::uint16_t>(out, member.local_flags.value_or(member.flags));
    put<std::uint16_t>(out, member.local_method.value_or(member.method));
    put<std::uint32_t>(out, 0x00210000);
    put<std::uint32_t>(out, member.local_crc.value_or(crc_of(member.data)));
    put<std::uint32_t>(out, member.local_compressed.value_or(compressed));
    put<std::uint32_t>(out, member.local_size.value_or(size));
    put(out, static_cast<std::uint16_t>(local_name.size()));
    put(out, static_cast<std::uint16_t>(member.local_extra.size()));
    out += local_name + member.local_extra + stored + member.descriptor;

    put<std::uint32_t>(directory, member.signature.value_or(0x02014b50));
    put<std::uint32_t>(directory, 20 << 16 | 20);
    put<std::uint16_t>(directory, member.flags);
    put<std::uint16_t>(directory, member.method);
    put<std::uint32_t>(directory, 0x00210000);
    put<std::uint32_t>(directory, member.crc.value_or(crc_of(member.data)));
    put<std::uint32_t>(directory, member.compressed.value_or(compressed));
    put<std::uint32_t>(directory, member.size.value_or(size));
    put(directory, static_cast<std::uint16_t>(member.name.size()));
    put(directory, static_cast<std::uint16_t>(member.extra.size()));
    put(directory, static_cast<std::uint16_t>(member.comment.size()));
    put<std::uint16_t>(directory, member.disk);
    put<std::uint16_t>(directory, 0);
    put<std::uint32_t>(directory, 0);
    put<std::uint32_t>(directory, member.offset.value_or(offset));
    directory += member.name + member.extra + member.comment;
  }
  out += end.before_directory;
  const std::uint64_t at = out.size();
  out += directory + end.after_directory;
  if (end.zip64) {
    const std::uint64_t record = out.size();
    put<std::uint32_t>(out, 0x06064b50);
    put<std::uint64_t>(out, end.record_bytes);
    put<std::uint32_t>(out, 45 << 16 | 45);
    put<std::uint32_t>(out, end.disk64);
    put<std::uint32_t>(out, end.disk64);
    put<std::uint64_t>(out, end.count64.value_or(members.size()));
    put<std::uint64_t>(out, end.count64.value_or(members.size()));
    put<std::uint64_t>(out, end.directory_bytes64.value_or(directory.size()));
    put<std::uint64_t>(out, end.directory_offset64.value_or(at));
    put<std::uint32_t>(out, 0x07064b50);
    put<std::uint32_t>(out, 0);
    put<std::uint64_t>(out, end.record_offset.value_or(record));
    put<std::uint32_t>(out, end.disks);
  }
  put<std::uint32_t>(out, 0x06054b50);
  put<std::uint16_t>(out, end.disk);
  put<std::uint16_t>(out, end.disk);
  put(out, end.disk_count.value_or(end.count.value_or(static_cast<std::uint16_t>(members.size()))));
  put(out, end.count.value_or(static_cast<std::uint16_t>(members.size())));
  put(out, end.directory_bytes.value_or(static_cast<std::uint32_t>(directory.size())));
  put(out, end.directory_offset.value_or(static_cast<std::uint32_t>(at)));
  put(out, end.comment_bytes.value_or(static_cast<std::uint16_t>(end.comment.size())));
  return out + end.comment + end.after;
}

}  // namespace penstock::test
