#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/forks.h"
#include "io/file/file_descriptor.h"
#include "io/file/output.h"

namespace penstock::io {

/// kIsDirectory, kUnsupported where `found` at `path` is nothing that a file could take the place of.
void require_replaceable(const struct stat& found, const std::string& path);

/// Writes a temporary file in the target's folder and renames it over the target on commit. Without commit nothing
/// remains. A forked child takes nothing back. Nothing remains of a process that is killed either, where the file
/// system has files without a name (O_TMPFILE: most have, network file systems often not). Follows a symbolic link to
/// its target. Keeps the permission bits of an existing file and, where it may, its owner, access list and extended
/// attributes of users; nobody else can open the new one meanwhile. Not thread-safe.
class AtomicFile final : public Output {
 public:
  /// kNotFound when the folder is missing, kNotDirectory, kPermission (also for a file that may not be written to),
  /// kIsDirectory, kUnsupported for a FIFO or device, kIo.
  explicit AtomicFile(std::string path, bool sync = true);
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// kIo when the disk is full. After an error the file can only be dropped.
  void write(std::span<const std::byte> bytes) override;
  std::uint64_t position() const noexcept override { return position_; }
  /// Writes at an offset, over what is there or behind the end. `write` goes on where it was.
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Another descriptor of the file, which is the caller's: for who writes it from the front himself, and not by
  /// `write`.
  int duplicate();
  /// Reads what was written. kIo where the file ends before.
  void read_back(std::uint64_t offset, std::span<std::byte> out);
  void prepare() override {}
  /// Flushes (fsync of file and folder when `sync`) and gives the file its name. kIo also where it has its name and the
  /// folder could not be flushed.
  void commit() override;
  bool may_be_there() const noexcept override { return may_be_there_; }
  bool is_its_own() const noexcept override { return may_be_there_; }

 private:
  /// Opens the folder of `path`, and looks for its name there, which may be that of a symbolic link.
  std::optional<struct stat> find_target(const std::string& path);
  void create(const std::optional<struct stat>& target);
  void create_named(unsigned mode);
  /// Calls `act(name)` with unused names until it succeeds. Returns 0, or the system's error number.
  template <class Act>
  int with_new_name(Act act);
  /// Gives the unnamed file a name; false with errno.
  bool link_as(const char* name) const;
  void name_temporary();
  bool try_link();
  void rename_over();
  void resemble(const struct stat& target);
  void keep_attributes();
  void flush();
  void write_out(std::span<const std::byte> bytes);
  [[noreturn]] void fail(int error, std::string_view what) const;

  std::string path_;       // as the caller named it, for errors
  std::string name_;       // of the target, in its folder
  std::string temporary_;  // beside it; empty when there is none
  FileDescriptor folder_;  // names stay right when the process changes its working folder
  FileDescriptor file_;
  std::vector<std::byte> pending_;
  std::uint64_t position_ = 0;
  bool sync_;
  bool replaces_ = false;         // the name was somebody's when the file was begun
  bool is_slow_to_drop_ = false;  // the file of that name
  bool may_be_there_ = false;
  const std::uint64_t forks_ = core::forks();
};

}  // namespace penstock::io
