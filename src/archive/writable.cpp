// The whole file is one mapping, and the index is read from that memory, so that both are of the same file. Tensors are
// views of it. A storage that has a checksum is compared with it before anybody gets a view, and what its bytes were
// then is remembered: its checksum is written anew where they have changed since, so that none ever stands over damage
// that was there before.

#include "penstock/writable.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "archive/materialise.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/system_error.h"
#include "format/zip/mend.h"
#include "io/copy/crc32.h"
#include "io/copy/record_check.h"
#include "io/file/file_descriptor.h"
#include "io/file/file_url.h"
#include "io/file/open_path.h"
#include "io/file/url.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock {
namespace {

/// A file's bytes, shared with everybody who has it open.
class SharedMapping {
 public:
  explicit SharedMapping(const std::string& path) {
    // Not blocking: a FIFO would wait for a reader.
    io::require_no_url(path);
    file_ = io::open_path(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (!file_) core::throw_errno(errno, "cannot open the file to write to it", {.path = path});
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) core::throw_errno(errno, "cannot look at the file", {.path = path});
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::kUnsupported, "only a plain file can be changed in place; name another path", {path});
    }
    size_ = static_cast<std::size_t>(status.st_size);
    has_name_ = status.st_nlink != 0;
    // Where the path leads now, wherever the process goes meanwhile.
    std::error_code ignored;
    name_ = std::filesystem::read_symlink(core::format("/proc/self/fd/{}", file_.get()), ignored);
    if (size_ == 0) return;
    void* const at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (at == MAP_FAILED) core::throw_errno(errno, "cannot map the file", {.path = path});
    data_ = static_cast<std::byte*>(at);
  }
  ~SharedMapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// Whether the file has lost the name that it had: it was removed, or another came in its place, whatever other names
  /// it has by hard links.
  bool has_lost_its_name() const noexcept {
    struct stat own {};
    struct stat named {};
    if (!has_name_ || ::fstat(file_.get(), &own) != 0) return false;
    const bool is_other =
        ::stat(name_.c_str(), &named) == 0 && (named.st_ino != own.st_ino || named.st_dev != own.st_dev);
    return own.st_nlink == 0 || is_other;
  }
  /// Whether there is less of the file than was mapped: to touch the rest would end the process.
  bool is_cut() const noexcept {
    struct stat status {};
    return ::fstat(file_.get(), &status) == 0 && static_cast<std::size_t>(status.st_size) < size_;
  }

 private:
  io::FileDescriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool has_name_ = false;
  std::filesystem::path name_;
};

}  // namespace

class WritableArchive::Impl {
 public:
  /// No file.
  Impl() = default;
  Impl(std::string_view path, const OpenOptions& options)
      : path_(io::local_path(path)),
        mapping_(std::make_shared<SharedMapping>(path_)),
        archive_(open(memory_source(memory_of(mapping_, true), path_), options)),
        verify_(options.verify) {
    if (archive_.sources().size() == 1) return;
    throw Error(ErrorCode::kUnsupported, "the file lists others, which hold the tensors: open one of those", {path_});
  }
  ~Impl() {
    try {
      mend();
    } catch (const std::exception&) {
      // Who wants to know calls close().
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const Archive& archive() const noexcept { return archive_; }
  const std::string& path() const noexcept { return path_; }

  Tensor view(const TensorEntry& entry) {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorCode::kInvalidArgument, "the archive was closed; open the file again", {path_});
    const StorageEntry& storage = archive_.storages()[entry.storage];
    const auto refuse = [&](std::string_view reason) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("the tensor cannot be changed in place: {}; load it and save it anew", reason),
                  {path_, storage.offset, entry.name});
    };
    if (entry.pickled) refuse("it holds Python objects");
    if (entry.encoding.deflated) refuse("it is stored compressed");
    if (entry.encoding.swapped) refuse("it is stored in the other byte order");
    if (entry.encoding.has_math_bits()) refuse("it is stored as the conjugate or negative of its values");
    if (!storage.lies_in_file()) refuse("its bytes do not lie in the file as they are");
    if (entry.nbytes() == 0) return Tensor::empty(entry.shape, entry.dtype);
    const auto address =
        reinterpret_cast<std::uintptr_t>(mapping_->bytes().data() + storage.offset) + entry.byte_offset;
    if (address % archive::natural_alignment(entry.dtype) != 0) refuse("the file does not align it");
    require_uncut();
    if (storage.crc32) look_at(storage, entry.name);
    return {memory_of(mapping_, false), entry.dtype, entry.shape, entry.strides,
            static_cast<std::size_t>(storage.offset + entry.byte_offset)};
  }

  void flush() {
    const std::lock_guard lock(mutex_);
    if (closed_ || !mapping_) return;
    mend();
    const std::span<std::byte> file = mapping_->bytes();
    if (::msync(file.data(), file.size(), MS_SYNC) != 0) {
      core::throw_errno(errno, "cannot write the file to the disk", {.path = path_});
    }
    if (mapping_->has_lost_its_name()) {
      throw Error(ErrorCode::kChanged,
                  "the file was removed, or another came in its place, while it was open to be changed: what was "
                  "written to it is not in the file of that name; open it again",
                  {path_});
    }
  }
  void close() {
    flush();
    const std::lock_guard lock(mutex_);
    closed_ = true;
    seen_.clear();
  }

 private:
  static Buffer memory_of(const std::shared_ptr<SharedMapping>& mapping, bool read_only) {
    const std::span<std::byte> file = mapping->bytes();
    return Buffer::wrap(file.data(), file.size(), mapping, read_only);
  }

  /// What was seen of a storage that has a checksum.
  struct Seen {
    std::uint64_t bytes;
    std::uint32_t crc32;
    bool is_mended;  ///< not where it is damaged, and the caller wanted nothing verified
  };

  void look_at(const StorageEntry& storage, const std::string& name) {
    if (seen_.contains(storage.offset)) return;
    const std::uint32_t crc = crc_of(storage.offset, storage.nbytes);
    io::RecordCheck check({storage.crc32, storage.nbytes, path_, storage.offset, name}, verify_);
    check.add_known(crc, storage.nbytes);
    check.finish();
    seen_.emplace(storage.offset, Seen{storage.nbytes, crc, crc == *storage.crc32});
  }

  std::uint32_t crc_of(std::uint64_t offset, std::uint64_t bytes) const {
    return io::crc32(0, mapping_->bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)));
  }

  void require_uncut() const {
    if (mapping_ == nullptr || !mapping_->is_cut()) return;
    throw Error(ErrorCode::kTruncated,
                "the file was cut while it was open to be changed, and what was written behind its end is lost; write "
                "the file again",
                {path_});
  }

  void mend() {
    require_uncut();
    std::map<std::uint64_t, std::uint32_t> changed;
    for (const auto& [offset, seen] : seen_) {
      const std::uint32_t crc = seen.is_mended ? crc_of(offset, seen.bytes) : seen.crc32;
      if (crc != seen.crc32) changed.emplace(offset, crc);
    }
    if (changed.empty()) return;
    format::mend_zip_checksums(mapping_->bytes(), changed, path_);
    for (const auto& [offset, crc] : changed) seen_.at(offset).crc32 = crc;
  }

  std::string path_;
  std::shared_ptr<SharedMapping> mapping_;
  Archive archive_;
  std::mutex mutex_;
  bool verify_ = true;
  std::map<std::uint64_t, Seen> seen_;  ///< by where the storage begins, of tensors that were asked for
  bool closed_ = false;
};

WritableArchive::WritableArchive() : impl_(std::make_shared<Impl>()) {}

const std::string_view WritableArchive::format() const noexcept { return impl_->archive().format(); }
const std::string& WritableArchive::path() const& noexcept { return impl_->path(); }
const std::span<const TensorEntry> WritableArchive::entries() const& noexcept { return impl_->archive().entries(); }
bool WritableArchive::contains(TextView name) const noexcept { return impl_->archive().contains(name); }
Tensor WritableArchive::operator[](TextView name) const { return impl_->view(impl_->archive()[name].entry()); }
Tensor WritableArchive::entry(Integer index) const { return impl_->view(impl_->archive().entry(index).entry()); }
Tensor WritableArchive::tensor() const {
  if (const std::size_t count = entries().size(); count != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the file holds {}: ask for one by its name", core::counted(count, "tensor")), {path()});
  }
  return entry(0);
}
void WritableArchive::flush() { impl_->flush(); }
void WritableArchive::close() { impl_->close(); }

WritableArchive open_writable(TextView path, const OpenOptions& options) {
  return WritableArchive(std::make_shared<WritableArchive::Impl>(path, options));
}

}  // namespace penstock
