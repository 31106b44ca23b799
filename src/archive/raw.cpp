// An array in a file without a header is an archive of one tensor whose index the caller wrote. Everything else follows
// from that: loads, slices, devices, byte order, rows, errors.

#include "archive/raw.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "archive/archive_state.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "format/check_index.h"
#include "format/foreign.h"
#include "format/text/npy_dtype.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr format::Format kRaw{.name = "raw",
                              .extensions = {},
                              .sniff = nullptr,
                              .read_index = nullptr,
                              .write = nullptr,
                              .is_one_tensor = true,
                              .keeps_order = true};

[[noreturn]] void refuse_layout(const Source& source, std::string what) {
  throw Error(ErrorCode::kInvalidArgument, std::move(what), {.path = source.name()});
}

void require_possible(const Source& source, const RawLayout& layout) {
  const Shape& shape = layout.shape;
  if (layout.dtype.itemsize() == 0) {
    refuse_layout(source, core::format("found the type {}, whose elements take no bytes", layout.dtype.name()));
  }
  if (std::ranges::count(shape, -1) > 1) {
    refuse_layout(source, core::format("found the shape {}, expected one size of -1 at most", shape.to_string()));
  }
  if (std::ranges::any_of(shape, [](std::int64_t size) { return size < -1; })) {
    refuse_layout(source, core::format("found the shape {}, expected sizes of 0 or more, or one of -1 for what the "
                                       "file has",
                                       shape.to_string()));
  }
  if (layout.offset > source.size()) {
    throw Error(ErrorCode::kTruncated,
                core::format("the array should begin at byte {}, but the file has {}", layout.offset,
                             core::counted(source.size(), "byte")),
                {source.name(), layout.offset});
  }
}

/// The bytes of the elements that all sizes but those of -1 make.
std::uint64_t bytes_of_known(const Source& source, const RawLayout& layout) {
  std::optional<std::int64_t> bytes = static_cast<std::int64_t>(layout.dtype.itemsize());
  const bool is_empty = std::ranges::count(layout.shape, 0) > 0;
  for (const std::int64_t size : layout.shape) {
    if (bytes && size > 0) bytes = core::try_mul(*bytes, size);
  }
  if (!bytes) {
    refuse_layout(source, core::format("found {} of shape {}, which takes more bytes than 63 bits count",
                                       layout.dtype.name(), layout.shape.to_string()));
  }
  return is_empty ? 0 : static_cast<std::uint64_t>(*bytes);
}

Shape whole_shape(const Source& source, const RawLayout& layout) {
  require_possible(source, layout);
  const std::uint64_t bytes = bytes_of_known(source, layout);
  const std::uint64_t rest = source.size() - layout.offset;
  Shape shape = layout.shape;
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] >= 0) continue;
    if (bytes == 0) {
      refuse_layout(source, core::format("found the shape {}: beside a size of 0 there is nothing that -1 could be",
                                         layout.shape.to_string()));
    }
    if (rest % bytes != 0) {
      throw Error(ErrorCode::kShapeMismatch,
                  core::format("{} left over: the {} from byte {} on are {} times the {} that {} of shape {} takes; "
                               "give the right dtype, shape and offset, or a whole shape in place of -1",
                               core::counted(rest % bytes, "byte is", "bytes are"), core::counted(rest, "byte"),
                               layout.offset, rest / bytes, bytes, layout.dtype.name(), layout.shape.to_string()),
                  {source.name(), layout.offset});
    }
    shape[dim] = static_cast<std::int64_t>(rest / bytes);
    return shape;
  }
  if (bytes > rest) {
    throw Error(ErrorCode::kTruncated,
                core::format("{} of shape {} takes {}, but the file has {} from byte {} on", layout.dtype.name(),
                             shape.to_string(), core::counted(bytes, "byte"), rest, layout.offset),
                {source.name(), layout.offset});
  }
  return shape;
}

format::Index index_of(const Source& source, const RawLayout& layout) {
  TensorEntry entry;
  entry.dtype = layout.dtype;
  entry.shape = whole_shape(source, layout);
  entry.strides = layout.fortran_order ? entry.shape.fortran_strides() : entry.shape.contiguous_strides();
  entry.encoding.swapped = layout.byte_order != std::endian::native;
  format::Index index;
  index.sources = {source};
  index.storages = {{.offset = layout.offset, .stored_bytes = entry.nbytes(), .nbytes = entry.nbytes()}};
  index.entries = {std::move(entry)};
  index.structure = Value::entry(0);
  format::check_index(index);
  return index;
}

/// Where the first tensor of a file of a known format begins; nothing where the content only looks like one.
std::optional<std::uint64_t> begin_of_tensors(const Source& source) {
  try {
    const Archive archive = open(source);
    std::uint64_t begin = source.size();
    for (const StorageEntry& storage : archive.storages()) {
      if (storage.source == 0 && !storage.resident) begin = std::min(begin, storage.offset);
    }
    return begin;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void require_no_header(const Source& source, const RawLayout& layout) {
  const format::Format* const found = format::find_format(*source);
  if (found == nullptr) return;
  if (layout.offset > 0 && layout.offset >= begin_of_tensors(source).value_or(0)) return;
  refuse_layout(source, core::format("the content is a file of the format {}, which says itself what it holds, and the "
                                     "array would begin in its header: leave out shape, offset and order (for the "
                                     "command the dtype too), or take penstock.raw() if these bytes are meant as they "
                                     "are",
                                     found->name));
}

void require_uncompressed(const Source& source, const RawLayout& layout) {
  if (layout.offset > 0) return;
  std::array<std::byte, format::kSniffBytes> head{};
  const auto known =
      std::span(head).first(static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), head.size())));
  source.read(0, known);
  const std::string_view what = format::compression_of(known, source.name());
  if (what.empty()) return;
  refuse_layout(source,
                core::format("the content is {}, and the array is what that holds; take penstock.raw() if these "
                             "bytes are meant as they are",
                             what));
}

Archive raw_archive(const Source& source, const RawLayout& layout) {
  try {
    auto state = std::make_shared<detail::ArchiveState>();
    state->format = &kRaw;
    state->index = index_of(source, layout);
    return detail::ArchiveState::handle(std::move(state));
  } catch (const Error& error) {
    throw error.within({source.name()});
  }
}

}  // namespace

LazyTensor raw(Source source, const RawLayout& layout) { return raw_archive(source, layout).entry(0); }

LazyTensor raw(TextView path, const RawLayout& layout) { return raw(open_source(path), layout); }

Archive archive::headerless_archive(Source source, const RawLayout& layout) {
  require_no_header(source, layout);
  require_uncompressed(source, layout);
  return raw_archive(source, layout);
}

LazyTensor archive::headerless(Source source, const RawLayout& layout) {
  return headerless_archive(std::move(source), layout).entry(0);
}

std::optional<archive::StoredType> archive::stored_type(std::string_view text) {
  if (const auto named = DType::from_name(text)) return StoredType{*named};
  try {
    const format::NpyType type = format::npy_type_from_string(text);
    if (type.has_objects) return std::nullopt;
    constexpr std::endian kOther = std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
    return StoredType{type.dtype, type.byte_swapped ? kOther : std::endian::native};
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace penstock
