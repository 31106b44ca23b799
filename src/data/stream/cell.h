#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample/stream_items.h"
#include "data/sample/work.h"
#include "penstock/dataset.h"
#include "penstock/sample_stream.h"

namespace penstock::data {

/// More samples than any stream gives: the size of datasets of their numbers.
inline constexpr std::int64_t kEndless = std::int64_t{1} << 62;

/// The samples that a stream of this name gives, by their numbers. `draws` and `stages` are those of what was done to
/// them before (DatasetImpl).
Dataset stream_cell(std::string name, std::uint32_t draws = 0, std::uint32_t stages = 0);
/// Those of a mixture: each is a sample of one of its parts.
Dataset mixed_cell(std::string name, std::vector<SampleStream> parts);

/// Sample `number` of the batch at hand, whose samples `items` has; kInvalidArgument where no loader brought it.
const StreamItem& item_at_hand(std::int64_t number, StreamItems* items);
/// What the stream's maps and transforms make of one item.
Value made_of(const SampleStream& stream, const StreamItemPtr& item, const Work& work);
/// The memory that an item takes.
std::uint64_t bytes_of(const StreamItem& item);

}  // namespace penstock::data
