// Files for a decoder of the program's own. Nothing of a file is read when it is fetched but its size: its bytes are
// read straight into the batch, or into the tensor that the function of map is given.
#include "data/files/raw_files.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "core/shown_url.h"
#include "data/dataset_impl.h"
#include "data/files/class_folders.h"
#include "data/files/listed_root.h"
#include "data/files/open_urls.h"
#include "data/files/own_source.h"
#include "data/sample/blame.h"
#include "data/sample/sample_file.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::data {
namespace {

/// An object up to this size is had by the request that opens it.
constexpr std::uint64_t kSmallObject = std::uint64_t{256} << 10;

/// The layout of the last file, for those of equal size.
struct LastLayout final : Scratch::State {
  LayoutPtr layout;

  const Layout* of(std::int64_t size, Scratch& scratch) {
    if (!layout || layout->tensors[0].shape[0] != size) {
      if (layout) scratch.objects.push_back(std::move(layout));
      layout = single_tensor_layout({DType::uint8, Shape{size}, Shape{1}});
    }
    return layout.get();
  }
};

class RawFiles final : public detail::DatasetImpl {
 public:
  RawFiles(PathTable paths, std::function<std::string()> root, FilesOptions options)
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
    const std::span<Payload> payloads = work.scratch.arena.array<Payload>(indices.size());
    auto& last = work.scratch.state<LastLayout>(this);
    std::vector<io::remote::Opened> opened;
    if (!options_.source) opened = open_urls(paths_, indices, kSmallObject);
    std::size_t url = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      work.call.check_cancelled();
      try {
        const bool is_url = !opened.empty() && paths_.is_url(indices[i]);
        const penstock::Source source =
            is_url ? io::remote::source_of(opened[url++]) : open_one(paths_.path(indices[i]));
        auto file = std::make_shared<const SampleFile>(source);
        payloads[i] = {.place = InFile{.file = file.get()}};
        out[i] = {last.of(static_cast<std::int64_t>(source.size()), work.scratch), {&payloads[i]}};
        work.scratch.objects.push_back(std::move(file));
      } catch (const Error& error) {
        fail(out[i], i, error.within({.path = paths_.path(indices[i])}), work.call, work.scratch);
      }
      ++work.figures.stats.files_opened;
      work.figures.clock.lap(Stage::kOpen, indices[i]);
    }
  }

 private:
  penstock::Source open_one(const std::string& path) const {
    return options_.source ? opened_by(options_.source, path) : open_source(path);
  }

  PathTable paths_;
  ListedRoot root_;
  FilesOptions options_;
};

}  // namespace

Dataset raw_files(PathTable paths, std::function<std::string()> root, const FilesOptions& options) {
  return Dataset(std::make_shared<RawFiles>(std::move(paths), std::move(root), options));
}

}  // namespace penstock::data
