#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file/atomic_file.h"
#include "penstock/entry.h"
#include "penstock/save.h"
#include "penstock/source.h"
#include "penstock/value.h"

namespace penstock::format {

/// What NumPy's own reader shows of a `.npz` or says of a `.npy`, and no other needs.
struct NumpyFacts {
  /// Members that are folders: how many entries come before, and the name.
  std::vector<std::pair<std::size_t, std::string>> folders;
  /// Entries whose headers Python 2 wrote.
  std::vector<std::size_t> python2_headers;
};

/// What read_index finds: everything about a file but its payload.
struct Index {
  std::vector<Source> sources;  ///< the file itself, then any it refers to
  std::vector<StorageEntry> storages;
  std::vector<TensorEntry> entries;
  Value structure;  ///< nested content; tensors are Value::entry(i). A bare tensor file: the entry itself
  std::map<std::string, std::string> metadata;
  bool empty_metadata = false;  ///< the file has an object for it with nothing in it
  std::vector<std::string> unknown_globals;
  NumpyFacts numpy;
};

class DirectoryCache;

/// A file format: one row of the table. Functions are stateless and thread-safe; they never mention a device, and read
/// no payload but that which no load would check (npz.md). Errors name the path, offset and tensor.
struct Format {
  std::string_view name;
  std::span<const std::string_view> extensions;  ///< with the dot; the first is the usual one
  /// Whether the content is of this format. `head`: the first bytes, up to kSniffBytes.
  bool (*sniff)(std::span<const std::byte> head, const ByteSource& source);
  Index (*read_index)(const Source& source, const OpenOptions& options);
  /// Null for a format that is only read. `path`: of the file being written, for names inside it and for errors.
  void (*write)(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path);
  /// How many bytes of a source of this format read_index looks at, at most, as far as the head tells: it decides
  /// whether opening takes long. Null: any, up to all of them.
  std::uint64_t (*index_bytes)(const ByteSource& source) = nullptr;

  // How the loader recognises a file that is like an earlier one, so that it need not be parsed. A format that gives
  // neither has each file parsed.

  /// How many bytes at the start of a file decide, together with its size, all of the index that it has. `head`: the
  /// file's first bytes, which may be all of it. Null where the beginning does not decide that.
  std::uint64_t (*fingerprint)(const Index& index, std::span<const std::byte> head) = nullptr;
  /// Makes a memory of layouts, where a directory elsewhere in the file decides.
  std::unique_ptr<DirectoryCache> (*directory_cache)() = nullptr;

  /// What may stand behind the name of a tensor when it is asked for, or be left out: ".npy" of an `.npz`'s members.
  std::string_view name_suffix = {};
  bool can_compress = false;    ///< SaveOptions::compress has a meaning
  bool keeps_metadata = false;  ///< SaveOptions::metadata has a place
  /// Index::metadata describes the file itself, and is nothing that whoever wrote it had to say.
  bool metadata_is_own = false;
  /// A file is one tensor. Where that is an array of Python objects, read_index gives kUnsafe.
  bool is_one_tensor = false;
  bool is_index = false;  ///< a file lists others, which hold the tensors
};

inline constexpr std::size_t kSniffBytes = 64;

/// The format that recognises the content of a source, or null.
const Format* find_format(const ByteSource& source);
/// The table, in order of sniffing.
std::span<const Format> formats() noexcept;
/// The format of a source by content, or kUnknownFormat with what was found and what is known.
const Format& detect(const ByteSource& source);
/// The format that save() writes to `path`: the one that the options name, or that of the extension. kInvalidArgument
/// when there is none, kUnsupported for options that it has no place for.
const Format& format_to_write(std::string_view path, const SaveOptions& options);

// One declaration for each row; each is defined in its own file.
extern const Format kNpyFormat;
extern const Format kNpzFormat;
extern const Format kPtFormat;
extern const Format kPtLegacyFormat;
extern const Format kSafetensorsFormat;
extern const Format kShardIndexFormat;

}  // namespace penstock::format
