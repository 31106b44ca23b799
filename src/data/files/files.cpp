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
#include <functional>
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
#include "data/files/listed_root.h"
#include "data/files/open_urls.h"
#include "data/files/own_source.h"
#include "data/files/raw_files.h"
#include "data/sample/blame.h"
#include "data/scan/glob.h"
#include "data/scan/name_match.h"
#include "data/scan/path_table.h"
#include "io/file/file_descriptor.h"
#include "io/file/url.h"
#include "io/source/source.h"

namespace penstock {

namespace {

using data::Sample;
using data::Work;

/// Files up to this size are read whole, in one call.
constexpr std::size_t kSmallFile = std::size_t{256} << 10;

/// Files up to this size are read whole where only their headers are wanted: most of them fit into one page of memory.
constexpr std::size_t kLittleFile = std::size_t{16} << 10;

/// After a large file, this many files are asked for their size before they are read. Folders of mixed sizes are
/// common, and what was read of a large file is thrown away. In a folder of small files none is asked.
constexpr unsigned kAskedAfterLarge = 64;

/// In place of a descriptor: all of the file was read.
constexpr int kNoMore = -1;

struct ThreadState final : data::FileLayouts {
  std::string path;
  unsigned to_ask = 0;  ///< files whose size is asked first
  data::SplitReader reader{kSmallFile};
  data::LargeLayouts large;
  std::optional<data::DescriptorLimit> limit;  ///< of the batch at hand, when it has large files
};

class Files final : public detail::DatasetImpl {
 public:
  Files(data::PathTable paths, std::function<std::string()> root, FilesOptions options)
      : paths_(std::move(paths)), root_(std::move(root)), options_(std::move(options)) {}

  std::int64_t size() const override { return paths_.size(); }
  std::string describe(std::int64_t index) const override { return core::shown_path(paths_.path(index)); }
  std::string path(std::int64_t index) const override { return paths_.path(index); }
  std::size_t root_size(std::int64_t index) const override { return root_.size_in(paths_.path(index)); }
  const FilesOptions* file_options() const noexcept override { return &options_; }
  bool samples_are_files() const noexcept override { return true; }
  std::uint64_t read_bytes(std::int64_t index) const override {
    return options_.source ? std::numeric_limits<std::uint64_t>::max() : paths_.bytes_on_disk(index);
  }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    auto& state = work.scratch.state<ThreadState>(this);
    state.limit.reset();
    std::vector<io::remote::Opened> opened;
    if (!options_.source) opened = data::open_urls(paths_, indices, kSmallFile);
    std::size_t url = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      work.call.check_cancelled();
      try {
        const bool is_url = !opened.empty() && paths_.is_url(indices[i]);
        if (options_.source) {
          out[i] = fetch_from(data::opened_by(options_.source, paths_.path(indices[i])), indices[i], state, work);
        } else {
          out[i] = is_url ? fetch_from(io::remote::source_of(opened[url++]), indices[i], state, work)
                          : fetch_local(indices[i], i, state, work);
        }
        work.figures.clock.lap(data::Stage::kOpen, indices[i]);  // closing it
      } catch (const Error& error) {
        data::fail(out[i], i, error.within({.path = paths_.path(indices[i])}), work.call, work.scratch);
      }
    }
  }

 private:
  /// Opens the file once: it is read whole and closed, or is a large one and stays open until its payload is read.
  Sample fetch_local(std::int64_t index, std::size_t position, ThreadState& state, const Work& work) const {
    paths_.path(index, state.path);
    io::FileDescriptor fd = paths_.open(index);
    work.figures.clock.lap(data::Stage::kOpen, index);
    if (!fd) {
      const penstock::Source source = open_source(state.path);  // says why it cannot be opened
      ++work.figures.stats.files_opened;
      return work.call.headers_only ? header_of(source, work) : open_large(source, index, state, work);
    }
    ++work.figures.stats.files_opened;
    std::optional<struct stat> status;
    if (work.call.headers_only) {
      status = status_of(fd.get(), state.path);
      if (const auto sample = read_little(fd.get(), *status, index, state, work)) return *sample;
      return header_of(io::file_source(std::move(fd), *status, state.path), work);
    }
    if (state.to_ask > 0) {
      --state.to_ask;
      status = status_of(fd.get(), state.path);
    }
    const bool is_large = status && status->st_size > static_cast<off_t>(kSmallFile);
    // A file that does not fit into what the Scratch may hold is read in two steps, as a large one is.
    if (!is_large && work.scratch.arena.used() < work.call.whole_file_bytes) {
      if (const auto sample = read_small(fd.get(), index, position, state, work)) return *sample;
    }
    if (!status) status = status_of(fd.get(), state.path);
    return open_large(io::file_source(std::move(fd), *status, state.path), index, state, work);
  }

  /// The sample in an open source. A small object behind a URL has been read already.
  Sample fetch_from(const penstock::Source& source, std::int64_t index, ThreadState& state, const Work& work) const {
    paths_.path(index, state.path);
    work.figures.clock.lap(data::Stage::kOpen, index);
    ++work.figures.stats.files_opened;
    if (work.call.headers_only) return header_of(source, work);
    const std::span<const std::byte> whole = small_content(source, work.call, work.scratch.arena);
    if (whole.empty()) return open_large(source, index, state, work);
    work.figures.stats.read_bytes += whole.size();
    work.scratch.objects.push_back(std::make_shared<const penstock::Source>(source));
    return *sample_in({whole, state.path, options_.keys}, kNoMore, index, state, work);
  }

  /// All bytes of a small source that is in memory, or that the program opened itself; nothing for other sources.
  std::span<const std::byte> small_content(const penstock::Source& source, const data::CallContext& call,
                                           data::Arena& arena) const {
    if (const Buffer whole = source.memory(); whole.size() != 0) {
      if (whole.size() > kSmallFile) return {};
      return {whole.data(), whole.size()};
    }
    const bool fits = source.size() <= kSmallFile && arena.used() < call.whole_file_bytes;
    if (!options_.source || !fits || source.size() == 0) return {};
    const auto bytes = static_cast<std::size_t>(source.size());
    const std::span<std::byte> memory(arena.allocate(bytes), bytes);
    data::read_from(source, memory);
    return memory;
  }

  static struct stat status_of(int fd, const std::string& path) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) core::throw_errno(errno, "cannot tell the size of the file", {.path = path});
    return status;
  }

  /// Reads the whole file, its payload into its slot where the batch has one. Nothing when the file is not small or
  /// cannot be read; open_large then says why.
  std::optional<Sample> read_small(int fd, std::int64_t index, std::size_t position, ThreadState& state,
                                   const Work& work) const {
    data::FileLayouts::File file{{}, state.path, options_.keys};
    if (is_awaited(state, work.guesses.expected)) {
      std::byte* const slot = work.guesses.expected.slot(position);
      work.figures.stats.read_bytes += state.reader.read(fd, state.split(), slot);
      work.figures.clock.lap(data::Stage::kRead, index);
      if (const auto sample = recognise_parts(file, slot, state, work)) return noted(*sample, index, work.figures);
      file.bytes = state.reader.whole(work.scratch.arena);
    } else {
      file.bytes = read_whole(fd, work.scratch.arena);
      work.figures.stats.read_bytes += file.bytes.size();
      work.figures.clock.lap(data::Stage::kRead, index);
    }
    if (file.bytes.empty() || file.bytes.size() > kSmallFile) return std::nullopt;
    return sample_in(file, fd, index, state, work);
  }

  /// The sample in a file that was read. Nothing where `fd` has more of it: one read gives all of a regular file, but
  /// no system promises that. A recognised file is known to be complete; for any other one we look.
  static std::optional<Sample> sample_in(const data::FileLayouts::File& file, int fd, std::int64_t index,
                                         ThreadState& state, const Work& work) {
    if (const auto sample = state.recognise(file, work)) return noted(*sample, index, work.figures);
    std::byte more{};
    if (fd != kNoMore && read_some(fd, {&more, 1}) != 0) return std::nullopt;
    return noted(state.parse(file, work), index, work.figures);
  }

  static Sample noted(const Sample& sample, std::int64_t index, data::Figures& figures) {
    figures.clock.lap(data::Stage::kDecode, index);
    return sample;
  }

  /// Whether a file like the last one holds just the bytes that the block of the batch has a slot for.
  bool is_awaited(const ThreadState& state, const data::ExpectedSlots& expected) const {
    return expected.dataset == this && state.split().bytes == expected.bytes;
  }

  static std::optional<Sample> recognise_parts(data::FileLayouts::File file, const std::byte* part, ThreadState& state,
                                               const Work& work) {
    if (!state.reader.expected()) return std::nullopt;
    file.bytes = state.reader.image();
    file.part = part;
    file.split = state.split();
    return state.recognise(file, work);
  }

  /// Reads a small file into the arena. Gives kSmallFile + 1 bytes of a larger one, and none if it cannot be read.
  static std::span<const std::byte> read_whole(int fd, data::Arena& arena) {
    const std::span<std::byte> memory(arena.allocate(kSmallFile + 1), kSmallFile + 1);
    const std::size_t filled = read_some(fd, memory);
    arena.trim_last(filled > kSmallFile ? 0 : filled);
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

  /// Finds out what a large file holds, and leaves its payload to who has the batch's block.
  Sample open_large(const penstock::Source& source, std::int64_t index, ThreadState& state, const Work& work) const {
    data::LargeLayouts::Found found = state.large.find(source, options_.keys, work);
    work.figures.clock.lap(data::Stage::kDecode, index);
    if (is_large(*source, found)) state.to_ask = kAskedAfterLarge;
    if (!state.limit) state.limit.emplace();
    auto file = std::make_shared<const data::LargeFile>(source, std::move(found), work.call.verify, *state.limit);
    const data::FileSample& sample = file->sample();
    const std::span<data::Payload> payloads = work.scratch.arena.array<data::Payload>(sample.entries.size());
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      payloads[i] = {.place = data::InLargeFile{file.get(), sample.entries[i]}};
    }
    const data::Layout* const layout = sample.layout.get();
    work.scratch.objects.push_back(std::move(file));  // lives until the batch is made
    return {layout, {payloads.data()}};
  }

  /// Reads a little file for its header, by fewer calls than opening it takes. Returns nothing for all others.
  std::optional<Sample> read_little(int fd, const struct stat& status, std::int64_t index, ThreadState& state,
                                    const Work& work) const {
    if (!S_ISREG(status.st_mode) || status.st_size == 0 || status.st_size > static_cast<off_t>(kLittleFile)) {
      return std::nullopt;
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    const std::span<std::byte> bytes(work.scratch.arena.allocate(size), size);
    if (read_some(fd, bytes) != size) return std::nullopt;
    work.figures.stats.read_bytes += size;
    try {
      return sample_in({bytes, state.path, options_.keys}, kNoMore, index, state, work);
    } catch (const Error& error) {
      // Damage of the payload is found by who wants the payload.
      if (error.code() == ErrorCode::kChecksum) return std::nullopt;
      throw;
    }
  }

  /// Describes the sample by the header alone; its payloads are nowhere.
  Sample header_of(const penstock::Source& source, const Work& work) const {
    const Archive archive = open(source, {.verify = work.call.verify});
    const data::FileSample sample =
        data::file_sample(archive.structure(), archive.entries(), options_.keys, work.scratch.structures);
    const std::span<data::Payload> payloads = work.scratch.arena.array<data::Payload>(sample.entries.size());
    std::fill(payloads.begin(), payloads.end(), data::Payload{});
    work.scratch.objects.push_back(sample.layout);
    return {sample.layout.get(), {payloads.data()}};
  }

  static bool is_large(const ByteSource& source, const data::LargeLayouts::Found& found) {
    std::uint64_t bytes = source.size();
    for (const penstock::Source& other : found.others) bytes += other.size();
    return bytes > kSmallFile;
  }

  data::PathTable paths_;
  data::ListedRoot root_;
  FilesOptions options_;
};

Dataset files_in(data::PathTable paths, std::function<std::string()> root, const FilesOptions& options) {
  if (!options.raw) return Dataset(std::make_shared<Files>(std::move(paths), std::move(root), options));
  if (options.keys.empty()) return data::raw_files(std::move(paths), std::move(root), options);
  throw Error(ErrorCode::kInvalidArgument,
              "found keys for raw files, whose samples are their bytes; leave one of them out");
}

/// Finds the folder below which the files of a pattern are.
std::function<std::string()> root_of(std::string_view pattern, const data::PathTable& paths) {
  const bool in_bucket = pattern.starts_with("s3://") || pattern.starts_with("gs://");
  const bool is_listed = !io::is_url(pattern) || (in_bucket && data::is_magic(pattern));
  if (is_listed) return [text = std::string(pattern)] { return data::class_root(text); };
  return [shared = data::shared_folder(paths)] { return shared; };
}

}  // namespace

Dataset files(std::string_view pattern, const FilesOptions& options) {
  if (options.source) {
    throw Error(ErrorCode::kInvalidArgument,
                "found a source of the program's own beside a pattern, which is looked for in folders; give a list of "
                "the paths that the source opens",
                {.path = std::string(pattern)});
  }
  data::PathTable paths = data::expand(pattern, options);
  std::function<std::string()> root = root_of(pattern, paths);
  Dataset found = files_in(std::move(paths), std::move(root), options);
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
  const std::string root = data::class_root(paths);
  Dataset given = files_in(
      std::move(table), [root] { return root; }, options);
  return options.class_folders ? data::with_class_folders(std::move(given), root) : given;
}

}  // namespace penstock
