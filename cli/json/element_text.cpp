// A record's type is NumPy's list of its fields, which is read here; each field's elements are taken out of the records
// into a tensor of their own.

#include "cli/json/element_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "format/text/npy_dtype.h"
#include "format/text/python_literal.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

struct FieldType {
  std::string name;  ///< empty for padding
  DType dtype;
  bool swapped = false;
  std::size_t count = 1;
  bool is_list = false;

  std::size_t bytes() const { return dtype.itemsize() * count; }
};

std::vector<FieldType> fields_of(std::string_view descr);

/// The type that stands at the scanner's place in `descr`: a simple one, or a record in a record.
void read_type(std::string_view descr, format::LiteralScanner& scan, FieldType& out) {
  if (scan.peek() != '[') {
    const format::NpyType type = format::npy_type_from_string(std::string(scan.string()));
    out.dtype = type.dtype;
    out.swapped = type.byte_swapped;
    return;
  }
  const std::size_t begin = scan.offset();
  std::size_t depth = 0;
  std::size_t end = begin;
  // Names may have brackets, so strings are read as such.
  do {
    const char next = scan.peek();
    if (next == '\'' || next == '"') {
      static_cast<void>(scan.string());
    } else if (next >= '0' && next <= '9') {
      static_cast<void>(scan.size());
    } else {
      depth += next == '[' ? 1 : 0;
      depth -= next == ']' ? 1 : 0;
      scan.expect(next);
    }
    end = scan.offset();
  } while (depth > 0);
  const std::string_view inner = descr.substr(begin, end - begin);
  std::size_t bytes = 0;
  for (const FieldType& field : fields_of(inner)) bytes += field.bytes();
  out.dtype = DType::with_descr(DType::Code::kStructured, bytes, std::string(inner));
}

void read_shape(format::LiteralScanner& scan, FieldType& out) {
  out.is_list = true;
  if (!scan.accept('(')) {
    out.count = static_cast<std::size_t>(scan.size());
    return;
  }
  while (!scan.accept(')')) {
    out.count *= static_cast<std::size_t>(scan.size());
    scan.accept(',');
  }
}

/// The fields of a record, in their order, padding among them. Throws Error for what is no list of fields.
std::vector<FieldType> fields_of(std::string_view descr) {
  format::LiteralScanner scan(descr, format::LiteralScanner::Encoding::kUtf8, 0);
  std::vector<FieldType> out;
  scan.expect('[');
  while (!scan.accept(']')) {
    FieldType field;
    scan.expect('(');
    const bool has_title = scan.accept('(');
    field.name = scan.string();
    if (has_title) {
      scan.expect(',');
      field.name = scan.string();
      scan.expect(')');
    }
    scan.expect(',');
    read_type(descr, scan, field);
    if (scan.accept(',') && scan.peek() != ')') read_shape(scan, field);
    scan.accept(',');
    scan.expect(')');
    out.push_back(std::move(field));
    scan.accept(',');
  }
  return out;
}

/// The elements of a field that begins `offset` bytes into each record.
Tensor taken_out(const Tensor& records, const FieldType& field, std::size_t offset) {
  const std::size_t size = records.dtype().itemsize();
  const auto count = static_cast<std::size_t>(records.numel());
  const Shape shape{static_cast<std::int64_t>(count * field.count)};
  const Tensor out = Tensor::empty(shape, field.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + i * field.bytes(), records.data() + i * size + offset, field.bytes());
  }
  const std::size_t width = field.swapped ? field.dtype.swap_width() : 1;
  if (width > 1) {
    for (std::byte* at = out.data(); at != out.data() + out.nbytes(); at += width) std::reverse(at, at + width);
  }
  return out;
}

/// As Python's repr() writes them.
std::string in_quotes(const std::string& text) {
  std::string inner = printable(text);
  if (inner.find('\'') == inner.npos) return "'" + inner + "'";
  if (inner.find('"') == inner.npos) return '"' + inner + '"';
  for (std::size_t at = inner.find('\''); at != inner.npos; at = inner.find('\'', at + 2)) inner.insert(at, 1, '\\');
  return "'" + inner + "'";
}

std::string bytes_in_quotes(const std::string& bytes) {
  std::string out = "b'";
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      out += {'\\', c};
    } else if (code < 0x20 || code > 0x7E) {
      out += core::format("\\x{:02x}", code);
    } else {
      out += c;
    }
  }
  return out + "'";
}

Json number(double value, const std::string& text) {
  if (value == 0 && std::signbit(value)) return value;  // as a whole number it has no sign
  return std::isfinite(value) ? Json::parse(text) : Json(text);
}

}  // namespace

ElementText::ElementText(const Tensor& tensor) : printer_(tensor), dtype_(tensor.dtype()) {
  if (dtype_.code() != DType::Code::kStructured) return;
  try {
    const Tensor records = tensor.contiguous();
    std::size_t offset = 0;
    std::vector<Field> fields;
    for (const FieldType& type : fields_of(dtype_.name())) {
      if (offset + type.bytes() > dtype_.itemsize()) return;
      if (!type.name.empty()) {
        auto elements = std::make_shared<ElementText>(taken_out(records, type, offset));
        fields.push_back({type.name, std::move(elements), type.count, type.is_list});
      }
      offset += type.bytes();
    }
    if (offset == dtype_.itemsize()) fields_ = std::move(fields);
  } catch (const Error&) {
    return;  // a type that is not understood is shown as its bytes
  }
}

std::string ElementText::text(std::size_t index) {
  if (dtype_.code() == DType::Code::kText) return in_quotes(printer_.text(index));
  if (dtype_.code() == DType::Code::kBytes) return bytes_in_quotes(printer_.text(index));
  if (fields_.empty()) return printer_.text(index);
  std::string out = "(";
  for (const Field& field : fields_) {
    if (out.size() > 1) out += ", ";
    if (field.is_list) out += '[';
    for (std::size_t i = 0; i < field.count; ++i) {
      out += (i == 0 ? "" : ", ") + field.elements->text(index * field.count + i);
    }
    if (field.is_list) out += ']';
  }
  return out + (fields_.size() == 1 ? ",)" : ")");
}

Json ElementText::json(std::size_t index) {
  if (!fields_.empty()) {
    Json out = Json::object();
    for (const Field& field : fields_) {
      Json list = Json::array();
      for (std::size_t i = 0; i < field.count; ++i) list.push_back(field.elements->json(index * field.count + i));
      out[field.name] = field.is_list ? std::move(list) : std::move(list.front());
    }
    return out;
  }
  switch (printer_.kind()) {
    case ops::ElementClass::kBool:
      return printer_.text(index) == "true";
    case ops::ElementClass::kInteger:
      return printer_.integer(index);
    case ops::ElementClass::kDuration:
      return printer_.text(index) == "NaT" ? Json("NaT") : Json(printer_.integer(index));
    case ops::ElementClass::kUnsigned:
      return printer_.unsigned_integer(index);
    case ops::ElementClass::kReal:
      return number(printer_.real(index), printer_.decimal(printer_.real(index)));
    case ops::ElementClass::kComplex:
      return Json::array({number(printer_.real(index), printer_.decimal(printer_.real(index))),
                          number(printer_.imaginary(index), printer_.decimal(printer_.imaginary(index)))});
    default:
      return printer_.text(index);
  }
}

}  // namespace penstock::cli
