// A dataset of files. All of them come in by one door (Files::sample_of), whatever they were opened as. A small file is
// read whole by one call, because that costs less than finding out which parts to leave out. A large file is only
// opened here, and read when the batch has its block (large_file.h), so that its payload moves once. What either of
// them holds is found by KnownLayouts. Only the size tells them apart, so after a large file the next files are asked
// for theirs first.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/shown_url.h"
#include "data/dataset_impl.h"
#include "data/files/class_folders.h"
#include "data/files/file_at_hand.h"
#include "data/files/known_layouts.h"
#include "data/files/own_source.h"
#include "data/files/split_reader.h"
#include "data/sample/blame.h"
#include "data/sample/held_file.h"
#include "data/scan/glob.h"
#include "data/scan/name_match.h"
#include "data/scan/path_table.h"
#include "io/file/file_url.h"
#include "io/file/url.h"
#include "io/remote/remote_source.h"

namespace penstock {

namespace {

using data::FileAtHand;
using data::Sample;
using data::Stage;
using data::Work;

/// Files up to this size are read whole, in one call.
constexpr std::size_t kSmallFile = std::size_t{256} << 10;

/// Files up to this size are read whole where only their headers are wanted: most of them fit into one page of memory.
constexpr std::size_t kLittleFile = std::size_t{16} << 10;

/// After a large file, this many files are asked for their size before they are read. Folders of mixed sizes are
/// common, and what was read of a large file is thrown away. In a folder of small files none is asked.
constexpr unsigned kAskedAfterLarge = 64;

/// What a thread keeps for the files of one dataset.
struct FilesMemory final : data::Scratch::State {
  data::KnownLayouts layouts;
  std::string path;     ///< of the file at hand
  unsigned to_ask = 0;  ///< files whose size is asked first
  data::SplitReader reader{kSmallFile};
  std::optional<data::DescriptorLimit> limit;  ///< of the batch at hand, when it has large files
  data::LayoutPtr raw;                         ///< of the last raw file, for those of equal size
};

class Files final : public detail::DatasetImpl {
 public:
  /// `root`: the folder that the files were listed below.
  Files(data::PathTable paths, std::string root, FilesOptions options)
      : paths_(std::move(paths)), root_(std::move(root)), options_(std::move(options)) {}

  std::int64_t size() const override { return paths_.size(); }
  std::string describe(std::int64_t index) const override { return core::shown_path(paths_.path(index)); }
  std::string path(std::int64_t index) const override { return paths_.path(index); }
  std::size_t root_size(std::int64_t index) const override {
    return paths_.path(index).starts_with(root_) ? root_.size() : 0;
  }
  const FilesOptions* file_options() const noexcept override { return &options_; }
  bool samples_are_files() const noexcept override { return true; }
  std::uint64_t read_bytes(std::int64_t index) const override {
    return options_.source ? std::numeric_limits<std::uint64_t>::max() : paths_.bytes_on_disk(index);
  }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    auto& memory = work.scratch.state<FilesMemory>(this);
    memory.limit.reset();
    const std::vector<io::remote::Opened> objects = open_objects(indices);
    std::size_t next_object = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      work.call.check_cancelled();
      try {
        paths_.path(indices[i], memory.path);
        const bool is_object = !objects.empty() && paths_.is_url(indices[i]);
        const io::remote::Opened* const object = is_object ? &objects[next_object++] : nullptr;
        out[i] = sample_of(opened(indices[i], memory.path, object), indices[i], i, memory, work);
        work.figures.clock.lap(Stage::kOpen, indices[i]);  // closing it
      } catch (const Error& error) {
        data::fail(out[i], i, error.within({.path = paths_.path(indices[i])}), work.call, work.scratch);
      }
    }
  }

 private:
  /// Objects behind URLs are asked for together, because each answer takes as long as all: a batch costs the time of
  /// one request, as far as so many may be in flight. The small ones come whole.
  std::vector<io::remote::Opened> open_objects(std::span<const std::int64_t> indices) const {
    if (options_.source || !paths_.has_urls()) return {};
    std::vector<std::string> urls;
    std::vector<std::uint64_t> heads;
    for (const std::int64_t index : indices) {
      if (!paths_.is_url(index)) continue;
      urls.push_back(paths_.path(index));
      const std::uint64_t bytes = paths_.bytes_on_disk(index);
      heads.push_back(bytes <= kSmallFile ? std::max<std::uint64_t>(bytes, 1) : io::remote::RemoteSource::kHead);
    }
    return io::remote::open_all(urls, heads, kSmallFile);
  }

  FileAtHand opened(std::int64_t index, const std::string& path, const io::remote::Opened* object) const {
    if (options_.source) return {data::opened_by(options_.source, path), path, true};
    if (object != nullptr) return {io::remote::source_of(*object), path, false};
    io::FileDescriptor fd = paths_.open(index);
    if (fd) return {std::move(fd), path};
    return {open_source(path), path, false};  // says why it cannot be opened
  }

  /// The sample in a file. Small ones are in memory when this returns, and all others are left to who has the batch's
  /// block.
  Sample sample_of(FileAtHand file, std::int64_t index, std::size_t position, FilesMemory& memory,
                   const Work& work) const {
    work.figures.clock.lap(Stage::kOpen, index);
    ++work.figures.stats.files_opened;
    if (options_.raw) return raw_sample(file, memory, work);
    const std::size_t most = work.call.headers_only ? kLittleFile : kSmallFile;
    bool may_be_small = true;
    if (work.call.headers_only || memory.to_ask > 0) {
      if (memory.to_ask > 0) --memory.to_ask;
      may_be_small = file.size() <= most;
    }
    // A file that does not fit into what the Scratch may hold is read in two steps, as a large one is.
    if (may_be_small && work.scratch.arena.used() < work.call.whole_file_bytes) {
      if (const auto sample = small_sample(file, most, index, position, memory, work)) return *sample;
    }
    const penstock::Source& source = file.source();
    if (source.size() > kSmallFile) memory.to_ask = kAskedAfterLarge;
    if (!memory.limit) memory.limit.emplace();
    const Sample sample = memory.layouts.large.sample(source, options_.keys, *memory.limit, work);
    work.figures.clock.lap(Stage::kDecode, index);
    return sample;
  }

  /// Reads the whole file, its payload into its slot where the batch has one. Nothing when it is not small or cannot be
  /// read.
  std::optional<Sample> small_sample(FileAtHand& file, std::size_t most, std::int64_t index, std::size_t position,
                                     FilesMemory& memory, const Work& work) const {
    data::WholeFile whole{{}, memory.path, options_.keys};
    std::optional<Sample> sample;
    if (file.fd() >= 0 && is_awaited(memory, work.slots)) {
      std::byte* const slot = work.slots.slot(position);
      work.figures.stats.read_bytes += memory.reader.read(file.fd(), memory.layouts.small.split(), slot);
      work.figures.clock.lap(Stage::kRead, index);
      if (memory.reader.expected()) {
        sample = memory.layouts.small.recognise(
            {memory.reader.image(), memory.path, options_.keys, slot, memory.layouts.small.split()}, work);
      }
      if (!sample) whole.bytes = memory.reader.whole(work.scratch.arena);
    } else {
      whole.bytes = file.whole(most, work.scratch);
      work.figures.stats.read_bytes += whole.bytes.size();
      work.figures.clock.lap(Stage::kRead, index);
    }
    if (!sample) {
      if (whole.bytes.empty() || whole.bytes.size() > most) return std::nullopt;
      sample = memory.layouts.small.recognise(whole, work);
      // A recognised file is known to be complete; for any other one we look.
      if (!sample && !file.is_complete()) return std::nullopt;
      if (!sample) sample = memory.layouts.small.parse(whole, work);
    }
    work.figures.clock.lap(Stage::kDecode, index);
    return sample;
  }

  /// Whether a file like the last one holds just the bytes that the block of the batch has a slot for.
  bool is_awaited(const FilesMemory& memory, const data::ExpectedSlots& expected) const {
    return expected.dataset == this && memory.layouts.small.split().bytes == expected.bytes;
  }

  /// The bytes of a file for a decoder of the program's own: they are read straight into the batch, or into the tensor
  /// that the function of map is given.
  static Sample raw_sample(FileAtHand& file, FilesMemory& memory, const Work& work) {
    if (!memory.limit) memory.limit.emplace();
    auto opened = std::make_shared<const data::HeldFile>(file.source(), *memory.limit);
    const auto bytes = static_cast<std::int64_t>(file.source().size());
    if (!memory.raw || memory.raw->tensors[0].shape[0] != bytes) {
      memory.raw = data::single_tensor_layout({DType::uint8, Shape{bytes}, Shape{1}});
    }
    const std::span<data::Payload> payload = work.scratch.arena.array<data::Payload>(1);
    payload[0] = {.place = data::InFile{.file = opened.get()}};
    work.scratch.objects.insert(work.scratch.objects.end(), {std::move(opened), memory.raw});
    return {memory.raw.get(), {payload.data()}};
  }

  data::PathTable paths_;
  std::string root_;
  FilesOptions options_;
};

Dataset files_in(data::PathTable paths, std::string root, const FilesOptions& options) {
  if (options.raw && !options.keys.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "found keys for raw files, whose samples are their bytes; leave one of them out");
  }
  const Dataset found(std::make_shared<Files>(std::move(paths), std::move(root), options));
  return options.class_folders ? data::with_class_folders(found) : found;
}

/// The folder below which the files of a pattern are.
std::string root_of(std::string_view pattern, const data::PathTable& paths) {
  const bool is_listed = !io::is_url(pattern) || (io::is_in_store(pattern) && data::is_magic(pattern));
  return is_listed ? data::class_root(pattern) : data::shared_folder(paths);
}

}  // namespace

Dataset files(TextView pattern, const FilesOptions& options) {
  if (options.source) {
    throw Error(ErrorCode::kInvalidArgument,
                "found a source of the program's own beside a pattern, which is looked for in folders; give a list of "
                "the paths that the source opens",
                {.path = std::string(pattern)});
  }
  const std::string text = io::local_path(pattern);
  data::PathTable paths = data::expand(text, options);
  std::string root = root_of(text, paths);
  return files_in(std::move(paths), std::move(root), options);
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
  std::string root = data::shared_folder(table);
  return files_in(std::move(table), std::move(root), options);
}

}  // namespace penstock
