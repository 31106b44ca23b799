#pragma once

// Checkpoints of torch.distributed.checkpoint, put together by hand with any lie in them.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/tensor.h"
#include "support/files.h"
#include "support/pickles.h"

namespace penstock::test {

/// A box of a tensor and where its stream lies.
struct MadeChunk {
  std::vector<std::int64_t> at;
  std::vector<std::int64_t> sizes;
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Writes `.metadata` and the files beside it. What is added last may lie about everything before it.
class MadeCheckpoint {
 public:
  explicit MadeCheckpoint(const TemporaryFolder& folder) : folder_(folder) {}

  /// Adds a stream to a file; gives where it lies.
  MadeChunk put(const std::string& file, const std::string& stream) {
    std::string& bytes = file_of(file);
    bytes.append(3, '\x07');  // not aligned, as streams behind others are
    MadeChunk out{{}, {}, file, bytes.size(), stream.size()};
    bytes += stream;
    return out;
  }

  /// A stream of torch.save with elements of float32, which are in C order.
  static std::string stream(const std::vector<std::int64_t>& sizes, const std::string& elements,
                            const std::string& type = "FloatStorage", std::size_t itemsize = 4) {
    std::vector<std::int64_t> strides(sizes.size());
    std::int64_t stride = 1;
    for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
    const auto numel = static_cast<std::int64_t>(elements.size() / itemsize);
    return pt_file(pickled::tensor(pickled::storage(type, "0", numel), 0, sizes, strides), {elements});
  }

  /// The elements of a box of a contiguous tensor.
  static std::string elements_of(const Tensor& tensor, const std::vector<std::int64_t>& at,
                                 const std::vector<std::int64_t>& sizes) {
    Tensor box = tensor;
    for (std::size_t d = 0; d < at.size(); ++d) box = box.slice(d, at[d], at[d] + sizes[d]);
    box = box.contiguous();
    return {reinterpret_cast<const char*>(box.data()), box.nbytes()};
  }

  /// Puts a box of a float32 tensor into a file.
  MadeChunk put(const std::string& file, const Tensor& tensor, const std::vector<std::int64_t>& at,
                const std::vector<std::int64_t>& sizes) {
    MadeChunk chunk = put(file, stream(sizes, elements_of(tensor, at, sizes)));
    chunk.at = at;
    chunk.sizes = sizes;
    return chunk;
  }

  void tensor(const std::string& name, const std::vector<std::int64_t>& size, const std::vector<MadeChunk>& chunks,
              const std::string& dtype = "float32") {
    using namespace pickled;
    std::string boxes = "](";
    for (const MadeChunk& chunk : chunks) {
      boxes += object("metadata.ChunkStorageMetadata",
                      dict({text("offsets"), size_of(chunk.at), text("sizes"), size_of(chunk.sizes)}));
      place(name, size_of(chunk.at), chunk);
    }
    boxes += "e";
    const std::string properties =
        object("metadata.TensorProperties",
               tuple({global("torch", dtype), global("torch", "strided"), "\x89", integer(0), "\x89"}));
    items_ +=
        text(name) + object("metadata.TensorStorageMetadata",
                            dict({text("properties"), properties, text("size"), size_of(size), text("chunks"), boxes}));
  }

  void object_at(const std::string& name, const MadeChunk& chunk) {
    items_ += pickled::text(name) + object("metadata.BytesStorageMetadata", {});
    place(name, {}, chunk);
  }

  void path(const std::string& name, const std::string& keys) { paths_ += pickled::text(name) + keys; }
  void transformed_by(const std::string& descriptor) { descriptor_ = descriptor; }
  std::string& file_of(const std::string& name) {
    for (auto& [file, bytes] : files_) {
      if (file == name) return bytes;
    }
    return files_.emplace_back(name, std::string()).second;
  }

  std::string pickle() const {
    using namespace pickled;
    return whole(object("metadata.Metadata", "}(" + text("state_dict_metadata") + "}(" + items_ + "u" +
                                                 text("planner_data") +
                                                 (paths_.empty() ? std::string("N") : "}(" + paths_ + "u") +
                                                 text("storage_data") + "}(" + places_ + "u" + "u"));
  }

  void write() const {
    write_file(folder_ / ".metadata", bytes_of(pickle()));
    for (const auto& [name, bytes] : files_) write_file(folder_ / name, bytes_of(bytes));
  }

 private:
  /// An object of a class of torch.distributed.checkpoint with that state.
  static std::string object(const std::string& name, const std::string& state) {
    const std::size_t dot = name.find('.');
    return pickled::global("torch.distributed.checkpoint." + name.substr(0, dot), name.substr(dot + 1)) + ")\x81" +
           (state.empty() ? std::string() : state + "b");
  }
  static std::string size_of(const std::vector<std::int64_t>& sizes) {
    return pickled::call(pickled::global("torch", "Size"), {pickled::integers(sizes)});
  }

  void place(const std::string& name, const std::string& at, const MadeChunk& chunk) {
    using namespace pickled;
    std::string info = "}(" + text("relative_path") + text(chunk.file) + text("offset") +
                       integer(static_cast<std::int64_t>(chunk.offset)) + text("length") +
                       integer(static_cast<std::int64_t>(chunk.length));
    if (!descriptor_.empty()) info += text("transform_descriptors") + list({text(descriptor_)});
    places_ += object("metadata.MetadataIndex",
                      "}(" + text("fqn") + text(name) + text("offset") + (at.empty() ? std::string("N") : at) + "u") +
               object("filesystem._StorageInfo", info + "u");
  }

  const TemporaryFolder& folder_;
  std::string items_;
  std::string places_;
  std::string paths_;
  std::string descriptor_;
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace penstock::test
