#include "support/sample_value.h"

#include <algorithm>

#include "penstock/tensor.h"
#include "support/same_value.h"

namespace penstock::fuzz {

namespace {

using Kind = Value::Kind;

constexpr std::size_t kMostDepth = 64;   ///< as of a loader's samples
constexpr std::size_t kMostParts = 500;  ///< a loader takes many more

bool is_container(Kind kind) { return kind == Kind::kDict || kind == Kind::kList || kind == Kind::kTuple; }

bool is_leaf(Kind kind) {
  constexpr Kind kLeaves[] = {Kind::kTensor, Kind::kNone,    Kind::kBool,   Kind::kInt,
                              Kind::kFloat,  Kind::kComplex, Kind::kString, Kind::kBytes};
  return std::find(std::begin(kLeaves), std::end(kLeaves), kind) != std::end(kLeaves);
}

bool is_key(Kind kind) {
  constexpr Kind kKeys[] = {Kind::kNone,   Kind::kBool,  Kind::kInt,   Kind::kFloat,
                            Kind::kString, Kind::kBytes, Kind::kBigInt};
  return std::find(std::begin(kKeys), std::end(kKeys), kind) != std::end(kKeys);
}

Value child(const Value& value, std::size_t i) { return value.is(Kind::kDict) ? value.item(i).second : value[i]; }

SampleFit walk(const Value& value, std::size_t depth, std::size_t& parts) {
  if (depth > kMostDepth) return SampleFit::kRefused;
  if (++parts > kMostParts) return SampleFit::kHuge;
  if (is_leaf(value.kind())) return SampleFit::kGood;
  if (!is_container(value.kind())) return SampleFit::kRefused;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value.is(Kind::kDict) && !is_key(value.item(i).first.kind())) return SampleFit::kRefused;
    const SampleFit fit = walk(child(value, i), depth + 1, parts);
    if (fit != SampleFit::kGood) return fit;
  }
  return SampleFit::kGood;
}

/// NumPy's scalars, whose type has a name, become tensors of that type where all samples have it.
bool is_number(const Value& value) {
  return value.type_name().empty() && (value.is(Kind::kBool) || value.is(Kind::kInt) || value.is(Kind::kFloat));
}

std::string difference_of_numbers(const Value& batch, std::size_t at, const Value& number) {
  if (!batch.is(Kind::kTensor)) return "no tensor where the sample has a number";
  const Tensor one = batch.as_tensor().select(0, static_cast<std::int64_t>(at));
  const Tensor wanted = number.is(Kind::kBool)  ? Tensor::of<bool>({number.as_bool()})
                        : number.is(Kind::kInt) ? Tensor::of<std::int64_t>({number.as_int()})
                                                : Tensor::of<double>({number.as_float()});
  return difference_of(one, wanted.select(0, 0), kValuesAlone);
}

}  // namespace

SampleFit fit_of(const Value& content) {
  std::size_t parts = 0;
  return walk(content, 0, parts);
}

bool has_opaque_tensor(const Value& sample) {
  if (sample.is(Kind::kTensor)) return sample.as_tensor().dtype().code() == DType::Code::kOpaque;
  if (!is_container(sample.kind())) return false;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (has_opaque_tensor(child(sample, i))) return true;
  }
  return false;
}

std::string difference_in_batch(const Value& batch, std::size_t at, const Value& sample,
                                std::optional<std::size_t> length) {
  if (sample.is(Kind::kTensor)) {
    if (!batch.is(Kind::kTensor)) return "no tensor where the sample has one";
    Tensor one = batch.as_tensor().select(0, static_cast<std::int64_t>(at));
    Tensor wanted = sample.as_tensor();
    if (length && wanted.rank() > 0) {
      const std::int64_t kept = std::min(wanted.shape()[0], static_cast<std::int64_t>(*length));
      one = one.slice(0, 0, kept);
      wanted = wanted.slice(0, 0, kept);
    }
    return difference_of(one, wanted, kValuesAlone);
  }
  if (sample.is(Kind::kString) || sample.is(Kind::kBytes)) return difference_of(batch[at], sample, kValuesAlone);
  if (is_number(sample)) return difference_of_numbers(batch, at, sample);
  if (!is_container(sample.kind())) return {};
  if (batch.kind() != sample.kind() || batch.size() != sample.size()) return "another structure";
  for (std::size_t i = 0; i < sample.size(); ++i) {
    std::string found = difference_in_batch(child(batch, i), at, child(sample, i), length);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace penstock::fuzz
