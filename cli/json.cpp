#include "json.h"

#include <cmath>

#include "core/format.h"
#include "elements.h"

namespace penstock::cli {
namespace {

Json number(double value, const std::string& text) { return std::isfinite(value) ? Json::parse(text) : Json(text); }

Json element(const ElementPrinter& printer, std::size_t index) {
  switch (printer.kind()) {
    case ElementClass::kBool:
      return printer.text(index) == "true";
    case ElementClass::kInteger:
      return printer.integer(index);
    case ElementClass::kUnsigned:
      return printer.unsigned_integer(index);
    case ElementClass::kReal:
      return number(printer.real(index), printer.text(index));
    case ElementClass::kComplex:
      return Json::array({number(printer.real(index), core::format("{}", printer.real(index))),
                          number(printer.imaginary(index), core::format("{}", printer.imaginary(index)))});
    default:
      return printer.text(index);
  }
}

Json nest(const ElementPrinter& printer, const Shape& shape, std::size_t dim, std::size_t& next) {
  if (dim == shape.rank()) return element(printer, next++);
  Json out = Json::array();
  for (std::int64_t i = 0; i < shape[dim]; ++i) out.push_back(nest(printer, shape, dim + 1, next));
  return out;
}

Json items_json(const Archive& archive, const Value& value, int depth) {
  Json out = Json::array();
  for (std::size_t i = 0; i < value.size(); ++i) out.push_back(to_json(archive, value[i], depth - 1));
  return out;
}

std::string key_text(const Value& key) { return key.is(Value::Kind::kString) ? key.as_string() : key.to_string(); }

Json dict_json(const Archive& archive, const Value& value, int depth) {
  Json out = Json::object();
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto [key, item] = value.item(i);
    out[key_text(key)] = to_json(archive, item, depth - 1);
  }
  return out;
}

Json tensor_json(const Archive& archive, const Value& value) {
  if (const auto index = value.entry_index()) return Json{{"tensor", archive.entries()[*index].name}};
  return Json{{"tensor", value.as_tensor().to_string()}};
}

}  // namespace

Json to_json(const Archive& archive, const TensorEntry& entry) {
  const StorageEntry& storage = archive.storages()[entry.storage];
  const bool compressed = storage.compression != Compression::kNone;
  Json out{{"name", entry.name},
           {"dtype", entry.dtype.name()},
           {"shape", std::vector(entry.shape.begin(), entry.shape.end())},
           {"strides", std::vector(entry.strides.begin(), entry.strides.end())},
           {"nbytes", entry.nbytes()},
           {"file", archive.sources()[storage.source]->name()},
           {"offset", compressed ? storage.offset : storage.offset + entry.byte_offset},
           {"storage", entry.storage}};
  if (compressed) out["compression"] = "deflate";
  if (compressed) out["stored_bytes"] = storage.stored_bytes;
  if (entry.byte_swapped) out["byte_swapped"] = true;
  if (entry.requires_grad) out["requires_grad"] = true;
  return out;
}

Json to_json(const Archive& archive, const Value& value, int depth) {
  using Kind = Value::Kind;
  if (depth == 0) return "...";
  switch (value.kind()) {
    case Kind::kNone:
      return nullptr;
    case Kind::kBool:
      return value.as_bool();
    case Kind::kInt:
      return value.as_int();
    case Kind::kFloat:
      return number(value.as_float(), core::format("{}", value.as_float()));
    case Kind::kString:
      return value.as_string();
    case Kind::kTensor:
      return tensor_json(archive, value);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSet:
      return items_json(archive, value, depth);
    case Kind::kDict:
      return dict_json(archive, value, depth);
    case Kind::kObject: {
      Json out{{"object", value.type_name()}, {"arguments", items_json(archive, value, depth)}};
      if (const auto state = value.state()) out["state"] = to_json(archive, *state, depth - 1);
      return out;
    }
    default:
      return value.to_string();
  }
}

Json to_json(const Tensor& tensor) {
  const ElementPrinter printer(tensor);
  std::size_t next = 0;
  return nest(printer, tensor.shape(), 0, next);
}

void print_json(const Json& json) { core::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace)); }

}  // namespace penstock::cli
