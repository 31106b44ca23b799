#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "format/format.h"
#include "io/source/opened_file.h"
#include "penstock/load.h"

namespace penstock::archive {

/// The source at `location`, as open_source gives it; of a folder that is one thing, such as a distributed checkpoint,
/// the file that says what it holds (format/folder.h). kIsDirectory for other folders.
Source source_at(std::string_view location);

/// `open` in two halves. The first reads the head, which tells how long the second half will take; callers such as the
/// Python module decide by that on which thread it runs. Both give the errors of `open`.
class Opening {
 public:
  /// Reads the head and finds the format.
  explicit Opening(Source source);

  /// How many bytes reading the index looks at, at most.
  std::uint64_t index_bytes() const;
  /// Reads the index.
  Archive finish(const OpenOptions& options);

 private:
  Source source_;
  std::shared_ptr<const io::OpenedFile> opened_;
  const format::Format* format_ = nullptr;
  double seconds_ = 0;
  RemoteTraffic traffic_;
};

}  // namespace penstock::archive
