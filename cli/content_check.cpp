// A file is cut into runs: of a stored member, or of a file without members, as much as one thread reads at a time; a
// deflated member is one, because it can be inflated from its front alone. Checksums of runs are put together.

#include "cli/content_check.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/task_pool.h"
#include "format/format.h"
#include "format/pt/zip.h"
#include "format/zip/inflate.h"
#include "format/zip/kind.h"
#include "format/zip/reader.h"
#include "io/copy/crc32.h"
#include "io/copy/record_check.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

using format::ZipEntry;
using format::ZipKind;
using Seen = std::function<void(std::uint64_t)>;

/// Reading such pieces is as quick as reading larger ones, and they stay in a processor's cache.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
/// What one thread reads of a file before it takes the next; smaller files are read sooner by one thread.
constexpr std::uint64_t kRunBytes = std::uint64_t{32} << 20;

/// Bytes with one checksum: a member, or all of a file that has none.
struct Member {
  Member(ErrorContext context, const ZipEntry* entry, std::optional<std::uint32_t> crc32, std::uint64_t bytes)
      : where(std::move(context)),
        zip(entry),
        check({.crc32 = crc32,
               .bytes = bytes,
               .path = where.path,
               .offset = where.offset.value_or(0),
               .name = where.tensor},
              true) {}

  ErrorContext where;
  const ZipEntry* zip;
  std::mutex mutex;       ///< guards the rest
  io::RecordCheck check;  ///< has views of `where`
  std::size_t open_runs = 0;
};

/// A part of a member that one thread reads.
struct MemberPart {
  Member* member;
  std::uint64_t offset;
  std::uint64_t bytes;
};

class ContentCheck {
 public:
  ContentCheck(const ByteSource& source, std::size_t threads, const Seen& seen)
      : source_(source),
        threads_(static_cast<std::size_t>(std::min<std::uint64_t>(threads, 1 + source.size() / kRunBytes))),
        seen_(seen) {}

  std::uint64_t run() {
    const ZipKind kind = zip_kind();
    if (kind == ZipKind::kNone) {
      add_runs(members_.emplace_back(ErrorContext{source_.name(), {}, {}}, nullptr, std::nullopt, source_.size()), 0,
               source_.size());
      read_all();
      return 0;
    }
    const format::ZipDirectory directory = format::read_zip_directory(source_);
    for (const ZipEntry& entry : directory.entries) {
      Member& member =
          members_.emplace_back(ErrorContext{source_.name(), entry.data_offset, format::member_name(entry)}, &entry,
                                kind == ZipKind::kTorch ? format::recorded_crc(entry) : entry.crc32, entry.size);
      if (entry.method == format::kZipStored) {
        add_runs(member, entry.data_offset, entry.size);
      } else {
        runs_.push_back({&member, entry.data_offset, entry.size});
      }
    }
    const std::uint64_t behind = directory.trailing_bytes;
    add_runs(members_.emplace_back(ErrorContext{source_.name(), {}, {}}, nullptr, std::nullopt, behind),
             source_.size() - behind, behind);
    read_all();
    return behind;
  }

 private:
  ZipKind zip_kind() const {
    std::array<std::byte, format::kSniffBytes> head{};
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), source_.size()));
    source_.read(0, std::span(head).first(known));
    return format::sniff_zip(std::span(head).first(known), source_);
  }

  void add_runs(Member& member, std::uint64_t offset, std::uint64_t bytes) {
    do {
      const std::uint64_t now = std::min(bytes, kRunBytes);
      runs_.push_back({&member, offset, now});
      ++member.open_runs;
      offset += now;
      bytes -= now;
    } while (bytes > 0);
  }

  /// Runs are begun in order, so that the first error of the file is found, whichever thread is sooner.
  void read_all() {
    std::atomic<std::size_t> first_bad = runs_.size();
    std::mutex mutex;
    std::optional<Error> bad;
    core::parallel_for(runs_.size(), threads_, [&](std::size_t i) {
      if (i > first_bad) return;
      try {
        read(runs_[i]);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        if (i > first_bad) return;
        first_bad = i;
        bad = error.within(runs_[i].member->where);
      }
    });
    if (bad) throw *std::move(bad);
  }

  void read(const MemberPart& run) {
    Member& member = *run.member;
    if (member.zip != nullptr && member.zip->method != format::kZipStored) return inflate(member);
    std::uint64_t at = run.offset;
    std::uint32_t crc = 0;
    in_pieces(run.bytes, [&](std::span<std::byte> piece) {
      source_.read(at, piece);
      at += piece.size();
      if (member.zip != nullptr) crc = io::crc32(crc, piece);
    });
    const std::lock_guard lock(member.mutex);
    if (run.bytes > 0) member.check.add_part({run.offset, run.bytes, crc});
    if (--member.open_runs == 0) member.check.finish();
  }

  void inflate(Member& member) {
    const ZipEntry& entry = *member.zip;
    format::InflateStream stream(source_, entry.data_offset, entry.compressed_size, entry.name);
    in_pieces(entry.size, [&](std::span<std::byte> piece) {
      stream.fill(piece, entry.size);
      member.check.add(piece);
    });
    stream.require_end(entry.size);
    member.check.finish();
  }

  template <class Fill>
  void in_pieces(std::uint64_t bytes, const Fill& fill) {
    std::vector<std::byte> memory(static_cast<std::size_t>(std::min(kPieceBytes, bytes)));
    while (bytes > 0) {
      const auto piece =
          std::span(memory).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, memory.size())));
      fill(piece);
      bytes -= piece.size();
      if (seen_) seen_(piece.size());
    }
  }

  const ByteSource& source_;
  std::size_t threads_;
  const Seen& seen_;
  std::deque<Member> members_;
  std::vector<MemberPart> runs_;
};

}  // namespace

std::uint64_t check_content(const ByteSource& source, std::size_t threads, const Seen& seen) {
  return ContentCheck(source, threads, seen).run();
}

}  // namespace penstock::cli
