#pragma once

// A dataset over another, whose samples are the other's, one for one, with something done to them: what a dataset says
// of its samples holds for them too, so that it is forwarded in one place.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "data/dataset_impl.h"
#include "penstock/sample_stream.h"

namespace penstock::data {

/// Says of sample i what the dataset below says of its sample i. What depends on the payload is not forwarded (`fetch`,
/// `value`, `even_rows`, `arrays`, `slices`, `file_options`, `in_order`, `batch_functions`): who leaves it alone
/// forwards that as well.
class Forwarding : public detail::DatasetImpl {
 public:
  explicit Forwarding(Dataset dataset) : dataset_(std::move(dataset)) {}

  std::int64_t size() const override { return below().size(); }
  bool is_counted() const noexcept override { return below().is_counted(); }
  std::string describe(std::int64_t index) const override { return below().describe(index); }
  std::string remark() const override { return below().remark(); }
  std::string path(std::int64_t index) const override { return below().path(index); }
  std::size_t root_size(std::int64_t index) const override { return below().root_size(index); }
  bool samples_are_files() const noexcept override { return below().samples_are_files(); }
  std::span<const std::string> classes() const noexcept override { return below().classes(); }
  std::uint64_t read_bytes(std::int64_t index) const override { return below().read_bytes(index); }
  std::uint32_t draws() const noexcept override { return below().draws(); }
  std::uint32_t random_stages() const noexcept override { return below().random_stages(); }

 protected:
  const Dataset& dataset() const noexcept { return dataset_; }
  const detail::DatasetImpl& below() const noexcept { return dataset_.impl(); }
  /// The way that the dataset below has from front to back, with what `make` makes of its samples.
  template <class Make>
  std::function<SampleStream()> in_order_by(Make make) const {
    const auto before = below().in_order();
    if (!before) return {};
    return [before, make = std::move(make)] {
      const SampleStream stream = before();
      return SampleStream(stream.node(), make(stream.samples()));
    };
  }

 private:
  Dataset dataset_;
};

}  // namespace penstock::data
