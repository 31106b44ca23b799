#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/output_file.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/system_error.h"
#include "data/pack/new_folder.h"
#include "penstock/error.h"
#include "penstock/save.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 8;
constexpr std::int64_t kImages = 1000;
constexpr std::int64_t kFiles = 200;
constexpr std::int64_t kRows = 256;
constexpr unsigned kSeed = 1;
constexpr std::array<std::string_view, 5> kNames = {"images.npy", "labels.npy", "model.pt", "digits", "clips"};

/// The digits 0 to 9, five columns and seven rows each.
constexpr std::array<std::string_view, 10> kGlyphs = {
    ".###.#...##..###.#.###..##...#.###.", "..#...##....#....#....#....#...###.", ".###.#...#....#...#...#...#...#####",
    "#####...#...#.....#.....##...#.###.", "...#...##..#.#.#..#.#####...#....#.", "######....####.....#....##...#.###.",
    "..##..#...#....####.#...##...#.###.", "#####....#...#...#...#....#....#...", ".###.#...##...#.###.#...##...#.###.",
    ".###.#...##...#.####....#...#..##.."};

struct SampleOptions {
  std::string folder;
  bool json = false;
};

/// Pictures of digits at random places, with noise: the same on every machine.
class Digits {
 public:
  /// (kImages, kSide, kSide) of uint8, and (kImages) of int64.
  std::pair<Tensor, Tensor> draw() {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < kImages; ++i) {
      labels.push_back(below(static_cast<unsigned>(kGlyphs.size())));
      draw_one(static_cast<std::size_t>(labels.back()), pixels);
    }
    return {Tensor::of<std::uint8_t>(pixels).reshape({kImages, kSide, kSide}), Tensor::of<std::int64_t>(labels)};
  }

 private:
  static constexpr unsigned kColumns = 5;
  static constexpr unsigned kRowsOfGlyph = 7;

  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }

  void draw_one(std::size_t digit, std::vector<std::uint8_t>& pixels) {
    const unsigned left = below(kSide - kColumns + 1);
    const unsigned top = below(kSide - kRowsOfGlyph + 1);
    for (unsigned y = 0; y < kSide; ++y) {
      for (unsigned x = 0; x < kSide; ++x) {
        const bool inside = x >= left && x < left + kColumns && y >= top && y < top + kRowsOfGlyph;
        const bool ink = inside && kGlyphs[digit][(y - top) * kColumns + x - left] == '#';
        pixels.push_back(static_cast<std::uint8_t>(ink ? 12 + below(5) : below(3)));
      }
    }
  }

  std::mt19937 random_{kSeed};
};

Value model() {
  std::mt19937 random(kSeed);
  std::vector<float> weight(static_cast<std::size_t>(kRows * kSide * kSide));
  for (float& one : weight) one = static_cast<float>(random() % 2001) / 1000 - 1;
  const std::vector<float> bias(static_cast<std::size_t>(kRows), 0.5F);
  return Value::dict(
      {{"encoder", Value::dict({{"weight", Value::tensor(Tensor::of<float>(weight).reshape({kRows, kSide * kSide}))},
                                {"bias", Value::tensor(Tensor::of<float>(bias))}})}});
}

std::string path_in(const fs::path& folder, std::string_view name) { return (folder / name).string(); }

/// A file for each of the first digits: the picture with its label, and the picture's first rows alone, three to seven,
/// so that lengths differ.
void write_folders(const fs::path& folder, const Tensor& images, const Tensor& labels, const SaveOptions& quick) {
  fs::create_directories(folder / "digits");
  fs::create_directories(folder / "clips");
  const auto classes = labels.values<const std::int64_t>();
  for (std::int64_t i = 0; i < kFiles; ++i) {
    if (quick.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "writing was cancelled before its end");
    const std::string name = core::format("{:04}.pt", i);
    const Value label = Value::integer(classes[static_cast<std::size_t>(i)]);
    save(Value::dict({{"x", Value::tensor(images[i].clone())}, {"y", label}}), path_in(folder / "digits", name), quick);
    save(images[i].slice(0, 0, 3 + i % 5).clone(), path_in(folder / "clips", name), quick);
  }
}

void write(const fs::path& folder, const std::stop_token& stop) {
  const SaveOptions quick{.sync = false, .stop = stop};  // it can be made again
  const auto [images, labels] = Digits().draw();
  save(images, path_in(folder, "images.npy"), quick);
  save(labels, path_in(folder, "labels.npy"), quick);
  save(model(), path_in(folder, "model.pt"), quick);
  write_folders(folder, images, labels, quick);
}

/// Where the files go. Unless they are all there in the end, it takes away what was written, and folders that it made.
class NewFiles {
 public:
  explicit NewFiles(fs::path folder) : folder_(std::move(folder)) {
    for (fs::path made = folder_.lexically_normal(); !made.empty() && !fs::exists(made); made = made.parent_path()) {
      made_ = made;
    }
    fs::create_directories(folder_);
  }
  ~NewFiles() {
    if (whole_) return;
    std::error_code ignored;
    if (!made_.empty()) {
      fs::remove_all(made_, ignored);
      return;
    }
    for (const std::string_view name : kNames) fs::remove_all(folder_ / name, ignored);
  }
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;

  void keep() { whole_ = true; }

 private:
  fs::path folder_;
  fs::path made_;  // the first folder that was not there
  bool whole_ = false;
};

int run(const SampleOptions& options) {
  require_no_stream(options.folder);
  const fs::path folder(options.folder);
  data::require_new_folder(options.folder);
  Interrupt interrupt;
  interrupt.during([&] {
    try {
      NewFiles files(folder);
      write(folder, interrupt.token());
      files.keep();
    } catch (const fs::filesystem_error& error) {
      core::throw_errno(error.code().value(), "cannot make the folder", {.path = options.folder});
    }
  });
  if (options.json) {
    print_json(Json{{"path", options.folder},
                    {"files", {"images.npy", "labels.npy", "model.pt", "digits/*.pt", "clips/*.pt"}}});
  } else {
    core::print("{0}: images.npy, labels.npy, model.pt, and {1} files each in digits and clips\n",
                printable(options.folder), kFiles);
  }
  return 0;
}

std::function<int()> attach_sample(Arguments& arguments) {
  auto options = std::make_shared<SampleOptions>();
  arguments.add("FOLDER", &options->folder, "The folder to write: a new one, or an empty one")
      .required()
      .takes("FOLDER");
  arguments.add("--json", &options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kSample{
    "sample",
    "Write small tensor files to try things with",
    "Writes what the examples of the documentation read: images.npy (1,000 pictures of digits, 8 by 8), labels.npy, "
    "model.pt (a dict with two tensors), digits/*.pt (a picture and its label each) and clips/*.pt (tensors of "
    "different length). Together they take under 1 MB. All of them are written or none.",
    {"penstock sample .", "penstock sample data", "penstock sample data/more"},
    attach_sample};

}  // namespace penstock::cli
