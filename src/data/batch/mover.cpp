// The payload of a batch reaches its slots by one of five routes, in this order: memory and mapped files are copied
// (Gatherer), files that are not mapped are read (read_runs), servers are asked (read_remote), tensors with a transform
// are converted (Converter), and large files are read, together with workers that are free (move_all_from_files).
// Padding comes last. Files are checked for changes after all copies out of them, because one look then covers all of
// them.

#include "data/batch/mover.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <utility>
#include <vector>

#include "data/batch/converter.h"
#include "data/files/large_file.h"
#include "data/sample/crew.h"
#include "data/sample/runs.h"
#include "data/sample/sample_file.h"
#include "io/copy/gather.h"
#include "io/copy/guarded.h"
#include "io/read/reader.h"
#include "ops/convert.h"

namespace penstock::data {

namespace {

/// Rows copied and bytes read at once. They are few, so that a stop of the loader is answered soon.
constexpr std::size_t kRowsAtOnce = 1024;
constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;
/// Shorter runs of rows are copied row by row together with others, because a run has a guard of its own.
constexpr std::uint64_t kLeastRun = 4096;
/// With less payload in large files, this thread has read it before another one is awake to help.
constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 20;

/// Collects rows of equal size and copies them together, because that is faster than one by one. Where one of them lies
/// in a mapped file, all are copied under one guard, because each guard costs a system call.
class Gatherer {
 public:
  explicit Gatherer(Scratch& scratch) : scratch_(scratch), rows_(scratch.rows), of_rows_(scratch.row_places) {
    rows_.clear();
    of_rows_.clear();
  }

  /// `file`: the file that the row is mapped from, or null for memory that stays.
  void add(std::byte* to, const std::byte* from, std::uint64_t bytes, const SampleFile* file, std::size_t position) {
    if (rows_.size() == kRowsAtOnce || bytes != bytes_) {
      flush();
      bytes_ = bytes;
    }
    note(file, position);
    rows_.push_back({to, from});
    of_rows_.push_back({file, position});
  }

  /// `count` samples, the first at `position`, whose rows of `bytes` follow each other on both sides.
  void add_run(std::byte* to, const std::byte* from, std::uint64_t bytes, std::size_t count, const SampleFile* file,
               std::size_t position) {
    const std::size_t at_once = static_cast<std::size_t>(std::max<std::uint64_t>(kRunBytes / bytes, 1));
    note(file, position);
    for (std::size_t i = 0; i < count; i += at_once) {
      scratch_.check_cancelled();
      const io::GatherRow part{to + i * bytes, from + i * bytes};
      copy_run(part, bytes, std::min(at_once, count - i), file, position + i);
    }
  }

  void flush() {
    if (rows_.empty()) return;
    scratch_.check_cancelled();
    const auto is_mapped = [](const Place& place) { return place.file != nullptr; };
    if (std::none_of(of_rows_.begin(), of_rows_.end(), is_mapped)) {
      io::gather(rows_, bytes_);
    } else {
      copy_guarded();
    }
    rows_.clear();
    of_rows_.clear();
  }

 private:
  using Place = Scratch::RowPlace;

  void copy_guarded() const {
    try {
      io::guarded_gather(rows_, bytes_, {});
    } catch (const Error&) {
      throw_first_bad();
    }
  }

  /// For the first row that cannot be read.
  [[noreturn]] void throw_first_bad() const {
    std::size_t i = 0;
    while (i + 1 < rows_.size() && (of_rows_[i].file == nullptr || can_be_read(rows_[i], bytes_))) ++i;
    throw_bad(of_rows_[i], rows_[i], bytes_);
  }

  static void copy_run(const io::GatherRow& first, std::uint64_t bytes, std::size_t count, const SampleFile* file,
                       std::size_t position) {
    const auto all = static_cast<std::size_t>(bytes * count);
    if (file == nullptr) {
      std::memcpy(first.to, first.from, all);
    } else if (!can_be_read(first, all)) {
      const auto row = [&](std::size_t i) { return io::GatherRow{first.to + i * bytes, first.from + i * bytes}; };
      std::size_t i = 0;
      while (i + 1 < count && can_be_read(row(i), bytes)) ++i;
      throw_bad({file, position + i}, row(i), bytes);
    }
  }

  /// Copies it.
  static bool can_be_read(const io::GatherRow& row, std::uint64_t bytes) {
    try {
      io::guarded_copy(row.to, row.from, static_cast<std::size_t>(bytes), {});
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  [[noreturn]] static void throw_bad(const Place& place, const io::GatherRow& row, std::uint64_t bytes) {
    try {
      io::guarded_copy(row.to, row.from, static_cast<std::size_t>(bytes), place.file->name());
      io::throw_vanished(place.file->name());
    } catch (const Error& error) {
      throw SampleError(place.position, place.file->error_of_change(error));
    }
  }

  /// The file has to be looked at when all is copied. Samples of a few files may follow each other in any order.
  void note(const SampleFile* file, std::size_t position) {
    if (file == nullptr || file == last_file_) return;
    last_file_ = file;
    constexpr std::size_t kRemembered = 8;
    auto& files = scratch_.sample_files;
    const auto recent = std::span(files).last(std::min(files.size(), kRemembered));
    const auto is_same = [file](const auto& noted) { return noted.first == file; };
    if (std::none_of(recent.begin(), recent.end(), is_same)) files.emplace_back(file, position);
  }

  Scratch& scratch_;
  std::vector<io::GatherRow>& rows_;
  std::vector<Place>& of_rows_;
  std::uint64_t bytes_ = 0;
  const SampleFile* last_file_ = nullptr;
};

/// Bytes of a file that go to memory in one read.
struct Run {
  const SampleFile* file = nullptr;
  std::uint64_t offset = 0;
  std::byte* to = nullptr;
  std::uint64_t bytes = 0;
  std::size_t position = 0;  ///< of the first sample

  bool goes_on(const Source& source, const std::byte* slot, std::uint64_t more) const noexcept {
    return file == source.within && offset + bytes == source.offset && to + bytes == slot && bytes + more <= kRunBytes;
  }
};

class Mover {
 public:
  Mover(const Located& located, const BatchPlan& plan, std::byte* block, Scratch& scratch)
      : located_(located), plan_(plan), block_(block), scratch_(scratch), gatherer_(scratch) {}

  void move() {
    bool files = false;
    scratch_.sample_files.clear();
    for (const Placement& placement : plan_.placements) files |= move_from_memory(placement);
    gatherer_.flush();
    scratch_.clock.lap(Stage::kCopy);
    for (const Placement& placement : plan_.placements) read_runs(placement);
    read_remote();
    if (converts_) convert();
    require_unchanged();
    if (files) move_all_from_files();
    for (const Placement& placement : plan_.placements) pad(placement);
  }

 private:
  const TensorLayout& tensor(const Placement& placement, std::size_t position) const {
    return located_.samples[position].layout->tensors[placement.tensor];
  }

  /// The part of the sample's tensor that fits into its slot.
  static Shape own_shape(const Placement& placement, const TensorLayout& tensor) {
    return placement.padding ? data::own_shape(*placement.padding, tensor.shape) : tensor.shape;
  }

  static Strides slot_strides(const Placement& placement, const TensorLayout& tensor) {
    return placement.padding ? placement.padding->slot.contiguous_strides() : tensor.shape.contiguous_strides();
  }

  static Runs runs_of(const Placement& placement, const TensorLayout& tensor) {
    return Runs(own_shape(placement, tensor), tensor.strides, slot_strides(placement, tensor), tensor.dtype.itemsize());
  }

  /// Copies the samples that lie in memory. Returns whether some lie in large files.
  bool move_from_memory(const Placement& placement) {
    if (!located_.columns.empty()) {
      move_rows(placement);
      return false;
    }
    bool files = false;
    std::optional<Runs> shared;
    if (located_.uniform) shared = runs_of(placement, tensor(placement, 0));
    for (std::size_t i = 0; i < located_.size(); ++i) {
      if (!placement.has(i)) continue;
      const Source& source = located_.samples[i].sources[placement.tensor];
      if (source.conversion != nullptr) {
        files |= source.file != nullptr;
        converts_ = true;
      } else if (source.data == nullptr) {
        files |= source.file != nullptr;
        unread_ |= source.within != nullptr;
      } else if (shared) {
        copy(*shared, source, placement.slot(i), i);
      } else if (whole(placement, i)) {
        copy_run(source, 0, placement.slot(i), tensor(placement, i).nbytes, i);
      } else {
        copy(runs_of(placement, tensor(placement, i)), source, placement.slot(i), i);
      }
    }
    return files;
  }

  /// Copies rows of an array. Those that follow each other there and in the batch are one copy.
  void move_rows(const Placement& placement) {
    const EvenColumn& column = located_.columns[placement.tensor];
    if (column.first.data == nullptr) {
      unread_ |= column.first.within != nullptr;
      return;
    }
    if (!whole(placement, 0)) {
      const Runs shared = runs_of(placement, tensor(placement, 0));
      for (std::size_t i = 0; i < located_.size(); ++i) copy(shared, column.source(i), placement.slot(i), i);
      return;
    }
    const std::uint64_t bytes = tensor(placement, 0).nbytes;
    const bool dense = column.step == bytes && placement.slots.empty() && placement.pitch == bytes;
    const SampleFile* const file = column.first.within;
    for (std::size_t i = 0, count = 1; i < located_.size(); i += count) {
      count = dense ? consecutive(column.at.subspan(i)) : 1;
      const std::byte* const from = column.source(i).data;
      std::byte* const to = block_ + placement.slot(i);
      if (count * bytes >= kLeastRun) {
        gatherer_.add_run(to, from, bytes, count, file, i);
        continue;
      }
      for (std::size_t k = 0; k < count; ++k) gatherer_.add(to + k * bytes, from + k * bytes, bytes, file, i + k);
    }
  }

  /// How many of the numbers rise by one, from the first on.
  static std::size_t consecutive(std::span<const std::int64_t> at) noexcept {
    std::size_t count = 1;
    while (count < at.size() && at[count] == at[count - 1] + 1) ++count;
    return count;
  }

  bool whole(const Placement& placement, std::size_t position) const {
    return !placement.padding && tensor(placement, position).contiguous;
  }

  void copy(const Runs& runs, const Source& source, std::uint64_t slot, std::size_t position) {
    runs.for_each(
        [&](std::uint64_t from, std::uint64_t to) { copy_run(source, from, slot + to, runs.run_bytes(), position); });
  }

  void copy_run(const Source& source, std::uint64_t from, std::uint64_t to, std::uint64_t bytes, std::size_t position) {
    const std::byte* const data = source.data + from;
    if (data == block_ + to) return;  // it was read into its place
    gatherer_.add(block_ + to, data, bytes, source.within, position);
  }

  void read(const Run& run) {
    if (run.bytes == 0) return;
    scratch_.check_cancelled();
    if (is_remote(run.file)) {
      remote_.push_back(run);
      return;
    }
    try {
      run.file->read(run.offset, {run.to, static_cast<std::size_t>(run.bytes)});
    } catch (const Error& error) {
      throw SampleError(run.position, run.file->error_of_change(error));
    }
    scratch_.sample_files.push_back({run.file, run.position});
    scratch_.stats.read_bytes += run.bytes;
    scratch_.clock.lap(Stage::kRead);
  }

  static bool is_remote(const SampleFile* file) {
    if (!file->is_held()) return false;
    const penstock::Source source = file->source();
    return io::reader_for(*source).read_runs != nullptr;
  }

  /// Asks a server for all of a file's runs at once, because each answer takes long.
  void read_remote() {
    while (!remote_.empty()) {
      const SampleFile* const file = remote_.front().file;
      const auto others =
          std::stable_partition(remote_.begin(), remote_.end(), [file](const Run& run) { return run.file == file; });
      std::vector<io::Run> runs;
      for (auto run = remote_.begin(); run != others; ++run) {
        runs.push_back({run->offset, {run->to, static_cast<std::size_t>(run->bytes)}});
        scratch_.stats.read_bytes += run->bytes;
      }
      const penstock::Source source = file->source();
      try {
        io::reader_for(*source).read_runs(*source, runs);
      } catch (const Error& error) {
        throw SampleError(remote_.front().position, file->error_of_change(error));
      }
      remote_.erase(remote_.begin(), others);
      scratch_.clock.lap(Stage::kRead);
    }
  }

  /// Reads from files that are not mapped. Samples that follow each other in the file and in the batch take one read.
  void read_runs(const Placement& placement) {
    if (!unread_) return;
    Run run;
    for (std::size_t i = 0; i < located_.size(); ++i) {
      if (!placement.has(i)) continue;
      const Source source = located_.source(i, placement.tensor);
      if (source.data != nullptr || source.within == nullptr || source.conversion != nullptr) continue;
      const std::uint64_t slot = placement.slot(i);
      // A padded sample has a slot of another shape, so it is read run by run.
      if (placement.padding) {
        read(std::exchange(run, {}));
        const Runs runs = runs_of(placement, tensor(placement, i));
        runs.for_each([&](std::uint64_t from, std::uint64_t to) {
          read({source.within, source.offset + from, block_ + slot + to, runs.run_bytes(), i});
        });
        continue;
      }
      const std::uint64_t bytes = tensor(placement, i).nbytes;
      if (!run.goes_on(source, block_ + slot, bytes))
        read(std::exchange(run, {source.within, source.offset, block_ + slot, 0, i}));
      run.bytes += bytes;
    }
    read(run);
  }

  void convert() {
    Converter converter(located_, block_, scratch_);
    for (const Placement& placement : plan_.placements) converter.convert(placement);
  }

  /// Finds the samples that have payload in large files. Returns the bytes of that payload.
  std::uint64_t find_in_files(std::vector<std::size_t>& positions) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < located_.size(); ++i) {
      for (const Placement& placement : plan_.placements) {
        const bool in_file = placement.has(i) && located_.samples[i].sources[placement.tensor].file != nullptr;
        if (!in_file) continue;
        if (positions.empty() || positions.back() != i) positions.push_back(i);
        bytes += tensor(placement, i).nbytes;
      }
    }
    return bytes;
  }

  void move_all_from_files() {
    std::vector<std::size_t> positions;
    const std::uint64_t bytes = find_in_files(positions);
    const auto move = [&](std::size_t task, Scratch& scratch) { move_from_files(positions[task], scratch); };
    if (scratch_.crew != nullptr && positions.size() > 1 && bytes >= kLeastShared) {
      scratch_.crew->share(positions.size(), scratch_, move);
    } else {
      for (std::size_t task = 0; task < positions.size(); ++task) move(task, scratch_);
    }
  }

  /// Opens each file once for all of a sample's tensors in it.
  void move_from_files(std::size_t position, Scratch& scratch) const {
    scratch.check_cancelled();
    const Sample& sample = located_.samples[position];
    std::vector<LargeFile::Wanted> wanted;
    std::optional<Converter> converter;
    std::vector<std::pair<const Placement*, const std::byte*>> staged;
    const LargeFile* file = nullptr;
    const auto read = [&] {
      if (file == nullptr) return;
      try {
        file->read(wanted, scratch);
      } catch (const Error& error) {
        throw SampleError(position, error);
      }
      wanted.clear();
      for (const auto& [placement, from] : staged) converter->finish(*placement, position, from);
      staged.clear();
      if (converter) converter->release_staging();
    };
    for (const Placement& placement : plan_.placements) {
      if (!placement.has(position)) continue;
      const Source& source = sample.sources[placement.tensor];
      if (source.file == nullptr) continue;
      if (source.file != file) read();
      file = source.file;
      if (source.conversion != nullptr) {
        const TensorLayout& input = source.conversion->input();
        if (!converter) converter.emplace(located_, block_, scratch);
        std::byte* const to = converter->take_staging(source.conversion->input_extent());
        wanted.push_back({.entry = source.entry, .shape = input.shape, .strides = input.strides, .to = to});
        staged.emplace_back(&placement, to);
        continue;
      }
      const TensorLayout& layout = tensor(placement, position);
      wanted.push_back({.entry = source.entry,
                        .shape = own_shape(placement, layout),
                        .strides = slot_strides(placement, layout),
                        .to = block_ + placement.slot(position)});
    }
    read();
  }

  void pad(const Placement& placement) {
    if (!placement.padding) return;
    for (std::size_t i = 0; i < located_.size(); ++i) {
      const TensorLayout& layout = tensor(placement, i);
      fill_padding(*placement.padding, own_shape(placement, layout), layout.dtype.itemsize(),
                   block_ + placement.slot(i));
    }
  }

  /// Looks at each file once, after all copies out of it.
  void require_unchanged() {
    auto& files = scratch_.sample_files;
    std::sort(files.begin(), files.end());
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    files.erase(std::unique(files.begin(), files.end(), same), files.end());
    for (const auto& [file, position] : files) {
      try {
        file->require_unchanged();
      } catch (const Error& error) {
        throw SampleError(position, error);
      }
    }
  }

  const Located& located_;
  const BatchPlan& plan_;
  std::byte* block_;
  Scratch& scratch_;
  Gatherer gatherer_;
  std::vector<Run> remote_;  ///< runs that have not been asked of their servers yet
  bool converts_ = false;
  bool unread_ = false;  ///< some samples are read from files that are not mapped
};

template <class T, class Get>
void store(std::byte* to, const Located& located, std::uint32_t number, Get get) {
  for (std::size_t i = 0; i < located.size(); ++i) {
    const T value = get(located.samples[i].layout->scalars[number]);
    std::memcpy(to + i * sizeof(T), &value, sizeof(T));
  }
}

/// The type in which a Value holds numbers of this kind.
DType widest(const DType& dtype) noexcept {
  if (dtype == DType::boolean) return dtype;
  if (dtype.is_complex()) return DType::complex128;
  return dtype.is_floating() ? DType::float64 : DType::int64;
}

void store_widest(const Located& located, std::uint32_t number, const DType& dtype, std::byte* to) {
  switch (dtype.code()) {
    case DType::Code::kBool:
      return store<bool>(to, located, number, [](const Value& v) { return v.as_bool(); });
    case DType::Code::kInt64:
      return store<std::int64_t>(to, located, number, [](const Value& v) { return v.as_int(); });
    case DType::Code::kFloat64:
      return store<double>(to, located, number, [](const Value& v) { return v.as_float(); });
    default:
      return store<std::complex<double>>(to, located, number, [](const Value& v) { return v.as_complex(); });
  }
}

void fill_scalars(const Located& located, const Derived& derived, const DType& dtype, std::byte* to) {
  const DType wide = widest(dtype);
  if (wide == dtype) return store_widest(located, derived.number, dtype, to);
  std::vector<std::byte> values(located.size() * wide.itemsize());
  store_widest(located, derived.number, wide, values.data());
  ops::convert(wide.code(), values.data(), dtype.code(), to, located.size());
}

/// The sizes of a sample along the padded dimensions.
Shape own_lengths(const Derived& derived, const Shape& shape) {
  Shape own = derived.lengths;
  for (std::size_t d = 0; d < own.rank(); ++d) own[d] = std::min(own[d], shape[derived.dims[d]]);
  return own;
}

/// True inside `own`, in a block of shape `slot`.
void fill_mask(const Shape& own, const Shape& slot, std::byte* to) {
  const std::size_t last = slot.rank() - 1;
  std::memset(to, 0, static_cast<std::size_t>(slot.numel()));
  const std::uint64_t places = outer_places(own, last);
  for (std::uint64_t place = 0; place < places; ++place) {
    std::memset(to + outer_offset(own, slot, last, 1, place), 1, static_cast<std::size_t>(own[last]));
  }
}

void fill_derived(const Located& located, const Derived& derived, const DType& dtype, std::byte* to) {
  if (derived.kind == Derived::Kind::kScalars) return fill_scalars(located, derived, dtype, to);
  for (std::size_t i = 0; i < located.size(); ++i) {
    const Shape& shape = located.samples[i].layout->tensors[derived.number].shape;
    const Shape own = own_lengths(derived, shape);
    if (derived.kind == Derived::Kind::kMask) {
      fill_mask(own, derived.lengths, to + i * static_cast<std::size_t>(derived.lengths.numel()));
      continue;
    }
    const std::size_t bytes = own.rank() * sizeof(std::int64_t);
    std::memcpy(to + i * bytes, own.begin(), bytes);
  }
}

}  // namespace

void fill_block(const Located& located, const BatchPlan& plan, std::byte* block, Scratch& scratch) {
  Mover(located, plan, block, scratch).move();
  for (const Derived& derived : plan.derived) {
    const Output& output = plan.outputs[derived.output];
    fill_derived(located, derived, output.dtype, block + output.offset);
  }
}

}  // namespace penstock::data
