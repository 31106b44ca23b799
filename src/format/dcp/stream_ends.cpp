// A stream of torch.save is a zip archive: its pickle comes first, its directory last. So little of both is enough of
// nearly every chunk, and what is missing is read when it is wanted (OpenedFile). In a file the end of one stream and
// the begin of the next are one range.

#include "format/dcp/stream_ends.h"

#include <algorithm>
#include <cstdint>

#include "core/checked.h"
#include "io/read/reader.h"
#include "io/remote/remote.h"

namespace penstock::format::dcp {
namespace {

constexpr std::uint64_t kEnd = std::uint64_t{4} << 10;
constexpr std::size_t kStreamsAtOnce = 512;  // streams: 4 MiB

bool is_far(const StreamEnds::Stream& stream) {
  return io::remote::url_usable(*stream.file) &&
         core::range_fits(stream.place->offset, stream.place->length, stream.file.size());
}

}  // namespace

StreamEnds::StreamEnds(std::vector<Stream> streams) : streams_(std::move(streams)) {
  std::erase_if(streams_, [](const Stream& stream) { return !is_far(stream); });
}

io::OpenedFile::Ends StreamEnds::take(const StreamSpan& place) {
  if (next_ < streams_.size() && streams_[next_].place == &place) read_ahead();
  const auto found = read_.find(&place);
  if (found == read_.end()) return {};
  io::OpenedFile::Ends out = std::move(found->second);
  read_.erase(found);
  return out;
}

void StreamEnds::read_ahead() {
  std::vector<io::SourceRuns> reads;
  std::unordered_map<const ByteSource*, std::size_t> numbers;
  for (const std::size_t last = std::min(streams_.size(), next_ + kStreamsAtOnce); next_ < last; ++next_) {
    const Stream& stream = streams_[next_];
    const auto [number, added] = numbers.try_emplace(&*stream.file, reads.size());
    if (added) reads.push_back({stream.file});
    const auto [offset, length] = std::pair(stream.place->offset, stream.place->length);
    std::vector<io::SourceRun>& runs = reads[number->second].runs;
    io::OpenedFile::Ends ends;
    if (length <= 2 * kEnd) {
      ends.whole = Buffer::allocate(static_cast<std::size_t>(length));
      runs.push_back({offset, {ends.whole.data(), ends.whole.size()}});
    } else {
      ends.head = io::OpenedFile::Bytes::uninitialised(kEnd);
      ends.tail = io::OpenedFile::Bytes::uninitialised(kEnd);
      runs.push_back({offset, ends.head.span()});
      runs.push_back({offset + length - kEnd, ends.tail.span()});
    }
    read_.emplace(stream.place, std::move(ends));
  }
  io::read_at_once(reads);
}

}  // namespace penstock::format::dcp
