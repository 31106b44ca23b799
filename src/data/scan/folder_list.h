#pragma once

// One folder of this machine, as all scans list it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::data {

enum class FileKind { kFile, kFolder, kLinkToFolder, kOther };

/// What `path` is, links followed; kOther when it does not exist.
FileKind kind_of(const std::string& path);

/// `folder` ("" is the working folder) and a name in it.
std::string join(const std::string& folder, std::string_view name);

/// Calls see(name, kind) for what lies in `folder`, in no order; not at all when it is not there. kPermission, kIo when
/// it cannot be listed.
void list_folder(const std::string& folder, const std::function<void(std::string_view, FileKind)>& see);

/// Tells the links in a folder that lead back up: to a folder that its path leads through, or to one that such a folder
/// lies in. Paths that follow no others end. Looks at the file system when it is first asked.
class WayBack {
 public:
  explicit WayBack(const std::string& folder) : folder_(folder) {}
  bool has(const std::string& link);

 private:
  const std::string& folder_;
  std::vector<std::string> way_;  ///< where the folders of its path really are, with '/' behind
};

/// Which folder was listed, and when it last changed. A folder is not known again when it changed so shortly before it
/// was listed that a later change may have the same time, or when it could not be listed: then all are 0.
struct FolderIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::int64_t changed = 0;

  friend bool operator==(const FolderIdentity&, const FolderIdentity&) = default;
};

/// Of the folder now; all 0 when there is none.
FolderIdentity identity_of(const std::string& folder);
/// What may be remembered of a folder that is about to be listed.
FolderIdentity lasting_identity_of(const std::string& folder);

}  // namespace penstock::data
