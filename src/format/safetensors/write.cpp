// Writes the same bytes as the reference implementation, so that files can be compared: the same order of tensors, the
// same JSON, the same padding.

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/text.h"
#include "core/view.h"
#include "format/flat_tensors.h"
#include "format/safetensors/header.h"
#include "format/safetensors/safetensors.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

struct Planned {
  std::string name;
  Shape shape;
  std::uint64_t nbytes = 0;
  const SafetensorsDType* dtype = nullptr;
  Value value;  ///< the tensor, or the entry of one that is not loaded
};

Planned plan_tensor(std::string name, Value value, const DType& type, const Shape& shape, std::uint64_t nbytes) {
  const SafetensorsDType* const dtype = &require_safetensors(name, type, shape.rank());
  return {std::move(name), shape, nbytes, dtype, std::move(value)};
}

/// Types in the order of the reference's writer, which puts wide elements first so that all of them are aligned.
std::vector<Planned> plan_tensors(const Value& value, std::span<const TensorEntry> entries) {
  std::vector<Planned> out;
  for (auto& [name, tensor] : flat_values(value, "safetensors", "tensor")) {
    const TensorFacts facts = facts_of(tensor, entries);
    out.push_back(plan_tensor(std::move(name), tensor, facts.dtype, facts.shape, facts.nbytes));
  }
  std::sort(out.begin(), out.end(), [](const Planned& a, const Planned& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  return out;
}

struct Extent {
  const std::byte* begin;
  const std::byte* end;
  const Planned* tensor;
};

Extent extent_of(const Planned& planned) {
  const Tensor& tensor = planned.value.as_tensor();
  const std::size_t bytes = *core::view_span(tensor.shape(), tensor.strides(), tensor.dtype().itemsize());
  return {tensor.data(), tensor.data() + bytes, &planned};
}

/// Refuses tensors that share memory, as the reference does: they would come back as separate tensors.
void refuse_shared(const std::vector<Planned>& tensors) {
  std::vector<Extent> extents;
  for (const Planned& planned : tensors) {
    if (planned.nbytes != 0) extents.push_back(extent_of(planned));
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return a.begin != b.begin ? std::less<>()(a.begin, b.begin) : a.tensor < b.tensor;
  });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    // Sorted by begin, so a tensor overlaps some earlier one only if it does the one that reaches farthest.
    if (std::less<>()(extents[i].begin, extents[i - 1].end)) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("tensors {} and {} share memory, which safetensors cannot express: clone one, leave one "
                               "out, or save as .pt",
                               core::quoted(extents[i - 1].tensor->name), core::quoted(extents[i].tensor->name)));
    }
    if (std::less<>()(extents[i].end, extents[i - 1].end))
      extents[i] = {extents[i].begin, extents[i - 1].end, extents[i - 1].tensor};
  }
}

std::string header_of(const std::vector<Planned>& tensors, const SaveOptions& options) {
  std::vector<SafetensorsTensor> out;
  std::uint64_t at = 0;
  for (const Planned& planned : tensors) {
    const auto end = core::checked_add<std::uint64_t>(at, planned.nbytes, "data");
    out.push_back({.name = planned.name,
                   .dtype = planned.dtype,
                   .foreign_dtype = {},
                   .shape = shape_of_values(planned.shape, *planned.dtype),
                   .begin = at,
                   .end = end});
    at = end;
  }
  return make_safetensors_header(out, options.metadata);
}

void write_header(const std::vector<Planned>& tensors, io::ByteSink& sink, const SaveOptions& options) {
  const std::string header = header_of(tensors, options);
  const std::uint64_t length = header.size();
  sink.write(std::as_bytes(std::span(&length, 1)));
  sink.write_text(header);
}

}  // namespace

void write_safetensors(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path) {
  try {
    const std::vector<Planned> tensors = plan_tensors(value, {});
    refuse_shared(tensors);
    write_header(tensors, sink, options);
    for (const Planned& planned : tensors) {
      const Tensor tensor = planned.value.as_tensor().to(Device{}).contiguous();
      sink.write({tensor.data(), tensor.nbytes()});
    }
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

void write_unloaded_safetensors(const Unloaded& content, io::ByteSink& sink, const SaveOptions& options,
                                std::string_view path) {
  try {
    const std::vector<Planned> tensors = plan_tensors(content.structure, content.entries);
    write_header(tensors, sink, options);
    for (const Planned& planned : tensors) {
      content.payload(content.entries[*planned.value.entry_index()].storage, sink);
    }
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

}  // namespace penstock::format
