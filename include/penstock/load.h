#pragma once

/// Tensors from files into memory. `load` gives the whole content of a file, `load_tensor` the only tensor in it, and
/// `open` an Archive, which knows what the file holds and reads only what you ask it for. Start at the end of this
/// header, with those three functions.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
#include "penstock/flag.h"
#include "penstock/iterate.h"
#include "penstock/report.h"
#include "penstock/source.h"
#include "penstock/tensor.h"
#include "penstock/text_view.h"
#include "penstock/value.h"

namespace penstock {

struct LoadOptions {
  /// Where the tensors go. kInvalidArgument from `load_into`, whose memory is given.
  Device device = {};
  /// Map the file instead of reading it: tensors are views of the file, and nothing is read until they are used. On the
  /// host only. kUnsupported where the bytes are not the values (compressed, other byte order, torch's conj and neg
  /// bits). A tensor that the file does not align is read all the same, and the report says so. Checksums are not
  /// verified. Unset: read. A mapped tensor is read-only. If another program cuts the file, reading the tensor outside
  /// of Penstock's own calls raises SIGBUS. kInvalidArgument from `load_into`, whose memory is given.
  OptionalFlag mmap = {};
  /// Verify recorded checksums of what is read.
  Flag verify = true;
  /// Read past the page cache with O_DIRECT (true) or through it (false). Unset: past it for bytes that are not cached.
  /// Reads go through the cache in any case where the file system has no O_DIRECT, and for a slice whose elements do
  /// not lie together; the report says so. kUnsupported (true) together with `mmap`.
  OptionalFlag direct = {};
  /// Use NVIDIA's GPUDirect Storage (cuFile) to fill a device, instead of the pinned ring. True: wherever cuFile takes
  /// the file. False: never. Unset: as the environment's PENSTOCK_GDS says (auto, on or off); by default where cuFile
  /// reads directly and the bytes are not cached. Bytes whose checksum is verified go through the ring. The report says
  /// what happened. Changes nothing on the host; kUnsupported (true) together with `mmap`.
  OptionalFlag gds = {};
  /// Threads that read. 0 chooses: one for each processor that this process may use, and more when they wait for the
  /// disk. Nothing is read of a mapped file.
  std::size_t threads = 0;
  /// What tensors of floating-point and complex numbers become, as by torch's Module.to(dtype): a complex number keeps
  /// its real part where this is a floating-point type. Others keep their type: integers, bool, text, and types that
  /// are not converted. Elements are converted in host memory, some 64 MiB of the file at a time, so that a load needs
  /// little more memory than its result. Tensors that are one view of the same bytes stay one; other views of bytes
  /// that they share part. kInvalidArgument for other types, and from `load_into` and `load_storages`, whose tensors
  /// say what they want; kUnsupported together with `mmap`. Unset: types stay as they are in the file.
  std::optional<DType> dtype = {};
  /// Where elements are converted (by `dtype`, and by `load_into`): kInvalidArgument, which names the tensor, for a
  /// value that the type has no number for (1e300 as float32, NaN as int32). Otherwise values are converted as by
  /// Tensor::to, where a finite number may become infinite.
  Flag strict = false;
  /// Read everything into one block of host memory that other processes map too: a file without a name (memfd), of
  /// which a child after `fork` has the mapping, and other processes find the descriptor in /proc. The block is there
  /// until the last tensor in it is gone. kUnsupported where the system gives no such memory, and together with
  /// `device`, `mmap` and `gds`; kInvalidArgument from `load_into` and `load_storages_into`, whose memory is given.
  Flag shared = false;
  /// Read everything into one block of page-locked host memory, from which devices copy without the processor; with
  /// `shared` too into shared memory that this process has page-locked. The same errors, and kNoDevice without a
  /// device.
  Flag pinned = false;
  /// Where to write how the load was done; null: nowhere. It is an option and no result, because loads that return
  /// nothing take it too, and few callers ask.
  Report* report = nullptr;
  /// Setting it stops the load with kCancelled; what was read is dropped.
  std::stop_token stop = {};
};

/// A tensor of an archive and the memory it is to be read into.
struct Placement {
  std::size_t entry = 0;  ///< position in Archive::entries()
  Tensor to;
};

/// The same by the tensor's name.
struct NamedPlacement {
  std::string name = {};
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
  /// No tensor: loading it is kInvalidArgument.
  LazyTensor();
  LazyTensor(const LazyTensor&) = default;
  LazyTensor(LazyTensor&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  LazyTensor& operator=(const LazyTensor&) & = default;
  LazyTensor& operator=(LazyTensor&&) & noexcept = default;
  ~LazyTensor() = default;

  const std::string& name() const& noexcept { return entry_.name; }
  const std::string name() const&& { return entry_.name; }
  const DType& dtype() const& noexcept { return entry_.dtype; }
  DType dtype() const&& noexcept { return entry_.dtype; }
  const Shape& shape() const& noexcept { return entry_.shape; }
  Shape shape() const&& { return entry_.shape; }
  const Strides& strides() const& noexcept { return entry_.strides; }
  Strides strides() const&& { return entry_.strides; }
  /// Bytes that load() gives.
  std::uint64_t nbytes() const { return entry_.nbytes(); }
  const TensorEntry& entry() const& noexcept { return entry_; }
  const TensorEntry entry() const&& { return entry_; }
  /// The bytes that this is a view of, and the file they lie in. Valid while this handle or its archive lives.
  const StorageEntry& storage() const& noexcept;
  const StorageEntry storage() const&& { return storage(); }
  const Source& source() const& noexcept;
  Source source() const&& { return source(); }
  /// The size of one dimension; negative ones count from the end. kIndexOutOfRange.
  std::int64_t size(Integer dim) const;

  /// A part of it, by the rules of Tensor::slice and Tensor::select. Reads nothing.
  LazyTensor slice(Integer dim, Integer start, Integer stop, Integer step = 1) const;
  LazyTensor select(Integer dim, Integer index) const;
  /// The same tensor, but load() gives its bytes in the order that they have in the file. For callers who swap bytes
  /// themselves or have types for either order, as NumPy does. The encoding in the entry() of the result is not
  /// `swapped`.
  LazyTensor as_stored() const;

  /// Reads the bytes that this view needs, and gaps of up to 16 KiB between them, into new memory. A deflated storage
  /// is inflated as a whole. Elements that lie without holes in the file keep their strides (Fortran order stays),
  /// others become contiguous. A whole tensor is verified by the recorded CRC of its record, which is read as a whole
  /// for that, once for each archive; a slice where its read brings the whole record. kChanged when the file was
  /// written to since it was opened, kTruncated when it was cut.
  Tensor load(const LoadOptions& options = {}) const;
  Tensor load(Device device) const { return load(LoadOptions{.device = device}); }
  /// Reads into memory that you have already, by the rules of Archive::load_into; a slice too.
  void load_into(const Tensor& target, const LoadOptions& options = {}) const;

 private:
  friend class Archive;
  LazyTensor(std::shared_ptr<const detail::ArchiveState> state, TensorEntry entry);

  void narrowed(const TensorEntry& from, std::int64_t elements);

  std::shared_ptr<const detail::ArchiveState> state_;
  TensorEntry entry_;
  bool is_whole_ = true;  ///< false for a slice with fewer elements
};

/// An opened file: its index, and none of its payload. A file of up to 64 KiB is an exception: it is read whole when it
/// is opened, and loads copy from there unless they ask for a map, a direct read or a device. A value handle; const
/// members may be called from any thread. References into the index are valid while a handle on the archive lives, so a
/// temporary refuses to give them. Every load gives kChanged when the file was written to since it was opened, and
/// kTruncated when it was cut; the memory it has filled by then must not be used. When another file replaces this one
/// under its name, the archive goes on with the file that it opened.
class Archive {
 public:
  /// No file: an archive without tensors, whose structure is None.
  Archive();
  Archive(const Archive&) = default;
  Archive(Archive&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Archive& operator=(const Archive&) & = default;
  Archive& operator=(Archive&&) & noexcept = default;
  ~Archive() = default;

  /// "npy", "npz", "pt", "safetensors", "shard-index", "dcp", "torch_checkpointing", "tar", ...: a row of the table.
  const std::string_view format() const noexcept;
  const std::string& path() const& noexcept;
  const std::string& path() const&& = delete;
  const std::span<const TensorEntry> entries() const& noexcept;
  std::span<const TensorEntry> entries() const&& = delete;
  const std::span<const StorageEntry> storages() const& noexcept;
  std::span<const StorageEntry> storages() const&& = delete;
  /// Files it is made of (several for a sharded index).
  const std::span<const Source> sources() const& noexcept;
  std::span<const Source> sources() const&& = delete;
  /// The nested content with tensors as entries that are not loaded.
  const Value& structure() const& noexcept;
  const Value& structure() const&& = delete;
  /// `__metadata__` of safetensors, archive facts of `.pt` ("version", "byteorder"), as text.
  const std::map<std::string, std::string>& metadata() const& noexcept;
  const std::map<std::string, std::string>& metadata() const&& = delete;
  /// Whether the file has metadata; true also for an empty `__metadata__`.
  bool has_metadata() const noexcept;
  /// Names of classes and functions in the file that Penstock does not know. It keeps them as objects that run nothing.
  const std::span<const std::string> unknown_globals() const& noexcept;
  std::span<const std::string> unknown_globals() const&& = delete;

  bool contains(TextView name) const noexcept;
  /// The tensor of that name; kKeyNotFound lists near names. In an `.npz`, "a" and "a.npy" both find it.
  LazyTensor operator[](TextView name) const;
  /// The tensor at this place in entries(); kIndexOutOfRange.
  LazyTensor entry(Integer index) const;
  template <detail::IndexLike T>
  LazyTensor operator[](T index) const {
    return entry(index);
  }
  /// Tensors in it, as many as entries().
  std::size_t size() const noexcept { return entries().size(); }
  /// For range-for: each tensor, not loaded, in the order of entries(). `for (const LazyTensor& tensor : archive)`.
  struct Entry {
    LazyTensor operator()(const Archive& archive, std::size_t index) const;
  };
  using Iterator = detail::IndexIterator<Archive, Entry>;
  Iterator begin() const;
  Iterator end() const;

  /// The part of the content that a key leads to, as an archive of its own: its structure is that value, its entries
  /// are the tensors in it, with names that begin there, and loading it reads only their bytes. `key` is a key of a
  /// dict, or several keys with dots between them; positions in lists and integer keys are written in digits
  /// ("optimizer.state.0"). A key that has dots itself is found first. kKeyNotFound says what is there.
  Archive part(TextView key) const;
  template <std::convertible_to<TextView> Text>
  Archive part(const Text& key) const {
    return part(TextView(key));
  }
  /// The same by one key: a string, or an integer that is a key of a dict or a position in a list.
  /// kInvalidArgument for other values.
  Archive part(const Value& key) const;
  /// Of a dict, the items whose keys begin with `prefix`, under what follows the prefix: "module." takes the state dict
  /// out of what a wrapper of the module saved. kKeyNotFound when no key begins so, kDTypeMismatch when the content is
  /// no dict.
  Archive with_prefix(TextView prefix) const;

  /// Everything, nested as in the file. Storages that tensors share are read once and stay shared. Large storages of
  /// one file lie in common blocks of memory; a block is released with the last tensor in it.
  Value load(const LoadOptions& options = {}) const&;
  /// The same for an archive that is moved from. When no other handle on it is left, bytes that are in memory already
  /// are handed out and not copied.
  Value load(const LoadOptions& options = {}) &&;
  /// Reads tensors into memory that you have already, on the host or a device, and converts where dtypes differ. Where
  /// dtype and byte order agree, bytes go straight from the file to their place (to a device through the pinned ring).
  /// Everything is checked before the first byte is read: kIndexOutOfRange, kShapeMismatch, kDTypeMismatch, and
  /// kInvalidArgument for undefined and read-only tensors. When it returns, all work on the memory has ended. When
  /// reading fails, the tensors hold what was read so far. Places must not overlap.
  void load_into(std::span<const Placement> placements, const LoadOptions& options = {}) const;
  /// The same by name: `archive.load_into({{"weight", weight}, {"bias", bias}})`. kKeyNotFound as of operator[].
  void load_into(std::initializer_list<NamedPlacement> placements, const LoadOptions& options = {}) const;
  void load_into(std::span<const NamedPlacement> placements, const LoadOptions& options = {}) const;
  /// Each of `storages()` as a tensor of one dimension, for adapters to other libraries, which make views of it. It has
  /// the dtype of the tensors in it when they agree, else uint8. Bytes are in this machine's order (kUnsupported when
  /// tensors of one storage disagree about theirs); torch's conj and neg bits are not applied. A storage that no tensor
  /// has elements in is an undefined tensor.
  std::vector<Tensor> load_storages(const LoadOptions& options = {}) const;
  /// The same bytes into memory that you have already, by the rules of `load_into`. Nothing is written for a storage
  /// that no tensor has elements in.
  void load_storages_into(std::span<const StoragePlacement> placements, const LoadOptions& options = {}) const;

 private:
  friend Archive open(Source source, const OpenOptions& options);
  friend struct detail::ArchiveState;
  explicit Archive(std::shared_ptr<const detail::ArchiveState> state) : state_(std::move(state)) {}

  std::shared_ptr<const detail::ArchiveState> state_;
};

inline LazyTensor Archive::Entry::operator()(const Archive& archive, std::size_t index) const {
  return archive.entry(index);
}
inline Archive::Iterator Archive::begin() const { return {*this, 0}; }
inline Archive::Iterator Archive::end() const { return {*this, size()}; }

/// Reads the index of a tensor file, whatever its extension. Paths are text or a std::filesystem::path, here and in
/// `load`; text is not made into a path first, because that takes as long as a tenth of loading a small file. `path`
/// may also be a location as of `open_source`. kUnknownFormat when no format recognises the content.
Archive open(TextView path, const OpenOptions& options = {});
/// The same for bytes from elsewhere, such as `memory_source` gives.
Archive open(Source source, const OpenOptions& options = {});

/// The whole content of a file, nested as in the file. A file of one bare tensor gives a value of kind kTensor.
Value load(TextView path, const LoadOptions& options = {});
/// The only tensor of a file. kInvalidArgument says what is there when the file holds no tensor, several, or other
/// values.
Tensor load_tensor(TextView path, const LoadOptions& options = {});

}  // namespace penstock
