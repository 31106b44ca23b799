#include "format/dcp/new_checkpoint.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/format.h"
#include "format/folder.h"
#include "io/file/file_url.h"
#include "io/file/output_set.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

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
    : folder_(io::absolute(path)), options_(options), existing_(existing) {
  if (folder_.empty()) folder_ = io::local_path(path);  // nobody knows where this process is
  // What is left of a URL without a bucket is still one, and refused as such.
  while (folder_.size() > 1 && folder_.ends_with('/') && !folder_.ends_with("://")) folder_.pop_back();
  made_.make(folder_);
  if (!folder_.ends_with('/')) folder_ += '/';
  const std::vector<std::string> present = io::names_in(folder_);
  require_free(present);
  data_name_ = unused(present);
  std::copy_if(present.begin(), present.end(), std::back_inserter(earlier_), is_of_checkpoint);
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
  made_.keep();
  for (const std::string& name : earlier_) io::remove_output(path_of(name));
}

}  // namespace penstock::format::dcp
