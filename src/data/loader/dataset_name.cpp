#include "data/loader/dataset_name.h"

#include "data/dataset/samples_name.h"
#include "data/stream/node.h"

namespace penstock::data {

const std::string& DatasetName::name() const {
  if (!is_known_) name_ = stream_ ? ends_of_names(stream_->node()->identity()) : samples_name(dataset_);
  is_known_ = true;
  return name_;
}

}  // namespace penstock::data
