// The row of tar archives: a list of samples, each a dict by field (sample_name.h). A member with tensors is a file of
// its own, which its format reads in its place; their indexes become one.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "format/format.h"
#include "format/numpy/npy_header.h"
#include "format/rows.h"
#include "format/tar/bytes.h"
#include "format/tar/header.h"
#include "format/tar/members.h"
#include "format/tar/sample_name.h"
#include "format/tar/writer.h"
#include "io/file/output.h"
#include "io/source/source.h"
#include "io/source/window_source.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock::format {
namespace {

bool sniff(std::span<const std::byte>, const ByteSource& source) {
  std::array<std::byte, kTarBlock> block;
  if (source.size() < block.size()) return false;
  source.read(0, block);
  return has_tar_checksum(block);
}

/// Samples that end where the next key begins.
class Samples {
 public:
  Samples(const Source& source, const OpenOptions& options) : source_(source), options_(options) {
    index_.sources = {source};
  }

  void add(const TarMember& member) {
    auto name = sample_name(member);
    if (!name) return strays_.add(member);
    if (name->key != key_ || fields_.empty()) end_sample();
    key_ = std::move(name->key);
    if (is_own_field(name->field) || !names_.insert(name->field).second) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("the sample {} has the field {} twice; write the archive anew", core::quoted(key_),
                               core::quoted(name->field)),
                  where(member));
    }
    fields_.emplace_back(name->field, value_of(member, name->field));
  }

  Index take() {
    end_sample();
    if (samples_.empty() && !strays_.empty()) {
      throw Error(ErrorCode::kUnsupported, core::format("the archive {}", strays_.to_string()),
                  {.path = source_.name()});
    }
    index_.structure = Value::list(std::move(samples_));
    return std::move(index_);
  }

 private:
  ErrorContext where(const TarMember& member) const {
    return {.path = source_.name(), .offset = member.data, .tensor = core::escaped(member.name)};
  }

  void end_sample() {
    if (fields_.empty()) return;
    fields_.insert(fields_.begin(), {std::string(kSampleKey), Value::string(key_)});
    samples_.push_back(Value::dict(std::move(fields_)));
    fields_.clear();
    names_.clear();
  }

  Value value_of(const TarMember& member, std::string_view field) {
    if (member.kind != TarMember::Kind::kFile) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("the member is {}, whose content is not in the archive as it is; write the archive with "
                               "plain files (tar --dereference --hard-dereference)",
                               kind_text(member.kind)),
                  where(member));
    }
    if (member.is_cut) {
      throw Error(ErrorCode::kTruncated,
                  "the archive ends within this member; copy it again, or read the samples before it with shards",
                  where(member));
    }
    const FieldKind kind = field_kind(field);
    if (kind == FieldKind::kTensors) return tensors_of(member);
    // Whoever wants the bytes of a pickle may have them; what reads it is the program's own.
    if (kind == FieldKind::kBytes || kind == FieldKind::kPickle) return bytes_of(member);
    std::vector<std::byte> content(static_cast<std::size_t>(member.size));
    source_.read(member.data, content);
    try {
      return field_value(kind, content, source_.name(), member.data);
    } catch (const Error& error) {
      throw error.within({.tensor = core::escaped(member.name)});
    }
  }

  /// As one-dimensional uint8, of which nothing is read here.
  Value bytes_of(const TarMember& member) {
    const std::string name = core::escaped(member.name);
    index_.storages.push_back(
        {.name = name, .offset = member.data, .stored_bytes = member.size, .nbytes = member.size});
    index_.entries.push_back({.name = name,
                              .dtype = DType::uint8,
                              .shape = Shape{static_cast<std::int64_t>(member.size)},
                              .strides = Strides{1},
                              .storage = index_.storages.size() - 1});
    return Value::entry(index_.entries.size() - 1);
  }

  Value tensors_of(const TarMember& member) {
    const std::string name = core::escaped(member.name);
    try {
      const Source file = io::window_of(source_, member.data, member.size);
      const Format& format = detect(*file);
      require_tensors_in(format);
      return joined(format.read_index(file, options_), member, name);
    } catch (const Error& error) {
      const std::string inner = error.tensor().empty() ? name : core::format("{}: {}", name, error.tensor());
      throw error.at({.path = source_.name(), .offset = member.data + error.offset().value_or(0), .tensor = inner});
    }
  }

  /// Moves the index of a member to its place in the archive.
  Value joined(Index inner, const TarMember& member, const std::string& name) {
    const std::size_t storages = index_.storages.size();
    std::vector<std::size_t> positions;
    for (StorageEntry& storage : inner.storages) {
      storage.offset += member.data;
      storage.name = storage.name.empty() ? name : core::format("{}: {}", name, storage.name);
      index_.storages.push_back(std::move(storage));
    }
    for (TensorEntry& entry : inner.entries) {
      entry.storage += storages;
      entry.name = entry.name.empty() ? name : core::format("{}.{}", name, entry.name);
      positions.push_back(index_.entries.size());
      index_.entries.push_back(std::move(entry));
    }
    for (std::string& global : inner.unknown_globals) index_.unknown_globals.push_back(std::move(global));
    return with_entries(inner.structure, positions);
  }

  Source source_;
  OpenOptions options_;
  Index index_;
  std::string key_;
  std::vector<std::pair<std::string, Value>> fields_;
  std::unordered_set<std::string> names_;  ///< of the fields
  std::vector<Value> samples_;
  TarStrays strays_;
};

Index read_index(const Source& source, const OpenOptions& options) {
  TarWindow bytes(source);
  TarWalk walk(bytes, source.name());
  Samples samples(source, options);
  while (const auto member = walk.next()) samples.add(*member);
  if (!walk.has_end()) {
    throw Error(ErrorCode::kTruncated,
                "the archive has no end (blocks of zeros): it was cut, or the program that wrote it was ended; copy it "
                "again, or read what is there with shards",
                {.path = source.name(), .offset = source.size()});
  }
  return samples.take();
}

/// Zeros in front, so that names are in the order of the samples.
std::string number_of(std::size_t sample) { return core::format("{:08}", sample); }

void write(const Value& value, io::ByteSink& sink, const SaveOptions&, std::string_view path) {
  try {
    TarWriter writer(sink);
    const bool has_many = value.is(Value::Kind::kList) || value.is(Value::Kind::kTuple);
    for (std::size_t i = 0; i < (has_many ? value.size() : 1); ++i) {
      writer.add(tar_sample(has_many ? value[i] : value, number_of(i)));
    }
    writer.finish();
  } catch (const Error& error) {
    throw error.within({.path = std::string(path)});
  }
}

class TarStream final : public StreamWriter {
 public:
  TarStream(std::string_view path, const WriterOptions& options)
      : file_(io::open_output(path, {.sync = options.sync})), writer_(*file_) {}

  void check(const std::string& name, const DType& dtype, const Shape& shape) const override {
    writer_.check(member_of(name));
    make_npy_header(dtype, shape, false);
  }
  void begin(const std::string& name, const DType& dtype, const Shape& shape) override {
    const std::string header = make_npy_header(dtype, shape, false);
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * dtype.itemsize();
    writer_.begin(member_of(name), header.size() + bytes);
    writer_.write(std::as_bytes(std::span(header)));
  }
  void write(std::span<const std::byte> bytes) override { writer_.write(bytes); }
  void end(const Shape&) override { writer_.end(); }
  std::function<void()> sample(const Value& value) override {
    TarSample sample = tar_sample(value, number_of(samples_));
    writer_.check(sample);
    return [this, sample = std::move(sample)] {
      writer_.add(sample);
      ++samples_;
    };
  }
  void finish() override {
    writer_.finish();
    file_->commit();
  }

 private:
  static std::string member_of(const std::string& name) { return name.ends_with(".npy") ? name : name + ".npy"; }

  std::unique_ptr<io::Output> file_;
  TarWriter writer_;
  std::size_t samples_ = 0;
};

constexpr auto kTarExtensions = std::to_array<std::string_view>({".tar"});

}  // namespace

const Format kTarFormat{.name = "tar",
                        .extensions = kTarExtensions,
                        .sniff = sniff,
                        .read_index = read_index,
                        .write = write,
                        .stream =
                            [](std::string_view path, const WriterOptions& options) {
                              return std::unique_ptr<StreamWriter>(std::make_unique<TarStream>(path, options));
                            },
                        .holds_samples = true};

}  // namespace penstock::format
