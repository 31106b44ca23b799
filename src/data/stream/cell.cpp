// The dataset below the maps and transforms of a stream. Its index is the number of a sample in the stream, and its
// samples are those that the call brings (CallContext::items): the ones of the batch at hand, and no others. Functions
// of map are given copies, because a sample may be made into a batch again: after an error, or after a stop.
#include "data/stream/cell.h"

#include <limits>
#include <utility>
#include <vector>

#include "core/format.h"
#include "data/dataset/map.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"
#include "data/sample/value_samples.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

class Cell : public detail::DatasetImpl {
 public:
  Cell(std::string name, std::uint32_t draws, std::uint32_t stages)
      : name_(std::move(name)), draws_(draws), stages_(stages) {}

  std::int64_t size() const override { return kEndless; }
  std::string describe(std::int64_t index) const override { return core::format("{}[{}]", name_, index); }
  std::uint64_t read_bytes(std::int64_t) const override { return std::numeric_limits<std::uint64_t>::max(); }
  std::uint32_t draws() const noexcept override { return draws_; }
  std::uint32_t random_stages() const noexcept override { return stages_; }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    auto& samples = work.scratch.state<ValueSamples>(this);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      work.call.check_cancelled();
      try {
        const StreamItem& item = item_at_hand(indices[i], work.call.items);
        out[i] = samples.sample(item.value, i, this, work.slots, work.scratch);
      } catch (const Error& error) {
        fail(out[i], i, error, work.call, work.scratch);
      }
    }
  }

 private:
  std::string name_;
  std::uint32_t draws_;
  std::uint32_t stages_;
};

class MixedCell final : public Cell {
 public:
  MixedCell(std::string name, std::vector<SampleStream> parts)
      : Cell(std::move(name), most(parts, &DatasetImpl::draws), most(parts, &DatasetImpl::random_stages)),
        parts_(std::move(parts)) {}

  Value value(std::int64_t index, const Work& work) const override {
    const StreamItem& found = item_at_hand(index, work.call.items);
    const SampleStream& part = parts_[found.part];
    try {
      return made_of(part, found.inner, work);
    } catch (const SampleError& error) {
      throw error.error().prefixed(place(part, found));
    } catch (const Error& error) {
      throw error.prefixed(place(part, found));
    }
  }
  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    fetch_values(*this, indices, work, out);
  }

 private:
  static std::uint32_t most(const std::vector<SampleStream>& parts,
                            std::uint32_t (detail::DatasetImpl::*count)() const noexcept) {
    std::vector<Dataset> samples;
    for (const SampleStream& part : parts) samples.push_back(part.samples());
    return most_of(samples, count);
  }
  static std::string place(const SampleStream& part, const StreamItem& item) {
    return part.samples().impl().describe(item.inner->number) + ": ";
  }

  std::vector<SampleStream> parts_;
};

}  // namespace

Dataset stream_cell(std::string name, std::uint32_t draws, std::uint32_t stages) {
  return Dataset(std::make_shared<Cell>(std::move(name), draws, stages));
}

Dataset mixed_cell(std::string name, std::vector<SampleStream> parts) {
  return Dataset(std::make_shared<MixedCell>(std::move(name), std::move(parts)));
}

const StreamItem& item_at_hand(std::int64_t number, StreamItems* items) {
  if (const StreamItem* found = items ? items->find(number) : nullptr) return *found;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("sample {} of a stream is not at hand; give the stream to a loader", number));
}

Value made_of(const SampleStream& stream, const StreamItemPtr& item, const Work& work) {
  StreamItems items({&item, 1});
  CallContext call = work.call;
  call.items = &items;
  return stream.samples().impl().value(item->number, work.with(call));
}

std::uint64_t bytes_of(const StreamItem& item) {
  return item.inner ? bytes_of(*item.inner) : sizeof(StreamItem) + tensor_bytes(item.value);
}

}  // namespace penstock::data
