#include "data/loader/dataset_name.h"

#include <cstdint>
#include <string_view>

#include "core/fnv1a.h"
#include "core/format.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "data/stream/node.h"
#include "io/locations.h"
#include "ops/philox.h"

namespace penstock::data {

namespace {

constexpr std::int64_t kLooks = 16;

/// The end of a path: the file and its folder. Of a URL, without what signs it.
std::string_view end_of(std::string_view path) {
  path = io::path_part(path);
  const std::size_t file = path.rfind('/');
  if (file == std::string_view::npos || file == 0) return path;
  const std::size_t folder = path.rfind('/', file - 1);
  return folder == std::string_view::npos ? path : path.substr(folder + 1);
}

std::uint64_t hashed(std::uint64_t hash, std::string_view text) {
  return ops::philox(core::fnv1a(text, hash), text.size()).low();
}

}  // namespace

DatasetName::DatasetName(const SampleStream& stream) : name_(end_of(stream.node()->name())) {}

const std::string& DatasetName::name() const {
  if (!dataset_ || !name_.empty() || dataset_->size() == 0) return name_;
  const detail::DatasetImpl& impl = dataset_->impl();
  const std::int64_t last = dataset_->size() - 1;
  std::uint64_t hash = core::fnv1a("");
  for (std::int64_t look = 0; look <= kLooks; ++look) {
    const std::int64_t index = last / kLooks * look + last % kLooks * look / kLooks;
    hash = hashed(hash, end_of(impl.describe(index)));
  }
  const auto shown = [&](std::int64_t index) { return core::escaped(end_of(impl.describe(index))); };
  name_ = core::format("{} to {}, {:08x}", shown(0), shown(last), static_cast<std::uint32_t>(hash >> 32U));
  return name_;
}

}  // namespace penstock::data
