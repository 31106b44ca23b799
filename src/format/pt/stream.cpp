// A `.pt`, tensor by tensor: a dict of tensors by name. torch finds records by the archive's directory, so the pickle,
// which lists all tensors, can come behind their storages. Each tensor has a storage of its own.

#include "format/pt/stream.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "format/pt/content.h"
#include "format/pt/write.h"
#include "format/text/utf8.h"
#include "format/zip/writer.h"
#include "io/file/output.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// A tensor with a storage of its own, the next one of `content`.
void add_to(Unloaded& content, const DType& dtype, const Shape& shape) {
  content.entries.push_back(
      {.dtype = dtype, .shape = shape, .strides = shape.contiguous_strides(), .storage = content.storage_bytes.size()});
  content.storage_bytes.push_back(content.entries.back().nbytes());
}

class PtStream final : public StreamWriter {
 public:
  PtStream(std::string_view path, const WriterOptions& options)
      : file_(io::open_output(path, {.sync = options.sync})), prefix_(pt_prefix(path)) {
    write_pt_facts(zip_, prefix_);
  }

  void check(const std::string& name, const DType& dtype, const Shape&) const override {
    require_torch_dtype(dtype);
    if (!is_utf8_with_surrogates(name))
      throw Error(ErrorCode::kUnsupported, "the name is not UTF-8; rename the tensor");
  }
  void begin(const std::string& name, const DType& dtype, const Shape& shape) override {
    const std::size_t number = content_.entries.size();
    add_to(content_, dtype, shape);
    zip_.begin(core::format("{}data/{}", prefix_, number), content_.storage_bytes.back());
    items_.emplace_back(name, Value::entry(number));
  }
  void write(std::span<const std::byte> bytes) override { zip_.write(bytes); }
  void end(const Shape&) override { zip_.end(); }
  void finish() override {
    content_.structure = Value::dict(std::move(items_));
    const std::string pickle = pickle_for_torch(content_).text;
    zip_.add_text(prefix_ + "data.pkl", pickle);
    write_pt_end(zip_, prefix_, pickle);
    file_->commit();
  }

 private:
  std::unique_ptr<io::Output> file_;
  std::string prefix_;
  ZipWriter zip_{*file_, ZipStyle::kTorch, kPtAlignment};
  Unloaded content_;
  std::vector<std::pair<std::string, Value>> items_;
};

}  // namespace

void write_pt_tensor(const DType& dtype, const Shape& shape, io::ByteSink& sink,
                     const std::function<void(io::ByteSink&)>& elements) {
  require_torch_dtype(dtype);
  const std::string prefix = "archive/";
  Unloaded content{.structure = Value::entry(0)};
  add_to(content, dtype, shape);
  const std::string pickle = pickle_for_torch(content).text;
  ZipWriter zip(sink, ZipStyle::kTorch, kPtAlignment);
  zip.add_text(prefix + "data.pkl", pickle);
  write_pt_facts(zip, prefix);
  zip.begin(prefix + "data/0", content.storage_bytes.front());
  ZipMemberSink member(zip);
  elements(member);
  zip.end();
  write_pt_end(zip, prefix, pickle);
}

std::unique_ptr<StreamWriter> stream_pt(std::string_view path, const WriterOptions& options) {
  return std::make_unique<PtStream>(path, options);
}

}  // namespace penstock::format
