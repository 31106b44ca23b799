#pragma once

// Files of every kind of sample, and what became of reading them, for tests that compare two ways of reading.

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "data/support.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/save.h"
#include "penstock/value.h"

namespace penstock::test {

/// Everything that an error says.
inline std::string told(const Error& error) {
  return std::string(error_code_info(error.code()).name) + ": " + error.what();
}

/// Stands for every bit of a value.
inline std::string print_of(const Value& value) {
  const std::string bits = bits_of(value);
  return "value " + std::to_string(bits.size()) + " " + std::to_string(std::hash<std::string>()(bits));
}

/// The print of what `read` gives, or everything that its error says.
inline std::string outcome_of(const std::function<Value()>& read) {
  try {
    return print_of(read());
  } catch (const Error& error) {
    return told(error);
  }
}
inline bool is_value(const std::string& outcome) { return outcome.starts_with("value "); }

/// Sample `at` of a batch of equal samples. Lists in it stand for values that do not become tensors.
inline Value sample_of(const Value& batch, std::int64_t at) {
  switch (batch.kind()) {
    case Value::Kind::kTensor:
      return Value::tensor(batch.as_tensor()[at]);
    case Value::Kind::kDict: {
      std::vector<Value::Item> items;
      for (std::size_t i = 0; i < batch.size(); ++i)
        items.emplace_back(batch.item(i).first, sample_of(batch.item(i).second, at));
      return Value::dict(std::move(items), batch.type_name());
    }
    case Value::Kind::kTuple: {
      std::vector<Value> items;
      for (std::size_t i = 0; i < batch.size(); ++i) items.push_back(sample_of(batch[i], at));
      return Value::tuple(std::move(items), batch.type_name());
    }
    default:
      return batch[static_cast<std::size_t>(at)];
  }
}

/// A way to write samples that differ in their content alone.
struct SampleKind {
  std::string name;
  std::string extension;
  std::function<void(std::size_t seed, const std::string& path)> write;
};

inline void PrintTo(const SampleKind& kind, std::ostream* out) { *out << kind.name << kind.extension; }

inline Value pair_of(const char* first, Value a, const char* second, Value b) {
  return Value::dict({{first, std::move(a)}, {second, std::move(b)}});
}

/// A `.npy` of elements in the other byte order.
inline void write_swapped_npy(const Shape& shape, bool fortran, std::uint64_t seed, const std::string& path) {
  std::string header = "{'descr': '>i4', 'fortran_order': " + std::string(fortran ? "True" : "False") +
                       ", 'shape': " + shape.to_string() + ", }";
  header.resize((10 + header.size()) / 64 * 64 + 64 - 11, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() % 256);
  bytes += static_cast<char>(header.size() / 256);
  bytes += header;
  for (const std::byte byte : numbered_bytes(static_cast<std::size_t>(shape.numel()) * 4, seed))
    bytes += static_cast<char>(byte);
  write_file(path, bytes);
}

/// Samples with `rows` rows of payload, and of every structure that files give a loader.
inline std::vector<SampleKind> sample_kinds(std::int64_t rows) {
  const auto tensor = [rows](std::size_t seed, const DType& dtype) {
    return numbered_tensor(Shape{rows, 16}, dtype, seed);
  };
  const auto saved = [](std::string name, std::string extension, std::function<Value(std::size_t)> content) {
    return SampleKind{std::move(name), std::move(extension), [content](std::size_t seed, const std::string& path) {
                        save(content(seed), path, {.sync = false});
                      }};
  };
  const auto fortran = [tensor](std::size_t seed) {
    const Tensor t = tensor(seed, DType::int32);
    return Value::tensor(t.reshape(Shape{16, t.shape()[0]}).transpose(0, 1));
  };
  return {
      saved("tensor", ".npy", [=](std::size_t seed) { return Value::tensor(tensor(seed, DType::int32)); }),
      saved("fortran", ".npy", fortran),
      saved("complex", ".npy", [=](std::size_t seed) { return Value::tensor(tensor(seed, DType::complex128)); }),
      saved("zero-dim", ".npy",
            [](std::size_t seed) { return Value::tensor(numbered_tensor(Shape{}, DType::float64, seed)); }),
      saved("empty", ".npy",
            [](std::size_t) {
              return Value::tensor(Tensor::zeros(Shape{0, 3}, DType::int16));
            }),
      {"swapped", ".npy",
       [rows](std::size_t seed, const std::string& path) {
         write_swapped_npy(Shape{rows, 16}, false, seed, path);
       }},
      {"swapped fortran", ".npy",
       [rows](std::size_t seed, const std::string& path) {
         write_swapped_npy(Shape{rows, 16}, true, seed, path);
       }},
      saved("bfloat16", ".pt", [=](std::size_t seed) { return Value::tensor(tensor(seed, DType::bfloat16)); }),
      saved("dict", ".pt",
            [=](std::size_t seed) {
              return Value::dict({{"x", Value::tensor(tensor(seed, DType::float8_e4m3fn))},
                                  {"label", Value::integer(static_cast<std::int64_t>(seed % 3))},
                                  {"name", Value::string("sample")},
                                  {"none", Value::tensor(Tensor::zeros(Shape{0, 2}))},
                                  {"scale", Value::tensor(numbered_tensor(Shape{}, DType::complex64, seed))}});
            }),
      saved("tuple", ".pt",
            [=](std::size_t seed) {
              return Value::tuple({Value::tensor(tensor(seed, DType::float64)), Value::boolean(seed % 2 == 0),
                                   Value::tensor(numbered_tensor(Shape{3}, DType::float8_e5m2, seed))});
            }),
      saved("views of one storage", ".pt",
            [=](std::size_t seed) {
              const Tensor all = tensor(seed, DType::int32);
              const std::int64_t half = all.shape()[0] / 2;
              return pair_of("a", Value::tensor(all.slice(0, 0, half)), "b",
                             Value::tensor(all.slice(0, half, 2 * half)));
            }),
      saved("strided", ".pt", fortran),
      saved("dict", ".safetensors",
            [=](std::size_t seed) {
              return Value::dict({{"x", Value::tensor(tensor(seed, DType::float16))},
                                  {"y", Value::tensor(numbered_tensor(Shape{5}, DType::float8_e5m2, seed))},
                                  {"none", Value::tensor(Tensor::zeros(Shape{2, 0}))}});
            }),
      saved("dict", ".npz",
            [=](std::size_t seed) {
              return pair_of("x", Value::tensor(tensor(seed, DType::int64)), "y",
                             Value::tensor(numbered_tensor(Shape{2, 3}, DType::uint8, seed)));
            }),
      {"deflated", ".npz",
       [=](std::size_t seed, const std::string& path) {
         save(dict_of({{"x", tensor(seed, DType::int16)}}), path, {.compress = true, .sync = false});
       }},
  };
}

}  // namespace penstock::test
