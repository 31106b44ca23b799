// Datasets of the program: a class derived from DatasetInterface, a function of an index, or values in memory.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "data/dataset_impl.h"
#include "data/sample/runner.h"
#include "data/sample/user_call.h"
#include "data/sample/value_samples.h"
#include "penstock/dataset.h"
#include "penstock/error.h"

namespace penstock {

namespace {

using data::Work;

class OfFunction final : public DatasetInterface {
 public:
  OfFunction(std::int64_t size, data::IndexFunction get) : size_(size), get_(std::move(get)) {}
  std::int64_t size() const override { return size_; }
  Value get(std::int64_t index) const override { return get_(index); }
  const data::IndexFunction& function() const noexcept { return get_; }

 private:
  std::int64_t size_;
  data::IndexFunction get_;
};

std::int64_t size_of(const DatasetInterface& own) {
  try {
    return own.size();
  } catch (...) {
    data::rethrow_as_error("the dataset's size");
  }
}

/// A name for messages, whatever the program's function throws: that would hide what the message is about.
std::string name_of(const DatasetInterface& own, std::int64_t index) {
  try {
    try {
      return own.describe(index);
    } catch (...) {
      data::rethrow_as_error("its describe");
    }
  } catch (const Error& error) {
    return core::format("<dataset>[{}]; {}", index, error.message());
  }
}

/// Samples that an object of the program gives.
class Own final : public detail::DatasetImpl {
 public:
  explicit Own(std::shared_ptr<const DatasetInterface> own) : own_(std::move(own)), size_(size_of(*own_)) {
    if (size_ < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the size of a dataset is {}; it must be 0 or more", size_));
    }
  }

  std::int64_t size() const override { return size_; }
  std::string describe(std::int64_t index) const override { return name_of(*own_, index); }
  /// Nobody knows.
  std::uint64_t read_bytes(std::int64_t) const override { return std::numeric_limits<std::uint64_t>::max(); }

  Value value(std::int64_t index, const Work& work) const override {
    Value out = data::call_user("the dataset's function", [&] { return own_->get(index); });
    work.figures.clock.lap(data::Stage::kFunction, index);
    return out;
  }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<data::Sample> out) const override {
    data::Runner* const runner = data::RunnerScope::current();
    const auto* const own = dynamic_cast<const OfFunction*>(own_.get());
    if (runner == nullptr || own == nullptr || !runner->takes(own->function())) {
      data::fetch_values(*this, indices, work, out);
      return;
    }
    data::fetch_values_together(*this, indices, work, out,
                                [&](std::span<const std::int64_t> several, const data::ExpectedSlots& slots) {
                                  std::vector<data::Called> called = runner->call(own->function(), several, slots);
                                  work.figures.clock.lap(data::Stage::kFunction, several.back());
                                  return called;
                                });
  }

 private:
  std::shared_ptr<const DatasetInterface> own_;
  std::int64_t size_;
};

/// Values that stay in memory. They are fetched like any other sample, so that whoever gets one gets a copy.
class Values final : public detail::DatasetImpl {
 public:
  explicit Values(std::vector<Value> values) : values_(std::move(values)) {
    data::StructureInterner structures;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      try {
        static_cast<void>(data::layout_of_value(values_[i], structures));
      } catch (const Error& error) {
        throw error.prefixed(core::format("value {}: ", i));
      }
    }
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(values_.size()); }
  std::string describe(std::int64_t index) const override { return core::format("<values>[{}]", index); }
  std::uint64_t read_bytes(std::int64_t) const override { return 0; }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<data::Sample> out) const override {
    auto& samples = work.scratch.state<data::ValueSamples>(this);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Value& value = values_[static_cast<std::size_t>(indices[i])];
      out[i] = samples.sample(value, i, this, work.slots, work.scratch);
    }
  }

 private:
  std::vector<Value> values_;
};

}  // namespace

std::string DatasetInterface::describe(std::int64_t index) const { return core::format("<dataset>[{}]", index); }

Dataset::Dataset() {
  static const auto nothing = std::make_shared<const Values>(std::vector<Value>());
  impl_ = nothing;
}

Dataset::Dataset(std::shared_ptr<const DatasetInterface> own) {
  if (own == nullptr) throw Error(ErrorCode::kInvalidArgument, "there is no dataset: the pointer is null");
  impl_ = std::make_shared<Own>(std::move(own));
}

Dataset detail::dataset_of(std::int64_t size, std::function<Value(std::int64_t)> get) {
  return Dataset(std::shared_ptr<const DatasetInterface>(std::make_shared<OfFunction>(size, std::move(get))));
}

Dataset dataset(std::vector<Value> values) { return Dataset(std::make_shared<Values>(std::move(values))); }

Dataset dataset(const std::vector<Tensor>& tensors) {
  std::vector<Value> values;
  values.reserve(tensors.size());
  for (const Tensor& tensor : tensors) values.push_back(Value::tensor(tensor));
  return dataset(std::move(values));
}

}  // namespace penstock
