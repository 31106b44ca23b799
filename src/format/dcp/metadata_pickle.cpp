// Objects of torch's classes are written as Python pickles dataclasses: the class, made without arguments, and its
// state. Classes, names of attributes and other texts that come again are fetched from the memo.

#include "format/dcp/metadata_pickle.h"

#include <cstring>
#include <unordered_map>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

constexpr std::string_view kMetadata = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kFilesystem = "torch.distributed.checkpoint.filesystem";

class Pickle {
 public:
  Pickle() : out_("\x80\x02") {}

  std::string take() {
    op('.');
    return std::move(out_);
  }

  void none() { op('N'); }
  void no() { op('\x89'); }
  void integer(std::int64_t value) {
    if (value >= 0 && value < 256) {
      op('K');
      op(static_cast<char>(value));
      return;
    }
    op('\x8a');  // the bytes that follow are counted
    op(static_cast<char>(sizeof value));
    append(value);
  }
  void text(std::string_view utf8) {
    if (again(std::string("t").append(utf8))) return;
    op('X');
    append(static_cast<std::uint32_t>(utf8.size()));
    out_ += utf8;
    put();
  }
  void global(std::string_view module, std::string_view name) {
    const std::string both = core::format("{}\n{}\n", module, name);
    if (again("c" + both)) return;
    op('c');
    out_ += both;
    put();
  }
  void size(const Shape& shape) {
    global("torch", "Size");
    mark();
    for (const std::int64_t dim : shape.dims()) integer(dim);
    tuple();
    op('\x85');
    reduce();
  }
  void keys(const Value& path) {
    mark();
    for (const Value& step : path) step.is(Value::Kind::kInt) ? integer(step.as_int()) : text(step.as_string());
    tuple();
  }

  void mark() { op('('); }
  void tuple() { op('t'); }  ///< of what is behind the mark
  void one_tuple() { op('\x85'); }
  void reduce() { op('R'); }
  void empty_dict() { op('}'); }
  void empty_list() { op(']'); }
  void append_item() { op('a'); }
  void items() { op('u'); }  ///< keys and values behind the mark
  void build() { op('b'); }
  /// An object without its state.
  void object(std::string_view module, std::string_view name) {
    global(module, name);
    op(')');
    op('\x81');
  }
  void begin_state(std::string_view module, std::string_view name) {
    object(module, name);
    empty_dict();
    mark();
  }
  void end_state() {
    items();
    build();
  }

 private:
  void op(char code) { out_ += code; }
  template <class T>
  void append(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void put() {
    op('r');
    append(static_cast<std::uint32_t>(memo_.size() - 1));
  }
  /// Whether it is in the memo, and is fetched; otherwise it gets the next place there.
  bool again(std::string what) {
    const auto [at, added] = memo_.try_emplace(std::move(what), static_cast<std::uint32_t>(memo_.size()));
    if (added) return false;
    op('j');
    append(at->second);
    return true;
  }

  std::string out_;
  std::unordered_map<std::string, std::uint32_t> memo_;
};

void properties(Pickle& out, const DType& dtype) {
  out.object(kMetadata, "TensorProperties");
  out.mark();
  out.global("torch", dtype.name());
  out.global("torch.serialization", "_get_layout");
  out.text("torch.strided");
  out.one_tuple();
  out.reduce();
  out.no();  // requires_grad
  out.global(kMetadata, "_MEM_FORMAT_ENCODING");
  out.integer(0);
  out.one_tuple();
  out.reduce();
  out.no();  // pin_memory
  out.tuple();
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
  out.append_item();
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
  out.items();
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
