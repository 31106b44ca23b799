#include "penstock/sampler.h"

#include <stdexcept>

#include "core/rethrow.h"
#include "penstock/error.h"

namespace penstock {

namespace {

/// What `call`, which may be the program's own, gives.
template <class Call>
auto called(const char* who, const Call& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::length_error&) {  // of a vector that cannot be as long as the order
    throw Error(ErrorCode::kOutOfMemory, "the order takes more memory than there is");
  } catch (...) {
    core::rethrow_as_error(who);
  }
}

}  // namespace

Sampler::Sampler() : Sampler(sampler::sequential(0)) {}

Sampler::Sampler(std::shared_ptr<const SamplerInterface> own) : impl_(std::move(own)) {
  if (!impl_) throw Error(ErrorCode::kInvalidArgument, "found null, expected an object that is a sampler");
}

Order Sampler::order(std::uint64_t seed, std::uint64_t epoch) const {
  return called("the sampler", [&] { return impl_->order(seed, epoch); });
}

BatchSampler::BatchSampler() : BatchSampler(sampler::batches(Sampler(), 1)) {}

BatchSampler::BatchSampler(std::shared_ptr<const BatchSamplerInterface> own) : impl_(std::move(own)) {
  if (!impl_) throw Error(ErrorCode::kInvalidArgument, "found null, expected an object that is a batch sampler");
}

BatchOrder BatchSampler::batches(std::uint64_t seed, std::uint64_t epoch) const {
  return called("the batch sampler", [&] { return impl_->batches(seed, epoch); });
}

}  // namespace penstock
