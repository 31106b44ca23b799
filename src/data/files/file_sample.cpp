#include "data/files/file_sample.h"

#include "data/sample/value_layout.h"
#include "penstock/error.h"

namespace penstock::data {

FileSample file_sample(const Value& content, std::span<const TensorEntry> entries, std::span<const std::string> keys,
                       StructureInterner& interner) {
  FileSample sample;
  const auto layout_of = [&](const Value& tensor) {
    const std::size_t index = tensor.entry_index().value();
    const TensorEntry& entry = entries[index];
    if (entry.pickled) {
      throw Error(ErrorCode::kUnsafe,
                  "the array holds Python objects, which only running code could load; leave it out with keys",
                  {.tensor = entry.name});
    }
    sample.entries.push_back(static_cast<std::uint32_t>(index));
    TensorLayout out(entry.dtype, entry.shape,
                     entry.encoding.is_plain() ? entry.strides : entry.shape.contiguous_strides());
    out.requires_grad = entry.requires_grad;
    return out;
  };
  sample.layout = value_layout(content, keys, layout_of, "select what you need with keys", interner);
  return sample;
}

}  // namespace penstock::data
