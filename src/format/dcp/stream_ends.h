#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "format/dcp/metadata.h"
#include "io/source/opened_file.h"
#include "penstock/source.h"

namespace penstock::format::dcp {

/// The first and last bytes of a checkpoint's streams, where their indexes lie. From a store they come many streams at
/// a time: each by itself would take two round trips. Not thread-safe.
class StreamEnds {
 public:
  struct Stream {
    const StreamSpan* place = nullptr;
    Source file;
  };

  /// `streams` in the order in which they will be asked for; places are told apart by their addresses.
  explicit StreamEnds(std::vector<Stream> streams);

  /// Those of this stream; nothing where reading them when they are wanted costs little, and where the place does not
  /// lie in its file. The errors of reading.
  io::OpenedFile::Ends take(const StreamSpan& place);

 private:
  void read_ahead();

  std::vector<Stream> streams_;  ///< those that are read ahead
  std::size_t next_ = 0;         ///< the first stream that was not read yet
  std::unordered_map<const StreamSpan*, io::OpenedFile::Ends> read_;
};

}  // namespace penstock::format::dcp
