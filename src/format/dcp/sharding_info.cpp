#include "format/dcp/sharding_info.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>

#include "core/format.h"
#include "core/json_reader.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

class OffsetsReader final : public core::JsonReader {
 public:
  OffsetsReader(std::string_view json, const std::string& path, const std::vector<TensorEntry>& entries)
      : core::JsonReader(json, path, std::nullopt), entries_(entries), offsets_(entries.size()) {
    for (std::size_t i = 0; i < entries.size(); ++i) numbers_.emplace(entries[i].name, i);
  }

  std::vector<Shape> offsets() {
    std::vector<Shape> out;
    for (current_ = 0; current_ < entries_.size(); ++current_) {
      const std::optional<Shape>& found = offsets_[current_];
      if (!found || found->rank() != entries_[current_].shape.rank()) refuse();
      out.push_back(*found);
    }
    return out;
  }

 private:
  enum class State : std::uint8_t { kStart, kTop, kTensor, kOffsets };

  void on_object() override {
    if (state_ != State::kStart && state_ != State::kTop) refuse();
    state_ = state_ == State::kStart ? State::kTop : State::kTensor;
  }
  void on_object_end() override { state_ = State::kTop; }
  void on_array() override {
    if (state_ != State::kTensor) refuse();
    state_ = State::kOffsets;
    offsets_[current_].emplace();
  }
  void on_array_end() override { state_ = State::kTensor; }
  void on_key(std::string& name) override {
    if (state_ == State::kTensor) {
      if (name != "saved_offsets") return skip_value();
      if (offsets_[current_]) refuse();
    } else if (const auto found = numbers_.find(name); found != numbers_.end()) {
      current_ = found->second;
    } else {
      skip_value();
    }
  }
  void on_unsigned(std::uint64_t value) override {
    const bool fits = value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (state_ != State::kOffsets || !fits || offsets_[current_]->rank() == Shape::kMaxRank) refuse();
    offsets_[current_]->push_back(static_cast<std::int64_t>(value));
  }
  [[noreturn]] void unexpected(std::string_view) override { refuse(); }

  [[noreturn]] void refuse() const { fail("its saved_offsets are missing or wrong", entries_[current_].name); }

  const std::vector<TensorEntry>& entries_;
  std::unordered_map<std::string_view, std::size_t> numbers_;
  std::vector<std::optional<Shape>> offsets_;
  State state_ = State::kStart;
  std::size_t current_ = 0;
};

}  // namespace

std::vector<Shape> offsets_of(const Index& shard, const std::string& path) {
  const auto found = shard.metadata.find(std::string(kShardingInfo));
  if (found == shard.metadata.end()) {
    std::vector<Shape> zeros;
    for (const TensorEntry& entry : shard.entries) zeros.emplace_back(std::vector<std::int64_t>(entry.shape.rank()));
    return zeros;
  }
  OffsetsReader reader(found->second, path, shard.entries);
  try {
    reader.read();
    return reader.offsets();
  } catch (const Error& error) {
    throw Error(error.code(), core::format("{} in {}; save the checkpoint again", error.message(), kShardingInfo),
                {error.path(), {}, error.tensor()});
  }
}

}  // namespace penstock::format::dcp
