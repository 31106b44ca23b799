// `.metadata` is the pickle of one object, Metadata. It has three dicts: what the state dict holds, by flattened name;
// how to nest it again (planner_data, which may be missing); and where each chunk lies (storage_data, by name and
// offset). Our pickle reader runs nothing: it gives the objects by class name and state, and this file takes them
// apart. Classes are recognised by the last part of their name, because torch has moved them between modules.

#include "format/dcp/metadata.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/format.h"
#include "core/text.h"
#include "format/dcp/item_error.h"
#include "format/pt/pickle/read_pickle.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kModules[] = {"torch.distributed.checkpoint.metadata",
                                         "torch.distributed._shard.checkpoint.metadata"};

bool is_class(const Value& value, std::string_view name) {
  const std::string& type = value.type_name();
  return value.is(Kind::kObject) && type.ends_with(name) &&
         (type.size() == name.size() || type[type.size() - name.size() - 1] == '.');
}

/// An attribute of an object; nothing where it is missing or None.
std::optional<Value> attribute(const Value& object, std::string_view name) {
  const std::optional<Value> state = object.state();
  if (!state || !state->is(Kind::kDict)) return std::nullopt;
  std::optional<Value> found = state->find(name);
  return found && !found->is(Kind::kNone) ? found : std::nullopt;
}

Value required(const Value& object, std::string_view name, Kind kind, std::string_view item) {
  std::optional<Value> found = attribute(object, name);
  if (!found || !found->is(kind)) {
    fail(core::format("its {} is missing or of another type in .metadata; save the checkpoint again", name), item);
  }
  return *found;
}

std::uint64_t size_in(const Value& object, std::string_view name, std::string_view item) {
  const std::int64_t size = required(object, name, Kind::kInt, item).as_int();
  if (size < 0) fail(core::format("its {} is {} in .metadata", name, size), item);
  return static_cast<std::uint64_t>(size);
}

Shape shape_of(const Value& sizes, std::string_view item) {
  if (!sizes.is(Kind::kTuple) && !sizes.is(Kind::kList)) fail("a size in .metadata is not a tuple", item);
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Value size = sizes[i];
    if (!size.is(Kind::kInt) || size.as_int() < 0) fail("a size in .metadata is not a number of 0 or more", item);
    dims.push_back(size.as_int());
  }
  return Shape(std::span<const std::int64_t>(dims));
}

Shape shape_in(const Value& object, std::string_view name, std::string_view item) {
  const std::optional<Value> sizes = attribute(object, name);
  if (!sizes) fail(core::format("its {} are missing in .metadata", name), item);
  return shape_of(*sizes, item);
}

/// Where chunks lie: by name, then by the position of the first element (none for objects).
class Places {
 public:
  explicit Places(const Value& storage_data) {
    for (std::size_t i = 0; i < storage_data.size(); ++i) {
      const auto [key, info] = storage_data.item(i);
      add(key, info);
    }
  }

  const StreamSpan& of(const std::string& item, const std::optional<Shape>& at) const {
    const auto found = places_.find(key_of(item, at));
    if (found != places_.end()) return found->second;
    fail(core::format(".metadata does not say where {} lies; it is not complete, save the checkpoint again",
                      at ? core::format("the chunk at {}", at->to_string()) : std::string("the object")),
         item);
  }

 private:
  void add(const Value& key, const Value& info) {
    if (!is_class(key, "MetadataIndex")) fail("a key of storage_data in .metadata is not a MetadataIndex");
    const std::string item = required(key, "fqn", Kind::kString, {}).as_string();
    if (!is_class(info, "_StorageInfo")) {
      fail(core::format("storage_data describes where it lies by {}, which is not known; only what "
                        "torch.distributed.checkpoint's FileSystemWriter writes is read",
                        info.type_name().empty() ? "another type" : core::quoted(info.type_name())),
           item, ErrorCode::kUnsupported);
    }
    require_plain(info, item);
    std::optional<Shape> at;
    if (const std::optional<Value> offset = attribute(key, "offset")) at = shape_of(*offset, item);
    StreamSpan place{required(info, "relative_path", Kind::kString, item).as_string(), size_in(info, "offset", item),
                     size_in(info, "length", item)};
    if (!places_.emplace(key_of(item, at), std::move(place)).second) {
      fail("storage_data in .metadata says twice where one of its chunks lies", item);
    }
  }

  /// Extensions of torch's writer transform streams: compress them, for example.
  static void require_plain(const Value& info, const std::string& item) {
    const std::optional<Value> transforms = attribute(info, "transform_descriptors");
    if (!transforms || transforms->size() == 0) return;
    const Value first = (*transforms)[0];
    fail(core::format("its bytes were transformed by {} when they were written, which is not undone here; load the "
                      "checkpoint with torch and save it without extensions",
                      first.is(Kind::kString) ? core::quoted(first.as_string()) : "an extension"),
         item, ErrorCode::kUnsupported);
  }

  static std::string key_of(const std::string& item, const std::optional<Shape>& at) {
    return at ? item + '\0' + at->to_string() : item;
  }

  std::unordered_map<std::string, StreamSpan> places_;
};

/// TensorProperties are pickled as a tuple that begins with the dtype; older releases had a dict.
DType dtype_of(const Value& tensor, const std::string& item) {
  const std::optional<Value> properties = attribute(tensor, "properties");
  const std::optional<Value> state = properties ? properties->state() : std::nullopt;
  std::optional<Value> dtype;
  if (state && state->is(Kind::kTuple) && state->size() > 0) dtype = (*state)[0];
  if (state && state->is(Kind::kDict)) dtype = state->find("dtype");
  if (!dtype || !dtype->is(Kind::kDType)) fail("its dtype is missing in .metadata, or no dtype", item);
  return dtype->as_dtype();
}

Item tensor_item(std::string name, const Value& tensor, const Places& places) {
  Item item{.name = std::move(name), .is_tensor = true, .dtype = {}, .shape = {}, .chunks = {}};
  item.dtype = dtype_of(tensor, item.name);
  item.shape = shape_in(tensor, "size", item.name);
  const Value chunks = required(tensor, "chunks", Kind::kList, item.name);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Value chunk = chunks[i];
    Box box{shape_in(chunk, "offsets", item.name), shape_in(chunk, "sizes", item.name)};
    StreamSpan place = places.of(item.name, box.at);
    item.chunks.push_back({std::move(box), std::move(place)});
  }
  return item;
}

Item item_of(const std::string& name, const Value& described, const Places& places) {
  if (is_class(described, "TensorStorageMetadata")) return tensor_item(name, described, places);
  if (!is_class(described, "BytesStorageMetadata")) {
    fail(core::format("it is described by {}, which is not known",
                      described.type_name().empty() ? "a plain value" : core::quoted(described.type_name())),
         name, ErrorCode::kUnsupported);
  }
  return {.name = name, .is_tensor = false, .dtype = {}, .shape = {}, .chunks = {{{}, places.of(name, {})}}};
}

Metadata take_apart(const Value& root) {
  if (!is_class(root, "Metadata")) fail("the pickle is not a Metadata of torch.distributed.checkpoint");
  const std::optional<Value> storage_data = attribute(root, "storage_data");
  if (!storage_data || !storage_data->is(Kind::kDict)) {
    fail(
        "storage_data is missing or not a dict, so nothing says where tensors lie; save the checkpoint again with "
        "FileSystemWriter");
  }
  const Places places(*storage_data);
  const Value items = required(root, "state_dict_metadata", Kind::kDict, {});
  Metadata out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto [key, described] = items.item(i);
    if (!key.is(Kind::kString)) fail("a name in state_dict_metadata is not a string");
    out.items.push_back(item_of(key.as_string(), described, places));
  }
  const std::optional<Value> paths = attribute(root, "planner_data");
  if (!paths || !paths->is(Kind::kDict)) return out;
  for (std::size_t i = 0; i < paths->size(); ++i) {
    const auto [key, path] = paths->item(i);
    if (key.is(Kind::kString)) out.paths.emplace_back(key.as_string(), path);
  }
  return out;
}

}  // namespace

bool is_metadata(std::span<const std::byte> head) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with('\x80') && std::any_of(std::begin(kModules), std::end(kModules),
                                                 [&](std::string_view name) { return text.find(name) != text.npos; });
}

Metadata read_metadata(std::span<const std::byte> pickle, std::string_view path) {
  try {
    Index read;
    pickle::NoStorages none;
    pickle::read_pickle(pickle, 0, read, none);
    return take_apart(read.structure);
  } catch (const Error& error) {
    throw error.within({.path = std::string(path)});
  }
}

}  // namespace penstock::format::dcp
