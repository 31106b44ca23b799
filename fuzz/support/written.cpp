#include "support/written.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "archive/unloaded.h"
#include "format/flat_tensors.h"
#include "format/rows.h"
#include "penstock/load.h"
#include "support/outcome.h"
#include "support/same_value.h"
#include "support/sample_value.h"
#include "support/string_sink.h"
#include "support/written_checkpoint.h"

namespace penstock::fuzz {

namespace {

Source source_of(std::string_view text) {
  Buffer buffer = Buffer::allocate(text.size());
  if (!text.empty()) std::memcpy(buffer.data(), text.data(), text.size());
  return memory_source(std::move(buffer), "fuzz/written");
}

/// The same bytes in elements of the same width. NumPy has no names for bfloat16 and float8, which become raw bytes.
Tensor as_raw(const Tensor& tensor) {
  const Tensor plain = tensor.contiguous();
  const auto width = static_cast<std::int64_t>(plain.dtype().itemsize());
  Shape shape = plain.shape();
  shape.push_back(width);
  return {plain.buffer(), DType::uint8, shape, shape.contiguous_strides(), plain.byte_offset()};
}

bool is_named_in_numpy(const DType& dtype) { return !dtype.numpy_descr().empty(); }

void require_same(const Tensor& read, const Tensor& written, bool numpy, const std::string& what) {
  const bool raw = numpy && !is_named_in_numpy(written.dtype()) && written.dtype().code() != DType::Code::kOpaque;
  const Tensor a = raw ? as_raw(read) : read;
  const Tensor b = raw ? as_raw(written) : written;
  const std::string found = difference_of(a, b, kValuesAlone);
  if (!found.empty()) fail(what + ": " + found);
}

void check_flat(const Archive& archive, const Value& value, const std::string& what) {
  const bool numpy = archive.format() != format::kSafetensorsFormat.name;
  std::map<std::string, Tensor> read;
  const Value loaded = archive.load({.threads = 1});
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    read.emplace(loaded.item(i).first.as_string(), loaded.item(i).second.as_tensor());
  }
  const std::string_view bare = numpy ? "arr_0" : "tensor";
  const auto written = format::flat_tensors(value, archive.format(), bare);
  if (written.size() != read.size()) fail(what + ": another number of tensors");
  for (const format::NamedTensor& one : written) {
    if (!read.contains(one.name)) fail(what + ": no tensor " + one.name);
    require_same(read.at(one.name), one.tensor, numpy, what);
  }
}

/// Samples come back in their number and order, and each tensor under the name of its field, with what says that it is
/// one.
void check_samples(const Value& loaded, const Value& value, const std::string& what) {
  const bool has_many = value.is(Value::Kind::kList) || value.is(Value::Kind::kTuple);
  if (loaded.size() != (has_many ? value.size() : 1)) fail(what + " has another number of samples");
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    const Value sample = has_many ? value[i] : value;
    if (!sample.is(Value::Kind::kDict)) continue;
    for (const auto& [key, item] : sample.items()) {
      if (!key.is(Value::Kind::kString) || !item.is(Value::Kind::kTensor)) continue;
      const std::optional<Value> found = loaded[i].find(key.as_string() + ".npy");
      if (found) require_same(found->as_tensor(), item.as_tensor(), true, what);
    }
  }
}

void check_read(const format::Format& format, const std::string& text, const Value& value, const std::string& what) {
  const Archive archive = open(source_of(text));
  if (archive.format() != format.name) fail(what + " is taken for " + std::string(archive.format()));
  if (format.holds_samples) return check_samples(archive.load({.threads = 1}), value, what);
  if (format.name == format::kNpyFormat.name) {
    return require_same(archive.load({.threads = 1}).as_tensor(), value.as_tensor(), true, what);
  }
  if (format.name != format::kPtFormat.name) return check_flat(archive, value, what);
  const std::string found = difference_of(value, archive.load({.threads = 1}), {.arrays = false});
  if (!found.empty()) fail(what + ": " + found);
}

/// `archive`: where the value came from, to be written without it; or null.
void check_format(const format::Format& format, const Value& value, const SaveOptions& options,
                  const Archive* archive = nullptr) {
  const std::string what = "what was written as " + std::string(format.name) + (archive != nullptr ? " in pieces" : "");
  StringSink sink;
  const std::string path = "fuzz" + std::string(format.extensions.front());
  archive::ElementChange none;
  const auto written = attempt([&] {
    if (archive == nullptr) {
      format.write(value, sink, options, path);
      return true;
    }
    const auto content = archive::unloaded(*archive, format, none, {});
    if (content) format.write_unloaded(*content, sink, options, path);
    return content.has_value();
  });
  if (!written.ok()) {
    const ErrorCode code = written.error->code();
    const bool refused =
        code == ErrorCode::kUnsupported || code == ErrorCode::kLimit || code == ErrorCode::kInvalidArgument;
    if (!refused) fail(what + " failed: " + written.text());
    return;
  }
  if (!*written.value) return;
  const auto read = attempt([&] {
    check_read(format, sink.text, value, what);
    return true;
  });
  if (!read.ok()) fail(what + " cannot be read: " + read.text());
}

}  // namespace

void check_written(const Value& value, const Archive* archive) {
  // What is flattened goes by paths, of which a few shared parts make very many.
  const bool huge = fit_of(value) == SampleFit::kHuge;
  for (const format::Format& format : format::formats()) {
    if (format.write == nullptr || (huge && format.name != format::kPtFormat.name)) continue;
    check_format(format, value, {});
    if (format.name == format::kNpzFormat.name) check_format(format, value, {.compress = true});
    if (archive != nullptr) check_format(format, value, {}, archive);
  }
  if (!huge) check_written_checkpoint(value);
}

}  // namespace penstock::fuzz
