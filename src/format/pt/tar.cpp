// The tar archives of torch 0.1: members `sys_info`, `pickle`, `tensors`, `storages`, each pickles and plain integers
// back to back (torch/serialization.py, legacy_load).

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "format/pt/legacy.h"
#include "format/pt/pickle/calls.h"
#include "format/pt/pickle/structure.h"
#include "format/pt/pickle_window.h"
#include "format/tar/header.h"
#include "format/tar/members.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

using Kind = Value::Kind;
using pickle::Cell;

/// What is read for a pickle stays in memory as long as its cells: enough for the head of a storage or tensor.
constexpr std::uint64_t kPickleWindow = 256;
constexpr std::string_view kMembers[] = {"storages", "tensors", "pickle", "sys_info"};

using core::corrupt;

struct Member {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t end() const noexcept { return offset + size; }
};
using Members = std::map<std::string, Member, std::less<>>;

/// The archive's bytes for the walk over its members.
class Blocks final : public TarBytes {
 public:
  explicit Blocks(const FileBytes& file) noexcept : file_(file) {}
  std::span<const std::byte> view(std::uint64_t offset, std::size_t count) override {
    if (offset >= file_.size()) return {};
    return file_.at(offset, std::min<std::uint64_t>(count, file_.size() - offset), store_);
  }
  std::uint64_t size() const noexcept override { return file_.size(); }

 private:
  const FileBytes& file_;
  std::vector<std::byte> store_;
};

std::string_view plain_name(std::string_view name) noexcept { return name.starts_with("./") ? name.substr(2) : name; }

Members list_members(const FileBytes& file) {
  Members members;
  Blocks blocks(file);
  TarWalk walk(blocks, {});
  while (const auto found = walk.next()) {
    const std::string name(plain_name(found->name));
    if (found->kind != TarMember::Kind::kFile) {
      throw Error(ErrorCode::kUnsupported, "the tar archive has a member that is not a plain file",
                  {.offset = found->begin});
    }
    if (found->is_cut) {
      throw Error(ErrorCode::kTruncated,
                  core::format("a tar member has {}, but the file ends at byte {}; fetch or write it again",
                               core::counted(found->size, "byte"), file.size()),
                  {.offset = found->begin});
    }
    if (std::find(std::begin(kMembers), std::end(kMembers), name) == std::end(kMembers)) {
      corrupt(core::format("the tar archive has a member {}, which is not one of torch's", core::quoted(name)),
              found->begin);
    }
    if (!members.emplace(name, Member{found->data, found->size}).second) {
      corrupt(core::format("the tar archive has two members {}", core::quoted(name)), found->begin);
    }
  }
  if (!walk.has_end()) {
    throw Error(ErrorCode::kTruncated, "the tar archive has no end; fetch or write it again", {.offset = file.size()});
  }
  for (const std::string_view name : {"storages", "tensors", "pickle"}) {
    if (members.find(name) == members.end()) {
      corrupt(core::format("the tar archive has no member {}; torch.save did not write it", core::quoted(name)), 0);
    }
  }
  return members;
}

/// A key of a storage or tensor: an address, as a number or its text.
std::string key_of(const Cell& cell) {
  if (cell.is(Kind::kInt)) return std::to_string(cell.integer);
  if (cell.is(Kind::kString) || cell.is(Kind::kBytes) || cell.is(Kind::kBigInt)) return std::string(cell.text);
  throw Error(ErrorCode::kCorrupt, "the key of a storage or tensor is not a number");
}

class TarReader final : public pickle::Outside {
 public:
  TarReader(const FileBytes& file, const OpenOptions& options, Index& index)
      : file_(file), options_(options), index_(index) {}

  void read();
  std::uint32_t storage(std::string_view key, std::uint64_t nbytes, std::uint64_t itemsize) override;
  Cell* object(const Cell& id) override;

 private:
  /// Reads the pickle at `at`, which ends before `end`, moves `at` behind it, and gives its value; the cells live on.
  Cell* next(std::uint64_t& at, std::uint64_t end);
  std::int64_t next_int(std::uint64_t& at, std::uint64_t end);
  std::uint64_t next_count(std::uint64_t& at, std::uint64_t end);
  void read_storages(const Member& member);
  void read_storage_views(std::uint64_t& at, std::uint64_t end);
  void read_tensors(const Member& member);
  void read_tensor(std::uint64_t& at, std::uint64_t end);
  void define(std::string key, Cell* cell, std::uint64_t at);
  const pickle::StorageView& storage_of(const Cell& key, std::uint64_t at);

  const FileBytes& file_;
  const OpenOptions& options_;
  Index& index_;
  const pickle::Limits limits_ = pickle::Limits::of(file_.size());
  pickle::CellArena arena_{limits_.cells, limits_.text_slack};
  pickle::World world_{arena_, index_, *this};
  std::map<std::string, Cell*, std::less<>> objects_;
  std::vector<std::vector<std::byte>> kept_;  ///< pickles that cells view
};

void TarReader::read() {
  const Members members = list_members(file_);
  read_storages(members.find("storages")->second);
  read_tensors(members.find("tensors")->second);
  const Member& member = members.find("pickle")->second;
  std::uint64_t at = member.offset;
  Cell* root = next(at, member.end());
  if (at != member.end())
    corrupt(core::format("{} the end of the pickle", core::counted(member.end() - at, "byte follows", "bytes follow")),
            at);
  pickle::build_structure(root, world_, options_.decode);
}

std::uint32_t TarReader::storage(std::string_view /*key*/, std::uint64_t /*nbytes*/, std::uint64_t /*itemsize*/) {
  throw Error(ErrorCode::kCorrupt, "the pickle of a tar archive declares a storage, where a key was expected");
}

Cell* TarReader::object(const Cell& id) {
  // A class with its source: (class, file, source).
  if (id.is(Kind::kTuple) && !id.items.empty() && id.items[0]->is(Kind::kGlobal)) return id.items[0];
  if (id.is(Kind::kTuple)) return nullptr;
  const auto found = objects_.find(key_of(id));
  return found == objects_.end() ? nullptr : found->second;
}

Cell* TarReader::next(std::uint64_t& at, std::uint64_t end) {
  // The bytes are copied first: a window that proved too small has left no cell behind that matters.
  return with_window(file_, at, end, kPickleWindow, [&](std::span<const std::byte> bytes) {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    pickle::Machine machine(copy, at, arena_, world_, limits_);
    Cell* value = machine.run();
    copy.resize(machine.consumed());
    kept_.push_back(std::move(copy));
    at += machine.consumed();
    return value;
  });
}

std::int64_t TarReader::next_int(std::uint64_t& at, std::uint64_t end) {
  std::int64_t value = 0;
  if (!core::range_fits(at, sizeof value, end)) {
    throw Error(ErrorCode::kTruncated, "the tar member ends within a number", {.offset = at});
  }
  std::vector<std::byte> store;
  std::memcpy(&value, file_.at(at, sizeof value, store).data(), sizeof value);
  at += sizeof value;
  return value;
}

std::uint64_t TarReader::next_count(std::uint64_t& at, std::uint64_t end) {
  const std::uint64_t start = at;
  const Cell* count = next(at, end);
  if (!count->is(Kind::kInt) || count->integer < 0)
    corrupt("the count in a tar member is not an integer of 0 or more", start);
  return static_cast<std::uint64_t>(count->integer);
}

void TarReader::define(std::string key, Cell* cell, std::uint64_t at) {
  if (!objects_.emplace(std::move(key), cell).second) corrupt("two storages or tensors have one key", at);
}

const pickle::StorageView& TarReader::storage_of(const Cell& key, std::uint64_t at) {
  const auto found = objects_.find(key_of(key));
  if (found == objects_.end() || found->second->role != pickle::Role::kStorage) {
    corrupt("a tensor or view refers to a storage that is not in the archive", at);
  }
  return world_.views()[found->second->ref];
}

void TarReader::read_storages(const Member& member) {
  std::uint64_t at = member.offset;
  for (std::uint64_t left = next_count(at, member.end()); left > 0; --left) {
    const std::uint64_t start = at;
    const Cell* head = next(at, member.end());  // (key, location, class)
    if (!head->is(Kind::kTuple) || head->items.size() != 3 || head->items[2]->role != pickle::Role::kStorageType) {
      corrupt("a storage's head is not (key, location, class)", start);
    }
    const Cell& location = *head->items[1];
    if (!location.is(Kind::kString) && !location.is(Kind::kBytes)) corrupt("a storage's location is not text", start);
    const DType::Code dtype = head->items[2]->dtype;
    const std::int64_t count = next_int(at, member.end());
    if (count < 0) corrupt("a storage has a negative number of elements", at);
    const std::uint64_t nbytes = core::checked_mul(static_cast<std::uint64_t>(count),
                                                   std::uint64_t{DType(dtype).itemsize()}, "the size of a storage");
    if (!core::range_fits(at, nbytes, member.end())) {
      throw Error(ErrorCode::kTruncated, "a storage reaches beyond the end of its tar member", {.offset = at});
    }
    const auto position = static_cast<std::uint32_t>(index_.storages.size());
    std::string key = key_of(*head->items[0]);
    index_.storages.push_back({.name = key, .offset = at, .stored_bytes = nbytes, .nbytes = nbytes, .resident = {}});
    if (location.text != "cpu") index_.storages.back().location = location.text;
    define(std::move(key), world_.make_storage({.storage = position, .dtype = dtype, .nbytes = nbytes}), start);
    at += nbytes;
  }
  read_storage_views(at, member.end());
  if (at != member.end()) corrupt("bytes follow the storages", at);
}

/// A list of (key, key of the root, offset, elements).
void TarReader::read_storage_views(std::uint64_t& at, std::uint64_t end) {
  const std::uint64_t start = at;
  const Cell* views = next(at, end);
  if (!views->is(Kind::kList)) corrupt("the views of storages are not a list", start);
  for (const Cell* view : views->items) {
    if (!view->is(Kind::kTuple) || view->items.size() != 4 || !view->items[2]->is(Kind::kInt) ||
        !view->items[3]->is(Kind::kInt) || view->items[2]->integer < 0 || view->items[3]->integer < 0) {
      corrupt("a view of a storage is not (key, root, offset, size)", start);
    }
    pickle::StorageView part = storage_of(*view->items[1], start);
    const auto itemsize = static_cast<std::int64_t>(DType(part.dtype).itemsize());
    const auto offset = core::checked_mul(view->items[2]->integer, itemsize, "the offset of a storage");
    const auto size = core::checked_mul(view->items[3]->integer, itemsize, "the size of a storage");
    if (!core::range_fits(static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size), part.nbytes)) {
      corrupt("a view of a storage reaches beyond its end", start);
    }
    part.offset += static_cast<std::uint64_t>(offset);
    part.nbytes = static_cast<std::uint64_t>(size);
    define(key_of(*view->items[0]), world_.make_storage(part), start);
  }
}

void TarReader::read_tensors(const Member& member) {
  std::uint64_t at = member.offset;
  for (std::uint64_t left = next_count(at, member.end()); left > 0; --left) read_tensor(at, member.end());
  if (at != member.end()) corrupt("bytes follow the tensors", at);
}

void TarReader::read_tensor(std::uint64_t& at, std::uint64_t end) {
  const std::uint64_t start = at;
  const Cell* head = next(at, end);  // (key, storage's key, class)
  if (!head->is(Kind::kTuple) || head->items.size() != 3) corrupt("a tensor's head is not a tuple of three", start);
  const pickle::StorageView view = storage_of(*head->items[1], start);
  // The number of dimensions has four bytes and four that torch skips.
  const std::int64_t rank = next_int(at, end) & 0xFFFFFFFF;
  if (static_cast<std::uint64_t>(rank) > Shape::kMaxRank)
    corrupt(core::format("a tensor of {}", core::counted(rank, "dimension")), start);
  Shape shape;
  Strides strides;
  for (std::int64_t dim = 0; dim < rank; ++dim) shape.push_back(next_int(at, end));
  for (std::int64_t dim = 0; dim < rank; ++dim) strides.push_back(next_int(at, end));
  const std::int64_t offset = next_int(at, end);
  try {
    define(key_of(*head->items[0]),
           world_.make_tensor(pickle::plain_view(view, DType(view.dtype), offset, shape, strides)), start);
  } catch (const Error& error) {
    throw error.within({.offset = start});
  }
}

}  // namespace

/// By the name of the first member.
bool is_pt_tar(const FileBytes& file) {
  Blocks blocks(file);
  if (!has_tar_checksum(blocks.view(0, kTarBlock))) return false;
  try {
    const auto first = TarWalk(blocks, {}).next();
    return first && std::find(std::begin(kMembers), std::end(kMembers), plain_name(first->name)) != std::end(kMembers);
  } catch (const Error&) {
    return false;  // whoever reads it as any archive says what is wrong
  }
}

Index read_pt_tar(const FileBytes& file, const OpenOptions& options) {
  try {
    Index index;
    TarReader(file, options, index).read();
    index.metadata.emplace("version", "tar");
    return index;
  } catch (const Error& error) {
    throw error.within({.path = file.path()});
  }
}

}  // namespace penstock::format
