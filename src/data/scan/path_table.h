#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/file/file_descriptor.h"

namespace penstock::data {

/// Files of one folder, NUL behind each name.
struct FolderNames {
  std::uint32_t folder;
  std::string names;
};

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
  /// Files of many folders, in this order. Names of a folder that has none yet are taken over, not copied.
  void add(std::vector<FolderNames> listed);
  /// Any path.
  void add(std::string_view path);
  /// An object behind a URL, with its size. A table has sizes for all or for none, and is not sorted then.
  void add(std::string_view url, std::uint64_t bytes);
  /// Orders by path, bytewise, and drops repeats.
  void sort();
  /// Opens folders and gives back spare memory; nothing is added after it. Names that the program opens by a function
  /// of its own have no folders.
  enum class Folders : std::uint8_t { kOpened, kNone };
  void seal(Folders folders = Folders::kOpened);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(entries_.size()); }
  std::string path(std::int64_t index) const;
  /// The same into `out`, which needs no new memory after a while.
  void path(std::int64_t index, std::string& out) const;
  /// Bytes that the file has now, or that the object had when it was listed; the largest number where nobody can tell.
  std::uint64_t bytes_on_disk(std::int64_t index) const;
  /// Whether it is a URL, which no descriptor can be had of; whether some path is.
  bool is_url(std::int64_t index) const noexcept;
  bool has_urls() const noexcept { return has_urls_; }
  /// A descriptor to read the file from, or an empty one with errno set.
  io::FileDescriptor open(std::int64_t index) const;
  /// Heap bytes held, about.
  std::size_t memory() const noexcept;

 private:
  /// 24 bits folder, 40 bits offset in its names.
  using Entry = std::uint64_t;
  static constexpr unsigned kNameBits = 40;

  struct Folder {
    std::string path;   ///< "" or with '/' at the end
    std::string names;  ///< each ends in NUL
    bool is_url = false;
  };
  struct OpenFolders;
  /// Neighbours among a folder's names, and where their entries begin.
  struct NameRun {
    std::uint32_t folder;
    std::size_t begin;
    std::size_t bytes;
    std::size_t entry;
  };

  std::string_view names_of(const NameRun& run) const noexcept;
  void fill(const NameRun& run) noexcept;
  const Folder& folder_of(Entry entry) const noexcept { return folders_[static_cast<std::size_t>(entry >> kNameBits)]; }
  const char* name_of(Entry entry) const noexcept {
    return folder_of(entry).names.data() + static_cast<std::size_t>(entry & ((Entry{1} << kNameBits) - 1));
  }
  bool before(Entry a, Entry b) const noexcept;

  std::vector<Entry> entries_;
  bool has_urls_ = false;
  std::vector<std::uint64_t> sizes_;  ///< of objects, one for each entry; else empty
  std::vector<Folder> folders_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::shared_ptr<const OpenFolders> open_folders_;
};

}  // namespace penstock::data
