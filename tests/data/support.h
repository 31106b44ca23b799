#pragma once

// Datasets, batches and files for the tests of the data layer.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset_impl.h"
#include "data/sample/held_descriptors.h"
#include "penstock/loader.h"
#include "penstock/save.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock::test {

/// A value as text, every bit of it: two are equal when their texts are.
inline std::string bits_of(const Value& value) {
  const auto tag = [&](std::string text) { return std::to_string(static_cast<int>(value.kind())) + ":" + text + ";"; };
  switch (value.kind()) {
    case Value::Kind::kTensor: {
      const Tensor tensor = value.as_tensor().contiguous();
      const std::string bytes(reinterpret_cast<const char*>(tensor.data()), tensor.nbytes());
      return tag(tensor.dtype().name() + tensor.shape().to_string() + bytes);
    }
    case Value::Kind::kNone:
      return tag("");
    case Value::Kind::kBool:
      return tag(value.as_bool() ? "1" : "0");
    case Value::Kind::kInt:
      return tag(std::to_string(value.as_int()));
    case Value::Kind::kFloat:
    case Value::Kind::kComplex:
      return tag(value.to_string());
    case Value::Kind::kString:
    case Value::Kind::kBytes:
      return tag(value.as_string());
    case Value::Kind::kDict: {
      std::string out = value.type_name() + "{";
      for (std::size_t i = 0; i < value.size(); ++i)
        out += bits_of(value.item(i).first) + bits_of(value.item(i).second);
      return tag(out + "}");
    }
    default: {
      std::string out = value.type_name() + "[";
      for (std::size_t i = 0; i < value.size(); ++i) out += bits_of(value[i]);
      return tag(out + "]");
    }
  }
}

inline std::string bits_of(const Batch& batch) {
  std::string out = bits_of(batch.value) + "@";
  for (const std::int64_t index : batch.indices) out += std::to_string(index) + ",";
  return out;
}

/// The batches from where the loader stands to the end of the epoch.
inline std::vector<std::string> rest_of_epoch(DataLoader& loader) {
  std::vector<std::string> out;
  while (const auto batch = loader.next()) out.push_back(bits_of(*batch));
  return out;
}

/// `count` rows of `width` int32: row i is i * 1000 + column.
inline Tensor numbered_rows(std::int64_t count, std::int64_t width) {
  Tensor out = Tensor::empty(Shape{count, width}, DType::int32);
  auto values = out.values<std::int32_t>();
  for (std::int64_t i = 0; i < count * width; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i / width * 1000 + i % width);
  }
  return out;
}

/// "0007.npy" in a folder.
inline std::string numbered_path(const TemporaryFolder& folder, std::int64_t number, const std::string& extension) {
  std::string text = std::to_string(number);
  return folder / (std::string(4 - text.size(), '0') + text + extension);
}

/// Writes one file for each tensor.
inline void write_tensors(const TemporaryFolder& folder, const std::vector<Tensor>& tensors,
                          const std::string& extension) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    save(tensors[i], numbered_path(folder, static_cast<std::int64_t>(i), extension), {.sync = false});
  }
}

/// Equal tensors of float32 with different content.
inline std::vector<Tensor> equal_tensors(std::size_t count, const Shape& shape) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(numbered_tensor(shape, DType::int32, i));
  return out;
}

/// A dataset of rows that does something before it says where they lie.
class WatchedDataset final : public detail::DatasetImpl {
 public:
  using Watch = std::function<void(std::int64_t index, const data::CallContext& call)>;

  WatchedDataset(Dataset inner, Watch watch) : inner_(std::move(inner)), watch_(std::move(watch)) {}
  std::int64_t size() const noexcept override { return inner_.size(); }
  std::string describe(std::int64_t index) const override { return "watched " + inner_.impl().describe(index); }
  std::uint64_t read_bytes(std::int64_t index) const override { return inner_.impl().read_bytes(index); }
  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      try {
        watch_(indices[i], work.call);
      } catch (const Error& error) {
        throw data::SampleError(i, error);
      }
    }
    inner_.impl().fetch(indices, work, out);
  }

 private:
  Dataset inner_;
  Watch watch_;
};

inline Dataset watched(Dataset inner, WatchedDataset::Watch watch) {
  return Dataset(std::make_shared<WatchedDataset>(std::move(inner), std::move(watch)));
}

/// Descriptors this process has open.
inline std::size_t open_files() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

/// Every descriptor that may be held is.
inline std::vector<std::unique_ptr<data::HeldDescriptors>> hold_all() {
  std::vector<std::unique_ptr<data::HeldDescriptors>> held;
  do {
    held.push_back(std::make_unique<data::HeldDescriptors>(1));
  } while (held.back()->count() == 1);
  return held;
}

}  // namespace penstock::test
