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
  void size(const Shape& shape) {
    global("torch", "Size");
    integers(shape.dims());
    tuple(1);
    reduce();
  }
  void keys(const Value& path) {
    if (path.size() > 3) mark();
    for (const Value& step : path) step.is(Value::Kind::kInt) ? integer(step.as_int()) : text(step.as_string());
    tuple(path.size());
  }
  /// An object without its state.
  void object(std::string_view module, std::string_view name) {
    global(module, name);
    new_object();
  }
  void begin_state(std::string_view module, std::string_view name) {
    object(module, name);
    empty_dict();
    mark();
  }
  void end_state() {
    set_items();
    build();
  }
};

void properties(Pickle& out, const DType& dtype) {
  out.object(kMetadata, "TensorProperties");
  out.mark();
  out.global("torch", dtype.name());
  out.global("torch.serialization", "_get_layout");
  out.text("torch.strided");
  out.tuple(1);
  out.reduce();
  out.boolean(false);  // requires_grad
  out.global(kMetadata, "_MEM_FORMAT_ENCODING");
  out.integer(0);
  out.tuple(1);
  out.reduce();
  out.boolean(false);  // pin_memory
  out.tuple(6);
  out.build();
}

void described(Pickle& out, const WrittenItem& item) {
  if (!item.is_tensor) return out.object(kMetadata, "BytesStorageMetadata");
  out.begin_state(kMetadata, "TensorStorageMetadata");
  out.text("properties");
  properties(out, item.dtype);
  out.text("size");
  out.size(item.shape);
  out.text("chunks");
  out.empty_list();
  out.begin_state(kMetadata, "ChunkStorageMetadata");
  out.text("offsets");
  out.size(Shape(std::vector<std::int64_t>(item.shape.rank(), 0)));
  out.text("sizes");
  out.size(item.shape);
  out.end_state();
  out.append();
  out.end_state();
}

void index_of(Pickle& out, const WrittenItem& item) {
  out.begin_state(kMetadata, "MetadataIndex");
  out.text("fqn");
  out.text(item.name);
  out.text("index");
  item.is_tensor ? out.integer(0) : out.none();
  if (item.is_tensor) {
    out.text("offset");
    out.size(Shape(std::vector<std::int64_t>(item.shape.rank(), 0)));
  }
  out.end_state();
}

void place_of(Pickle& out, const WrittenItem& item, std::string_view file) {
  out.begin_state(kFilesystem, "_StorageInfo");
  out.text("relative_path");
  out.text(file);
  out.text("offset");
  out.integer(static_cast<std::int64_t>(item.offset));
  out.text("length");
  out.integer(static_cast<std::int64_t>(item.length));
  out.end_state();
}

template <class Add>
void dict_of(Pickle& out, std::string_view name, std::span<const WrittenItem> items, Add add) {
  out.text(name);
  out.empty_dict();
  out.mark();
  for (const WrittenItem& item : items) add(item);
  out.set_items();
}

}  // namespace

std::string metadata_pickle(std::span<const WrittenItem> items, std::string_view file) {
  Pickle out;
  out.begin_state(kMetadata, "Metadata");
  dict_of(out, "state_dict_metadata", items, [&](const WrittenItem& item) {
    out.text(item.name);
    described(out, item);
  });
  dict_of(out, "planner_data", items, [&](const WrittenItem& item) {
    out.text(item.name);
    out.keys(item.path);
  });
  dict_of(out, "storage_data", items, [&](const WrittenItem& item) {
    index_of(out, item);
    place_of(out, item, file);
  });
  out.text("storage_meta");
  out.none();
  out.text("version");
  out.text("1.0.0");
  out.end_state();
  return out.take();
}

}  // namespace penstock::format::dcp
