#include <algorithm>
#include <numeric>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "core/view.h"
#include "format/archive_state.h"
#include "format/check_index.h"
#include "format/load_into.h"
#include "format/load_tensors.h"
#include "format/load_view.h"
#include "format/small_file.h"
#include "format/value_graph.h"
#include "format/whole_storages.h"
#include "io/range_reader.h"
#include "io/reader.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock {

std::uint64_t TensorEntry::nbytes() const {
  return core::checked_mul<std::uint64_t>(static_cast<std::uint64_t>(shape.numel()), dtype.itemsize(),
                                          "the size of a tensor");
}

namespace detail {

ArchiveState::Found ArchiveState::find_exactly(std::string_view name) const {
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
  Found found;
  for (auto at = first; at != by_name_.end() && index.entries[*at].name == name; ++at) ++found.count;
  if (found.count != 0) found.first = *first;
  return found;
}

ArchiveState::Found ArchiveState::find(std::string_view name) const {
  const Found found = find_exactly(name);
  if (found.count != 0 || format->name != "npz") return found;
  constexpr std::string_view kMember = ".npy";
  return name.ends_with(kMember) ? find_exactly(name.substr(0, name.size() - kMember.size()))
                                 : find_exactly(std::string(name) + std::string(kMember));
}

Buffer ArchiveState::resident(const StorageEntry& storage, const LoadOptions& options) const {
  if (storage.resident) return storage.resident;
  if (!content || storage.source != 0 || storage.compression != Compression::kNone) return {};
  if (options.device.type != DeviceType::kCpu || options.direct.value_or(false)) return {};
  return content.part(static_cast<std::size_t>(storage.offset), static_cast<std::size_t>(storage.nbytes));
}

Buffer ArchiveState::mapping(std::uint32_t source) const {
  const std::lock_guard lock(mappings_mutex_);
  mappings_.resize(index.sources.size());
  if (!mappings_[source]) mappings_[source] = io::map_source(*index.sources[source]);
  return mappings_[source];
}

}  // namespace detail

namespace {

/// The index of `source`, read from `bytes`, which has the same content.
format::Index read_index(const format::Format& format, const SourcePtr& source, const SourcePtr& bytes,
                         const OpenOptions& options) {
  format::Index index = format.read_index(bytes, options);
  if (index.sources.empty()) index.sources = {source};
  std::replace(index.sources.begin(), index.sources.end(), bytes, source);
  format::check_index(index);
  return index;
}

/// What `load(report)` gives; the whole report goes to the options' when it succeeds.
template <class Load>
auto reported(const detail::ArchiveState& state, const LoadOptions& options, Load load) {
  io::require_going_on(options.stop);
  core::Stopwatch watch;
  Report report;
  report.open_seconds = state.open_seconds;
  auto out = load(report);
  report.total_seconds = watch.total();
  if (options.report != nullptr) *options.report = std::move(report);
  return out;
}

Value load_all(const detail::ArchiveState& state, const LoadOptions& options, format::Resident resident) {
  return reported(state, options, [&](Report& report) {
    return with_tensors(state.index.structure,
                        format::load_tensors(state, state.index.entries, options, report, resident));
  });
}

[[noreturn]] void throw_no_such_tensor(const detail::ArchiveState& state, std::string_view name) {
  core::NearestNames nearest(name);
  for (const TensorEntry& entry : state.index.entries) nearest.add(entry.name);
  const std::string meant = core::did_you_mean(nearest.take());
  const std::size_t count = state.index.entries.size();
  throw Error(ErrorCode::kKeyNotFound,
              core::format("the file has no tensor {} among its {}{}{}", core::quoted(name), count,
                           meant.empty() ? "" : "; ", meant),
              {state.path()});
}

}  // namespace

std::string_view Archive::format() const noexcept { return state_->format->name; }
const std::string& Archive::path() const& noexcept { return state_->path(); }
std::span<const TensorEntry> Archive::entries() const& noexcept { return state_->index.entries; }
std::span<const StorageEntry> Archive::storages() const& noexcept { return state_->index.storages; }
std::span<const SourcePtr> Archive::sources() const& noexcept { return state_->index.sources; }
const Value& Archive::structure() const& noexcept { return state_->index.structure; }
const std::map<std::string, std::string>& Archive::metadata() const& noexcept { return state_->index.metadata; }
bool Archive::has_metadata() const noexcept { return state_->index.empty_metadata || !state_->index.metadata.empty(); }
std::span<const std::string> Archive::unknown_globals() const& noexcept { return state_->index.unknown_globals; }

bool Archive::contains(std::string_view name) const noexcept { return state_->find(name).count != 0; }

LazyTensor Archive::operator[](std::string_view name) const {
  const auto found = state_->find(name);
  if (found.count == 0) throw_no_such_tensor(*state_, name);
  if (found.count > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} tensors are called {}: take one by its position", found.count, core::quoted(name)),
                {state_->path()});
  }
  return {state_, state_->index.entries[found.first]};
}

LazyTensor Archive::entry(std::size_t index) const {
  if (index >= state_->index.entries.size()) {
    throw Error(ErrorCode::kIndexOutOfRange,
                core::format("tensor {} was asked of a file that has {}", index, state_->index.entries.size()),
                {state_->path()});
  }
  return {state_, state_->index.entries[index]};
}

Value Archive::load(const LoadOptions& options) const& { return load_all(*state_, options, format::Resident::kCopied); }

Value Archive::load(const LoadOptions& options) && {
  const auto state = std::move(state_);
  const bool alone = state.use_count() == 1;
  return load_all(*state, options, alone ? format::Resident::kHandedOut : format::Resident::kCopied);
}

void Archive::load_into(std::span<const Placement> placements, const LoadOptions& options) const {
  reported(*state_, options, [&](Report& report) {
    format::load_into(*state_, format::destinations_of(*state_, placements), options, report);
    return true;
  });
}

void Archive::load_storages_into(std::span<const StoragePlacement> placements, const LoadOptions& options) const {
  reported(*state_, options, [&](Report& report) {
    const std::vector<TensorEntry> whole = format::whole_storages(state_->index);
    format::load_into(*state_, format::destinations_of(*state_, whole, placements), options, report);
    return true;
  });
}

std::vector<Tensor> Archive::load_storages(const LoadOptions& options) const {
  return reported(*state_, options, [&](Report& report) {
    const std::vector<TensorEntry> whole = format::whole_storages(state_->index);
    std::vector<Tensor> loaded = format::load_tensors(*state_, whole, options, report);
    std::vector<Tensor> out(state_->index.storages.size());
    for (std::size_t i = 0; i < loaded.size(); ++i) out[whole[i].storage] = std::move(loaded[i]);
    return out;
  });
}

LazyTensor::LazyTensor(std::shared_ptr<const detail::ArchiveState> state, TensorEntry entry)
    : state_(std::move(state)), entry_(std::move(entry)) {}

const StorageEntry& LazyTensor::storage() const noexcept { return state_->storage_of(entry_); }
const SourcePtr& LazyTensor::source() const noexcept { return state_->source_of(entry_); }

LazyTensor LazyTensor::slice(std::size_t dim, std::int64_t start, std::int64_t stop, std::int64_t step) const {
  LazyTensor out = *this;
  const auto moved = core::slice_view(out.entry_.shape, out.entry_.strides, dim, start, stop, step);
  out.entry_.byte_offset += static_cast<std::uint64_t>(moved) * entry_.dtype.itemsize();
  return out;
}

LazyTensor LazyTensor::select(std::size_t dim, std::int64_t index) const {
  LazyTensor out = *this;
  const auto moved = core::select_view(out.entry_.shape, out.entry_.strides, dim, index);
  out.entry_.byte_offset += static_cast<std::uint64_t>(moved) * entry_.dtype.itemsize();
  return out;
}

LazyTensor LazyTensor::as_stored() const {
  LazyTensor out = *this;
  out.entry_.byte_swapped = false;
  return out;
}

Tensor LazyTensor::load(const LoadOptions& options) const {
  return reported(*state_, options,
                  [&](Report& report) { return format::load_view(*state_, entry_, options, report); });
}

Archive open(SourcePtr source, const OpenOptions& options) {
  if (!source) throw Error(ErrorCode::kInvalidArgument, "there is no source to open");
  core::Stopwatch watch;
  auto state = std::make_shared<detail::ArchiveState>();
  try {
    state->content = format::small_content(*source);
    const SourcePtr bytes = state->content ? format::read_already(source, state->content) : source;
    state->format = &format::detect(*bytes);
    state->index = read_index(*state->format, source, bytes, options);
  } catch (const Error& error) {
    throw error.within({source->name()});
  }
  state->verify_checksums = options.verify_checksums;
  state->open_seconds = watch.total();
  return Archive(std::move(state));
}

Archive open(std::string_view path, const OpenOptions& options) { return open(open_source(path), options); }

}  // namespace penstock
