#include "penstock/dataset.h"

#include "data/batch/batch_maker.h"
#include "data/dataset_impl.h"
#include "data/read_sample.h"
#include "data/sample/require_samples.h"

namespace penstock {

std::int64_t Dataset::size() const { return impl_->size(); }

Value Dataset::get(Integer index) const { return data::read_sample(*this, index, false); }

const std::vector<std::string> Dataset::paths() const {
  if (!impl_->samples_are_files()) {
    throw Error(ErrorCode::kInvalidArgument,
                "the samples of this dataset are not files of their own; describe(i) says what sample i is");
  }
  std::vector<std::string> out;
  out.reserve(static_cast<std::size_t>(size()));
  for (std::int64_t i = 0; i < size(); ++i) out.push_back(impl_->path(i));
  return out;
}

const std::vector<std::string> Dataset::classes() const {
  const std::span<const std::string> names = impl_->classes();
  if (!names.empty()) return {names.begin(), names.end()};
  throw Error(ErrorCode::kInvalidArgument, "the dataset has no classes; files() with class_folders has");
}

Value detail::DatasetImpl::value(std::int64_t index, const data::Work& work) const {
  return data::copied_sample(*this, index, work);
}

const std::string Dataset::describe(Integer index) const { return impl_->describe(data::from_start(index, size())); }

}  // namespace penstock
