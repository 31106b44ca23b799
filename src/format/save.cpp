// Chooses the format and writes what appears when it is whole (io/file/output.h). The sink in between looks at the stop
// token and reports the progress, so that formats need not.

#include "penstock/save.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/ascii.h"
#include "core/format.h"
#include "core/progress.h"
#include "core/text.h"
#include "format/dcp/dcp.h"
#include "format/dcp/new_checkpoint.h"
#include "format/dcp/write.h"
#include "format/format.h"
#include "format/save_with.h"
#include "io/file/output.h"
#include "penstock/error.h"
#include "value/nodes.h"

namespace penstock {
namespace {

using WrittenFunction = std::function<void(std::uint64_t)>;

/// How much is written between two looks at the stop token.
constexpr std::size_t kStopBytes = std::size_t{16} << 20;

using Fact = bool format::Format::*;

/// Of the formats that can be written, or of those for which `fact` is true too.
std::string writable_names(bool extensions, Fact fact = nullptr) {
  std::string out;
  for (const format::Format& format : format::formats()) {
    if (!format::can_write(format) || (extensions && format.is_folder) || (fact != nullptr && !(format.*fact)))
      continue;
    const std::string_view name = extensions ? format.extensions.front() : format.name;
    if (out.find(core::format("{},", name)) == out.npos) out += core::format("{}, ", name);
  }
  out.resize(out.size() - std::min<std::size_t>(out.size(), 2));
  return out;
}

const format::Format& format_by_name(std::string_view name, std::string_view path) {
  for (const format::Format& format : format::formats()) {
    if (format::can_write(format) && format.name == name) return format;
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      core::format("format {} was asked for; these can be written: {}", core::quoted(name), writable_names(false)),
      {std::string(path)});
}

const format::Format& format_by_extension(std::string_view path) {
  if (path.ends_with('/')) return format::kDcpFormat;
  const std::string name = core::lower(path);
  for (const format::Format& format : format::formats()) {
    if (format.write == nullptr) continue;
    for (const std::string_view extension : format.extensions) {
      if (name.ends_with(extension)) return format;
    }
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      core::format(
          "the extension of the path tells the format, and it is not one of {} (and a '/' at its end stands for "
          "the folder of a distributed checkpoint): rename the file or name the format",
          writable_names(true)),
      {std::string(path)});
}

void require_supported(const format::Format& format, const SaveOptions& options, std::string_view path) {
  if (options.compress && !format.can_compress) {
    throw Error(ErrorCode::kUnsupported,
                core::format("{} files are not compressed; only {} can be", format.name,
                             writable_names(false, &format::Format::can_compress)),
                {std::string(path)});
  }
  if (options.metadata && !options.metadata->empty() && !format.keeps_metadata) {
    throw Error(ErrorCode::kUnsupported,
                core::format("{} files hold no metadata; only {} do", format.name,
                             writable_names(false, &format::Format::keeps_metadata)),
                {std::string(path)});
  }
}

/// Looks at the stop token and tells the progress on the way to another sink.
class StoppableSink final : public io::ByteSink {
 public:
  StoppableSink(io::ByteSink& sink, const SaveOptions& options, const WrittenFunction& progress)
      : sink_(sink), options_(options), progress_(progress) {}

  void write(std::span<const std::byte> bytes) override {
    do {
      if (options_.stop.stop_requested()) {
        throw Error(ErrorCode::kCancelled, "the save was cancelled before it was complete; nothing was written");
      }
      const auto part = bytes.first(std::min(bytes.size(), kStopBytes));
      sink_.write(part);
      bytes = bytes.subspan(part.size());
      if (progress_) progress_(position());
      if (meter_ != nullptr) meter_->advance(part.size());
    } while (!bytes.empty());
  }
  std::uint64_t position() const noexcept override { return sink_.position(); }

 private:
  io::ByteSink& sink_;
  const SaveOptions& options_;
  const WrittenFunction& progress_;
  core::ProgressMeter* const meter_ = core::ProgressMeter::current();
};

}  // namespace

const format::Format& format::format_to_write(std::string_view path, const SaveOptions& options) {
  io::require_output(path);
  const Format& format = options.format.empty() ? format_by_extension(path) : format_by_name(options.format, path);
  require_supported(format, options, path);
  return format;
}

namespace {

/// A folder: its one file of tensors, then the file that says what is in it.
void save_folder(const format::Unloaded& content, std::string_view path, const SaveOptions& options,
                 const format::SaveExtras& extras) {
  try {
    const std::vector<format::dcp::Leaf> leaves = format::dcp::flat_leaves(content.structure);
    const auto bytes = [&] { return format::dcp::tensor_bytes(leaves, content.entries); };
    format::dcp::NewCheckpoint folder(path, options, extras.existing);
    const std::unique_ptr<io::Output> out = folder.open_data(bytes);
    StoppableSink sink(*out, options, extras.progress);
    core::MeteredOperation metered;
    if (metered) metered.begin(bytes());
    const std::string metadata = format::dcp::write_leaves(leaves, content, sink, folder.data_name());
    metered.end();
    if (options.before_commit) options.before_commit();
    folder.commit(*out, metadata);
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

/// How a value, or tensors that are not loaded, are written. `bytes`: of the tensors, asked for where somebody looks at
/// the progress, or where the sizes of parts follow from it.
struct Writing {
  std::function<void(io::ByteSink&)> write;
  std::function<std::uint64_t()> bytes;
};

void write_by(const Writing& writing, io::ByteSink& out, const SaveOptions& options, const WrittenFunction& progress) {
  StoppableSink sink(out, options, progress);
  core::MeteredOperation metered;
  if (metered) metered.begin(writing.bytes());
  writing.write(sink);
  metered.end();
}

template <class Finish>
void save_by(const Writing& writing, std::string_view path, const SaveOptions& options,
             const format::SaveExtras& extras, Finish finish) {
  try {
    std::unique_ptr<io::Output> out = io::open_output(
        path, {.sync = options.sync, .existing = extras.existing, .bytes = writing.bytes, .stop = options.stop});
    write_by(writing, *out, options, extras.progress);
    if (options.before_commit) options.before_commit();
    finish(std::move(out));
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

auto commit_by(const format::SaveExtras& extras) {
  return [&extras](std::unique_ptr<io::Output> out) { extras.commit ? extras.commit(*out) : out->commit(); };
}

Writing writing_of(const Value& value, std::string_view path, const SaveOptions& options) {
  const format::Format& format = format::format_to_write(path, options);
  return {.write = [&format, &value, &options, path](io::ByteSink& sink) { format.write(value, sink, options, path); },
          .bytes = [&value] { return format::tensor_bytes(value); }};
}

}  // namespace

void format::save_with(const Value& value, std::string_view path, const SaveOptions& options,
                       const SaveExtras& extras) {
  if (format_to_write(path, options).is_folder) return save_folder({.structure = value}, path, options, extras);
  save_by(writing_of(value, path, options), path, options, extras, commit_by(extras));
}

std::uint64_t format::tensor_bytes(const Value& root) {
  std::uint64_t total = 0;
  for_each_node(root, [&total](const ValueGraph::Node& node) {
    if (const auto* tensor = std::get_if<ValueGraph::Node::TensorPtr>(&node.scalar)) total += (*tensor)->nbytes();
  });
  return total;
}

void format::save_to(const Value& value, io::ByteSink& out, std::string_view name, const SaveOptions& options) {
  try {
    write_by(writing_of(value, name, options), out, options, {});
  } catch (const Error& error) {
    throw error.within({std::string(name)});
  }
}

std::unique_ptr<io::Output> format::prepare_save(const Value& value, std::string_view path, const SaveOptions& options,
                                                 const SaveExtras& extras) {
  std::unique_ptr<io::Output> prepared;
  save_by(writing_of(value, path, options), path, options, extras, [&](std::unique_ptr<io::Output> out) {
    out->prepare();
    prepared = std::move(out);
  });
  return prepared;
}

void format::save_with(const Unloaded& content, std::string_view path, const SaveOptions& options,
                       const SaveExtras& extras) {
  const Format& format = format_to_write(path, options);
  if (format.is_folder) return save_folder(content, path, options, extras);
  const auto write = [&](io::ByteSink& sink) { format.write_unloaded(content, sink, options, path); };
  const auto bytes = [&] {
    return std::accumulate(content.storage_bytes.begin(), content.storage_bytes.end(), std::uint64_t{0});
  };
  save_by({write, bytes}, path, options, extras, commit_by(extras));
}

void save(const Value& value, TextView path, const SaveOptions& options) {
  format::save_with(value, path, options, {});
}

void save(const Tensor& tensor, TextView path, const SaveOptions& options) {
  save(Value::tensor(tensor), path, options);
}

}  // namespace penstock
