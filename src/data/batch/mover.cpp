// Where the payload lies decides how it gets into its slot. One visit of each Payload hands it to whoever moves it:
// memory and mapped files are copied (Gatherer), files that are not mapped are read (RunReader), tensors with a
// transform are converted (Converter), and large files are read last, together with workers that are free
// (move_large_files). Files are checked for changes after all copies out of them, because one look then covers all of
// them. Padding comes last.

#include "data/batch/mover.h"

#include <cstring>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "data/batch/converter.h"
#include "data/batch/gatherer.h"
#include "data/collate/derived.h"
#include "data/files/large_file.h"
#include "data/sample/copied_files.h"
#include "data/sample/crew.h"
#include "data/sample/run_reader.h"
#include "data/sample/runs.h"

namespace penstock::data {

namespace {

/// Shorter runs of rows are copied row by row together with others, because a run has a guard of its own.
constexpr std::uint64_t kLeastRun = 4096;
/// With less payload in large files, this thread has read it before another one is awake to help.
constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 20;

/// Its address is the key of what a thread keeps for moves.
constexpr char kMoverOwner = 0;

/// A thread keeps it from batch to batch, so that equal batches allocate nothing.
struct MoverMemory final : Scratch::State {
  Gatherer::Rows rows;
  std::vector<FileRun> runs;
  CopiedFiles files;
};

/// How many of the numbers rise by one, from the first on.
std::size_t consecutive(std::span<const std::int64_t> at) noexcept {
  std::size_t count = 1;
  while (count < at.size() && at[count] == at[count - 1] + 1) ++count;
  return count;
}

class Mover {
 public:
  Mover(const Fetched& fetched, const BatchPlan& plan, std::byte* block, const Work& work)
      : fetched_(fetched),
        plan_(plan),
        block_(block),
        work_(work),
        memory_(work.scratch.state<MoverMemory>(&kMoverOwner)),
        gatherer_(work.call, memory_.rows, memory_.files),
        reader_(work.call, work.figures, memory_.runs, memory_.files) {
    memory_.files.clear();
  }

  void move() {
    for (const Placement& placement : plan_.placements) {
      if (fetched_.columns.empty()) {
        hand_out(placement);
      } else {
        hand_out_rows(placement);
      }
    }
    gatherer_.flush();
    work_.figures.clock.lap(Stage::kCopy);
    // Reads were only collected, so that runs that follow each other in a file are one call.
    reader_.read();
    if (converts_) {
      Converter converter(fetched_, block_, memory_.files, work_.call, work_.scratch, work_.figures);
      converter.convert_at_once(plan_.placements);
      for (const Placement& placement : plan_.placements) converter.convert(placement);
    }
    memory_.files.require_unchanged();
    // Last, because workers that are free help with them, and each looks after its own file (LargeFile::read).
    if (has_large_) move_large_files();
    for (const Placement& placement : plan_.placements) pad(placement);
  }

 private:
  const TensorLayout& tensor(const Placement& placement, std::size_t position) const {
    return fetched_.samples[position].layout->tensors[placement.tensor];
  }

  bool whole(const Placement& placement, std::size_t position) const {
    return placement.takes_as_is(tensor(placement, position));
  }

  /// What lies between the elements of a sample in its slot is nobody's.
  void clear_gaps(const Placement& placement) {
    if (placement.order != SlotOrder::kAsStored) return;
    for (std::size_t i = 0; i < fetched_.size(); ++i) {
      if (!placement.has(i) || !keeps_gaps(tensor(placement, i))) continue;
      std::memset(block_ + placement.slot(i), 0, static_cast<std::size_t>(tensor(placement, i).extent()));
    }
  }

  /// Hands each sample's payload to whoever moves it.
  void hand_out(const Placement& placement) {
    clear_gaps(placement);
    // Samples of one layout go the same way, which is computed once.
    std::optional<Runs> shared;
    if (fetched_.uniform) shared = placement.runs_of(tensor(placement, 0));
    for (std::size_t i = 0; i < fetched_.size(); ++i) {
      if (!placement.has(i)) continue;
      const Payload& payload = fetched_.samples[i].payloads[placement.tensor];
      // Its elements change on the way, so they cannot be copied as bytes: Converter, or the read of its large file.
      if (payload.conversion != nullptr) {
        has_large_ |= payload.in_large_file();
        converts_ = true;
        continue;
      }
      const auto by_place = [&](const auto& place) { hand_out(placement, i, place, shared ? &*shared : nullptr); };
      std::visit(by_place, payload.place);
    }
  }

  void hand_out(const Placement&, std::size_t, std::monostate, const Runs*) {}
  void hand_out(const Placement&, std::size_t, const InLargeFile&, const Runs*) { has_large_ = true; }
  void hand_out(const Placement& placement, std::size_t position, const InMemory& memory, const Runs* shared) {
    if (memory.data == block_ + placement.slot(position)) return;  // fetching put it there, as it belongs (fits)
    copy(placement, memory.data, {nullptr, position}, shared);
  }
  void hand_out(const Placement& placement, std::size_t position, const InMapping& mapping, const Runs* shared) {
    copy(placement, mapping.data, {mapping.file, position}, shared);
  }
  void hand_out(const Placement& placement, std::size_t position, const InFile& file, const Runs*) {
    const TensorLayout& layout = tensor(placement, position);
    std::byte* const slot = block_ + placement.slot(position);
    if (!placement.padding) return reader_.add(file, slot, layout.nbytes, position);
    // A padded sample has a slot of another shape, so it is read run by run.
    const Runs runs = placement.runs_of(layout);
    runs.for_each([&](std::uint64_t from, std::uint64_t to) {
      reader_.add({file.file, file.offset + from}, slot + to, runs.run_bytes(), position);
    });
  }

  /// `shared`: the runs of all samples where these have one layout, or null.
  void copy(const Placement& placement, const std::byte* data, const Gatherer::Origin& origin, const Runs* shared) {
    const std::uint64_t slot = placement.slot(origin.position);
    const TensorLayout& layout = tensor(placement, origin.position);
    if (shared != nullptr) return copy_runs(*shared, data, slot, origin);
    if (whole(placement, origin.position)) return copy_run(data, slot, layout.nbytes, origin);
    copy_runs(placement.runs_of(layout), data, slot, origin);
  }

  void copy_runs(const Runs& runs, const std::byte* data, std::uint64_t slot, const Gatherer::Origin& origin) {
    runs.for_each(
        [&](std::uint64_t from, std::uint64_t to) { copy_run(data + from, slot + to, runs.run_bytes(), origin); });
  }

  void copy_run(const std::byte* data, std::uint64_t to, std::uint64_t bytes, const Gatherer::Origin& origin) {
    gatherer_.add(block_ + to, data, bytes, origin);
  }

  /// The same for rows of an array, which need no look at each.
  void hand_out_rows(const Placement& placement) {
    const EvenColumn& column = fetched_.columns[placement.tensor];
    if (const auto* const file = std::get_if<InFile>(&column.first.place)) {
      for (std::size_t i = 0; i < fetched_.size(); ++i) {
        hand_out(placement, i, InFile{file->file, file->offset + column.behind(i)}, nullptr);
      }
    } else if (column.first.data() != nullptr) {
      const auto* const mapping = std::get_if<InMapping>(&column.first.place);
      copy_rows(placement, column, mapping == nullptr ? nullptr : mapping->file);
    }
  }

  /// Rows that follow each other there and in the batch are one copy.
  void copy_rows(const Placement& placement, const EvenColumn& column, const HeldFile* file) {
    const std::byte* const first = column.first.data();
    if (!whole(placement, 0)) {
      const Runs shared = placement.runs_of(tensor(placement, 0));
      for (std::size_t i = 0; i < fetched_.size(); ++i) {
        copy_runs(shared, first + column.behind(i), placement.slot(i), {file, i});
      }
      return;
    }
    const std::uint64_t bytes = tensor(placement, 0).nbytes;
    const bool dense = column.step == bytes && placement.slots.empty() && placement.pitch == bytes;
    for (std::size_t i = 0, count = 1; i < fetched_.size(); i += count) {
      count = dense ? consecutive(column.at.subspan(i)) : 1;
      const std::byte* const from = first + column.behind(i);
      std::byte* const to = block_ + placement.slot(i);
      if (count * bytes >= kLeastRun) {
        gatherer_.add_run(to, from, bytes, count, {file, i});
        continue;
      }
      for (std::size_t k = 0; k < count; ++k) gatherer_.add(to + k * bytes, from + k * bytes, bytes, {file, i + k});
    }
  }

  /// Finds the samples that have payload in large files. Returns the bytes of that payload.
  std::uint64_t find_in_large_files(std::vector<std::size_t>& positions) const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < fetched_.size(); ++i) {
      for (const Placement& placement : plan_.placements) {
        if (!placement.has(i) || !fetched_.samples[i].payloads[placement.tensor].in_large_file()) continue;
        if (positions.empty() || positions.back() != i) positions.push_back(i);
        bytes += tensor(placement, i).nbytes;
      }
    }
    return bytes;
  }

  void move_large_files() {
    std::vector<std::size_t> positions;
    const std::uint64_t bytes = find_in_large_files(positions);
    const auto move = [&](std::size_t task, Scratch& scratch, Figures& figures) {
      move_from_large_files(positions[task], {work_.call, work_.guesses, scratch, figures});
    };
    if (work_.call.crew != nullptr && positions.size() > 1 && bytes >= kLeastShared) {
      work_.call.crew->share(positions.size(), work_.scratch, work_.figures, move);
    } else {
      for (std::size_t task = 0; task < positions.size(); ++task) move(task, work_.scratch, work_.figures);
    }
  }

  /// Opens each file once for all of a sample's tensors in it. Any thread may do it, with a scratch and figures of its
  /// own.
  void move_from_large_files(std::size_t position, const Work& work) const {
    work.call.check_cancelled();
    if (work.guesses.refuted()) return;  // the batch is made again
    const Sample& sample = fetched_.samples[position];
    std::vector<WantedTensor> wanted;
    std::optional<Converter> converter;
    // Tensors with a conversion are read beside the block, and converted into it when their file is known to be right.
    std::vector<std::pair<const Placement*, const std::byte*>> staged;
    const LargeFile* file = nullptr;
    const auto read = [&] {
      if (file == nullptr) return;
      try {
        file->read(wanted, work);
      } catch (const Error& error) {
        throw SampleError(position, error);
      }
      if (work.guesses.refuted()) return staged.clear();
      wanted.clear();
      for (const auto& [placement, from] : staged) converter->finish(*placement, position, from);
      staged.clear();
      if (converter) converter->release_staging();
    };
    for (const Placement& placement : plan_.placements) {
      if (!placement.has(position)) continue;
      const Payload& payload = sample.payloads[placement.tensor];
      const auto* const large = std::get_if<InLargeFile>(&payload.place);
      if (large == nullptr) continue;
      if (large->file != file) read();
      file = large->file;
      if (payload.conversion != nullptr) {
        const TensorLayout& input = payload.conversion->input();
        if (!converter) converter.emplace(fetched_, block_, memory_.files, work.call, work.scratch, work.figures);
        std::byte* const to = converter->take_staging(payload.conversion->input_extent());
        wanted.push_back({.entry = large->entry, .shape = input.shape, .strides = input.strides, .to = to});
        staged.emplace_back(&placement, to);
        continue;
      }
      const TensorLayout& layout = tensor(placement, position);
      wanted.push_back({.entry = large->entry,
                        .shape = placement.own_shape(layout),
                        .strides = placement.slot_strides(layout),
                        .to = block_ + placement.slot(position)});
    }
    read();
  }

  void pad(const Placement& placement) {
    if (!placement.padding) return;
    for (std::size_t i = 0; i < fetched_.size(); ++i) {
      const TensorLayout& layout = tensor(placement, i);
      fill_padding(*placement.padding, placement.own_shape(layout), layout.dtype.itemsize(),
                   block_ + placement.slot(i));
    }
  }

  const Fetched& fetched_;
  const BatchPlan& plan_;
  std::byte* block_;
  const Work work_;
  MoverMemory& memory_;
  Gatherer gatherer_;
  RunReader reader_;
  bool converts_ = false;
  bool has_large_ = false;
};

}  // namespace

void complete_block(const Fetched& fetched, const BatchPlan& plan, std::byte* block, const Work& work) {
  Mover(fetched, plan, block, work).move();
  fill_derived(fetched, plan, block);
}

}  // namespace penstock::data
