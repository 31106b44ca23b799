// Samples of one placement that lie alike are converted together, so that a stop, a guard and a look at the file cost
// once for many. A conversion reads where the payload lies (memory, a mapping) or what was read into staging memory
// first. It writes into the slot of the batch, or beside it when the batch pads its samples. In a cut mapping all
// conversions of a group are repeated one by one, because an error must name the sample.

#include "data/batch/converter.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "data/sample/held_file.h"
#include "data/sample/runs.h"
#include "io/copy/guarded.h"

namespace penstock::data {

namespace {

/// Samples and bytes converted at once. They are few, so that a stop of the loader is answered soon.
constexpr std::size_t kItemsAtOnce = 256;
constexpr std::uint64_t kConvertBytes = std::uint64_t{1} << 20;
/// Bytes that are asked for at once, where each answer takes long.
constexpr std::uint64_t kStagedAtOnce = std::uint64_t{32} << 20;
/// How many bytes of the next source are prefetched while one is converted. Shuffled rows begin at addresses that the
/// processor's own prefetchers do not expect.
constexpr std::uint64_t kAskedAhead = 2048;
constexpr std::uint64_t kCacheLine = 64;

/// Its address is the key of the staging memory in a thread's Scratch.
constexpr char kStagingOwner = 0;

[[noreturn]] void throw_refused(const Conversion& conversion, const Refused& refused, std::size_t position) {
  try {
    conversion.throw_refused(refused);
  } catch (const Error& error) {
    throw SampleError(position, error);
  }
}

/// Whether it is asked for together with all others of the batch.
bool is_at_once(const Payload& payload) {
  const auto* const file = std::get_if<InFile>(&payload.place);
  return file != nullptr && file->file->reads_at_once();
}

void ask_for(const std::byte* from, std::uint64_t bytes) noexcept {
  for (std::uint64_t at = 0; at < std::min(bytes, kAskedAhead); at += kCacheLine) __builtin_prefetch(from + at);
}

}  // namespace

/// A thread keeps it from batch to batch, so that equal batches allocate nothing.
struct Converter::Staging final : Scratch::State {
  Arena arena;
  std::vector<std::byte> between;
  std::vector<Item> items;
};

/// A sample that is read into staging memory together with others.
struct Converter::Staged {
  const Placement* placement;
  FileRun run;
};

/// Conversions that read a mapped file under a guard, because another program may cut the file meanwhile.
class Converter::Guarded final : public io::GuardedMemory {
 public:
  Guarded(std::span<const Item> items, std::byte* between) : items_(items), between_(between) {}

  bool contains(const std::byte* address) const noexcept override {
    const std::less<> before;
    for (const Item& item : items_) {
      if (!before(address, item.from) && before(address, item.from + item.conversion->input_extent())) return true;
    }
    return false;
  }

  void read() const noexcept override {
    for (std::size_t i = 0; i < items_.size() && !refused_; ++i) {
      if (i + 1 < items_.size()) ask_for(items_[i + 1].from, items_[i + 1].conversion->input_extent());
      const Item& item = items_[i];
      refused_ = item.conversion->run(item.from, item.to, between_, item.drawn);
      at_ = i;
    }
  }

  void throw_if_refused() const {
    if (refused_) throw_refused(*items_[at_].conversion, *refused_, items_[at_].position);
  }

 private:
  std::span<const Item> items_;
  std::byte* between_;
  mutable std::optional<Refused> refused_;
  mutable std::size_t at_ = 0;
};

Converter::Converter(const Fetched& fetched, std::byte* block, CopiedFiles& files, const CallContext& call,
                     Scratch& scratch, Figures& figures)
    : fetched_(fetched),
      block_(block),
      files_(files),
      call_(call),
      scratch_(scratch),
      figures_(figures),
      staging_(scratch.state<Staging>(&kStagingOwner)),
      items_(staging_.items) {
  staging_.arena.reset();
}

std::byte* Converter::take_staging(std::uint64_t bytes) {
  return staging_.arena.allocate(static_cast<std::size_t>(bytes));
}

void Converter::release_staging() noexcept { staging_.arena.reset(); }

std::byte* Converter::between(const Conversion& conversion) {
  if (staging_.between.size() < conversion.between()) {
    staging_.between.resize(static_cast<std::size_t>(conversion.between()));
  }
  return staging_.between.data();
}

void Converter::convert(const Placement& placement) {
  for (std::size_t i = 0; i < fetched_.size();) {
    const std::size_t first = i++;
    if (!placement.has(first)) continue;
    const Payload& begin = payload(placement, first);
    if (begin.conversion == nullptr || begin.in_large_file()) continue;
    if (is_at_once(begin)) continue;
    while (i < fetched_.size() && i - first < kItemsAtOnce && goes_on(placement, first, i)) ++i;
    call_.check_cancelled();
    if (const auto* const file = std::get_if<InFile>(&begin.place)) {
      convert_read(placement, first, i, *file);
    } else {
      convert_memory(placement, first, i);
    }
  }
  figures_.clock.lap(Stage::kCopy);
}

bool Converter::goes_on(const Placement& placement, std::size_t first, std::size_t next) const {
  if (!placement.has(next)) return false;
  const Payload& begin = payload(placement, first);
  const Payload& other = payload(placement, next);
  if (other.conversion != begin.conversion || other.place.index() != begin.place.index()) return false;
  const std::uint64_t bytes = begin.conversion->input_extent();
  if ((next - first + 1) * std::max(bytes, begin.conversion->output().nbytes) > kConvertBytes) return false;
  if (const auto* const mapping = std::get_if<InMapping>(&begin.place)) {
    return std::get_if<InMapping>(&other.place)->file == mapping->file;
  }
  const auto* const read = std::get_if<InFile>(&begin.place);
  if (read == nullptr) return true;
  const InFile& behind = *std::get_if<InFile>(&other.place);
  return behind.file == read->file && behind.offset == read->offset + (next - first) * bytes;
}

Converter::Item Converter::item(const Placement& placement, std::size_t position, const std::byte* from) {
  const Payload& of = payload(placement, position);
  std::byte* to = block_ + placement.slot(position);
  if (!placement.takes_as_is(of.conversion->output()))
    to = scratch_.arena.allocate(static_cast<std::size_t>(of.conversion->output().nbytes));
  return {of.conversion, from, to, position, of.conversion->draw(of.keys)};
}

void Converter::settle(const Placement& placement, const Item& item) {
  const TensorLayout& layout = item.conversion->output();
  if (placement.takes_as_is(layout)) return;
  const Runs runs = placement.runs_of(layout);
  std::byte* const to = block_ + placement.slot(item.position);
  runs.for_each([&](std::uint64_t from, std::uint64_t at) {
    std::memcpy(to + at, item.to + from, static_cast<std::size_t>(runs.run_bytes()));
  });
}

void Converter::run(const Item& item) {
  const auto refused = item.conversion->run(item.from, item.to, between(*item.conversion), item.drawn);
  if (refused) throw_refused(*item.conversion, *refused, item.position);
}

void Converter::finish(const Placement& placement, std::size_t position, const std::byte* from) {
  const Item one = item(placement, position, from);
  run(one);
  settle(placement, one);
}

void Converter::convert_memory(const Placement& placement, std::size_t first, std::size_t last) {
  items_.clear();
  for (std::size_t i = first; i < last; ++i) items_.push_back(item(placement, i, payload(placement, i).data()));
  if (const auto* const mapping = std::get_if<InMapping>(&payload(placement, first).place)) {
    files_.add(mapping->file, first);
    convert_guarded(items_, *mapping->file);
  } else {
    for (const Item& one : items_) run(one);
  }
  for (const Item& one : items_) settle(placement, one);
}

void Converter::convert_guarded(std::span<const Item> items, const HeldFile& file) {
  std::byte* const memory = between(*items.front().conversion);
  const Guarded all(items, memory);
  if (io::read_guarded(all)) return all.throw_if_refused();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Guarded one(items.subspan(i, 1), memory);
    if (io::read_guarded(one)) {
      one.throw_if_refused();
      continue;
    }
    try {
      io::throw_vanished(file.name());
    } catch (const Error& error) {
      throw SampleError(items[i].position, file.error_of_change(error));
    }
  }
}

void Converter::convert_at_once(std::span<const Placement> placements) {
  std::vector<Staged> staged;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < fetched_.size(); ++i) {
    for (const Placement& placement : placements) {
      if (!placement.has(i)) continue;
      const Payload& of = payload(placement, i);
      if (of.conversion == nullptr || !is_at_once(of)) continue;
      const std::uint64_t each = of.conversion->input_extent();
      if (!staged.empty() && each > kStagedAtOnce - std::min(bytes, kStagedAtOnce)) {
        convert_staged(staged);
        staged.clear();
        bytes = 0;
      }
      bytes += each;
      staged.push_back({&placement, {std::get<InFile>(of.place), take_staging(each), each, i}});
    }
  }
  convert_staged(staged);
}

void Converter::convert_staged(std::span<const Staged> staged) {
  if (staged.empty()) return;
  call_.check_cancelled();
  std::vector<FileRun> runs;
  for (const Staged& one : staged) runs.push_back(one.run);
  figures_.stats.read_bytes += read_at_once(std::move(runs));
  figures_.clock.lap(Stage::kRead);
  for (const Staged& one : staged) {
    files_.add(one.run.from.file, one.run.position);
    finish(*one.placement, one.run.position, one.run.to);
  }
  release_staging();
  figures_.clock.lap(Stage::kCopy);
}

void Converter::convert_read(const Placement& placement, std::size_t first, std::size_t last, const InFile& begin) {
  const std::uint64_t each = payload(placement, first).conversion->input_extent();
  const std::uint64_t bytes = (last - first) * each;
  std::byte* const read = take_staging(bytes);
  try {
    begin.file->read(begin.offset, {read, static_cast<std::size_t>(bytes)});
  } catch (const Error& error) {
    throw SampleError(first, begin.file->error_of_change(error));
  }
  files_.add(begin.file, first);
  figures_.stats.read_bytes += bytes;
  figures_.clock.lap(Stage::kRead);
  for (std::size_t i = first; i < last; ++i) finish(placement, i, read + (i - first) * each);
  release_staging();
}

}  // namespace penstock::data
