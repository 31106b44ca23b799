#pragma once

// Checksums that a file records, such as zip's. Readers hand over bytes, or CRCs of parts, as they come; nothing is
// read a second time for the check.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The one place where recorded checksums of payload in files are compared. Whoever reads a record, for a load, a batch,
// a device or for nothing but its checksum, makes a RecordCheck, gives it bytes and calls `finish`. Where those of a
// move arrive in any order and from several threads, io/move/checksums.h finds out which record they belong to.

namespace penstock::io {

/// Bytes of a file for which the file may record a CRC-32. Path and name are views, because only an error needs copies:
/// they must outlive the check.
struct Record {
  std::optional<std::uint32_t> crc32 = {};  ///< as recorded, for the bytes after decompression
  std::uint64_t bytes = 0;                  ///< after decompression
  std::string_view path = {};               ///< the last three are for the error
  std::uint64_t offset = 0;
  std::string_view name = {};
};

/// Computes the CRC-32 of a record while its bytes come, and compares it with the recorded one. The bytes come in order
/// (`add`), or the CRCs of parts come in any order (`add_part`). Does nothing for a record that is not to be checked.
/// Not thread-safe.
class RecordCheck {
 public:
  /// Nothing is to be checked.
  RecordCheck() = default;
  /// The record is checked when its file has a CRC-32 for it and `verify` asks for that.
  RecordCheck(const Record& record, bool verify) noexcept : record_(record), wanted_(verify && record.crc32) {}

  /// Whether there is anything to check.
  bool wanted() const noexcept { return wanted_; }
  const Record& record() const noexcept { return record_; }
  /// Bytes of the record that have not come yet.
  std::uint64_t missing() const noexcept { return record_.bytes - seen_; }

  /// The next bytes of the record.
  void add(std::span<const std::byte> bytes) noexcept;
  /// The next `length` bytes of the record, whose CRC-32 is known already.
  void add_known(std::uint32_t crc, std::uint64_t length) noexcept;
  /// A part of the record that was given to no `add` and does not overlap another part. `begin` orders the parts and
  /// may be counted from anywhere. All parts lie behind the bytes that `add` got, and no `add` may follow.
  struct RecordPart {
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
  };
  void add_part(const RecordPart& part);
  /// Compares, once the whole record has come. kChecksum with path, offset and name of the record when the CRCs differ.
  void finish();
  /// The same where the record's name takes time to find: `name_of()` is called for the error alone.
  template <std::invocable NameOf>
  void finish(const NameOf& name_of) {
    if (holds()) return;
    const std::string name = name_of();
    record_.name = name;
    fail();
  }
  /// The whole record at once.
  void check(std::span<const std::byte> bytes);

 private:
  void combine_parts();
  /// Whether the bytes that came have the recorded CRC, or are not to be checked.
  bool holds();
  [[noreturn]] void fail() const;

  Record record_;
  bool wanted_ = false;
  std::uint32_t crc_ = 0;  ///< of the first bytes of the record, which came in order
  std::uint64_t seen_ = 0;
  std::vector<RecordPart> parts_;
};

}  // namespace penstock::io
