#pragma once

// What is written: a file of this machine or an object in a store. Whoever writes asks open_output, which alone decides
// what a path names (io/outputs.cpp), so that a format, the command and the loader's shards know no difference.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>

namespace penstock::io {

/// Bytes on their way out. Implementations throw Error.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  void write_text(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Bytes written so far.
  virtual std::uint64_t position() const noexcept = 0;
};

/// What appears under its name whole or not at all. Without `commit` nothing remains. Not thread-safe.
class Output : public ByteSink {
 public:
  /// Everything is on its way's end: `commit` only has to give it its name, and nothing large stays in memory. For
  /// whoever commits several together; `commit` needs no call of it. Nothing may be written after it.
  virtual void prepare() = 0;
  /// Call once, last.
  virtual void commit() = 0;
  /// Of a `commit` that threw: whether the output may have its name all the same. False only where that is certain: a
  /// store may do what it was asked and its answer be lost, and a file has its name before its folder is flushed.
  virtual bool may_be_there() const noexcept = 0;
  /// Whether what is there then is this output. An object of a store may be somebody else's.
  virtual bool is_its_own() const noexcept = 0;
};

/// What becomes of something that has the name already when an output is committed.
enum class Existing : std::uint8_t {
  kReplace,
  /// kInvalidArgument. Stores alone are asked to look (`If-None-Match: *`; Google's is asked right before). A file is
  /// replaced: who must not do that looks before (output_exists).
  kRefuse,
};

struct OutputOptions {
  bool sync = true;  ///< of a file: flush it to the disk before it appears
  Existing existing = Existing::kReplace;
  /// About how many bytes will be written, from which the size of an object's parts follows; asked for when there are
  /// more than one. Null: not known.
  std::function<std::uint64_t()> bytes = {};
  /// Ends waiting for a store with kCancelled.
  std::stop_token stop = {};
};

/// A file, or an object in a store. kUnsupported for other URLs; kInvalidArgument, and what AtomicFile
/// says; of a store nothing is asked before there is something to send.
std::unique_ptr<Output> open_output(std::string_view path, const OutputOptions& options = {});

/// kUnsupported where `path` is a URL that nothing can be written to. To be called before reading begins.
void require_output(std::string_view path);

/// Whether there is something under that name. The errors of reading; kUnsupported as require_output.
bool output_exists(std::string_view path);

/// Whether both name the same file or object.
bool is_same_place(std::string_view a, std::string_view b);

/// Takes back what was committed; failures are ignored.
void remove_output(std::string_view path) noexcept;

}  // namespace penstock::io
