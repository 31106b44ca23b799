#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/file/file_descriptor.h"
#include "io/file/output.h"

namespace penstock::io {

/// An output whose first bytes are known last: a header that lists what follows.
class FrontOutput : public Output {
 public:
  /// Puts `front` in place of the first `size` bytes, 1 MiB at most. It may be longer; what lies behind moves then.
  /// Nothing may be written after it.
  virtual void replace_front(std::uint64_t size, std::span<const std::byte> front) = 0;
};

/// As open_output. The first part of an object waits in memory for its front.
std::unique_ptr<FrontOutput> open_front_output(std::string_view path, const OutputOptions& options = {});

/// The file at `path`, opened to be read and written; none where there is none, also where a store has no such object.
/// kUnsupported where it has one: objects are not changed. kIo, kPermission.
FileDescriptor open_to_append(std::string_view path);

/// A path for what is only written and read back on the way to `path`: a file of that folder, or where `path` is a URL
/// of the folder for temporary files.
std::string scratch_path(std::string_view path);

}  // namespace penstock::io
