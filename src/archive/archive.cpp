// What the handles Archive and LazyTensor do. Each load runs within `reported`, which measures it, adds what went wrong
// meanwhile (archive/unchanged.h), and makes sure at the end that the files it read are still those that were opened.
// The loads themselves are in load_tensors.cpp, load_into.cpp (memory that is there) and load_converted.cpp.

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "archive/archive_state.h"
#include "archive/load_converted.h"
#include "archive/load_into.h"
#include "archive/load_tensors.h"
#include "archive/map_view.h"
#include "archive/one_block.h"
#include "archive/unchanged.h"
#include "archive/whole_storages.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/progress.h"
#include "core/stop_scope.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "core/view.h"
#include "io/move/work_queue.h"
#include "io/read/read_for_crc.h"
#include "io/read/reader.h"
#include "io/remote/traffic.h"
#include "io/source/composed_source.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "value/graph.h"

namespace penstock {

std::uint64_t TensorEntry::nbytes() const {
  return core::checked_mul<std::uint64_t>(static_cast<std::uint64_t>(shape.numel()), dtype.itemsize(),
                                          "the size of a tensor");
}

namespace detail {

ArchiveState::NameMatches ArchiveState::find_exactly(std::string_view name) const {
  std::call_once(names_once_, [this] {
    by_name_.resize(index.entries.size());
    std::iota(by_name_.begin(), by_name_.end(), 0U);
    std::stable_sort(by_name_.begin(), by_name_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return index.entries[a].name < index.entries[b].name;
    });
  });
  const auto first = std::lower_bound(by_name_.begin(), by_name_.end(), name, [this](std::uint32_t i, auto wanted) {
    return std::string_view(index.entries[i].name) < wanted;
  });
  NameMatches found;
  for (auto at = first; at != by_name_.end() && index.entries[*at].name == name; ++at) ++found.count;
  if (found.count != 0) found.first = *first;
  return found;
}

ArchiveState::NameMatches ArchiveState::find(std::string_view name) const {
  const NameMatches found = find_exactly(name);
  const std::string_view suffix = format->name_suffix;
  if (found.count != 0 || suffix.empty()) return found;
  return name.ends_with(suffix) ? find_exactly(name.substr(0, name.size() - suffix.size()))
                                : find_exactly(std::string(name) + std::string(suffix));
}

void ArchiveState::verify(std::span<const std::size_t> storages, const LoadOptions& options, Report& report) const {
  std::vector<std::size_t> unknown(storages.begin(), storages.end());
  {
    const std::lock_guard lock(verified_mutex_);
    verified_.resize(index.storages.size());
    std::erase_if(unknown, [this](std::size_t storage) { return verified_[storage]; });
  }
  if (unknown.empty()) return;
  const core::Stopwatch watch;
  const core::StopScope scope(options.stop);
  std::vector<io::CrcRun> runs;
  for (const std::size_t storage : unknown) {
    const StorageEntry& entry = index.storages[storage];
    runs.push_back({index.sources[entry.source], entry.offset, entry.nbytes});
    report.read_bytes += entry.nbytes;
  }
  const std::vector<std::uint32_t> crcs = io::read_for_crc(runs);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    io::RecordCheck check = check_of(index.storages[unknown[i]], options);
    check.add_known(crcs[i], runs[i].bytes);
    check.finish();
  }
  report.read_seconds += watch.total();
  const std::lock_guard lock(verified_mutex_);
  for (const std::size_t storage : unknown) verified_[storage] = true;
}

Buffer ArchiveState::mapping(std::uint32_t source) const {
  const std::lock_guard lock(mappings_mutex_);
  mappings_.resize(index.sources.size());
  if (!mappings_[source]) mappings_[source] = io::map_source(*index.sources[source]);
  return mappings_[source];
}

}  // namespace detail

namespace {

/// The files that a load of some entries reads.
class Touched {
 public:
  Touched(const detail::ArchiveState& state, const LoadOptions& options,
          archive::Extent extent = archive::Extent::kWhole)
      : state_(state), options_(options), extent_(extent) {}

  void add(const TensorEntry& entry) { add(entry, archive::aim_of(state_, options_)); }
  void add(const TensorEntry& entry, const archive::Aim& aim) {
    const StorageEntry& storage = state_.storage_of(entry);
    const bool known = !sources_.empty() && sources_.back() == storage.source;
    if (!known && !archive::lies_in_memory(storage, aim)) sources_.push_back(storage.source);
    if (core::ProgressMeter::current() != nullptr) bytes_[entry.storage] += entry.nbytes();
  }
  /// What is to be read of them, where somebody wants to know. Tensors that share bytes read them once.
  std::uint64_t bytes() const {
    std::uint64_t total = 0;
    for (const auto& [storage, bytes] : bytes_) total += std::min(bytes, state_.index.storages[storage].stored_bytes);
    return total;
  }
  /// Call after the load. Asks for each file once. Checksums of composed sources, which no storage has, are compared
  /// here, where whole tensors were read.
  void require_unchanged() {
    std::sort(sources_.begin(), sources_.end());
    sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
    if (extent_ == archive::Extent::kWhole && options_.verify && state_.verify_checksums) verify();
    for (const std::uint32_t source : sources_) archive::require_unchanged(*state_.index.sources[source]);
  }

 private:
  void verify() const {
    for (const std::uint32_t source : sources_) {
      const io::ComposedSource* const composed = io::as_composed(state_.index.sources[source]);
      if (composed != nullptr) composed->verify(options_.stop);
    }
  }

  const detail::ArchiveState& state_;
  const LoadOptions& options_;
  archive::Extent extent_;
  std::vector<std::uint32_t> sources_;
  std::map<std::size_t, std::uint64_t> bytes_;  ///< of tensors, by storage
};

Touched touched_by(const detail::ArchiveState& state, std::span<const TensorEntry> entries, const LoadOptions& options,
                   archive::Extent extent = archive::Extent::kWhole) {
  Touched touched(state, options, extent);
  for (const TensorEntry& entry : entries) touched.add(entry);
  return touched;
}

/// Runs `load(report)` and returns its result. When it succeeds, the options get the whole report.
template <class Load>
auto reported(const detail::ArchiveState& state, const LoadOptions& options, Touched touched, Load load) {
  io::require_going_on(options.stop);
  core::Stopwatch watch;
  Report report;
  report.open_seconds = state.open_seconds;
  io::remote::TrafficMeter traffic(io::remote::TrafficScope::current());
  const io::remote::TrafficScope scope(&traffic);
  core::MeteredOperation metered;
  if (metered) metered.begin(touched.bytes());
  auto out = [&] {
    try {
      return load(report);
    } catch (const Error& error) {
      throw archive::error_of_change(error, state.index.sources);
    }
  }();
  touched.require_unchanged();
  metered.end();
  report.total_seconds = watch.total();
  report.remote = state.open_traffic;
  report.remote += traffic.total();
  // The threads of a load ask; how many requests were let through to the servers is known to those who made them.
  if (const std::uint64_t at_once = traffic.total().at_once; at_once > 0 && at_once != report.depth) {
    report.depth = at_once;
    report.depth_limit = report.remote.limit();
  }
  if (options.report != nullptr) *options.report = std::move(report);
  return out;
}

std::vector<Tensor> load_many(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                              const LoadOptions& options, archive::Resident resident) {
  archive::require_convertible(options);
  archive::require_host_block(options);
  archive::require_map_alone(options);
  return reported(state, options, touched_by(state, wanted, options), [&](Report& report) {
    if (archive::wants_one_block(options)) return archive::load_in_one_block(state, wanted, options, report);
    return options.dtype ? archive::load_converted(state, wanted, options, report, resident)
                         : archive::load_tensors(state, wanted, options, report, resident);
  });
}

Value load_all(const detail::ArchiveState& state, const LoadOptions& options, archive::Resident resident) {
  return with_tensors(state.index.structure, load_many(state, state.index.entries, options, resident));
}

void load_to(const detail::ArchiveState& state, std::span<const archive::Destination> destinations,
             const LoadOptions& options, archive::Extent extent = archive::Extent::kWhole) {
  archive::require_no_dtype(options);
  archive::require_no_memory(options);
  Touched touched(state, options, extent);
  for (const auto& [entry, to, of] : destinations) touched.add(*entry, archive::aim_at(state, to.device(), options));
  reported(state, options, std::move(touched), [&](Report& report) {
    archive::load_into(state, destinations, options, report);
    return true;
  });
}

void require_tensor(const detail::ArchiveState& state) {
  if (!state.index.storages.empty()) return;
  throw Error(ErrorCode::kInvalidArgument, "the LazyTensor was made without an archive; assign one to it");
}

std::string what_there_is(std::span<const TensorEntry> entries) {
  if (entries.empty()) return "the file has no tensors";
  if (entries.size() > 1) {
    constexpr std::size_t kNamed = 5;
    std::string names;
    for (const TensorEntry& entry : entries.first(std::min(entries.size(), kNamed))) {
      names += (names.empty() ? "" : ", ") + core::quoted(entry.name);
    }
    return core::format("the file has {} others ({}{})", entries.size(), names, entries.size() > kNamed ? ", ..." : "");
  }
  const std::string& only = entries.front().name;
  if (only.empty()) return "the only tensor in it has no name: take it by its position, 0, or give the command no name";
  return core::format("the only tensor in it is called {}", core::quoted(only));
}

[[noreturn]] void throw_no_such_tensor(const detail::ArchiveState& state, std::string_view name) {
  const std::vector<TensorEntry>& entries = state.index.entries;
  core::NearestNames nearest(name);
  for (const TensorEntry& entry : entries) nearest.add(entry.name);
  const std::string meant = entries.size() == 1 ? std::string() : core::did_you_mean(nearest.take());
  throw Error(ErrorCode::kKeyNotFound,
              core::format("the file has no tensor {}; {}{}{}", core::quoted(name), what_there_is(entries),
                           meant.empty() ? "" : ": ", meant),
              {state.path()});
}

/// The entry of that name.
std::size_t position_of(const detail::ArchiveState& state, std::string_view name) {
  const auto found = state.find(name);
  if (found.count == 0) throw_no_such_tensor(state, name);
  if (found.count > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} called {}: take one by its position",
                             core::counted(found.count, "tensor is", "tensors are"), core::quoted(name)),
                {state.path()});
  }
  return found.first;
}

}  // namespace

/// What a handle without a file shares with all others: a format without a name, one source without bytes.
std::shared_ptr<const detail::ArchiveState> detail::ArchiveState::nothing() {
  static constexpr format::Format kNone{};
  static const auto state = [] {
    auto out = std::make_shared<ArchiveState>();
    out->format = &kNone;
    out->index.sources.emplace_back();
    return out;
  }();
  return state;
}

Archive::Archive() : state_(detail::ArchiveState::nothing()) {}
LazyTensor::LazyTensor() : state_(detail::ArchiveState::nothing()) {}

const std::string_view Archive::format() const noexcept { return state_->format->name; }
const std::string& Archive::path() const& noexcept { return state_->path(); }
const std::span<const TensorEntry> Archive::entries() const& noexcept { return state_->index.entries; }
const std::span<const StorageEntry> Archive::storages() const& noexcept { return state_->index.storages; }
const std::span<const Source> Archive::sources() const& noexcept { return state_->index.sources; }
const Value& Archive::structure() const& noexcept { return state_->index.structure; }
const std::map<std::string, std::string>& Archive::metadata() const& noexcept { return state_->index.metadata; }
bool Archive::has_metadata() const noexcept { return state_->index.empty_metadata || !state_->index.metadata.empty(); }
const std::span<const std::string> Archive::unknown_globals() const& noexcept { return state_->index.unknown_globals; }

bool Archive::contains(TextView name) const noexcept { return state_->find(name).count != 0; }

LazyTensor Archive::operator[](TextView name) const {
  return {state_, state_->index.entries[position_of(*state_, name)]};
}

LazyTensor Archive::entry(Integer index) const {
  const auto at = static_cast<std::size_t>(std::int64_t{index});
  if (at >= state_->index.entries.size()) {
    throw Error(
        ErrorCode::kIndexOutOfRange,
        core::format("tensor {} was asked for, but the file has {}", std::int64_t{index}, state_->index.entries.size()),
        {state_->path()});
  }
  return {state_, state_->index.entries[at]};
}

Value Archive::load(const LoadOptions& options) const& {
  return load_all(*state_, options, archive::Resident::kCopied);
}

Value Archive::load(const LoadOptions& options) && {
  const auto state = std::move(state_);
  const bool alone = state.use_count() == 1;
  return load_all(*state, options, alone ? archive::Resident::kHandedOut : archive::Resident::kCopied);
}

void Archive::load_into(std::span<const Placement> placements, const LoadOptions& options) const {
  load_to(*state_, archive::destinations_of(*state_, placements), options);
}

void Archive::load_into(std::span<const NamedPlacement> placements, const LoadOptions& options) const {
  std::vector<Placement> found;
  found.reserve(placements.size());
  for (const NamedPlacement& placement : placements) {
    found.push_back({position_of(*state_, placement.name), placement.to});
  }
  load_into(found, options);
}

void Archive::load_into(std::initializer_list<NamedPlacement> placements, const LoadOptions& options) const {
  load_into(std::span<const NamedPlacement>(placements.begin(), placements.size()), options);
}

void Archive::load_storages_into(std::span<const StoragePlacement> placements, const LoadOptions& options) const {
  const std::vector<TensorEntry> whole = archive::whole_storages(state_->index);
  load_to(*state_, archive::destinations_of(*state_, whole, placements), options);
}

std::vector<Tensor> Archive::load_storages(const LoadOptions& options) const {
  archive::require_no_dtype(options);
  const std::vector<TensorEntry> whole = archive::whole_storages(state_->index);
  std::vector<Tensor> loaded = load_many(*state_, whole, options, archive::Resident::kCopied);
  std::vector<Tensor> out(state_->index.storages.size());
  for (std::size_t i = 0; i < loaded.size(); ++i) out[whole[i].storage] = std::move(loaded[i]);
  return out;
}

LazyTensor::LazyTensor(std::shared_ptr<const detail::ArchiveState> state, TensorEntry entry)
    : state_(std::move(state)), entry_(std::move(entry)) {}

const StorageEntry& LazyTensor::storage() const& noexcept {
  static const StorageEntry none;
  return state_->index.storages.empty() ? none : state_->storage_of(entry_);
}
const Source& LazyTensor::source() const& noexcept { return state_->index.sources[storage().source]; }
std::int64_t LazyTensor::size(Integer dim) const { return entry_.shape[core::dim_of(dim, entry_.shape)]; }

/// Call after shape and strides were cut. Their first element lies `elements` behind that of `from`.
void LazyTensor::narrowed(const TensorEntry& from, std::int64_t elements) {
  entry_.byte_offset += static_cast<std::uint64_t>(elements) * entry_.dtype.itemsize();
  is_whole_ = is_whole_ && entry_.shape.numel() == from.shape.numel();
}

LazyTensor LazyTensor::slice(Integer dim, Integer start, Integer stop, Integer step) const {
  LazyTensor out = *this;
  const auto moved = core::slice_view(out.entry_.shape, out.entry_.strides, dim, start, stop, step);
  out.narrowed(entry_, moved);
  return out;
}

LazyTensor LazyTensor::select(Integer dim, Integer index) const {
  LazyTensor out = *this;
  const auto moved = core::select_view(out.entry_.shape, out.entry_.strides, dim, index);
  out.narrowed(entry_, moved);
  return out;
}

LazyTensor LazyTensor::as_stored() const {
  LazyTensor out = *this;
  out.entry_.encoding.swapped = false;
  return out;
}

void LazyTensor::load_into(const Tensor& target, const LoadOptions& options) const {
  require_tensor(*state_);
  const archive::Extent extent = is_whole_ ? archive::Extent::kWhole : archive::Extent::kSlice;
  const archive::Destination destination{&entry_, target, extent};
  load_to(*state_, {&destination, 1}, options, extent);
}

Tensor LazyTensor::load(const LoadOptions& options) const {
  require_tensor(*state_);
  archive::require_convertible(options);
  archive::require_host_block(options);
  archive::require_map_alone(options);
  const archive::Extent extent = is_whole_ ? archive::Extent::kWhole : archive::Extent::kSlice;
  return reported(*state_, options, touched_by(*state_, {&entry_, 1}, options, extent), [&](Report& report) {
    if (archive::wants_one_block(options)) {
      return archive::load_view_in_block(*state_, entry_, options, report, extent);
    }
    return options.dtype ? archive::load_view_converted(*state_, entry_, options, report, extent)
                         : archive::load_view(*state_, entry_, options, report, extent);
  });
}

}  // namespace penstock
