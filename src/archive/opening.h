#pragma once

#include <cstdint>
#include <memory>

#include "format/format.h"
#include "io/source/opened_file.h"
#include "penstock/load.h"

namespace penstock::archive {

/// `open`, in two halves: the first reads the head, which tells how long the second takes. For callers that decide by
/// that where the second half runs. Errors of both are those of `open`.
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
};

}  // namespace penstock::archive
