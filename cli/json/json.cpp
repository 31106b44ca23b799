#include "cli/json/json.h"

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "cli/json/element_text.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "io/source/composed_source.h"

namespace penstock::cli {
namespace {

/// Writes elements as they come, nested by dimension.
class ElementLists {
 public:
  explicit ElementLists(const Tensor& tensor) : elements_(tensor), shape_(tensor.shape()) {}

  void write(JsonWriter& out, std::size_t dim = 0) {
    if (dim == shape_.rank()) return write_json(out, elements_.json(next_++));
    out.begin_array();
    for (std::int64_t i = 0; i < shape_[dim]; ++i) write(out, dim + 1);
    out.end();
  }

 private:
  ElementText elements_;
  Shape shape_;
  std::size_t next_ = 0;
};

void write_list(JsonWriter& out, std::string_view name, std::span<const std::int64_t> numbers) {
  out.write_key(name);
  out.begin_array(JsonWriter::Layout::kCompact);
  for (const std::int64_t number : numbers) out.write_raw(core::format("{}", number));
  out.end();
}

void write_text(JsonWriter& out, std::string_view name, std::string_view text) {
  out.write_key(name);
  out.write_string(text);
}

void write_number(JsonWriter& out, std::string_view name, std::uint64_t number) {
  out.write_key(name);
  out.write_raw(core::format("{}", number));
}

void write_mark(JsonWriter& out, std::string_view name, bool set) {
  if (!set) return;
  out.write_key(name);
  out.write_raw("true");
}

/// A tensor that is cut into chunks has files, and no offset in one.
void write_place(JsonWriter& out, const Source& source, std::uint64_t offset) {
  if (const io::ComposedSource* const composed = io::as_composed(source)) {
    out.write_key("files");
    out.begin_array();
    for (const Source& part : composed->parts()) out.write_string(part.name());
    out.end();
    return;
  }
  write_text(out, "file", source.name());
  write_number(out, "offset", offset);
}

void write_entry(JsonWriter& out, const Archive& archive, const TensorEntry& entry) {
  const StorageEntry& storage = archive.storages()[entry.storage];
  const bool compressed = storage.is_deflated();
  out.begin_object();
  write_text(out, "name", entry.name);
  write_text(out, "dtype", entry.dtype.name());
  write_list(out, "shape", {entry.shape.begin(), entry.shape.end()});
  write_list(out, "strides", {entry.strides.begin(), entry.strides.end()});
  write_number(out, "nbytes", entry.nbytes());
  write_place(out, archive.sources()[storage.source], compressed ? storage.offset : storage.offset + entry.byte_offset);
  write_number(out, "storage", entry.storage);
  if (compressed) write_text(out, "compression", "deflate");
  if (compressed) write_number(out, "stored_bytes", storage.stored_bytes);
  write_mark(out, "byte_swapped", entry.encoding.swapped);
  write_mark(out, "requires_grad", entry.requires_grad);
  out.end();
}

}  // namespace

void write_json(JsonWriter& out, const Json& json) {
  if (json.is_object()) {
    out.begin_object();
    for (const auto& [name, value] : json.items()) {
      out.write_key(name);
      write_json(out, value);
    }
    out.end();
  } else if (json.is_array()) {
    out.begin_array();
    for (const Json& item : json) write_json(out, item);
    out.end();
  } else if (json.is_string()) {
    out.write_string(json.get_ref<const std::string&>());
  } else {
    out.write_raw(json.dump());
  }
}

void write_members(JsonWriter& out, const Json& object) {
  for (const auto& [name, value] : object.items()) {
    out.write_key(name);
    write_json(out, value);
  }
}

void write_entries(JsonWriter& out, const Archive& archive) {
  std::vector<std::size_t> all(archive.entries().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  write_entries(out, archive, all);
}

void write_entries(JsonWriter& out, const Archive& archive, std::span<const std::size_t> entries) {
  out.write_key("tensors");
  out.begin_array();
  for (const std::size_t entry : entries) write_entry(out, archive, archive.entries()[entry]);
  out.end();
}

Json error_json(const Error& error, const std::string& path) {
  const Error told = path.empty() ? error : error.within({.path = core::shown_path(path)});
  Json out = Json::object();
  if (!told.path().empty()) out["path"] = core::shown_path(path.empty() ? told.path() : path);
  out["error"] = told.what();
  return out;
}

void print_json(const Json& json) {
  JsonWriter out;
  write_json(out, json);
  out.finish();
}

void print_json(const Json& object, std::string_view name, const Tensor& values) {
  JsonWriter out;
  out.begin_object();
  write_members(out, object);
  out.write_key(name);
  if (values.numel() == 0) {
    out.write_raw("[]");
  } else {
    ElementLists(values).write(out);
  }
  out.end();
  out.finish();
}

}  // namespace penstock::cli
