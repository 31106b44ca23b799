// Each field of a sample is a member whose extension says what it holds. The file formats write their own members.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

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
  std::string take() noexcept { return std::move(bytes_); }

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
      } else {
        format_to_write(path, {}).write(value, image, {}, path);
      }
      return image.take();
    }
    default:
      throw_other(field, value, "bytes");
  }
}

/// What the sample says of itself, or else `key`.
std::string key_of(const Value& sample, const std::string& key) {
  const auto own = sample.find(kSampleKey);
  if (own && !own->is(Value::Kind::kString) && !own->is(Value::Kind::kBytes)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found {} as the key of a sample, expected a text", own->to_string()));
  }
  const std::string name = own ? own->as_string() : key;
  const std::string_view file = std::string_view(name).substr(name.rfind('/') + 1);
  if (!file.empty() && file.find('.') == file.npos) return name;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("found the key {}, whose last part has a dot or is empty, so that no reader would find it "
                           "again; name the sample otherwise",
                           core::quoted(name)));
}

/// The error of a field's value, of which the file that it would be has its own name.
[[noreturn]] void throw_of_field(const Error& error, const std::string& field) {
  const std::string name = core::escaped(field);
  throw error.at({.tensor = error.tensor().empty() ? name : core::format("{}: {}", name, error.tensor())});
}

}  // namespace

TarSample tar_sample(const Value& sample, const std::string& key) {
  if (!sample.is(Value::Kind::kDict)) return tar_sample(Value{{std::string(extension_for(sample)), sample}}, key);
  TarSample out{.key = key_of(sample, key)};
  WrittenFields fields;
  for (const auto& [field_name, value] : sample.items()) {
    if (!field_name.is(Value::Kind::kString)) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("the key {} of a sample is no text; a field has a name", field_name.to_string()));
    }
    const std::string& field = field_name.as_string();
    if (field == kSampleKey || field == kSampleUrl) continue;
    const std::string content_name =
        has_extension(field, value) ? field : core::format("{}.{}", field, extension_for(value));
    const std::string member = core::format("{}.{}", out.key, content_name);
    SampleName place = fields.place_of(member);
    if (place.key != out.key) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("found the key {} with the member {}, which readers would not take for a part of this "
                               "sample; fields have no '/' in their names",
                               core::quoted(out.key), core::quoted(member)));
    }
    fields.add(std::move(place));
    try {
      out.members.emplace_back(member, content_of(content_name, value));
    } catch (const Error& error) {
      throw_of_field(error, field);
    }
  }
  if (out.members.empty()) {
    throw Error(ErrorCode::kUnsupported, "the sample is empty, so that no reader would find it again");
  }
  return out;
}

}  // namespace penstock::format
