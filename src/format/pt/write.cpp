// Writes the records of a `.pt` in torch's order: the pickle, facts about the archive, the storages, then version and
// id.

#include "format/pt/write.h"

#include <algorithm>
#include <string>

#include "core/format.h"
#include "format/pt/content.h"
#include "io/copy/crc32.h"

namespace penstock::format {

namespace {

/// The archive's folder: the file's name without its extension, as torch does; "archive" where that is not plain ASCII.
std::string folder_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.rfind('.'));
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c < '\x7f' && c != '\\'; });
  return std::string(plain && !name.empty() && name != "." && name != ".." ? name : "archive");
}

/// 40 digits that torch makes of names and CRCs, and that no reader checks.
std::string serialization_id(std::string_view pickle) {
  const std::uint32_t crc = io::crc32(0, std::as_bytes(std::span(pickle)));
  return core::format("{:020}{:020}", std::uint64_t{crc} * 0x9E3779B97F4A7C15U, crc);
}

}  // namespace

std::string pt_prefix(std::string_view path) { return folder_of(path) + "/"; }

void write_pt_facts(ZipWriter& zip, const std::string& prefix) {
  zip.add_text(prefix + ".format_version", "1");
  zip.add_text(prefix + ".storage_alignment", std::to_string(kPtAlignment));
  zip.add_text(prefix + "byteorder", "little");
}

void write_pt_end(ZipWriter& zip, const std::string& prefix, std::string_view pickle) {
  zip.add_text(prefix + "version", "3\n");
  zip.add_text(prefix + ".data/serialization_id", serialization_id(pickle));
  zip.finish();
}

namespace {

/// `storage` writes the record of that name.
template <class Write>
void write_records(const PtPickle& pickle, io::ByteSink& sink, std::string_view path, Write storage) {
  const std::string prefix = pt_prefix(path);
  ZipWriter zip(sink, ZipStyle::kTorch, kPtAlignment);
  zip.add_text(prefix + "data.pkl", pickle.text);
  write_pt_facts(zip, prefix);
  for (std::size_t key = 0; key < pickle.storages.size(); ++key) {
    storage(zip, core::format("{}data/{}", prefix, key), pickle.storages[key]);
  }
  write_pt_end(zip, prefix, pickle.text);
}

}  // namespace

void write_pt(const Value& value, io::ByteSink& sink, const SaveOptions& /*options*/, std::string_view path) {
  write_records(pickle_for_torch(value), sink, path,
                [](ZipWriter& zip, const std::string& name, const PlannedStorage& storage) {
                  const Tensor bytes = storage.bytes.to(Device{});
                  zip.add(name, std::span<const std::byte>(bytes.data(), bytes.nbytes()));
                });
}

void write_unloaded_pt(const Unloaded& content, io::ByteSink& sink, const SaveOptions& /*options*/,
                       std::string_view path) {
  write_records(pickle_for_torch(content), sink, path,
                [&](ZipWriter& zip, const std::string& name, const PlannedStorage& storage) {
                  zip.begin(name, storage.nbytes);
                  ZipMemberSink member(zip);
                  content.payload(storage.number, member);
                  zip.end();
                });
}

}  // namespace penstock::format
