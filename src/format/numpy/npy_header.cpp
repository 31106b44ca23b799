// A `.npy` header holds a Python dict as text: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`. It is
// parsed by NumPy's rules and no others: exactly these three keys, and nothing that would need Python to be understood.

#include "format/numpy/npy_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "format/text/python_literal.h"
#include "format/text/utf8.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kShortPrefix = 10;
constexpr std::size_t kMaxNesting = 32;
constexpr std::size_t kAlignment = 64;
/// NumPy leaves room for the growing dimension to reach 2^64, so that files can be appended to in place.
constexpr std::size_t kGrowthDigits = 21;

class HeaderParser {
 public:
  HeaderParser(std::string_view text, LiteralScanner::Encoding encoding, std::uint64_t base)
      : scan_(text, encoding, base) {}

  void parse(NpyHeader& header);

 private:
  Shape parse_shape();
  Shape parse_field_shape();
  NpyType parse_type(std::size_t depth);
  NpyType parse_structure(std::size_t depth);
  NpyType parse_sub_array(std::size_t depth);

  LiteralScanner scan_;
};

/// The structure's fields so far, in NumPy's own notation.
class Structure {
 public:
  /// `title`: another name of the field, or empty.
  void add(const std::string& name, const std::string& title, const NpyType& field, const LiteralScanner& scan) {
    const bool padding = name.empty() && field.dtype.code() == DType::Code::kVoid && field.inner.rank() == 0;
    if (!padding) claim(name, scan);
    if (!title.empty()) claim(title, scan);
    has_objects_ |= field.has_objects;
    const auto bytes = core::checked_mul<std::uint64_t>(
        field.dtype.itemsize(), static_cast<std::uint64_t>(field.inner.numel()), "the size of a field");
    bytes_ = core::checked_add(bytes_, bytes, "the size of the array's type");
    if (text_.size() > 1) text_ += ", ";
    const bool nested = field.dtype.code() == DType::Code::kStructured;
    std::string descr = nested ? field.dtype.numpy_descr() : python_repr(npy_descr_in_file_order(field));
    for (std::size_t i = field.levels.size(); i-- > 1;) {
      descr = core::format("({}, {})", descr, field.levels[i].to_string());
    }
    const std::string label =
        title.empty() ? python_repr(name) : core::format("({}, {})", python_repr(title), python_repr(name));
    text_ += core::format("({}, {}", label, descr);
    if (!field.levels.empty()) text_ += ", " + field.levels.front().to_string();
    text_ += ')';
  }

  NpyType finish() const {
    if (has_objects_) return {.dtype = DType::with_descr(DType::Code::kOpaque, 0, "object"), .has_objects = true};
    if (bytes_ > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::kLimit,
                  core::format("the array's elements are {} wide; NumPy's limit is 2 GiB", core::format_bytes(bytes_)));
    }
    return {.dtype = DType::with_descr(DType::Code::kStructured, bytes_, text_ + ']')};
  }

 private:
  void claim(const std::string& name, const LiteralScanner& scan) {
    if (names_.insert(name).second) return;
    scan.fail(core::format("two fields of the array's type are called {}", core::quoted(name)));
  }

  std::string text_ = "[";
  std::set<std::string> names_;
  std::uint64_t bytes_ = 0;
  bool has_objects_ = false;
};

Shape joined(const Shape& outer, const Shape& inner) {
  Shape out = outer;
  for (const std::int64_t dim : inner) out.push_back(dim);
  return out;
}

void add_level(NpyType& type, const Shape& outer) {
  type.inner = joined(outer, type.inner);
  if (outer.rank() != 0) type.levels.insert(type.levels.begin(), outer);
}

void HeaderParser::parse(NpyHeader& header) {
  enum : unsigned { kDescr = 1, kOrder = 2, kShape = 4, kAll = 7 };
  unsigned seen = 0;
  NpyType type;
  scan_.expect('{');
  while (!scan_.accept('}')) {
    const std::string_view key = scan_.string();
    const unsigned which = key == "descr" ? kDescr : key == "fortran_order" ? kOrder : key == "shape" ? kShape : 0u;
    if (which == 0) scan_.fail(core::format("the header has the unknown key {}", core::quoted(key)));
    if ((seen & which) != 0) scan_.fail(core::format("the header has {} twice", core::quoted(key)));
    seen |= which;
    scan_.expect(':');
    if (which == kDescr) {
      type = parse_type(0);
    } else if (which == kOrder) {
      header.fortran_order = scan_.boolean();
    } else {
      header.shape = parse_shape();
    }
    if (!scan_.more_items('}')) break;
  }
  scan_.expect_end();
  if (seen != kAll) scan_.fail("the header lacks one of 'descr', 'fortran_order', 'shape'");
  header.python2 = scan_.is_python2();
  header.dtype = std::move(type.dtype);
  header.byte_swapped = type.byte_swapped;
  header.has_objects = type.has_objects;
  // NumPy takes an array of arrays of one element for one of elements.
  if (type.inner.rank() == 0 || type.inner.numel() == 1) {
    header.strides = header.fortran_order ? header.shape.fortran_strides() : header.shape.contiguous_strides();
    return;
  }
  Shape strides = joined(header.shape, type.inner).contiguous_strides();
  if (header.fortran_order && header.shape.rank() > 0) {
    const std::int64_t step = strides[header.shape.rank() - 1];
    const Shape outer = header.shape.fortran_strides();
    for (std::size_t i = 0; i < outer.rank(); ++i) strides[i] = core::checked_mul(outer[i], step, "a stride");
  }
  header.shape = joined(header.shape, type.inner);
  header.strides = std::move(strides);
}

Shape HeaderParser::parse_shape() {
  Shape shape;
  scan_.expect('(');
  if (scan_.accept(')')) return shape;
  bool more = true;
  for (bool comma = false; more; comma = true) {
    shape.push_back(scan_.size());
    if (!comma && scan_.peek() == ')') scan_.fail("the shape is one number in brackets; a tuple of one is (N,)");
    more = scan_.more_items(')');
  }
  return shape;
}

/// A tuple, or a number for one dimension.
Shape HeaderParser::parse_field_shape() { return scan_.peek() == '(' ? parse_shape() : Shape{scan_.size()}; }

NpyType HeaderParser::parse_type(std::size_t depth) {
  if (depth > kMaxNesting) {
    throw Error(ErrorCode::kLimit, core::format("the array's type is nested deeper than {} levels", kMaxNesting),
                {{}, scan_.offset()});
  }
  if (scan_.accept('[')) return parse_structure(depth);
  if (scan_.accept('(')) return parse_sub_array(depth);
  return npy_type_from_string(scan_.string());
}

/// (descr, shape)
NpyType HeaderParser::parse_sub_array(std::size_t depth) {
  NpyType type = parse_type(depth + 1);
  scan_.expect(',');
  add_level(type, parse_field_shape());
  scan_.accept(',');
  scan_.expect(')');
  return type;
}

/// [(name, descr), (name, descr, shape), ((title, name), descr), ...]
NpyType HeaderParser::parse_structure(std::size_t depth) {
  Structure structure;
  for (bool more = !scan_.accept(']'); more; more = scan_.more_items(']')) {
    scan_.expect('(');
    std::string name;
    std::string title;
    if (scan_.accept('(')) {
      title = scan_.string();
      scan_.expect(',');
      name = scan_.string();
      scan_.accept(',');
      scan_.expect(')');
    } else {
      name = scan_.string();
    }
    scan_.expect(',');
    NpyType field = parse_type(depth + 1);
    if (scan_.more_items(')')) {
      add_level(field, parse_field_shape());
      scan_.accept(',');
      scan_.expect(')');
    }
    structure.add(name, title, field, scan_);
  }
  return structure.finish();
}

[[noreturn]] void fail_at(std::uint64_t offset, ErrorCode code, std::string message) {
  throw Error(code, std::move(message), {{}, offset});
}

std::size_t prefix_of(std::span<const std::byte> head) noexcept {
  return head.size() > 6 && head[6] == std::byte{1} ? kShortPrefix : kNpyPrefix;
}

std::uint32_t length_of(std::span<const std::byte> head, std::size_t prefix) noexcept {
  std::uint32_t length = 0;
  std::memcpy(&length, head.data() + 8, prefix - 8);
  return length;
}

/// Checks magic, version and length, and that all of the header is there; returns its size.
std::size_t check_size(std::span<const std::byte> head, std::uint64_t base) {
  if (!is_npy(head)) {
    const bool cut = head.size() < kMagic.size() && kMagic.starts_with(core::text_of(head));
    fail_at(base, cut ? ErrorCode::kTruncated : ErrorCode::kCorrupt,
            "the content does not begin with the magic of .npy");
  }
  const std::size_t prefix = prefix_of(head);
  if (head.size() < prefix)
    fail_at(base + head.size(), ErrorCode::kTruncated, "the array's header was cut short; fetch or write it again");
  const auto major = static_cast<unsigned>(head[6]);
  const auto minor = static_cast<unsigned>(head[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail_at(base + 6, ErrorCode::kUnsupported,
            core::format("the .npy version is {}.{}; 1.0, 2.0 and 3.0 are read", major, minor));
  }
  const std::uint32_t length = length_of(head, prefix);
  if (length > kMaxNpyHeader) {
    fail_at(base + 8, ErrorCode::kLimit,
            core::format("the header claims {}; at most {} are read", core::counted(length, "byte"), kMaxNpyHeader));
  }
  if (head.size() < prefix + length) {
    fail_at(base + head.size(), ErrorCode::kTruncated,
            core::format("the array's header has {} of {}: the file was cut short; fetch or write it again",
                         core::counted(head.size(), "byte"), prefix + length));
  }
  return prefix + length;
}

/// Magic, version, length, and the text padded so that the payload is aligned; nothing when it is too long for
/// version 1.
std::optional<std::string> wrap_header(const std::string& text, char version) {
  const std::size_t prefix = version == 1 ? kShortPrefix : kNpyPrefix;
  const std::size_t padding = kAlignment - (prefix + text.size() + 1) % kAlignment;
  const std::size_t length = text.size() + padding + 1;
  if (version == 1 && length > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  std::string out(kMagic);
  out += version;
  out += '\0';
  const auto field = static_cast<std::uint32_t>(length);
  out.append(reinterpret_cast<const char*>(&field), prefix - out.size());
  return out + text + std::string(padding, ' ') + '\n';
}

}  // namespace

bool is_npy(std::span<const std::byte> head) noexcept { return core::text_of(head).starts_with(kMagic); }

std::optional<std::size_t> npy_header_size(std::span<const std::byte> head) noexcept {
  if (!is_npy(head) || head.size() < kShortPrefix) return std::nullopt;
  const std::size_t prefix = prefix_of(head);
  if (head.size() < prefix) return std::nullopt;
  const std::uint32_t length = length_of(head, prefix);
  return length <= kMaxNpyHeader ? std::optional(prefix + length) : std::nullopt;
}

NpyHeader parse_npy_header(std::span<const std::byte> head, std::string_view path, std::string_view record,
                           std::uint64_t base) {
  NpyHeader header;
  try {
    header.size = check_size(head, base);
    const bool is_third = head[6] == std::byte{3};
    const std::size_t prefix = prefix_of(head);
    const std::string_view text = core::text_of(head.subspan(prefix, header.size - prefix));
    if (is_third && !is_utf8(text)) fail_at(base + prefix, ErrorCode::kCorrupt, "the header is not valid UTF-8");
    using Encoding = LiteralScanner::Encoding;
    HeaderParser(text, is_third ? Encoding::kUtf8 : Encoding::kLatin1, base + prefix).parse(header);
    if (!header.has_objects) {
      header.payload = core::checked_mul<std::uint64_t>(static_cast<std::uint64_t>(header.shape.numel()),
                                                        header.dtype.itemsize(), "the size of the array");
    }
  } catch (const Error& error) {
    throw error.within({std::string(path), base, std::string(record)});
  }
  return header;
}

std::string make_npy_header(const DType& dtype, const Shape& shape, bool fortran_order) {
  std::string text = core::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", npy_descr_literal(dtype),
                                  fortran_order ? "True" : "False", shape.to_string());
  if (shape.rank() > 0) {
    const std::string growing = std::to_string(shape[fortran_order ? shape.rank() - 1 : 0]);
    text.append(kGrowthDigits - growing.size(), ' ');
  }
  std::string latin1(text.size(), '\0');
  const std::optional<std::size_t> size = to_latin1(text, latin1.data());
  if (!size) return *wrap_header(text, 3);
  latin1.resize(*size);
  if (auto header = wrap_header(latin1, 1)) return *std::move(header);
  return *wrap_header(latin1, 2);
}

}  // namespace penstock::format
