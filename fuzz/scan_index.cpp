// The index of a folder that is kept between runs. Whatever is in that file, reading it gives listings that hold, or
// none; listings are kept as they are; and the files that are found are those that are there. The input is what follows
// the head of such a file, or, when it begins with its magic, all of it.

#include "data/scan/scan_index.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "io/copy/crc32.h"
#include "penstock/dataset.h"
#include "support/input_file.h"
#include "support/outcome.h"
#include "support/scratch_folder.h"

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHeadBytes = kMagicBytes + 8 + 4;
constexpr std::size_t kParts = 4;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A small tree to list, for as long as the program runs.
class Tree {
 public:
  Tree() {
    for (const char* name : {"d/a/1.pt", "d/a/2.pt", "d/b/3.pt", "d/b/deep/4.pt", "d/0.pt"}) {
      fs::create_directories((folder_.path() / name).parent_path());
      write_all(folder_.path() / name, "x");
    }
    listed_ = files(pattern_of()).paths();
    data::ScanIndex(index(), pattern_of()).write({});
    empty_ = read_all(index());
  }

  std::string pattern_of() const { return folder_.path() / "d/**/*.pt"; }
  std::string index() const { return folder_.path() / "files.index"; }
  std::string copy() const { return folder_.path() / "copy.index"; }
  const std::vector<std::string>& listed() const { return listed_; }

  /// A whole index with this body behind what every index of the pattern begins with.
  std::string file_of(std::string_view body) const {
    if (body.starts_with(empty_.substr(0, kMagicBytes))) return std::string(body);
    std::string out = empty_ + std::string(body);
    const std::uint64_t size = out.size() - kHeadBytes;
    std::memcpy(out.data() + kMagicBytes, &size, sizeof size);
    const std::uint32_t crc = io::crc32(0, std::as_bytes(std::span(out)).subspan(kHeadBytes));
    std::memcpy(out.data() + kMagicBytes + sizeof size, &crc, sizeof crc);
    return out;
  }

 private:
  ScratchFolder folder_;
  std::vector<std::string> listed_;
  std::string empty_;
};

void check_listing(const data::Listing& listing) {
  for (const std::uint32_t part : listing.visit.parts) require(part < kParts, "a part that the pattern does not have");
  require(listing.names.empty() || listing.names.back() == '\0', "a name without an end");
  require(listing.names.find('/') == std::string::npos, "a name that leaves its folder");
  for (const data::Visit& next : listing.next) {
    require(next.folder.size() > listing.visit.folder.size(), "a folder that leads back");
  }
}

bool same(const data::Listing& a, const data::Listing& b) {
  return a.visit == b.visit && a.identity == b.identity && a.names == b.names && a.next == b.next;
}

void check(const Tree& tree, std::string_view body) {
  write_all(tree.index(), tree.file_of(body));
  const std::vector<data::Listing> found = data::ScanIndex(tree.index(), tree.pattern_of()).read(kParts);
  for (const data::Listing& listing : found) check_listing(listing);

  const data::ScanIndex copy(tree.copy(), tree.pattern_of());
  copy.write(found);
  const std::vector<data::Listing> again = copy.read(kParts);
  require(again.size() == found.size(), "listings were lost on the way");
  for (std::size_t i = 0; i < found.size(); ++i) require(same(found[i], again[i]), "a listing was changed on the way");

  const auto listed =
      attempt([&] { return files(tree.pattern_of(), {.index = true, .index_path = tree.index()}).paths(); });
  if (!listed.ok()) fail("a folder was not listed for its index: " + listed.text());
  require(*listed.value == tree.listed(), "the index made other files of it");
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const penstock::fuzz::Tree tree;
  penstock::fuzz::check(tree, {reinterpret_cast<const char*>(data), size});
  return 0;
}
