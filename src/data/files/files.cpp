// A dataset of files. A small file is read whole by one call, because that costs less than finding out which parts to
// leave out; then FileLayouts finds its sample in memory. A large file is only opened here, and read when the batch has
// its block (large_file.h), so that its payload moves once. Only the size tells them apart, so after a large file the
// next files are asked for theirs first. Objects behind URLs are opened together, because each answer takes long.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/shown_url.h"
#include "core/system_error.h"
#include "data/dataset_impl.h"
#include "data/files/class_folders.h"
#include "data/files/file_layouts.h"
#include "data/files/file_sample.h"
#include "data/files/large_file.h"
#include "data/files/open_urls.h"
#include "data/files/own_source.h"
#include "data/files/raw_files.h"
#include "data/sample/blame.h"
#include "data/scan/glob.h"
#include "data/scan/path_table.h"
#include "io/file/file_descriptor.h"
#include "io/source/source.h"

namespace penstock {

namespace {

using data::Sample;
using data::Scratch;

/// Files up to this size are read whole, in one call.
constexpr std::size_t kSmallFile = std::size_t{256} << 10;

/// Files up to this size are read whole where only their headers are wanted: most of them fit into one page of memory.
constexpr std::size_t kLittleFile = std::size_t{16} << 10;

/// After a large file, this many files are asked for their size before they are read. Folders of mixed sizes are
/// common, and what was read of a large file is thrown away. In a folder of small files none is asked.
constexpr unsigned kAskedAfterLarge = 64;

struct ThreadState final : data::FileLayouts {
  std::string path;
  unsigned to_ask = 0;  ///< files whose size is asked first
  data::SplitReader reader{kSmallFile};
  data::LargeLayouts large;
  std::optional<data::DescriptorLimit> limit;  ///< of the batch at hand, when it has large files
};

class Files final : public detail::DatasetImpl {
 public:
  Files(data::PathTable paths, const FilesOptions& options)
      : paths_(std::move(paths)), keys_(options.keys), own_source_(options.source) {}

  std::int64_t size() const noexcept override { return paths_.size(); }
  std::string describe(std::int64_t index) const override { return core::shown_path(paths_.path(index)); }
  std::string path(std::int64_t index) const override { return paths_.path(index); }
  bool samples_are_files() const noexcept override { return true; }
  std::uint64_t read_bytes(std::int64_t index) const override {
    return own_source_ ? std::numeric_limits<std::uint64_t>::max() : paths_.bytes_on_disk(index);
  }

  void locate(std::span<const std::int64_t> indices, Scratch& scratch, std::span<Sample> out) const override {
    auto& state = scratch.state<ThreadState>(this);
    state.limit.reset();
    std::vector<io::remote::Opened> opened;
    if (!own_source_) opened = data::open_urls(paths_, indices, kSmallFile);
    std::size_t url = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      scratch.check_cancelled();
      try {
        const bool is_url = !opened.empty() && paths_.is_url(indices[i]);
        if (own_source_) {
          out[i] = locate_in(data::opened_by(own_source_, paths_.path(indices[i])), indices[i], state, scratch);
        } else {
          out[i] = is_url ? locate_in(io::remote::source_of(opened[url++]), indices[i], state, scratch)
                          : locate_one(indices[i], i, state, scratch);
        }
        scratch.clock.lap(data::Stage::kOpen, indices[i]);  // closing it
      } catch (const Error& error) {
        data::fail(out[i], i, error.within({.path = paths_.path(indices[i])}), scratch);
      }
    }
  }

 private:
  /// Opens the file once: it is read whole and closed, or is a large one and stays open until its payload is read.
  Sample locate_one(std::int64_t index, std::size_t position, ThreadState& state, Scratch& scratch) const {
    paths_.path(index, state.path);
    io::FileDescriptor fd = paths_.open(index);
    scratch.clock.lap(data::Stage::kOpen, index);
    if (!fd) {
      const penstock::Source source = open_source(state.path);  // says why it cannot be opened
      ++scratch.stats.files_opened;
      if (scratch.headers_only) return locate_header(source, scratch);
      return locate_large(source, index, state, scratch);
    }
    ++scratch.stats.files_opened;
    if (scratch.headers_only) {
      const struct stat status = status_of(fd.get(), state.path);
      if (const auto sample = locate_little(fd.get(), status, index, state, scratch)) return *sample;
      return locate_header(io::file_source(std::move(fd), status, state.path), scratch);
    }
    std::optional<struct stat> status;
    if (state.to_ask > 0) {
      --state.to_ask;
      status = status_of(fd.get(), state.path);
    }
    const bool is_large = status && status->st_size > static_cast<off_t>(kSmallFile);
    // A file that does not fit into what the Scratch may hold is read in two steps, as a large one is.
    if (!is_large && scratch.arena.used() < scratch.whole_file_bytes) {
      if (const auto sample = locate_whole(fd.get(), index, position, state, scratch)) return *sample;
    }
    if (!status) status = status_of(fd.get(), state.path);
    return locate_large(io::file_source(std::move(fd), *status, state.path), index, state, scratch);
  }

  /// Locates the sample in an open source. A small object behind a URL has been read already.
  Sample locate_in(const penstock::Source& source, std::int64_t index, ThreadState& state, Scratch& scratch) const {
    paths_.path(index, state.path);
    scratch.clock.lap(data::Stage::kOpen, index);
    ++scratch.stats.files_opened;
    if (scratch.headers_only) return locate_header(source, scratch);
    const std::span<const std::byte> whole = small_content(source, scratch);
    if (whole.empty()) return locate_large(source, index, state, scratch);
    scratch.stats.read_bytes += whole.size();
    scratch.objects.push_back(std::make_shared<const penstock::Source>(source));
    const data::FileLayouts::File file{whole, state.path, keys_};
    if (const auto sample = state.recognise(file, scratch)) return decoded(*sample, index, scratch);
    return decoded(state.parse(file, scratch), index, scratch);
  }

  /// All bytes of a small source that is in memory, or that the program opened itself; nothing for other sources.
  std::span<const std::byte> small_content(const penstock::Source& source, Scratch& scratch) const {
    if (const Buffer whole = source.memory(); whole.size() != 0) {
      if (whole.size() > kSmallFile) return {};
      return {whole.data(), whole.size()};
    }
    const bool fits = source.size() <= kSmallFile && scratch.arena.used() < scratch.whole_file_bytes;
    if (!own_source_ || !fits || source.size() == 0) return {};
    const auto bytes = static_cast<std::size_t>(source.size());
    const std::span<std::byte> memory(scratch.arena.allocate(bytes), bytes);
    data::read_from(source, memory);
    return memory;
  }

  static struct stat status_of(int fd, const std::string& path) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) core::throw_errno(errno, "cannot tell the size of the file", {.path = path});
    return status;
  }

  /// Reads the whole file. Returns nothing when it is not small or cannot be read; locate_large then says why.
  std::optional<Sample> locate_whole(int fd, std::int64_t index, std::size_t position, ThreadState& state,
                                     Scratch& scratch) const {
    data::FileLayouts::File file{{}, state.path, keys_};
    if (is_awaited(state, scratch)) {
      std::byte* const slot = scratch.expected.slot(position);
      scratch.stats.read_bytes += state.reader.read(fd, state.split(), slot);
      scratch.clock.lap(data::Stage::kRead, index);
      if (const auto sample = recognise_parts(file, slot, state, scratch)) return decoded(*sample, index, scratch);
      file.bytes = state.reader.whole(scratch.arena);
    } else {
      file.bytes = read_whole(fd, scratch);
      scratch.clock.lap(data::Stage::kRead, index);
    }
    if (file.bytes.empty() || file.bytes.size() > kSmallFile) return std::nullopt;
    if (const auto sample = state.recognise(file, scratch)) return decoded(*sample, index, scratch);
    // One read gives all of a regular file, but no system promises it. A recognised file is known to be complete; for
    // any other one we look whether there is more.
    std::byte more{};
    if (read_some(fd, {&more, 1}) != 0) return std::nullopt;
    return decoded(state.parse(file, scratch), index, scratch);
  }

  static Sample decoded(const Sample& sample, std::int64_t index, Scratch& scratch) {
    scratch.clock.lap(data::Stage::kDecode, index);
    return sample;
  }

  /// Whether a file like the last one holds just the bytes that the block of the batch has a slot for.
  bool is_awaited(const ThreadState& state, const Scratch& scratch) const {
    return scratch.expected.dataset == this && state.split().bytes == scratch.expected.bytes;
  }

  static std::optional<Sample> recognise_parts(data::FileLayouts::File file, const std::byte* part, ThreadState& state,
                                               Scratch& scratch) {
    if (!state.reader.expected()) return std::nullopt;
    file.bytes = state.reader.image();
    file.part = part;
    file.split = state.split();
    return state.recognise(file, scratch);
  }

  /// Reads a small file into the arena. Gives kSmallFile + 1 bytes of a larger one, and none if it cannot be read.
  static std::span<const std::byte> read_whole(int fd, Scratch& scratch) {
    const std::span<std::byte> memory(scratch.arena.allocate(kSmallFile + 1), kSmallFile + 1);
    const std::size_t filled = read_some(fd, memory);
    scratch.arena.trim_last(filled > kSmallFile ? 0 : filled);
    scratch.stats.read_bytes += filled;
    return memory.first(filled);
  }

  /// The number of bytes that one read gives; 0 at the end of the file and for an error.
  static std::size_t read_some(int fd, std::span<std::byte> into) {
    while (true) {
      const ssize_t got = ::read(fd, into.data(), into.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return 0;
    }
  }

  Sample locate_large(const penstock::Source& source, std::int64_t index, ThreadState& state, Scratch& scratch) const {
    data::LargeLayouts::Found found = state.large.find(source, keys_, scratch);
    scratch.clock.lap(data::Stage::kDecode, index);
    if (is_large(*source, found)) state.to_ask = kAskedAfterLarge;
    if (!state.limit) state.limit.emplace();
    auto file = std::make_shared<const data::LargeFile>(source, std::move(found), scratch.verify, *state.limit);
    const data::FileSample& sample = file->sample();
    const std::span<data::Payload> payloads = scratch.arena.array<data::Payload>(sample.entries.size());
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      payloads[i] = {.place = data::InLargeFile{file.get(), sample.entries[i]}};
    }
    const data::Layout* const layout = sample.layout.get();
    scratch.objects.push_back(std::move(file));  // lives until the batch is made
    return {layout, {payloads.data()}};
  }

  /// Reads a little file, by fewer calls than opening it takes. Returns nothing for all others.
  std::optional<Sample> locate_little(int fd, const struct stat& status, std::int64_t index, ThreadState& state,
                                      Scratch& scratch) const {
    if (!S_ISREG(status.st_mode) || status.st_size == 0 || status.st_size > static_cast<off_t>(kLittleFile)) {
      return std::nullopt;
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    const std::span<std::byte> bytes(scratch.arena.allocate(size), size);
    if (read_some(fd, bytes) != size) return std::nullopt;
    scratch.stats.read_bytes += size;
    const data::FileLayouts::File file{bytes, state.path, keys_};
    try {
      if (const auto sample = state.recognise(file, scratch)) return decoded(*sample, index, scratch);
      return decoded(state.parse(file, scratch), index, scratch);
    } catch (const Error& error) {
      // Damage of the payload is found by who wants the payload.
      if (error.code() == ErrorCode::kChecksum) return std::nullopt;
      throw;
    }
  }

  /// Describes the sample by the header alone; its payloads are nowhere.
  Sample locate_header(const penstock::Source& source, Scratch& scratch) const {
    const Archive archive = open(source, {.verify = scratch.verify});
    const data::FileSample sample =
        data::file_sample(archive.structure(), archive.entries(), keys_, scratch.structures);
    const std::span<data::Payload> payloads = scratch.arena.array<data::Payload>(sample.entries.size());
    std::fill(payloads.begin(), payloads.end(), data::Payload{});
    scratch.objects.push_back(sample.layout);
    return {sample.layout.get(), {payloads.data()}};
  }

  static bool is_large(const ByteSource& source, const data::LargeLayouts::Found& found) {
    std::uint64_t bytes = source.size();
    for (const penstock::Source& other : found.others) bytes += other.size();
    return bytes > kSmallFile;
  }

  data::PathTable paths_;
  std::vector<std::string> keys_;
  data::OwnSource own_source_;
};

Dataset files_in(data::PathTable paths, const FilesOptions& options) {
  if (!options.raw) return Dataset(std::make_shared<Files>(std::move(paths), options));
  if (options.keys.empty()) return data::raw_files(std::move(paths), options.source);
  throw Error(ErrorCode::kInvalidArgument,
              "found keys for raw files, whose samples are their bytes; leave one of them out");
}

}  // namespace

Dataset files(std::string_view pattern, const FilesOptions& options) {
  if (options.source) {
    throw Error(ErrorCode::kInvalidArgument,
                "found a source of the program's own beside a pattern, which is looked for in folders; give a list of "
                "the paths that the source opens",
                {.path = std::string(pattern)});
  }
  Dataset found = files_in(data::expand(pattern, options), options);
  return options.class_folders ? data::with_class_folders(std::move(found), data::class_root(pattern)) : found;
}

Dataset files(const std::vector<std::string>& paths, const FilesOptions& options) {
  if (!options.exclude.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "found exclude for a list of paths, expected a pattern or folder; leave the paths out of the list");
  }
  if (options.index) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "found an index for a list of paths, expected a pattern or folder, which an index saves listing; leave the "
        "index out");
  }
  data::PathTable table;
  for (const std::string& path : paths) table.add(path);
  table.seal(options.source ? data::PathTable::Folders::kNone : data::PathTable::Folders::kOpened);
  Dataset given = files_in(std::move(table), options);
  return options.class_folders ? data::with_class_folders(std::move(given), data::class_root(paths)) : given;
}

}  // namespace penstock
