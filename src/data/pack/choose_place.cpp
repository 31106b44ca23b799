#include "data/pack/choose_place.h"

#include "data/pack/new_folder.h"
#include "data/pack/new_prefix.h"
#include "io/file/file_url.h"
#include "io/file/output.h"
#include "io/file/url.h"

namespace penstock::data {

std::unique_ptr<NewPlace> choose_place(const std::string& path) {
  io::require_output(path);
  if (io::is_url(path)) return std::make_unique<NewPrefix>(path);
  return std::make_unique<NewFolder>(io::local_path(path));
}

void require_new_place(const std::string& path) {
  io::is_url(path) ? require_new_prefix(path) : require_new_folder(path);
}

}  // namespace penstock::data
