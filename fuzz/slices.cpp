// Every way to read a tensor of a file gives what loading the whole file gives, or fails: an entry by itself, slices of
// it, mapped, past the page cache, into memory that is there, rows of it, and a part of the content.

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "archive/materialise.h"
#include "penstock/dataset.h"
#include "penstock/load.h"
#include "support/input.h"
#include "support/input_file.h"
#include "support/mutator.h"
#include "support/outcome.h"
#include "support/payload.h"
#include "support/same_value.h"

PENSTOCK_FUZZ_MUTATOR(mutate_file_and_choices)

namespace penstock::fuzz {
namespace {

constexpr std::size_t kMostEntries = 8;
constexpr std::size_t kMostSlices = 4;
constexpr std::size_t kMostCuts = 3;
constexpr std::int64_t kMostRows = 3;
constexpr std::size_t kMostParts = 4;

/// The tensors of a loaded structure by the entry that each was loaded from.
std::map<std::size_t, Tensor> tensors_of(const Value& structure, const Value& loaded) {
  std::map<std::size_t, Tensor> out;
  std::set<const void*> seen;
  std::vector<std::pair<Value, Value>> open{{structure, loaded}};
  while (!open.empty()) {
    const auto [from, to] = std::move(open.back());
    open.pop_back();
    if (from.node_id() == nullptr || !seen.insert(from.node_id()).second) continue;
    if (const auto entry = from.entry_index()) out.emplace(*entry, to.as_tensor());
    if (from.state()) open.emplace_back(*from.state(), *to.state());
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from.is(Value::Kind::kDict)) {
        open.emplace_back(from.item(i).first, to.item(i).first);
        open.emplace_back(from.item(i).second, to.item(i).second);
      } else {
        open.emplace_back(from[i], to[i]);
      }
    }
  }
  return out;
}

/// One way of narrowing, the same for both.
struct Cut {
  bool select = false;
  std::size_t dim = 0;
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;

  static Cut choose(const Shape& shape, Choices& choices) {
    Cut out;
    out.select = choices.below(4) == 0;
    out.dim = choices.below(shape.rank() + 1);
    const std::int64_t size = out.dim < shape.rank() ? shape[out.dim] : 1;
    const std::int64_t around = 2 * size + 3;
    out.start = static_cast<std::int64_t>(choices.word()) % around - size - 1;
    out.stop = static_cast<std::int64_t>(choices.word()) % around - size - 1;
    out.step = static_cast<std::int64_t>(choices.below(5));
    return out;
  }

  template <class View>
  View operator()(const View& view) const {
    return select ? view.select(dim, start) : view.slice(dim, start, stop, step);
  }
};

LoadOptions options_of(Choices& choices) {
  LoadOptions out{.verify = choices.flag(), .threads = 1 + choices.below(2)};
  switch (choices.below(5)) {
    case 1:
      out.mmap = true;
      break;
    case 2:
      out.direct = true;
      break;
    case 3:
      out.direct = false;
      break;
    default:
      break;
  }
  return out;
}

class Check {
 public:
  Check(Archive archive, Choices choices) : archive_(std::move(archive)), choices_(choices) {}

  void run() {
    const auto loaded = attempt([&] { return archive_.load({.verify = false, .threads = 1}); });
    if (loaded.ok()) whole_ = tensors_of(archive_.structure(), *loaded.value);
    bool all = true;
    for (std::size_t i = 0; i < archive_.entries().size(); ++i) all &= check_entry(i, loaded.ok());
    if (all && !loaded.ok()) fail("each tensor can be loaded, but not all of them: " + loaded.text());
    check_verified(loaded.ok());
    if (!loaded.ok()) return;
    check_placed();
    check_mapped();
    check_parts(*loaded.value);
  }

 private:
  /// Whether it can be loaded.
  bool check_entry(std::size_t i, bool all_load) {
    const LazyTensor lazy = archive_.entry(i);
    const auto alone = attempt([&] { return lazy.load({.verify = false, .threads = 1}); });
    if (all_load && !alone.ok()) fail("a tensor of a file that loads does not: " + alone.text());
    if (!alone.ok()) return false;
    const auto whole = whole_.find(i);
    if (whole != whole_.end()) require_same(*alone.value, whole->second, "a tensor loaded alone");
    if (i >= kMostEntries) return true;
    for (std::size_t n = choices_.below(kMostSlices + 1) + 1; n > 0; --n) check_slice(lazy, *alone.value);
    check_rows(lazy, *alone.value);
    return true;
  }

  static void require_same(const Tensor& got, const Tensor& wanted, const std::string& what) {
    const std::string found = difference_of(got, wanted, kValuesAlone);
    if (!found.empty()) fail(what + " differs: " + found);
  }

  void check_slice(LazyTensor lazy, Tensor tensor) {
    const TensorEntry entry = lazy.entry();
    for (std::size_t n = choices_.below(kMostCuts + 1); n > 0; --n) {
      const Cut cut = Cut::choose(tensor.shape(), choices_);
      auto narrow_lazy = attempt([&] { return cut(lazy); });
      auto narrow = attempt([&] { return cut(tensor); });
      if (narrow_lazy.ok() != narrow.ok()) fail("a slice of one is refused: " + narrow.text() + narrow_lazy.text());
      if (!narrow.ok()) continue;
      lazy = std::move(*narrow_lazy.value);
      tensor = std::move(*narrow.value);
    }
    const LoadOptions options = options_of(choices_);
    const auto got = attempt([&] { return lazy.load(options); });
    if (got.ok()) return require_same(*got.value, tensor, "a slice");
    const bool changed = entry.encoding.deflated || entry.encoding.changes_elements();
    if (options.mmap.value_or(false) && changed && got.failed_by(ErrorCode::kUnsupported)) return;
    if (options.verify && got.failed_by(ErrorCode::kChecksum)) return;
    fail("a slice was refused, and the tensor loads: " + got.text());
  }

  void check_rows(const LazyTensor& lazy, const Tensor& tensor) {
    std::optional<bool> mmap;
    if (const std::size_t way = choices_.below(3)) mmap = way == 1;
    const auto dataset = attempt([&] { return rows(lazy, mmap); });
    if (!dataset.ok()) {
      // What has to be loaded for its rows is verified.
      if (tensor.rank() == 0 || dataset.failed_by(ErrorCode::kChecksum)) return;
      fail("rows were refused, and the tensor loads: " + dataset.text());
    }
    if (dataset.value->size() != tensor.shape()[0]) fail("another number of rows");
    for (std::int64_t i = 0; i < std::min(dataset.value->size(), kMostRows); ++i) {
      const auto row = attempt([&] { return dataset.value->get(i); });
      if (!row.ok()) fail("a row was refused, and the tensor loads: " + row.text());
      require_same(row.value->as_tensor(), tensor.select(0, i), "a row");
    }
  }

  /// A file loads as a whole when each of its tensors does, damage that checksums tell included.
  void check_verified(bool loads) {
    const auto all = attempt([&] { return archive_.load({.threads = 1}); });
    if (all.ok() && !loads) fail("a file loads with its checksums verified alone");
    bool each = true;
    for (std::size_t i = 0; i < archive_.entries().size(); ++i) {
      const auto one = attempt([&] { return archive_.entry(i).load({.threads = 1}); });
      each &= one.ok();
      if (all.ok() && !one.ok()) fail("a tensor of a file that loads does not: " + one.text());
      if (one.ok() && whole_.contains(i)) require_same(*one.value, whole_.at(i), "a tensor loaded verified");
    }
    if (each && !all.ok()) fail("each tensor can be loaded, but not all of them: " + all.text());
  }

  void check_placed() {
    std::vector<Placement> places;
    for (std::size_t i = 0; i < archive_.entries().size(); ++i) {
      const TensorEntry& entry = archive_.entries()[i];
      places.push_back({i, Tensor::zeros(entry.shape, DType::uint8)});
      places.back().to = Tensor::empty(entry.shape, entry.dtype);
    }
    LoadOptions options = options_of(choices_);
    options.mmap = {};
    options.verify = false;
    const auto done = attempt([&] {
      archive_.load_into(places, options);
      return true;
    });
    if (!done.ok()) fail("tensors were not loaded into memory: " + done.text());
    for (const Placement& place : places) {
      if (whole_.contains(place.entry)) require_same(place.to, whole_.at(place.entry), "a tensor loaded into memory");
    }
  }

  void check_mapped() const {
    const auto mapped = attempt([&] { return archive_.load({.mmap = true, .verify = false}); });
    if (!mapped.ok() && !mapped.failed_by(ErrorCode::kUnsupported)) fail("a file was not mapped: " + mapped.text());
    if (!mapped.ok()) return;
    for (const auto& [entry, tensor] : tensors_of(archive_.structure(), *mapped.value)) {
      require_same(tensor, whole_.at(entry), "a mapped tensor");
    }
  }

  /// What a key leads to, as an archive by itself.
  void check_parts(const Value& loaded) const {
    if (!loaded.is(Value::Kind::kDict)) return;
    for (std::size_t i = 0; i < std::min(loaded.size(), kMostParts); ++i) {
      const auto [key, value] = loaded.item(i);
      if (!key.is(Value::Kind::kString)) continue;
      const auto part =
          attempt([&, &wanted = key] { return archive_.part(wanted).load({.verify = false, .threads = 1}); });
      if (!part.ok()) fail("a part of a file that loads does not: " + part.text());
      const std::string found = difference_of(*part.value, value);
      if (!found.empty()) fail("a part of a file is not what the file has there: " + found);
    }
  }

  Archive archive_;
  Choices choices_;
  std::map<std::size_t, Tensor> whole_;
};

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::fuzz;
  const Input input = split_input(data, size);
  Choices choices(input.choices);
  const auto where = choices.below(4) == 1 ? InputFile::Where::kDisk : InputFile::Where::kMemory;
  const InputFile file(input.file, where);
  const auto archive = attempt([&] { return penstock::open(file.path(), {.verify = !choices.flag()}); });
  if (archive.ok() && is_small(*archive.value)) Check(*archive.value, choices).run();
  return 0;
}
