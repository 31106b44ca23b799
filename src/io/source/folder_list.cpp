#include "io/source/folder_list.h"

#include <algorithm>
#include <utility>

#include "io/source/source.h"

namespace penstock::io {
namespace {

Source bytes_of(std::string folder, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(name).push_back('\n');
  const Buffer bytes = Buffer::allocate(text.size());
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data()));
  return memory_source(bytes, std::move(folder));
}

}  // namespace

FolderList::FolderList(std::string folder, std::vector<std::string> names)
    : names_(std::move(names)), bytes_(bytes_of(std::move(folder), names_)) {}

const FolderList* as_folder_list(const ByteSource& source) noexcept {
  return dynamic_cast<const FolderList*>(&beneath(source));
}

}  // namespace penstock::io
