#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/device.h"
#include "penstock/entry.h"
#include "penstock/report.h"
#include "penstock/source.h"
#include "penstock/tensor.h"
#include "penstock/value.h"

namespace penstock {

struct LoadOptions {
  Device device = {};
  /// Map the file instead of reading it: tensors are views, and nothing is read until they are. Host only; kUnsupported
  /// where the bytes are not the values (compressed, other byte order, torch's conj and neg bits). What the file does
  /// not align is read all the same, and the report says so. Checksums are not looked at. Unset: read. A mapped tensor
  /// is read-only, and reading it after the file was cut raises SIGBUS outside Penstock's own calls.
  std::optional<bool> map = {};
  bool verify_checksums = true;
  /// Read past the page cache (true) or through it (false); unset: past it what is not in it. Where the file system
  /// cannot, the read goes through the cache all the same, and so does a slice whose elements do not lie together; the
  /// report says so. Without meaning for what is mapped.
  std::optional<bool> direct = {};
  /// To a device, by NVIDIA's GPUDirect Storage (cuFile) in place of the pinned ring: true wherever cuFile takes the
  /// file, false never; unset: as the environment's PENSTOCK_GDS says (auto, on or off), by default where that is the
  /// direct way and the bytes are not cached. What has a checksum that is verified goes through the ring. The report
  /// says what happened.
  std::optional<bool> gds = {};
  /// Threads that read; 0 chooses from the processors this process may use, and more where they wait for the disk.
  std::size_t threads = 0;
  /// Filled in when set.
  Report* report = nullptr;
  /// kCancelled soon after it is set; what was read is dropped.
  std::stop_token stop = {};
};

/// A tensor of an archive and the memory it is to be read into.
struct Placement {
  std::size_t entry = 0;  ///< position in Archive::entries()
  Tensor to;
};

/// A storage of an archive and the memory it is to be read into.
struct StoragePlacement {
  std::size_t storage = 0;  ///< position in Archive::storages()
  Tensor to;                ///< contiguous uint8, as many as the storage has bytes
};

namespace detail {
struct ArchiveState;
}

/// A tensor of an opened archive, or a slice of one, not loaded. A value handle that keeps the archive open.
class LazyTensor {
 public:
  const std::string& name() const& noexcept { return entry_.name; }
  std::string name() const&& { return entry_.name; }
  const DType& dtype() const& noexcept { return entry_.dtype; }
  DType dtype() const&& noexcept { return entry_.dtype; }
  const Shape& shape() const& noexcept { return entry_.shape; }
  Shape shape() const&& { return entry_.shape; }
  const Strides& strides() const& noexcept { return entry_.strides; }
  Strides strides() const&& { return entry_.strides; }
  /// Bytes that load() will deliver.
  std::uint64_t nbytes() const { return entry_.nbytes(); }
  const TensorEntry& entry() const& noexcept { return entry_; }
  TensorEntry entry() const&& { return entry_; }
  /// The bytes it is a view of, and the file they lie in; valid while this handle or its archive lives.
  const StorageEntry& storage() const noexcept;
  const SourcePtr& source() const noexcept;

  /// Narrow it; the rules of Tensor::slice and Tensor::select. Reads nothing.
  LazyTensor slice(std::size_t dim, std::int64_t start, std::int64_t stop, std::int64_t step = 1) const;
  LazyTensor select(std::size_t dim, std::int64_t index) const;
  /// The same bytes, to be loaded in the order that they have in the file, for who swaps them or has types that are
  /// swapped, as NumPy: its own entry() is not byte_swapped.
  LazyTensor as_stored() const;

  /// Reads the bytes this view needs, and gaps of up to 16 KiB between them, into new memory; of a deflated storage all
  /// has to be inflated. Elements that lie without holes in the file keep their strides (Fortran order stays), others
  /// become contiguous.
  /// A whole tensor is verified by the recorded CRC of the record it lies in, for which all of that is read (once for
  /// an archive); a slice is not, unless it is all of the record. kChanged where the file was written to since it was
  /// opened, kTruncated where it was cut.
  Tensor load(const LoadOptions& options = {}) const;
  Tensor load(Device device) const { return load(LoadOptions{.device = device}); }

 private:
  friend class Archive;
  LazyTensor(std::shared_ptr<const detail::ArchiveState> state, TensorEntry entry);

  void narrowed(const TensorEntry& from, std::int64_t elements);

  std::shared_ptr<const detail::ArchiveState> state_;
  TensorEntry entry_;
  bool is_whole_ = true;  ///< and not a slice with fewer elements
};

/// An opened file: its index, no payload (of a file of up to 64 KiB all of it, read once and copied by each load that
/// does not ask for a map, a direct read or a device). A value handle; const members may be called from any thread.
/// What looks into the index is valid while a handle on the archive lives, so a temporary refuses it. Every load gives
/// kChanged where the file was written to since it was opened, and kTruncated where it was cut; what it filled by then
/// is of no use. A file that another one replaced under its name stays as it was.
class Archive {
 public:
  /// "npy", "npz", "pt", "safetensors", "shard-index".
  std::string_view format() const noexcept;
  const std::string& path() const& noexcept;
  const std::string& path() const&& = delete;
  std::span<const TensorEntry> entries() const& noexcept;
  std::span<const TensorEntry> entries() const&& = delete;
  std::span<const StorageEntry> storages() const& noexcept;
  std::span<const StorageEntry> storages() const&& = delete;
  /// Files it is made of (several for a sharded index).
  std::span<const SourcePtr> sources() const& noexcept;
  std::span<const SourcePtr> sources() const&& = delete;
  /// The nested content with tensors as entries that are not loaded.
  const Value& structure() const& noexcept;
  const Value& structure() const&& = delete;
  /// `__metadata__` of safetensors, archive facts of `.pt` ("version", "byteorder"), as text.
  const std::map<std::string, std::string>& metadata() const& noexcept;
  const std::map<std::string, std::string>& metadata() const&& = delete;
  /// Whether the file has any: true also for an empty `__metadata__`.
  bool has_metadata() const noexcept;
  /// Names in the file that Penstock does not know and keeps as inert objects.
  std::span<const std::string> unknown_globals() const& noexcept;
  std::span<const std::string> unknown_globals() const&& = delete;

  bool contains(std::string_view name) const noexcept;
  /// kKeyNotFound lists near names. For `.npz`, "a" and "a.npy" both find it.
  LazyTensor operator[](std::string_view name) const;
  LazyTensor entry(std::size_t index) const;

  /// The part of the content that a key leads to, as an archive by itself: its structure is that value, its entries are
  /// the tensors in it, named as from there, and loading it reads their bytes alone. `key`: one of a dict's, or several
  /// with dots between them, where positions in lists and integer keys are written in digits ("optimizer.state.0"). A
  /// key that has dots itself is found first. kKeyNotFound says what is there.
  Archive part(std::string_view key) const;
  /// The same by a single key: a string, or an integer that is a key of a dict or a position in a list.
  /// kInvalidArgument for other values.
  Archive part(const Value& key) const;
  /// The items of the content, a dict, whose keys are strings that begin with `prefix`, called by what follows it:
  /// "module." takes the state dict out of what a wrapper of the module saved. kKeyNotFound when there is none,
  /// kDTypeMismatch when the content is no dict.
  Archive with_prefix(std::string_view prefix) const;

  /// Everything, nested as in the file; storages that tensors share are read once and stay shared. Large storages of
  /// one file lie in common blocks: a block is released with the last tensor in it.
  Value load(const LoadOptions& options = {}) const&;
  /// The same, by an archive that is moved from: what memory has of the file is handed out and not copied, where no
  /// other handle on it is left.
  Value load(const LoadOptions& options = {}) &&;
  /// Reads tensors into memory that is there already, the host's or a device's, converting where the dtypes differ:
  /// straight from file to place (to a device through the pinned ring) where bytes and order agree. Everything is
  /// checked before the first byte is read: kIndexOutOfRange, kShapeMismatch, kDTypeMismatch, kInvalidArgument for
  /// undefined and read-only tensors. When it returns, nothing of it is under way any more. When reading fails, the
  /// tensors hold what was read so far. Places must not overlap.
  void load_into(std::span<const Placement> placements, const LoadOptions& options = {}) const;
  /// Each of `storages()` as a tensor of one dimension: what adapters to other libraries make views of, with their own
  /// flags. Of the type of the tensors in it where they agree, else of uint8; bytes in this machine's order
  /// (kUnsupported where tensors of one storage disagree about that), torch's conj and neg bits not applied. A storage
  /// that no tensor has elements in is undefined.
  std::vector<Tensor> load_storages(const LoadOptions& options = {}) const;
  /// The same bytes into memory that is there already, as `load_into` does it. Nothing is written for a storage that no
  /// tensor has elements in.
  void load_storages_into(std::span<const StoragePlacement> placements, const LoadOptions& options = {}) const;

 private:
  friend Archive open(SourcePtr source, const OpenOptions& options);
  friend struct detail::ArchiveState;
  explicit Archive(std::shared_ptr<const detail::ArchiveState> state) : state_(std::move(state)) {}

  std::shared_ptr<const detail::ArchiveState> state_;
};

/// Reads the index of a tensor file, whatever its extension; kUnknownFormat when no format recognises it.
Archive open(std::string_view path, const OpenOptions& options = {});
/// kInvalidArgument without a source.
Archive open(SourcePtr source, const OpenOptions& options = {});

/// The only tensor of a file; kInvalidArgument names what is there when it holds none, several or other values.
Tensor load(std::string_view path, const LoadOptions& options = {});
/// The whole content of a file; a file of one bare tensor gives a kTensor value.
Value load_value(std::string_view path, const LoadOptions& options = {});

}  // namespace penstock
