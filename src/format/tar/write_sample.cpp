// Each field of a sample is a member whose extension says what it holds. The file formats write their own members.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "format/format.h"
#include "format/tar/feed.h"
#include "format/tar/sample_name.h"
#include "format/tar/tenbin.h"
#include "format/tar/writer.h"
#include "format/text/json_value.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// A file of one of our formats in memory: what a member of tensors holds.
class Image final : public io::ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override { bytes_.append(core::text_of(bytes)); }
  std::uint64_t position() const noexcept override { return bytes_.size(); }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

std::string_view extension_for(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      return "npy";
    case Value::Kind::kInt:
      return "cls";
    case Value::Kind::kString:
      return "txt";
    case Value::Kind::kBytes:
      return "bin";
    default:
      return "json";
  }
}

/// Names of images, sounds and films, whose bytes may be given as a tensor.
constexpr std::array<std::string_view, 20> kMedia{"bin", "jpg",  "jpeg", "png",  "gif", "bmp",  "webp",
                                                  "tif", "tiff", "ppm",  "pgm",  "wav", "flac", "mp3",
                                                  "ogg", "opus", "mp4",  "webm", "mkv", "avi"};

/// Of bytes, and of a tensor that stands for some, as those of an archive that was loaded as a file do.
std::optional<std::string> bytes_of(const Value& value) {
  if (value.is(Value::Kind::kBytes)) return value.as_string();
  if (!value.is(Value::Kind::kTensor)) return std::nullopt;
  const Tensor& tensor = value.as_tensor();
  if (tensor.dtype() != DType::uint8 || tensor.rank() != 1) return std::nullopt;
  const Tensor bytes = tensor.to(Device{}).contiguous();
  return std::string(core::text_of({bytes.data(), bytes.nbytes()}));
}

bool is_media(std::string_view field, const Value& value) {
  if (!value.is(Value::Kind::kTensor)) return false;
  const Tensor& tensor = value.as_tensor();
  const std::string_view last = field.substr(field.rfind('.') + 1);
  return tensor.dtype() == DType::uint8 && tensor.rank() == 1 && std::ranges::find(kMedia, last) != kMedia.end();
}

/// Whether the name says already what is in it. Bytes may be called anything.
bool has_extension(std::string_view field, const Value& value) {
  if (const auto inner = gzipped_field(field)) return has_extension(*inner, value);
  if (field_kind(field) != FieldKind::kBytes) return true;
  return value.is(Value::Kind::kBytes) || is_media(field, value);
}

[[noreturn]] void throw_other(std::string_view field, const Value& value, std::string_view expected) {
  throw Error(ErrorCode::kUnsupported, core::format("found {} for the field {}, expected {}; name the field otherwise",
                                                    value.to_string(), core::quoted(field), expected));
}

std::string content_of(std::string_view field, const Value& value);

/// Readers unpack such a field. What is packed already, as whoever read raw bytes has it, stays as it is.
std::string packed_content_of(std::string_view inner, const Value& value) {
  if (!gzipped_field(inner)) {
    auto bytes = bytes_of(value);
    if (bytes && packing_of(std::as_bytes(std::span(*bytes))) == Packing::kGzip) return *std::move(bytes);
  }
  return pack_member(content_of(inner, value));
}

/// The bytes of a member.
std::string content_of(std::string_view field, const Value& value) {
  if (const auto inner = gzipped_field(field)) return packed_content_of(*inner, value);
  if (value.is(Value::Kind::kBytes) || is_media(field, value)) return *bytes_of(value);
  switch (field_kind(field)) {
    case FieldKind::kNumber:
      if (!value.is(Value::Kind::kInt)) throw_other(field, value, "a whole number");
      return std::to_string(value.as_int());
    case FieldKind::kText:
      if (!value.is(Value::Kind::kString)) throw_other(field, value, "a text");
      return value.as_string();
    case FieldKind::kJson:
      return json_text(value);
    case FieldKind::kTensors: {
      const std::string path = core::format(".{}", field.substr(field.rfind('.') + 1));
      Image image;
      if (path == ".ten" || path == ".tb") {
        write_tenbin(value, image);
        return std::string(core::text_of(image.bytes()));
      }
      format_to_write(path, {}).write(value, image, {}, path);
      return std::string(core::text_of(image.bytes()));
    }
    default:
      throw_other(field, value, "bytes");
  }
}

/// Readers find a member by its name alone, which must lead to this sample, and to a field that no other has.
void require_found(const std::string& member, const std::string& key, std::set<std::string>& fields) {
  const auto found = sample_name({.name = member});
  if (!found || found->key != key) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found the key {} with the member {}, which readers would not take for a part of this "
                             "sample; fields have no '/' in their names, and keys are not of the form __x__",
                             core::quoted(key), core::quoted(member)));
  }
  if (!fields.insert(found->field).second) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("two fields of the sample {} become the field {}, because readers take their names in lower "
                     "case; name one of them otherwise",
                     core::quoted(key), core::quoted(found->field)));
  }
}

}  // namespace

void write_sample(TarWriter& writer, const Value& sample, const std::string& key) {
  if (!sample.is(Value::Kind::kDict))
    return write_sample(writer, Value{{std::string(extension_for(sample)), sample}}, key);
  std::string name = key;
  if (const auto own = sample.find(kSampleKey)) name = own->as_string();
  const std::string_view file = std::string_view(name).substr(name.rfind('/') + 1);
  if (file.empty() || file.find('.') != file.npos) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found the key {}, whose last part has a dot or is empty, so that no reader would find it "
                             "again; name the sample otherwise",
                             core::quoted(name)));
  }
  std::set<std::string> fields;
  std::vector<std::pair<std::string, std::string>> members;  // a wrong field leaves the archive as it was
  for (const auto& [field_name, value] : sample.items()) {
    if (!field_name.is(Value::Kind::kString)) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("the key {} of a sample is no text; a field has a name", field_name.to_string()));
    }
    const std::string& field = field_name.as_string();
    if (field == kSampleKey || field == kSampleUrl) continue;
    const std::string member = has_extension(field, value) ? field : core::format("{}.{}", field, extension_for(value));
    try {
      members.emplace_back(core::format("{}.{}", name, member), content_of(member, value));
    } catch (const Error& error) {
      throw error.within({.tensor = core::escaped(field)});
    }
    TarWriter::check(members.back().first);
    require_found(members.back().first, name, fields);
  }
  if (members.empty())
    throw Error(ErrorCode::kUnsupported, "the sample is empty, so that no reader would find it again");
  writer.require_new(name);
  for (const auto& [member, content] : members) writer.add(member, std::as_bytes(std::span(content)));
}

}  // namespace penstock::format
