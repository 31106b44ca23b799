// A `.pt`, tensor by tensor: a dict of tensors by name. torch finds records by the archive's directory, so the pickle,
// which lists all tensors, can come behind their storages. Each tensor has a storage of its own.

#include "format/pt/stream.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "format/elsewhere.h"
#include "format/pt/content.h"
#include "format/pt/pickle/pickle_writer.h"
#include "format/pt/pickle/world.h"
#include "format/pt/write.h"
#include "format/text/utf8.h"
#include "format/zip/writer.h"
#include "io/file/output.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

struct Written {
  std::string name;
  DType dtype;
  Shape shape;
};

void write_tensor(pickle::PickleWriter& out, const Written& tensor, std::size_t key) {
  const std::string_view type = storage_class(tensor.dtype.code());
  const bool untyped = type.empty();
  out.push_global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  out.mark();
  out.mark();
  out.push_text("storage");
  untyped ? out.push_global("torch.storage", "UntypedStorage") : out.push_global("torch", type);
  out.push_text(std::to_string(key));
  out.push_text("cpu");
  const std::int64_t itemsize = untyped ? static_cast<std::int64_t>(tensor.dtype.itemsize()) : 1;
  out.push_integer(tensor.shape.numel() * itemsize);
  out.push_tuple(5);
  out.push_persistent();
  out.push_integer(0);
  out.push_integers(tensor.shape.dims());
  const Strides strides = tensor.shape.contiguous_strides();
  out.push_integers(strides.dims());
  out.push_boolean(false);
  out.push_empty_ordered_dict();
  if (untyped) out.push_global("torch", tensor.dtype.name());
  out.push_tuple(untyped ? 7 : 6);
  out.reduce();
}

/// `root` has the tensors as entries.
std::string pickle_of(const Value& root, const std::vector<Written>& tensors) {
  const auto tensor = [&](pickle::PickleWriter& out, const Value& value) {
    const std::size_t key = value.entry_index().value();
    write_tensor(out, tensors[key], key);
  };
  const auto no_object = [](pickle::PickleWriter&, const Value&) { return false; };
  return pickle::PickleWriter(tensor, no_object).write(root);
}

Value dict_of(const std::vector<Written>& tensors) {
  std::vector<std::pair<std::string, Value>> items;
  for (std::size_t i = 0; i < tensors.size(); ++i) items.emplace_back(tensors[i].name, Value::entry(i));
  return Value::dict(std::move(items));
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
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * dtype.itemsize();
    zip_.begin(core::format("{}data/{}", prefix_, tensors_.size()), bytes);
    tensors_.push_back({name, dtype, shape});
  }
  void write(std::span<const std::byte> bytes) override { zip_.write(bytes); }
  void end(const Shape&) override { zip_.end(); }
  void finish() override {
    const std::string pickle = pickle_of(dict_of(tensors_), tensors_);
    zip_.add_text(prefix_ + "data.pkl", pickle);
    write_pt_end(zip_, prefix_, pickle);
    file_->commit();
  }

 private:
  std::unique_ptr<io::Output> file_;
  std::string prefix_;
  ZipWriter zip_{*file_, ZipStyle::kTorch, kPtAlignment};
  std::vector<Written> tensors_;
};

}  // namespace

void require_torch_dtype(const DType& dtype) {
  if (is_quantized(dtype.code())) {
    throw Error(ErrorCode::kUnsupported,
                core::format("a tensor {} is saved with its scale alone: {}", dtype.name(), elsewhere(dtype)));
  }
  if (pickle::torch_dtype(dtype.name())) return;
  throw Error(ErrorCode::kUnsupported, core::format("torch has no dtype {}: {}", dtype.name(), elsewhere(dtype)));
}

void write_pt_tensor(const DType& dtype, const Shape& shape, io::ByteSink& sink,
                     const std::function<void(io::ByteSink&)>& elements) {
  require_torch_dtype(dtype);
  const std::string prefix = "archive/";
  const std::string pickle = pickle_of(Value::entry(0), {{{}, dtype, shape}});
  ZipWriter zip(sink, ZipStyle::kTorch, kPtAlignment);
  zip.add_text(prefix + "data.pkl", pickle);
  write_pt_facts(zip, prefix);
  zip.begin(prefix + "data/0", static_cast<std::uint64_t>(shape.numel()) * dtype.itemsize());
  ZipMemberSink member(zip);
  elements(member);
  zip.end();
  write_pt_end(zip, prefix, pickle);
}

std::unique_ptr<StreamWriter> stream_pt(std::string_view path, const WriterOptions& options) {
  return std::make_unique<PtStream>(path, options);
}

}  // namespace penstock::format
