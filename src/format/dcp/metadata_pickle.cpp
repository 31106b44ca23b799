// Objects of torch's classes are written as Python pickles dataclasses: the class, made without arguments, and its
// state. Classes, names of attributes and other texts that come again are fetched from the memo.

#include "format/dcp/metadata_pickle.h"

#include "format/pt/pickle/pickle_stream.h"

namespace penstock::format::dcp {
namespace {

constexpr std::string_view kMetadata = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kFilesystem = "torch.distributed.checkpoint.filesystem";

/// The opcodes of one checkpoint's metadata.
class Pickle : public pickle::PickleStream {
 public:
  void push_size(const Shape& shape) {
    push_global("torch", "Size");
    push_integers(shape.dims());
    push_tuple(1);
    reduce();
  }
  void push_keys(const Value& path) {
    if (path.size() > 3) mark();
    for (const Value& step : path)
      step.is(Value::Kind::kInt) ? push_integer(step.as_int()) : push_text(step.as_string());
    push_tuple(path.size());
  }
  /// An object without its state.
  void push_object(std::string_view module, std::string_view name) {
    push_global(module, name);
    make_object();
  }
  void begin_state(std::string_view module, std::string_view name) {
    push_object(module, name);
    push_empty_dict();
    mark();
  }
  void end_state() {
    set_items();
    build();
  }
};

void push_properties(Pickle& out, const DType& dtype) {
  out.push_object(kMetadata, "TensorProperties");
  out.mark();
  out.push_global("torch", dtype.name());
  out.push_global("torch.serialization", "_get_layout");
  out.push_text("torch.strided");
  out.push_tuple(1);
  out.reduce();
  out.push_boolean(false);  // requires_grad
  out.push_global(kMetadata, "_MEM_FORMAT_ENCODING");
  out.push_integer(0);
  out.push_tuple(1);
  out.reduce();
  out.push_boolean(false);  // pin_memory
  out.push_tuple(6);
  out.build();
}

void push_description(Pickle& out, const WrittenItem& item) {
  if (!item.is_tensor) return out.push_object(kMetadata, "BytesStorageMetadata");
  out.begin_state(kMetadata, "TensorStorageMetadata");
  out.push_text("properties");
  push_properties(out, item.dtype);
  out.push_text("size");
  out.push_size(item.shape);
  out.push_text("chunks");
  out.push_empty_list();
  out.begin_state(kMetadata, "ChunkStorageMetadata");
  out.push_text("offsets");
  out.push_size(Shape(std::vector<std::int64_t>(item.shape.rank(), 0)));
  out.push_text("sizes");
  out.push_size(item.shape);
  out.end_state();
  out.append();
  out.end_state();
}

void push_index(Pickle& out, const WrittenItem& item) {
  out.begin_state(kMetadata, "MetadataIndex");
  out.push_text("fqn");
  out.push_text(item.name);
  out.push_text("index");
  item.is_tensor ? out.push_integer(0) : out.push_none();
  if (item.is_tensor) {
    out.push_text("offset");
    out.push_size(Shape(std::vector<std::int64_t>(item.shape.rank(), 0)));
  }
  out.end_state();
}

void push_place(Pickle& out, const WrittenItem& item, std::string_view file) {
  out.begin_state(kFilesystem, "_StorageInfo");
  out.push_text("relative_path");
  out.push_text(file);
  out.push_text("offset");
  out.push_integer(static_cast<std::int64_t>(item.offset));
  out.push_text("length");
  out.push_integer(static_cast<std::int64_t>(item.length));
  out.end_state();
}

template <class Add>
void push_dict(Pickle& out, std::string_view name, std::span<const WrittenItem> items, Add add) {
  out.push_text(name);
  out.push_empty_dict();
  out.mark();
  for (const WrittenItem& item : items) add(item);
  out.set_items();
}

}  // namespace

std::string metadata_pickle(std::span<const WrittenItem> items, std::string_view file) {
  Pickle out;
  out.begin_state(kMetadata, "Metadata");
  push_dict(out, "state_dict_metadata", items, [&](const WrittenItem& item) {
    out.push_text(item.name);
    push_description(out, item);
  });
  push_dict(out, "planner_data", items, [&](const WrittenItem& item) {
    out.push_text(item.name);
    out.push_keys(item.path);
  });
  push_dict(out, "storage_data", items, [&](const WrittenItem& item) {
    push_index(out, item);
    push_place(out, item, file);
  });
  out.push_text("storage_meta");
  out.push_none();
  out.push_text("version");
  out.push_text("1.0.0");
  out.end_state();
  return out.take();
}

}  // namespace penstock::format::dcp
