#pragma once

// The table of formats, src/format/formats.cpp. A row says how to recognise a file, read its index and write one;
// everything above asks the row and knows no format by name.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/stream_writer.h"
#include "format/unloaded.h"
#include "io/file/atomic_file.h"
#include "penstock/entry.h"
#include "penstock/save.h"
#include "penstock/source.h"
#include "penstock/value.h"
#include "penstock/writer.h"

namespace penstock::format {

// A token file is one long array of tokens in which documents lie.

/// Where the documents of a token file lie.
struct Documents {
  std::size_t tokens = 0;                  ///< the entry that all of them are parts of
  std::vector<std::int64_t> starts = {};   ///< the first element of each
  std::vector<std::int64_t> lengths = {};  ///< as many
  /// The file does not say where they lie: each begins with this token.
  std::optional<std::int64_t> begin = {};
};

/// What is taken for a document.
enum class DocumentUnit : std::uint8_t { kDocument, kSequence };

/// Facts about `.npy` and `.npz` that only a replacement of NumPy's reader needs (penstock.numpy).
struct NumpyFacts {
  /// Members that are folders: how many other members come before, and the name.
  std::vector<std::pair<std::size_t, std::string>> folders;
  /// Entries whose headers Python 2 wrote.
  std::vector<std::size_t> python2_headers;
};

/// Everything about a file except its payload: what read_index finds.
struct Index {
  std::vector<Source> sources;  ///< the file itself, then any it refers to
  std::vector<StorageEntry> storages;
  std::vector<TensorEntry> entries;
  Value structure;  ///< nested content, in which tensors are Value::entry(i); the entry itself for a file of one tensor
  std::map<std::string, std::string> metadata;
  bool empty_metadata = false;  ///< the file has metadata, but with nothing in it
  std::vector<std::string> unknown_globals;
  NumpyFacts numpy;
};

class DirectoryCache;

/// A file format: one row of the table. Its functions are stateless and thread-safe. They never mention a device, and
/// they read no payload; docs/formats/npz.md describes the one exception. Errors name the path, offset and tensor.
struct Format {
  std::string_view name;
  std::span<const std::string_view> extensions;  ///< with the dot; the first is the usual one
  /// Whether the content is of this format. `head`: the first bytes, up to kSniffBytes.
  bool (*sniff)(std::span<const std::byte> head, const ByteSource& source);
  Index (*read_index)(const Source& source, const OpenOptions& options);
  /// Null for a format that is only read. `path`: of the file being written, for names inside it and for errors.
  void (*write)(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path);
  /// Begins a file that penstock::Writer writes piece by piece. Null where it cannot.
  std::unique_ptr<StreamWriter> (*stream)(std::string_view path, const WriterOptions& options) = nullptr;
  /// The most bytes of a source that read_index looks at, as far as the head tells. Callers decide by it whether
  /// opening takes long. Null: up to all of them.
  std::uint64_t (*index_bytes)(const ByteSource& source) = nullptr;

  // The loader does not parse a file that is like an earlier one. It recognises such a file by one of the next two.
  // When a format gives neither, each file is parsed. It is also parsed when its bytes are not all in one file, when a
  // tensor is stored encoded or (in a large file) has gaps (FileLayout in data/files), and when more than 1 MiB of a
  // large file decides its layout (kMostFrame in data/files/layout_store.h).

  /// How many bytes at the start of a file decide, together with its size, the whole index. `head`: the file's first
  /// bytes, which may be all of it. 0 means that the start of this file does not decide it, so it is parsed each time.
  /// Null when that holds for every file of the format.
  std::uint64_t (*fingerprint)(const Index& index, std::span<const std::byte> head) = nullptr;
  /// Makes a cache of layouts, for formats with a directory elsewhere in the file.
  std::unique_ptr<DirectoryCache> (*directory_cache)() = nullptr;

  /// An ending that a tensor's name may have or lack when it is asked for: ".npy" of an `.npz`'s members.
  std::string_view name_suffix = {};
  bool can_compress = false;    ///< it supports SaveOptions::compress
  bool keeps_metadata = false;  ///< it supports SaveOptions::metadata
  /// Index::metadata describes the file itself, such as its version. It is not text that the writer's user gave.
  bool metadata_is_own = false;
  /// A file is one tensor, or an array of Python objects, which is no tensor.
  bool is_one_tensor = false;
  bool is_index = false;  ///< a file lists other files, which hold the tensors
  /// An index whose tensors have the names that they have in those files, so that one which it does not name is lost.
  bool lists_names = false;
  /// A file of this format is one thing with the other files of its folder (open_folder), whose parts lie anywhere.
  bool is_folder = false;
  /// The folder has no such file: open_folder makes a list of its files, which stands for it.
  bool is_listed = false;
  /// Writes tensors that are not loaded. Null where `write` is; a folder has save_folder (save.cpp) for both.
  void (*write_unloaded)(const Unloaded& content, io::ByteSink& sink, const SaveOptions& options,
                         std::string_view path) = nullptr;
  /// Tensors are views of storages, which they may share.
  bool has_storages = false;
  /// An array may lie in Fortran order, and its bytes are its own even where it shares them in memory.
  bool keeps_order = false;
  /// Several files and an index of them stand for one.
  bool has_shards = false;
  /// Where the documents of a token file lie: it is a dataset of its own, and no sample of one. Reads what says where
  /// they lie, and checks it. Null for all other formats.
  Documents (*documents)(const Index& index, DocumentUnit unit) = nullptr;
  /// A file holds many samples, so that a folder of such files is no folder of samples.
  bool holds_samples = false;
};

inline constexpr std::size_t kSniffBytes = 64;

/// The format that recognises the content of a source, or null.
const Format* find_format(const ByteSource& source);
/// The table, in order of sniffing.
std::span<const Format> formats() noexcept;
/// The format of a source by its content. kUnknownFormat says what the content looks like and which formats there are.
const Format& detect(const ByteSource& source);
/// The format that save() writes to `path`: the one that the options name, else that of the extension. kInvalidArgument
/// when there is none, kUnsupported for options that the format does not support.
const Format& format_to_write(std::string_view path, const SaveOptions& options);

}  // namespace penstock::format
