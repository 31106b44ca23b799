#include "penstock/sampler.h"

#include "penstock/error.h"

namespace penstock {

Sampler::Sampler(std::shared_ptr<const SamplerInterface> own) : impl_(std::move(own)) {
  if (!impl_) throw Error(ErrorCode::kInvalidArgument, "found null, expected an object that is a sampler");
}

BatchSampler::BatchSampler(std::shared_ptr<const BatchSamplerInterface> own) : impl_(std::move(own)) {
  if (!impl_) throw Error(ErrorCode::kInvalidArgument, "found null, expected an object that is a batch sampler");
}

}  // namespace penstock
