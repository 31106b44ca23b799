#include "format/dcp/new_checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/system_error.h"
#include "format/folder.h"
#include "io/file/file_url.h"
#include "io/file/folder_names.h"
#include "io/file/output_set.h"
#include "io/file/url.h"
#include "io/remote/list.h"
#include "io/remote/location.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMetadataName = ".metadata";

/// "__0_3.distcp": of a rank, and its number. Whoever saves a checkpoint calls files so.
bool is_of_checkpoint(std::string_view name) {
  if (!name.starts_with("__") || !name.ends_with(kCheckpointExtension)) return false;
  name = name.substr(2, name.size() - 2 - kCheckpointExtension.size());
  const std::size_t middle = name.find('_');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  return middle != name.npos && is_number(name.substr(0, middle)) && is_number(name.substr(middle + 1));
}

std::string unused(const std::vector<std::string>& names) {
  for (std::size_t number = 0;; ++number) {
    std::string name = core::format("__0_{}{}", number, kCheckpointExtension);
    if (std::find(names.begin(), names.end(), name) == names.end()) return name;
  }
}

}  // namespace

NewCheckpoint::NewCheckpoint(std::string_view path, const SaveOptions& options, io::Existing existing)
    : folder_(io::local_path(path)), options_(options), existing_(existing) {
  while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  if (!io::is_url(folder_)) {
    std::error_code error;
    if (fs::exists(folder_, error) && !fs::is_directory(folder_, error)) {
      core::throw_errno(ENOTDIR, "cannot write a checkpoint into it", {.path = folder_});
    }
    made_.make(folder_);
  }
  if (!folder_.ends_with('/')) folder_ += '/';
  const std::vector<std::string> present = names();
  require_free(present);
  data_name_ = unused(present);
  std::copy_if(present.begin(), present.end(), std::back_inserter(earlier_), is_of_checkpoint);
}

NewCheckpoint::MadeFolders::~MadeFolders() {
  if (core::forks() != forks) return;
  std::error_code ignored;
  for (; !paths.empty(); paths.pop_back()) fs::remove(paths.back(), ignored);  // only where it is empty
}

void NewCheckpoint::MadeFolders::make(const std::string& folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) missing.push_back(at);
  for (; !missing.empty(); missing.pop_back()) {
    if (fs::create_directory(missing.back(), error)) paths.push_back(missing.back());
    if (error) core::throw_errno(error.value(), "cannot make the folder of a checkpoint", {.path = folder});
  }
}

std::vector<std::string> NewCheckpoint::names() const {
  if (io::is_url(folder_)) {
    std::vector<std::string> out;
    const io::remote::Location location = io::remote::parse(folder_);
    const io::remote::Objects listed = io::remote::list_objects(location, location.key, false);
    for (const io::remote::Object& object : listed.objects) out.push_back(object.key.substr(location.key.size()));
    for (const std::string& folder : listed.folders) out.push_back(folder.substr(location.key.size()));
    std::erase(out, "");
    return out;
  }
  return io::folder_names(folder_);
}

void NewCheckpoint::require_free(const std::vector<std::string>& names) const {
  if (existing_ == io::Existing::kReplace || names.empty()) return;
  const bool has_checkpoint = std::find(names.begin(), names.end(), kMetadataName) != names.end();
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the folder has {} already; name a new one, or {} with --force",
                           has_checkpoint ? "a checkpoint" : "other files",
                           has_checkpoint ? "replace it" : "put the checkpoint beside them"),
              {.path = folder_});
}

std::unique_ptr<io::Output> NewCheckpoint::open_data(std::function<std::uint64_t()> bytes) const {
  return io::open_output(
      path_of(data_name_),
      {.sync = options_.sync, .existing = io::Existing::kRefuse, .bytes = std::move(bytes), .stop = options_.stop});
}

void NewCheckpoint::commit(io::Output& data, const std::string& metadata) {
  io::OutputSet both;  // where `.metadata` may have come and its data stay, the next save removes what is of no use
  both.commit(path_of(data_name_), data);
  const std::unique_ptr<io::Output> out =
      io::open_output(path_of(kMetadataName), {.sync = options_.sync, .existing = existing_, .stop = options_.stop});
  out->write_text(metadata);
  both.commit_last(*out);
  made_.paths.clear();
  for (const std::string& name : earlier_) io::remove_output(path_of(name));
}

}  // namespace penstock::format::dcp
