// One preadv fills many parts that follow each other in the file. A gap between parts is read into a small buffer,
// several times if it is long, because skipping it would take a call of its own.

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/counted.h"
#include "core/format.h"
#include "core/system_error.h"
#include "io/read/reader_rows.h"
#include "io/source/source.h"

namespace penstock::io {
namespace {

// Bytes of gaps are read into this buffer and forgotten.
constexpr std::size_t kDiscardBytes = 16 * 1024;
// Far below IOV_MAX: beyond some hundreds of parts a longer list saves nothing.
constexpr std::size_t kMaxVectors = 256;

/// Where a scattered read stands: the part that comes next and what of it has arrived.
class Progress {
 public:
  Progress(std::span<const Scatter> parts, std::byte* discard) : parts_(parts), discard_(discard) {}

  /// The next vectors to read into; 0 when everything has arrived.
  std::size_t vectors(std::span<iovec> out) const {
    std::size_t count = 0;
    std::size_t done = done_;
    for (std::size_t i = part_; i < parts_.size() && count < out.size(); ++i, done = 0) {
      count += split(parts_[i], done, out.subspan(count));
    }
    return count;
  }

  void advance(std::size_t bytes) {
    while (part_ < parts_.size() && bytes >= parts_[part_].bytes - done_) {
      bytes -= parts_[part_].bytes - done_;
      done_ = 0;
      ++part_;
    }
    done_ += bytes;
  }

 private:
  /// One vector for a part that is kept, as many as its gap needs for one that is not.
  std::size_t split(const Scatter& part, std::size_t done, std::span<iovec> out) const {
    if (done == part.bytes) return 0;
    if (part.to) {
      out[0] = {part.to + done, part.bytes - done};
      return 1;
    }
    std::size_t count = 0;
    for (; done < part.bytes && count < out.size(); ++count) {
      out[count] = {discard_, std::min(part.bytes - done, kDiscardBytes)};
      done += out[count].iov_len;
    }
    return count;
  }

  std::span<const Scatter> parts_;
  std::byte* discard_;
  std::size_t part_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

bool file_usable(const ByteSource& source) noexcept { return source.descriptor() >= 0; }

void pread_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  const std::uint64_t wanted = require_inside(source, offset, parts);
  std::array<std::byte, kDiscardBytes> discard;
  std::array<iovec, kMaxVectors> vectors;
  Progress progress(parts, discard.data());
  for (std::uint64_t done = 0; done < wanted;) {
    const std::size_t count = progress.vectors(vectors);
    const ssize_t got =
        ::preadv(source.descriptor(), vectors.data(), static_cast<int>(count), static_cast<off_t>(offset + done));
    if (got > 0) {
      done += static_cast<std::uint64_t>(got);
      progress.advance(static_cast<std::size_t>(got));
    } else if (got == 0) {
      throw_cut(source, offset, wanted, done);
    } else if (errno != EINTR) {
      core::throw_errno(errno, core::format("cannot read {}", core::counted(wanted, "byte")),
                        {.path = source.name(), .offset = offset});
    }
  }
}

}  // namespace penstock::io
