#include "json.h"

#include <cmath>

#include "core/format.h"
#include "elements.h"

namespace penstock::cli {
namespace {

Json number(double value, const std::string& text) {
  if (value == 0 && std::signbit(value)) return value;  // as a whole number it has no sign
  return std::isfinite(value) ? Json::parse(text) : Json(text);
}

Json element(ElementPrinter& printer, std::size_t index) {
  switch (printer.kind()) {
    case ElementClass::kBool:
      return printer.text(index) == "true";
    case ElementClass::kInteger:
      return printer.integer(index);
    case ElementClass::kUnsigned:
      return printer.unsigned_integer(index);
    case ElementClass::kReal:
      return number(printer.real(index), printer.decimal(printer.real(index)));
    case ElementClass::kComplex:
      return Json::array({number(printer.real(index), printer.decimal(printer.real(index))),
                          number(printer.imaginary(index), printer.decimal(printer.imaginary(index)))});
    default:
      return printer.text(index);
  }
}

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Prints elements as they come, two spaces a level, from the level that the list itself is on.
class ElementLists {
 public:
  explicit ElementLists(const Tensor& tensor) : printer_(tensor), shape_(tensor.shape()) {}

  void print(std::size_t level, std::size_t dim = 0) {
    if (dim == shape_.rank()) return core::print("{}", text_of(element(printer_, next_++), -1));
    core::print("[");
    for (std::int64_t i = 0; i < shape_[dim]; ++i) {
      core::print("{}\n{:{}}", i == 0 ? "" : ",", "", 2 * (level + dim + 1));
      print(level, dim + 1);
    }
    core::print("\n{:{}}]", "", 2 * (level + dim));
  }

 private:
  ElementPrinter printer_;
  Shape shape_;
  std::size_t next_ = 0;
};

/// A value's content until the budget is spent.
class Content {
 public:
  explicit Content(const Archive& archive) : archive_(archive) {}
  Json of(const Value& value, int depth = kMaxDepth);

 private:
  static constexpr int kMaxDepth = 64;
  static constexpr std::int64_t kMaxValues = 100'000;
  static constexpr std::size_t kTextOfValue = 100;

  /// Text counts by its length: a few bytes of a pickle repeat what it has once.
  Json text(std::string text);
  Json items(const Value& value, int depth);
  Json dict(const Value& value, int depth);
  Json tensor(const Value& value) const;

  const Archive& archive_;
  std::int64_t left_ = kMaxValues;
};

Json Content::text(std::string text) {
  left_ -= static_cast<std::int64_t>(text.size() / kTextOfValue);
  return text;
}

Json Content::items(const Value& value, int depth) {
  Json out = Json::array();
  for (std::size_t i = 0; i < value.size() && left_ >= 0; ++i) out.push_back(of(value[i], depth - 1));
  return out;
}

std::string key_text(const Value& key) { return key.is(Value::Kind::kString) ? key.as_string() : key.to_string(); }

Json Content::dict(const Value& value, int depth) {
  Json out = Json::object();
  for (std::size_t i = 0; i < value.size() && left_ >= 0; ++i) {
    const auto [key, item] = value.item(i);
    out[key_text(key)] = of(item, depth - 1);
  }
  return out;
}

Json Content::tensor(const Value& value) const {
  if (const auto index = value.entry_index()) return Json{{"tensor", archive_.entries()[*index].name}};
  return Json{{"tensor", value.as_tensor().to_string()}};
}

Json Content::of(const Value& value, int depth) {
  using Kind = Value::Kind;
  if (depth == 0 || left_-- <= 0) return "...";
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
      return text(value.as_string());
    case Kind::kTensor:
      return tensor(value);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kSet:
      return items(value, depth);
    case Kind::kDict:
      return dict(value, depth);
    case Kind::kObject: {
      Json out{{"object", text(value.type_name())}, {"arguments", items(value, depth)}};
      if (const auto state = value.state()) out["state"] = of(*state, depth - 1);
      return out;
    }
    default:
      return text(value.to_string());
  }
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

Json to_json(const Archive& archive, const Value& value) { return Content(archive).of(value); }

void print_json(const Json& json) { core::print("{}\n", text_of(json, 2)); }

void print_json(const Json& object, std::string_view name, const Tensor& values) {
  std::string head = text_of(object, 2);
  head.resize(head.rfind('\n'));
  core::print("{},\n  {}: ", head, text_of(Json(name), -1));
  if (values.numel() == 0) {
    core::print("[]");
  } else {
    ElementLists(values).print(1);
  }
  core::print("\n}}\n");
}

}  // namespace penstock::cli
