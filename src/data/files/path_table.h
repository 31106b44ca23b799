#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/file_descriptor.h"

namespace penstock::data {

/// The paths of very many files in little memory: each folder once, and for each file eight bytes and its bare name.
/// Folders are held open, which makes opening their files cheaper: the first kMaxOpenFolders of them, and of all tables
/// no more than a quarter of the descriptors that the process may have. Built by one thread; after `seal` immutable,
/// and open for any thread.
class PathTable {
 public:
  static constexpr std::size_t kMaxOpenFolders = 32;

  /// A number for `folder` ("" is the working folder), to add its files with. kLimit beyond 2^24 folders.
  std::uint32_t folder(std::string_view folder);
  /// A file of a folder; `name` has no '/'.
  void add(std::uint32_t folder, std::string_view name);
  /// Files of a folder, NUL behind each name.
  void add_names(std::uint32_t folder, std::string_view names);
  /// Any path.
  void add(std::string_view path);
  /// Orders by path, bytewise, and drops repeats.
  void sort();
  /// Opens folders and gives back spare memory; nothing is added after it.
  void seal();

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(entries_.size()); }
  std::string path(std::int64_t index) const;
  /// The same into `out`, which needs no new memory after a while.
  void path(std::int64_t index, std::string& out) const;
  /// A descriptor to read the file from, or an empty one with errno set.
  io::FileDescriptor open(std::int64_t index) const;
  /// Heap bytes held, about.
  std::size_t memory() const noexcept;

 private:
  /// 24 bits folder, 40 bits offset of the name.
  using Entry = std::uint64_t;
  static constexpr unsigned kNameBits = 40;

  struct OpenFolders;

  std::size_t folder_of(Entry entry) const noexcept { return static_cast<std::size_t>(entry >> kNameBits); }
  const char* name_of(Entry entry) const noexcept {
    return names_.data() + static_cast<std::size_t>(entry & ((Entry{1} << kNameBits) - 1));
  }
  bool before(Entry a, Entry b) const noexcept;

  std::vector<Entry> entries_;
  std::vector<char> names_;           ///< each ends in NUL
  std::vector<std::string> folders_;  ///< "" or with '/' at the end
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::shared_ptr<const OpenFolders> open_folders_;
};

}  // namespace penstock::data
